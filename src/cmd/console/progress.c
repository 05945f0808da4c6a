/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - see progress.h. */
#include "cmd/console/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/clock.h"

#define BAR_WIDTH 24
#define BAR_EVERY_NS 200000000
#define LINE_EVERY_NS 5000000000

static const char *const stage_names[STAGE_COUNT] = {
	[STAGE_DATASET] = "Prompts", [STAGE_ALIGN] = "Alignment", [STAGE_READY] = "Ready check",
	[STAGE_WARMUP] = "Warm-up", [STAGE_MAIN] = "Benchmark",
};

const char *progress_stage_name(enum point_stage stage)
{
	return stage_names[stage];
}

void progress_init(struct progress *p, enum serve_progress how)
{
	*p = (struct progress){ .stage = STAGE_COUNT };
	p->is_off = how == PROGRESS_NONE;
	p->is_bar = how == PROGRESS_BAR || (how == PROGRESS_AUTO && isatty(STDERR_FILENO));
}

void progress_clear(struct progress *p)
{
	if (p->is_drawn)
		fputs("\r\033[K", stderr);
	p->is_drawn = false;
}

static void sample_rate(struct progress *p, uint64_t tokens, int64_t now)
{
	int64_t span = now - p->sampled_ns;

	if (span < BAR_EVERY_NS)
		return;
	p->tokens_per_s = (double)(tokens - p->sampled_tokens) * 1e9 / (double)span;
	p->sampled_tokens = tokens;
	p->sampled_ns = now;
}

void progress_add_clock(struct buf *out, double seconds)
{
	int64_t s = (int64_t)seconds;

	if (s >= 3600)
		buf_printf(out, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
	else
		buf_printf(out, "%02d:%02d", (int)(s / 60), (int)(s % 60));
}

static void describe(struct progress *p, struct buf *out, uint64_t done, uint64_t total,
		     const struct load_progress *load, int64_t now)
{
	double elapsed = (double)(now - p->began_ns) / 1e9;

	buf_printf(out, "%" PRIu64 "/%" PRIu64 " [", done, total);
	progress_add_clock(out, elapsed);
	if (done > 0 && done < total) {
		buf_add_text(out, "<");
		progress_add_clock(out, elapsed * (double)(total - done) / (double)done);
	}
	buf_printf(out, ", %.2f/s", elapsed > 0 ? (double)done / elapsed : 0);
	if (load) {
		struct load_totals t = load_progress_total(load);

		sample_rate(p, t.tokens, now);
		/* The last line has the mean of the whole stage. */
		buf_printf(out, ", in flight %u, %.0f tok/s", t.admitted - t.done,
			   done < total ? p->tokens_per_s :
			   elapsed > 0 ? (double)t.tokens / elapsed : 0);
		if (t.failed)
			buf_printf(out, ", failed %u", t.failed);
	}
	buf_add_char(out, ']');
}

static void draw_bar(struct progress *p, const char *what, const char *text, uint64_t done,
		     uint64_t total)
{
	unsigned filled = total ? (unsigned)(done * BAR_WIDTH / total) : BAR_WIDTH;

	fprintf(stderr, "\r%s: %3u%%|%.*s%.*s| %s\033[K", what,
		total ? (unsigned)(done * 100 / total) : 100, (int)filled,
		"########################", (int)(BAR_WIDTH - filled), "                        ",
		text);
	p->is_drawn = true;
	if (done >= total) {
		fputc('\n', stderr);
		p->is_drawn = false;
	}
	fflush(stderr);
}

void progress_show(struct progress *p, enum point_stage stage, uint64_t done, uint64_t total,
		   const struct load_progress *load)
{
	int64_t now = clock_mono_ns();
	struct buf text = { 0 };

	if (p->is_off)
		return;
	if (stage != p->stage) {
		progress_clear(p);
		*p = (struct progress){ .is_bar = p->is_bar, .stage = stage, .began_ns = now,
					.sampled_ns = now, .drawn_ns = now };
	}
	if (done < total && now - p->drawn_ns < (p->is_bar ? BAR_EVERY_NS : LINE_EVERY_NS))
		return;
	/* A stage that took no time needs no line. */
	if (stage != STAGE_MAIN && done >= total && now - p->began_ns < BAR_EVERY_NS)
		return;
	p->drawn_ns = now;
	describe(p, &text, done, total, load, now);
	if (p->is_bar)
		draw_bar(p, stage_names[stage], text.data, done, total);
	else
		fprintf(stderr, "%s: %s\n", stage_names[stage], text.data);
	buf_release(&text);
}

void progress_bytes(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
	int64_t now = clock_mono_ns();
	double elapsed;
	struct buf text = { 0 };

	if (!p->is_bar)
		return;
	if (!p->began_ns)
		p->began_ns = p->drawn_ns = now;
	if (done < total ? now - p->drawn_ns < BAR_EVERY_NS : !p->is_drawn)
		return;
	p->drawn_ns = now;
	elapsed = (double)(now - p->began_ns) / 1e9;
	buf_printf(&text, "%.1f/%.1f MB [", (double)done / 1e6, (double)total / 1e6);
	progress_add_clock(&text, elapsed);
	if (done > 0 && done < total) {
		buf_add_text(&text, "<");
		progress_add_clock(&text, elapsed * (double)(total - done) / (double)done);
	}
	buf_printf(&text, ", %.1f MB/s]", elapsed > 0 ? (double)done / 1e6 / elapsed : 0);
	draw_bar(p, what, text.data, done, total);
	buf_release(&text);
}
