/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.c - see live.h.
 *
 * A frame is assembled in memory and written with one call. Every line ends by clearing the rest of
 * its row, so nothing flickers; the screen is cleared only when its size has changed.
 */
#include "cmd/console/live.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

void live_data_begin(struct live_data *d, uint32_t n_rows)
{
	live_data_release(d);
	d->n_rows = n_rows;
	d->is_seen = mem_array(n_rows ? n_rows : 1, sizeof(*d->is_seen));
}

static void add_slow(struct live_data *d, struct live_slow one)
{
	unsigned at = d->n_slow;

	while (at > 0 && d->slow[at - 1].e2el_ns < one.e2el_ns)
		at--;
	if (at == LIVE_SLOWEST)
		return;
	d->n_slow += d->n_slow < LIVE_SLOWEST;
	memmove(&d->slow[at + 1], &d->slow[at], (d->n_slow - at - 1) * sizeof(*d->slow));
	d->slow[at] = one;
}

/* The first line of the error, without control characters. */
static void add_error(struct live_data *d, const struct record *r, uint32_t i)
{
	const struct request_row *row = &r->row[i];
	struct buf text = { 0 };
	struct live_error *to = d->error;
	size_t n = 0;

	d->n_errors += d->n_errors < LIVE_ERRORS;
	memmove(to + 1, to, (d->n_errors - 1) * sizeof(*to));
	to->row = i;
	to->category = row->fail < FAIL_COUNT ? (enum fail_category)row->fail : FAIL_NONE;
	record_error_of(r, row, &text);
	while (n + 1 < sizeof(to->text) && n < text.len && text.data[n] != '\n') {
		unsigned char c = (unsigned char)text.data[n];

		to->text[n++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
	}
	to->text[n] = 0;
	buf_release(&text);
}

static void add_times(struct live_data *d, const struct record *r, uint32_t i)
{
	const struct request_row *row = &r->row[i];
	struct live_slow slow = { .row = i, .events = row->n_events };

	if (row->n_events > d->gaps_cap) {
		d->gaps_cap = row->n_events;
		d->gaps = mem_grow(d->gaps, d->gaps_cap, sizeof(*d->gaps));
	}
	record_gaps(r, row, d->gaps);
	for (uint32_t k = 1; k < row->n_events; k++) {
		hist_add(&d->itl, d->gaps[k]);
		d->itl_sum_ms += (double)d->gaps[k] / 1e6;
	}
	slow.ttft_ns = row->first_event_ns - row->sent_ns;
	slow.e2el_ns = row->last_event_ns - row->sent_ns;
	hist_add(&d->ttft, slow.ttft_ns);
	d->ttft_sum_ms += (double)slow.ttft_ns / 1e6;
	hist_add(&d->e2el, slow.e2el_ns);
	add_slow(d, slow);
}

void live_data_take(struct live_data *d, const struct record *r, uint32_t n_begun,
		    uint64_t events_max)
{
	uint64_t events = 0;

	if (n_begun > d->n_rows)
		n_begun = d->n_rows;
	for (uint32_t i = d->low; i < n_begun && events < events_max; i++) {
		const struct request_row *row = &r->row[i];

		if (d->is_seen[i] || !record_is_published(row))
			continue;
		d->is_seen[i] = 1;
		events += row->n_events;
		if (row->fail < FAIL_COUNT && row->state != REQ_DONE)
			d->fail[row->fail]++;
		if (row->state == REQ_DONE && row->n_events)
			add_times(d, r, i);
		else if (row->state == REQ_FAILED)
			add_error(d, r, i);
	}
	while (d->low < n_begun && d->is_seen[d->low])
		d->low++;
}

void live_data_release(struct live_data *d)
{
	free(d->is_seen);
	free(d->gaps);
	*d = (struct live_data){ 0 };
}

#define GB 1e9
#define HEAD_COLUMNS 36 /* before the sparkline */

void live_ring_add(struct live_ring *r, double v)
{
	r->v[r->n++ % LIVE_SECONDS] = v;
}

static size_t kept(const struct live_ring *r)
{
	return r->n < LIVE_SECONDS ? r->n : LIVE_SECONDS;
}

/* part of a character's height, filled from the bottom. */
static void add_block(double part, bool is_utf8, struct buf *out)
{
	static const char *const blocks[] = { " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
					      "\u2586", "\u2587", "\u2588" };
	static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
	double eighths = ceil(part * 8);
	size_t level = !(eighths > 0) ? 0 : eighths > 8 ? 8 : (size_t)eighths;

	buf_add_text(out, is_utf8 ? blocks[level] : ascii[level]);
}

double live_ring_most(const struct live_ring *r)
{
	double most = 0;

	for (size_t i = r->n - kept(r); i < r->n; i++) /* one that is NAN is passed over */
		most = fmax(most, r->v[i % LIVE_SECONDS]);
	return most;
}

void live_ring_chart(const struct live_ring *r, unsigned row, unsigned rows, size_t room,
		     double full, bool is_utf8, struct buf *out)
{
	size_t n = kept(r) < room ? kept(r) : room;

	assert(row < rows);
	for (size_t x = 0; n && x < room; x++) {
		double v = r->v[(r->n - n + x * n / room) % LIVE_SECONDS];

		add_block(full > 0 ? v / full * rows - (rows - 1 - row) : 0, is_utf8, out);
	}
}

double live_ring_draw(const struct live_ring *r, size_t room, double full, bool is_utf8,
		      struct buf *out)
{
	size_t n = kept(r) < room ? kept(r) : room;

	if (full == 0)
		for (size_t i = r->n - n; i < r->n; i++) /* one that is NAN is passed over */
			full = fmax(full, r->v[i % LIVE_SECONDS]);
	for (size_t i = r->n - n; i < r->n; i++)
		add_block(full > 0 ? r->v[i % LIVE_SECONDS] / full : 0, is_utf8, out);
	return full;
}

void live_series_take(struct live_series *s, const struct run_sample *now)
{
	const struct system_now *m = &now->system;

	s->now[LIVE_RUNNING] = now->server.running;
	s->now[LIVE_WAITING] = now->server.waiting;
	s->now[LIVE_KV] = 100 * now->server.kv_usage;
	s->now[LIVE_GPU] = m->gpu_utilization;
	s->now[LIVE_GPU_MEMORY] = m->gpu_memory / GB;
	s->now[LIVE_GPU_POWER] = m->gpu_power;
	s->now[LIVE_HOST_CPU] = m->host_cpus_busy;
	s->now[LIVE_HOST_MEMORY] = m->host_memory / GB;
	s->now[LIVE_SERVER_CPU] = m->process_cpus_busy;
	s->now[LIVE_SERVER_RSS] = m->process_rss / GB;
	s->full[LIVE_KV] = s->full[LIVE_GPU] = 100;
	s->full[LIVE_GPU_MEMORY] = m->gpu_memory_total > 0 ? m->gpu_memory_total / GB : 0;
	s->full[LIVE_HOST_CPU] = m->host_cpus > 0 ? m->host_cpus : 0;
	s->full[LIVE_HOST_MEMORY] = m->host_memory_total > 0 ? m->host_memory_total / GB : 0;
}

void live_series_second(struct live_series *s)
{
	for (int i = 0; i < LIVE_SERIES_COUNT; i++)
		live_ring_add(&s->ring[i], s->now[i]);
}

static bool is_ever_told(const struct live_series *s, enum live_series_id id)
{
	const struct live_ring *r = &s->ring[id];

	for (size_t i = 0; i < r->n && i < LIVE_SECONDS; i++)
		if (!isnan(r->v[i]))
			return true;
	return !isnan(s->now[id]);
}

bool live_series_line(const struct live_series *s, enum live_series_id id, unsigned columns,
		      bool is_utf8, struct buf *out)
{
#define X(id, name, unit) { name, unit },
	static const struct { const char *name, *unit; } row[] = { LIVE_SERIES(X) };
#undef X
	char value[40] = "-", of[40] = "";

	if (!is_ever_told(s, id))
		return false;
	if (!isnan(s->now[id]))
		snprintf(value, sizeof(value), "%.*f", strcmp(row[id].unit, "requests") != 0,
			 s->now[id]);
	if (s->full[id] > 0 && strcmp(row[id].unit, "%") != 0)
		snprintf(of, sizeof(of), "of %.4g ", s->full[id]);
	buf_printf(out, "%-12s %8s %s%-*s", row[id].name, value, of, 13 - (int)strlen(of),
		   row[id].unit);
	live_ring_draw(&s->ring[id], columns > HEAD_COLUMNS + 8 ? columns - HEAD_COLUMNS : 8,
		       s->full[id], is_utf8, out);
	return true;
}

/* ---- the view ---- */

#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J" /* other screen, no cursor, no wrapping */
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"
#define EVENTS_MAX 100000 /* token events read for one frame */
#define BAR_WIDTH 32u
#define LINE_BYTES 1024
#define RED "\033[1;31m"
#define PLAIN "\033[0m"
#define SLOW 1.5 /* times the median E2EL, for a request to be listed as slow */

/* Values charted over time, one per second. */
enum live_chart { CHART_TOKENS, CHART_TTFT, CHART_ITL, CHART_COUNT };
#define CHART_GUTTER 10u /* columns of the axis */
#define CHART_ROOM 250u  /* columns at most: LINE_BYTES hold them */
#define CHART_ROWS_MIN 3u /* with the line of its name */
#define CHART_ROWS_MAX 13u
#define CHART_ROWS_GOOD 5u /* a list of slow requests leaves them that many */

struct live {
	const char *head;
	bool is_on, is_utf8, has_color;
	bool is_counting;        /* lines are counted, not drawn */
	unsigned columns, rows;  /* 0: not drawn yet */
	unsigned row;            /* the next line of the frame */
	int64_t began_ns, second_ns; /* the run; the current second */
	uint64_t second_tokens;  /* tokens and requests done when it began */
	uint32_t second_done;
	double tokens_per_s, done_per_s; /* of the last whole second */
	double second_sum_ms[CHART_COUNT]; /* of TTFT and ITL when it began, and how many */
	uint64_t second_n[CHART_COUNT];
	struct live_ring chart[CHART_COUNT];
	struct live_series series;
	struct live_data data;
	struct buf frame;
	struct buf waiting;      /* texts, each preceded by a letter and followed by NUL */
};

static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return strcasestr(v, "UTF-8") || strcasestr(v, "UTF8");
	}
	return false;
}

struct live *live_new(const char *head)
{
	struct live *l;

	if (!is_terminal())
		return NULL;
	l = mem_alloc(sizeof(*l));
	l->head = head;
	l->is_utf8 = is_utf8();
	l->has_color = !getenv("NO_COLOR");
	return l;
}

void live_set_head(struct live *l, const char *head)
{
	if (l)
		l->head = head;
}

bool live_is_on(const struct live *l)
{
	return l && l->is_on;
}

/* ---- the frame ---- */

/* Draws one line; what is beyond the screen's width or height is left out. */
__attribute__((format(printf, 2, 3)))
static void line(struct live *l, const char *fmt, ...)
{
	char text[LINE_BYTES];
	unsigned shown = 0;
	bool is_colored = false;
	va_list ap;

	if (++l->row >= l->rows || l->is_counting)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (const char *p = text; *p && (shown < l->columns || (*p & 0xc0) == 0x80); p++) {
		size_t escape = *p == '\033' ? strcspn(p, "m") : 0; /* a color: no width */

		if (escape && p[escape]) {
			buf_add(&l->frame, p, escape + 1);
			is_colored = true;
			p += escape;
			continue;
		}
		shown += (*p & 0xc0) != 0x80; /* continuation bytes of a character have no width */
		buf_add_char(&l->frame, *p);
	}
	buf_add_text(&l->frame, is_colored ? PLAIN "\033[K\r\n" : "\033[K\r\n");
}

static void add_clock(char out[16], double seconds)
{
	long long s = seconds > 0 && seconds < 1e9 ? (long long)seconds : 0;

	if (s >= 3600)
		snprintf(out, 16, "%lld:%02d:%02d", s / 3600 % 100000, (int)(s / 60 % 60),
			 (int)(s % 60));
	else
		snprintf(out, 16, "%02d:%02d", (int)(s / 60), (int)(s % 60));
}

static const char *color(const struct live *l, const char *code, bool is_on)
{
	return l->has_color && is_on ? code : "";
}

static void draw_head(struct live *l, const struct run_sample *now, double elapsed_s)
{
	const struct load_totals *t = &now->load;
	unsigned filled = now->n_rows ? (unsigned)((uint64_t)t->done * BAR_WIDTH / now->n_rows) : 0;
	char elapsed[16], left[16] = "--:--";

	add_clock(elapsed, elapsed_s);
	if (t->done)
		add_clock(left, elapsed_s * (now->n_rows - t->done) / t->done);
	line(l, "%s", l->head);
	line(l, "[%.*s%.*s] %u/%u  %s, %s left", (int)filled, "################################",
	     (int)(BAR_WIDTH - filled), "--------------------------------", t->done, now->n_rows,
	     elapsed, left);
	line(l, "in flight %u   done %u   %sfailed %u", t->admitted - t->done, t->done,
	     color(l, RED, t->failed > 0), t->failed);
	line(l, "%s", "");
	line(l, "%-12s %12s %12s", "", "last second", "mean");
	line(l, "%-12s %12.1f %12.1f", "requests/s", l->done_per_s,
	     elapsed_s > 0 ? t->done / elapsed_s : 0);
	line(l, "%-12s %12.1f %12.1f", "tokens/s", l->tokens_per_s,
	     elapsed_s > 0 ? (double)t->tokens / elapsed_s : 0);
}

static double round_up(double v)
{
	static const double step[] = { 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10 };
	double decade = v > 0 ? pow(10, floor(log10(v))) : 1;
	size_t i = 0;

	while (i + 1 < sizeof(step) / sizeof(*step) && step[i] * decade < v)
		i++;
	return step[i] * decade;
}

static void draw_chart(struct live *l, enum live_chart id, unsigned rows)
{
	static const struct { const char *name, *color; } words[CHART_COUNT] = {
		[CHART_TOKENS] = { "output tokens/s of each second", "\033[34m" },
		[CHART_TTFT] = { "TTFT (ms), mean of each second", "\033[36m" },
		[CHART_ITL] = { "ITL (ms), mean of each second", "\033[35m" },
	};
	const struct live_ring *r = &l->chart[id];
	size_t room = l->columns > CHART_GUTTER + 8 ? l->columns - CHART_GUTTER : 8;
	double most = live_ring_most(r), full = round_up(most);
	struct buf text = { 0 };

	line(l, "%s: peak %.*f", words[id].name, id != CHART_TOKENS, most);
	for (unsigned row = 0; row < rows; row++) {
		char label[16] = "";

		if (row == 0)
			snprintf(label, sizeof(label), "%.6g", full);
		else if (row + 1 == rows)
			snprintf(label, sizeof(label), "0");
		buf_reset(&text);
		live_ring_chart(r, row, rows, room < CHART_ROOM ? room : CHART_ROOM, full,
				l->is_utf8, &text);
		line(l, "%8s %s%s%s", label, l->is_utf8 ? "\u2502" : "|",
		     color(l, words[id].color, true), text.len ? text.data : "");
	}
	buf_release(&text);
}

/* Draws as many charts as fit into the lines, the most useful first. */
static void draw_charts(struct live *l, unsigned room)
{
	unsigned n = CHART_COUNT;

	while (n > 1 && (!live_ring_most(&l->chart[n - 1]) || room / n < CHART_ROWS_MIN))
		n--;
	for (unsigned id = 0; room > 1 && id < n; id++) {
		unsigned rows = room / (n - id);

		rows = rows > CHART_ROWS_MAX ? CHART_ROWS_MAX : rows;
		draw_chart(l, (enum live_chart)id, rows - 1);
		room -= rows;
	}
}

static void draw_series(struct live *l)
{
	struct buf text = { 0 };

	for (int id = 0; id < LIVE_SERIES_COUNT; id++) {
		buf_reset(&text);
		if (live_series_line(&l->series, (enum live_series_id)id, l->columns, l->is_utf8,
				     &text))
			line(l, "%s", text.data);
	}
	buf_release(&text);
}

static void draw_hist(struct live *l, const char *name, const struct hist *h)
{
	if (!hist_count(h))
		return;
	line(l, "%-8s %10.2f %10.2f %10.2f %10.2f %10.2f", name, hist_mean(h) / 1e6,
	     (double)hist_percentile(h, 50) / 1e6, (double)hist_percentile(h, 90) / 1e6,
	     (double)hist_percentile(h, 99) / 1e6, (double)hist_max(h) / 1e6);
}

/* Requests much slower than the others, if there are any. */
static void draw_slowest(struct live *l)
{
	double limit_ns = SLOW * (double)hist_percentile(&l->data.e2el, 50);

	if (l->data.n_slow == 0 || (double)l->data.slow[0].e2el_ns < limit_ns)
		return;
	line(l, "%s", "");
	line(l, "slowest so far        E2EL (ms)  TTFT (ms)     events");
	for (unsigned i = 0; i < l->data.n_slow; i++) {
		const struct live_slow *s = &l->data.slow[i];

		if ((double)s->e2el_ns >= limit_ns)
			line(l, "  request %-10u %10.2f %10.2f %10u", s->row, (double)s->e2el_ns / 1e6,
			     (double)s->ttft_ns / 1e6, s->events);
	}
}

static void draw_errors(struct live *l)
{
	struct buf text = { 0 };

	if (l->data.n_errors == 0)
		return;
	for (int c = 0; c < FAIL_COUNT; c++)
		if (c != FAIL_CANCELLED && l->data.fail[c])
			buf_printf(&text, "  %s %u", fail_name((enum fail_category)c), l->data.fail[c]);
	line(l, "%s", "");
	line(l, "%serrors, the last first%s", color(l, RED, true), text.len ? text.data : "");
	for (unsigned i = 0; i < l->data.n_errors; i++)
		line(l, "  request %-10u %s: %s", l->data.error[i].row,
		     fail_name(l->data.error[i].category), l->data.error[i].text);
	buf_release(&text);
}

/* Draws what is below the charts. */
static void draw_tail(struct live *l)
{
	line(l, "%s", "");
	draw_series(l);
	draw_errors(l);
}

/* Counts the lines that it would draw. */
static unsigned count_lines(struct live *l, void (*drawn)(struct live *))
{
	unsigned row = l->row, n;

	l->row = 0;
	l->is_counting = true;
	drawn(l);
	n = l->row;
	l->row = row;
	l->is_counting = false;
	return n;
}

static void draw(struct live *l, const struct run_sample *now, int64_t now_ns)
{
	unsigned tail = count_lines(l, draw_tail), slowest = count_lines(l, draw_slowest), room;

	l->row = 0;
	draw_head(l, now, (double)(now_ns - l->began_ns) / 1e9);
	line(l, "%s", "");
	line(l, "%-8s %10s %10s %10s %10s %10s", "ms", "mean", "p50", "p90", "p99", "max");
	draw_hist(l, "TTFT", &l->data.ttft);
	draw_hist(l, "ITL", &l->data.itl);
	draw_hist(l, "E2EL", &l->data.e2el);
	line(l, "%s", "");
	room = l->rows > l->row + tail + 1 ? l->rows - 1 - l->row - tail : 0;
	if (room < slowest + CHART_COUNT * CHART_ROWS_GOOD)
		slowest = 0;
	draw_charts(l, room - slowest);
	draw_tail(l);
	if (slowest)
		draw_slowest(l);
}

/* ---- the screen ---- */

static void write_all(const char *p, size_t n)
{
	while (n) {
		ssize_t wrote = write(STDERR_FILENO, p, n);

		if (wrote < 0 && errno != EINTR)
			return; /* a terminal that is gone needs no frame */
		if (wrote > 0) {
			p += wrote;
			n -= (size_t)wrote;
		}
	}
}

static bool is_resized(struct live *l)
{
	struct winsize size;
	unsigned columns = 80, rows = 24;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		columns = size.ws_col;
		rows = size.ws_row;
	}
	if (columns == l->columns && rows == l->rows)
		return false;
	l->columns = columns;
	l->rows = rows;
	return true;
}

static void begin(struct live *l, const struct run_sample *now, int64_t now_ns)
{
	live_data_begin(&l->data, now->n_rows);
	l->is_on = true;
	/* The run began a little before its first sample. */
	l->began_ns = l->second_ns = now_ns - (clock_real_ns() - now->record->start_ns);
	l->second_tokens = 0;
	l->second_done = 0;
	l->tokens_per_s = l->done_per_s = 0;
	memset(l->chart, 0, sizeof(l->chart));
	memset(l->second_sum_ms, 0, sizeof(l->second_sum_ms));
	memset(l->second_n, 0, sizeof(l->second_n));
	l->series = (struct live_series){ 0 };
	fflush(stdout);
	fflush(stderr);
	cli_terminal_taken(ENTER, LEAVE);
	write_all(ENTER, sizeof(ENTER) - 1);
}

/* Keeps the mean of what came in the last second; NAN: nothing. */
static void count_mean(struct live *l, enum live_chart id, double sum_ms, uint64_t n)
{
	uint64_t since = n - l->second_n[id];

	live_ring_add(&l->chart[id], since ? (sum_ms - l->second_sum_ms[id]) / (double)since : NAN);
	l->second_sum_ms[id] = sum_ms;
	l->second_n[id] = n;
}

static void count_second(struct live *l, const struct load_totals *t, int64_t now_ns)
{
	double span_s = (double)(now_ns - l->second_ns) / 1e9;

	if (span_s < 1)
		return;
	l->tokens_per_s = (double)(t->tokens - l->second_tokens) / span_s;
	l->done_per_s = (double)(t->done - l->second_done) / span_s;
	live_ring_add(&l->chart[CHART_TOKENS], l->tokens_per_s);
	count_mean(l, CHART_TTFT, l->data.ttft_sum_ms, l->data.ttft.count);
	count_mean(l, CHART_ITL, l->data.itl_sum_ms, l->data.itl.count);
	live_series_second(&l->series);
	l->second_ns = now_ns;
	l->second_tokens = t->tokens;
	l->second_done = t->done;
}

void live_show(struct live *l, const struct run_sample *now)
{
	int64_t now_ns = clock_mono_ns();

	if (!l->is_on)
		begin(l, now, now_ns);
	live_series_take(&l->series, now);
	live_data_take(&l->data, now->record, now->n_begun, EVENTS_MAX);
	count_second(l, &now->load, now_ns);
	buf_reset(&l->frame);
	if (is_resized(l))
		buf_add_text(&l->frame, "\033[2J");
	buf_add_text(&l->frame, "\033[H");
	draw(l, now, now_ns);
	buf_add_text(&l->frame, "\033[J");
	write_all(l->frame.data, l->frame.len);
}

void live_print(struct live *l, bool is_warning, const char *text)
{
	buf_add_char(&l->waiting, is_warning ? 'w' : 'l');
	buf_add(&l->waiting, text, strlen(text) + 1);
}

void live_leave(struct live *l)
{
	if (!live_is_on(l))
		return;
	write_all(LEAVE, sizeof(LEAVE) - 1);
	cli_terminal_taken(NULL, NULL);
	l->is_on = false;
	for (size_t at = 0; at < l->waiting.len; at += strlen(l->waiting.data + at) + 1) {
		const char *text = l->waiting.data + at;

		if (*text == 'w')
			cli_warn(text + 1);
		else
			puts(text + 1);
	}
	fflush(stdout);
	buf_reset(&l->waiting);
}

void live_free(struct live *l)
{
	if (!l)
		return;
	live_leave(l);
	live_data_release(&l->data);
	buf_release(&l->frame);
	buf_release(&l->waiting);
	free(l);
}
