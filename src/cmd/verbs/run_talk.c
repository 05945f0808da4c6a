/* SPDX-License-Identifier: Apache-2.0 */
/* run_talk.c - see run_talk.h. */
#include "cmd/verbs/run_talk.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/console/progress.h"
#include "core/base/clock.h"
#include "core/base/str.h"

#define BAR_WIDTH 24
#define BAR_EVERY_NS 200000000
#define LINE_EVERY_NS 5000000000

void run_talk_init(struct run_talk *t, const char *progress)
{
	*t = (struct run_talk){ 0 };
	t->is_off = strcmp(progress, "none") == 0;
	t->is_bar = strcmp(progress, "bar") == 0 ||
		    (strcmp(progress, "auto") == 0 && isatty(STDERR_FILENO));
}

void run_talk_clear(struct run_talk *t)
{
	if (t->is_drawn)
		fputs("\r\033[K", stderr);
	t->is_drawn = false;
}

static void on_line(void *self, const char *text)
{
	run_talk_clear(self);
	cli_line(text);
}

static void on_text(void *self, struct str text)
{
	run_talk_clear(self);
	cli_out(text);
}

static void on_warn(void *self, const char *text)
{
	run_talk_clear(self);
	cli_warn(text);
}

/* " ######.................. 12/100" */
static void add_share(struct buf *line, const struct run_talk *t, uint64_t done, uint64_t total)
{
	uint64_t filled = done < total ? done * BAR_WIDTH / total : BAR_WIDTH;

	buf_add_char(line, ' ');
	for (uint64_t i = 0; t->is_bar && i < BAR_WIDTH; i++)
		buf_add_char(line, i < filled ? '#' : '.');
	buf_printf(line, "%s%" PRIu64 "/%" PRIu64, t->is_bar ? " " : "", done, total);
}

/* "Benchmark ######.................. 12/100 [00:03<00:22]"; without a total only the time. */
static void draw(struct run_talk *t, uint64_t done, uint64_t total, int64_t now)
{
	double elapsed_s = (double)(now - t->began_ns) / 1e9;
	struct buf line = { 0 };

	buf_add_text(&line, t->what);
	if (total)
		add_share(&line, t, done, total);
	buf_add_text(&line, " [");
	progress_add_clock(&line, elapsed_s);
	if (done && done < total) {
		buf_add_char(&line, '<');
		progress_add_clock(&line, elapsed_s * (double)(total - done) / (double)done);
	}
	buf_add_char(&line, ']');
	if (t->is_bar)
		fprintf(stderr, "\r%s\033[K", line.data);
	else
		fprintf(stderr, "%s\n", line.data);
	fflush(stderr);
	t->is_drawn = t->is_bar;
	t->drawn_ns = now;
	buf_release(&line);
}

static void on_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct run_talk *t = self;
	int64_t now = clock_mono_ns();

	if (t->is_off)
		return;
	if (strncmp(t->what, what, sizeof(t->what) - 1) != 0) {
		run_talk_clear(t);
		snprintf(t->what, sizeof(t->what), "%s", what);
		t->began_ns = now;
		t->drawn_ns = t->is_bar ? 0 : now;
	}
	if (now - t->drawn_ns >= (t->is_bar ? BAR_EVERY_NS : LINE_EVERY_NS))
		draw(t, done, total, now);
}

/* ---- suites ---- */

static void on_member(void *self, const struct suite_now *now)
{
	struct run_talk *t = self;
	char time[FMT_F64_BYTES];
	struct buf line = { 0 };

	run_talk_clear(t);
	*t->what = 0;
	if (t->is_single)
		return;
	buf_printf(&line, "[%zu/%zu] %s", now->at, now->n, now->member->label);
	if (now->has_ended) {
		buf_printf(&line, ": %s after ", outcome_status_name(now->status));
		buf_add_text(&line, fmt_rough_time(time, now->took_s));
		if (now->reason)
			buf_printf(&line, ": %s", now->reason);
		if (!isnan(now->left_s) && now->at < now->n) {
			buf_add_text(&line, "; about ");
			buf_add_text(&line, fmt_rough_time(time, now->left_s));
			buf_add_text(&line, " left");
		}
	}
	cli_line(line.data);
	buf_release(&line);
}

static void on_child(void *self, const struct suite_member *m, const char *text, bool is_err)
{
	run_talk_clear(self);
	fprintf(is_err ? stderr : stdout, "%s: %s\n", m->label, text);
	fflush(is_err ? stderr : stdout);
}

struct suite_hooks run_talk_hooks(struct run_talk *t, int log_fd)
{
	return (struct suite_hooks){
		.self = t, .member = on_member, .child = on_child,
		.run = { .self = t, .line = on_line, .text = on_text, .warn = on_warn,
			 .progress = on_progress, .cancel = cli_is_interrupted(),
			 .log_fd = log_fd },
	};
}
