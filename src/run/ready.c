/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready.c - what is sent before the main phase: ready check and warm-up (serve spec
 * 2.3, 2.4), through the same driver with another phase.
 */
#include "run/stage.h"

#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/reuse.h"

#define READY_PAUSE_NS 5000000000  /* between tries of the ready check, as upstream */
#define PASS_CONCURRENCY 256 /* of a warm-up pass, without --max-concurrency */
#define READY_SECONDS_MAX 1000000000 /* 31 years: longer waits are the same */

/*
 * A plan before the measured one, in rows of its own, to each URL in turn: its entries are of
 * opts->workload. Rows begin at *first_row.
 */
static int send_before(struct stage *s, struct load_opts *opts, const struct prepare_opts *how,
		       struct plan *plan, uint32_t *first_row, struct err *e)
{
	struct record *record = &s->point->record;
	struct load_progress *progress = mem_alloc(sizeof(*progress));
	struct prepared prepared = { 0 };
	struct load_stats stats;
	int rc = -1;

	for (uint32_t i = 0; i < plan->n; i++)
		plan->entry[i].endpoint = (uint16_t)(i % s->derived->n_urls);
	*first_row = record_add_rows(record, plan->n);
	s->now = opts->phase == PHASE_READY ? STAGE_READY : STAGE_WARMUP;
	s->progress = progress;
	s->total = plan->n;
	stage_tick(s);
	if (prepare(how, plan, opts->workload, &prepared, e) == 0) {
		rc = load_run(opts, plan, &prepared, record, *first_row, progress, &stats,
			      s->hooks->cancel, e);
		stage_tick(s);
	}
	prepared_release(&prepared);
	free(progress);
	return rc;
}

/*
 * n copies of the first prompt. With --prompt-salt they have another salt, or the first
 * measured request would be cached.
 */
static int send_copies(struct stage *s, uint32_t n, enum request_phase phase, int64_t deadline_ns,
		       uint32_t *first_row, struct err *e)
{
	struct load_opts opts = stage_load_opts(s, phase);
	struct prepare_opts how = stage_prepare_opts(s, true);
	struct plan plan;
	int rc;

	how.salt = &s->salt;
	how.salt_round = phase == PHASE_READY ? SALT_READY : SALT_WARMUP;
	opts.deadline_ns = deadline_ns;
	plan_same(&plan, n, 0);
	rc = send_before(s, &opts, &how, &plan, first_row, e);
	plan_release(&plan);
	return rc;
}

static void pause_until(const struct stage *s, int64_t until_ns)
{
	while (clock_mono_ns() < until_ns && !stage_is_cancelled(s)) {
		struct timespec step = { 0, 50000000 };

		nanosleep(&step, NULL);
	}
}

/* A failed try's error as one line: upstream's reason first, then what the server said. */
static void one_line(struct buf *text)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] != '\n')
			buf_add_char(&out, text->data[i]);
		else if (i + 1 < text->len)
			buf_add_text(&out, ": ");
	}
	buf_release(text);
	*text = out;
}

/* Of the tries from that row on, one for each URL, the first that was no success. */
static uint32_t first_unready(const struct stage *s, uint32_t row)
{
	for (uint32_t i = row; i < row + s->derived->n_urls; i++)
		if (s->point->record.row[i].state != REQ_DONE)
			return i;
	return RECORD_NONE;
}

static int wait_until_ready(struct stage *s, struct err *e)
{
	int64_t seconds = s->opts->ready_check_timeout_sec, left;
	int64_t deadline = clock_mono_ns() +
			   (seconds < READY_SECONDS_MAX ? seconds : READY_SECONDS_MAX) * 1000000000;
	struct buf why = { 0 }, text = { 0 };
	int rc = -1;

	buf_printf(&text, "Waiting for endpoint to become up in %lld seconds",
		   (long long)s->opts->ready_check_timeout_sec);
	stage_say(s, text.data);
	while ((left = deadline - clock_mono_ns()) > 0 && !stage_is_cancelled(s)) {
		struct err failure = { 0 };
		uint32_t row;
		int sent = send_copies(s, s->derived->n_urls, PHASE_READY, left, &row, &failure);

		/* A name that does not resolve yet may do so once the server is up. */
		if (sent < 0 && failure.code != ERR_NET) {
			*e = failure;
			goto done;
		}
		if (sent == 0 && (row = first_unready(s, row)) == RECORD_NONE) {
			stage_say(s, s->derived->compat & COMPAT_V011 ?
				  "Initial test run completed. Starting main benchmark run..." :
				  "Initial test run completed.");
			rc = 0;
			goto done;
		}
		/* Cut off at the deadline: what an earlier try said stands. */
		if (stage_is_cancelled(s) ||
		    (sent == 0 && s->point->record.row[row].state == REQ_CANCELLED))
			break;
		buf_reset(&why);
		if (sent == 0)
			record_error_of(&s->point->record, &s->point->record.row[row], &why);
		else
			buf_add_text(&why, failure.text);
		one_line(&why);
		buf_reset(&text);
		buf_printf(&text, "Endpoint is not ready. Error='%s'", why.len ? why.data : "");
		stage_warn(s, text.data);
		left = deadline - clock_mono_ns();
		pause_until(s, clock_mono_ns() + (left < READY_PAUSE_NS ? left : READY_PAUSE_NS));
	}
	if (stage_is_cancelled(s)) {
		stage_cancelled(e);
		goto done;
	}
	if (why.len == 0)
		buf_printf(&why, "Endpoint readiness timed out after %llds.",
			   (long long)s->opts->ready_check_timeout_sec);
	err_set(e, ERR_RUN, "Initial test run failed - Please make sure benchmark arguments are "
		"correctly specified. Error: %s", why.data);
done:
	buf_release(&why);
	buf_release(&text);
	return rc;
}

int stage_ready_check(struct stage *s, struct err *e)
{
	bool is_made = s->opts->ready_check_timeout_sec > 0;
	bool is_said = s->derived->compat & COMPAT_STDOUT;

	if (is_made || is_said)
		stage_say(s, "Starting initial single prompt test run...");
	if (!is_made && is_said)
		stage_say(s, "Skipping endpoint ready check.");
	return is_made ? wait_until_ready(s, e) : 0;
}

/* What failed leaves the cache colder than the report says. */
static void warn_of_failed(const struct stage *s, uint32_t row, uint32_t n)
{
	struct buf text = { 0 }, why = { 0 };
	uint32_t failed = 0;

	for (uint32_t i = row; i < row + n; i++)
		if (s->point->record.row[i].state != REQ_DONE && failed++ == 0)
			record_error_of(&s->point->record, &s->point->record.row[i], &why);
	if (failed && !stage_is_cancelled(s)) {
		one_line(&why);
		buf_printf(&text, "%u of %u requests of the warm-up pass failed; the first: %s", failed, n,
			   why.len ? why.data : "no answer");
		stage_warn(s, text.data);
	}
	buf_release(&why);
	buf_release(&text);
}

/* --warmup-pass: every server gets each of its requests. */
static int pass_over(struct stage *s, struct err *e)
{
	struct load_opts opts = stage_load_opts(s, PHASE_WARMUP);
	const struct prepare_opts how = stage_prepare_opts(s, true);
	struct workload w = { 0 };
	struct buf text = { 0 };
	struct plan plan;
	uint32_t row;
	int rc;

	if (!reuse_has_pass(&s->opts->data))
		return 0;
	if (reuse_pass(&s->point->workload, &s->opts->data, (uint64_t)s->opts->seed,
		       s->point->tokenizer, &w, e) < 0) {
		workload_release(&w);
		return -1;
	}
	buf_printf(&text, "Warm-up pass: %zu requests with %s prompts...", w.n,
		   strcmp(s->opts->data.warmup_pass, "same") == 0 ? "the measured" : "other");
	stage_say(s, text.data);
	opts.workload = &w;
	if (!opts.max_concurrency)
		opts.max_concurrency = PASS_CONCURRENCY;
	plan_same(&plan, (uint32_t)w.n * s->derived->n_urls, 0);
	for (uint32_t i = 0; i < plan.n; i++)
		plan.entry[i].sample = i / s->derived->n_urls;
	rc = send_before(s, &opts, &how, &plan, &row, e);
	if (rc == 0)
		warn_of_failed(s, row, plan.n);
	s->point->is_prefix_warm = strcmp(s->opts->data.warmup_pass, "same") == 0;
	plan_release(&plan);
	workload_release(&w);
	buf_release(&text);
	return rc;
}

int stage_warm_up(struct stage *s, struct err *e)
{
	struct buf text = { 0 };
	uint32_t row;
	int rc;

	if (s->opts->num_warmups <= 0)
		return pass_over(s, e);
	buf_printf(&text, "Warming up with %lld requests...", (long long)s->opts->num_warmups);
	stage_say(s, text.data);
	buf_release(&text);
	rc = send_copies(s, (uint32_t)s->opts->num_warmups, PHASE_WARMUP, 0, &row, e);
	if (rc < 0)
		return -1;
	stage_say(s, "Warmup run completed.");
	return pass_over(s, e);
}
