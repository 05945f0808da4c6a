/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - the record; the requests before the main phase (ready check and warm-up, serve spec
 * 2.3, 2.4), sent by the same driver with another phase; the main run.
 */
#include "bench/serve/point_internal.h"

#include <math.h>
#include <time.h>

#include "bench/options/salt.h"
#include "bench/serve/multi_turn.h"
#include "bench/serve/score.h"
#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"

/* ---- before the main phase ---- */

#define READY_PAUSE_NS 5000000000  /* between tries of the ready check, as upstream */
#define PASS_CONCURRENCY 256 /* of a warm-up pass, without --max-concurrency */
#define READY_SECONDS_MAX 1000000000 /* 31 years: longer waits are the same */

/*
 * Sends a plan before the measured one to each URL in turn, into rows from *first_row on. The
 * plan's entries refer to opts->workload.
 */
static int send_before(struct stage *s, struct load_opts *opts, const struct prepare_opts *how,
		       struct plan *plan, uint32_t *first_row, struct err *e)
{
	for (uint32_t i = 0; i < plan->n; i++)
		plan->entry[i].endpoint = (uint16_t)(i % s->derived->n_urls);
	*first_row = record_add_rows(&s->point->record, plan->n);
	return stage_load(s, opts->phase == PHASE_READY ? STAGE_READY : STAGE_WARMUP, opts, how,
			  plan, *first_row, e);
}

/*
 * Sends n copies of the first prompt. With --prompt-salt they have another salt, or the first
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

/* Joins the lines of a failed try's error: upstream's reason first, then the server's message. */
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

/* Of the tries from that row on, one for each URL, the first that did not succeed. */
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
	struct buf why = { 0 };
	int rc = -1;

	stage_say(s, "Waiting for endpoint to become up in %lld seconds", (long long)seconds);
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
			stage_say(s, "Initial test run completed.%s", s->derived->compat & COMPAT_V011 ?
				  " Starting main benchmark run..." : "");
			rc = 0;
			goto done;
		}
		/* Cut off at the deadline: the reason of an earlier try is kept. */
		if (stage_is_cancelled(s) ||
		    (sent == 0 && s->point->record.row[row].state == REQ_CANCELLED))
			break;
		buf_reset(&why);
		if (sent == 0)
			record_error_of(&s->point->record, &s->point->record.row[row], &why);
		else
			buf_add_text(&why, failure.text);
		one_line(&why);
		stage_warn(s, "Endpoint is not ready. Error='%s'", why.len ? why.data : "");
		left = deadline - clock_mono_ns();
		pause_until(s, clock_mono_ns() + (left < READY_PAUSE_NS ? left : READY_PAUSE_NS));
	}
	if (stage_is_cancelled(s)) {
		stage_cancelled(e);
		goto done;
	}
	if (why.len == 0)
		buf_printf(&why, "Endpoint readiness timed out after %llds.", (long long)seconds);
	err_set(e, ERR_RUN, "Initial test run failed - Please make sure benchmark arguments are "
		"correctly specified. Error: %s", why.data);
done:
	buf_release(&why);
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

/* Failed requests leave the cache colder than the report says. */
static void warn_of_failed(const struct stage *s, uint32_t row, uint32_t n)
{
	struct buf why = { 0 };
	uint32_t failed = 0;

	for (uint32_t i = row; i < row + n; i++)
		if (s->point->record.row[i].state != REQ_DONE && failed++ == 0)
			record_error_of(&s->point->record, &s->point->record.row[i], &why);
	if (failed && !stage_is_cancelled(s)) {
		one_line(&why);
		stage_warn(s, "%u of %u requests of the warm-up pass failed; the first: %s", failed, n,
			   why.len ? why.data : "no answer");
	}
	buf_release(&why);
}

/* --warmup-pass: every server gets each of its requests. */
static int pass_over(struct stage *s, struct err *e)
{
	struct load_opts opts = stage_load_opts(s, PHASE_WARMUP);
	const struct prepare_opts how = stage_prepare_opts(s, true);
	const bool is_same = strcmp(s->opts->data.warmup_pass, "same") == 0;
	struct workload w = { 0 };
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
	stage_say(s, "Warm-up pass: %zu request%s with %s prompts...", w.n, w.n == 1 ? "" : "s",
		  is_same ? "the measured" : "other");
	opts.workload = &w;
	if (!opts.max_concurrency)
		opts.max_concurrency = PASS_CONCURRENCY;
	plan_same(&plan, (uint32_t)w.n * s->derived->n_urls, 0);
	for (uint32_t i = 0; i < plan.n; i++)
		plan.entry[i].sample = i / s->derived->n_urls;
	rc = send_before(s, &opts, &how, &plan, &row, e);
	if (rc == 0)
		warn_of_failed(s, row, plan.n);
	s->point->is_prefix_warm = is_same;
	plan_release(&plan);
	workload_release(&w);
	return rc;
}

int stage_warm_up(struct stage *s, struct err *e)
{
	uint32_t row;

	if (s->opts->num_warmups <= 0)
		return pass_over(s, e);
	stage_say(s, "Warming up with %lld requests...", (long long)s->opts->num_warmups);
	if (send_copies(s, (uint32_t)s->opts->num_warmups, PHASE_WARMUP, 0, &row, e) < 0)
		return -1;
	stage_say(s, "Warmup run completed.");
	return pass_over(s, e);
}

/* ---- files and the record ---- */

#define FILES_SPARE 64             /* descriptors besides connections */

/* Whether only the server keeps all requests from being open at once. */
static bool is_all_at_once(const struct plan *p)
{
	return p->n_roots == 0 || p->entry[p->n_roots - 1].due_s == 0;
}

/* Requests that can be open at once; a conversation counts as many as it has branches. */
static size_t open_at_once(const struct stage *s)
{
	const struct plan *plan = &s->point->plan;
	const uint32_t cap = s->derived->load.max_sessions;
	size_t n = plan->n_joins; /* whose branches all have an end of their own */
	bool *is_followed;

	/* In a closed loop, which has no roots, the clients are the cap. */
	if (plan->n == plan->n_roots || plan->n_roots == 0)
		return plan->n;
	is_followed = mem_array(plan->n, sizeof(*is_followed));
	for (uint32_t i = plan->n_roots; i < plan->n; i++)
		is_followed[plan->entry[i].after] = true;
	for (uint32_t i = 0; i < plan->n; i++)
		n += !is_followed[i];
	free(is_followed);
	if (cap && n == plan->n_roots && cap < n)
		n = cap;
	return n;
}

size_t stage_connections_max(bool is_process_watched)
{
	size_t spare = FILES_SPARE + (is_process_watched ? SYSTEM_PROCESSES_MAX : 0);
	size_t limit = sock_raise_nofile();

	return limit > spare ? limit - spare : 0;
}

/* One descriptor per request that can be open at once. */
int stage_check_files(struct stage *s, struct err *e)
{
	size_t open = open_at_once(s);
	const uint32_t cap = s->derived->load.max_concurrency;
	struct err why = { 0 };

	if (cap && cap < open)
		open = cap;
	if (open <= stage_connections_max(s->derived->system.process))
		return 0;
	err_set(&why, ERR_OPEN_FILES, "up to %zu connections may be open at once, but this process may open "
		"only %zu files (ulimit -n, or LimitNOFILE of its service); raise the limit or set a lower "
		"--max-concurrency", open,
		sock_raise_nofile());
	if (cap || is_all_at_once(&s->point->plan)) {
		*e = why;
		return -1;
	}
	stage_warn(s, "%s", why.text);
	return 0;
}

static int64_t clock_offset_ns(void)
{
	return clock_real_ns() - clock_mono_ns();
}

/* From here on a crash loses at most a tenth of a second of measurements. */
static int open_record_file(struct stage *s, struct err *e)
{
	struct point *p = s->point;
	struct buf path = { 0 };

	record_info_here(&p->info, 0, p->record.n_shards);
	if (!s->opts->record_path)
		return 0;
	free(p->record_path);
	if (s->opts->num_runs > 1)
		buf_printf(&path, "%s.%u", s->opts->record_path, s->run + 1);
	else
		buf_add_text(&path, s->opts->record_path);
	p->record_path = buf_take(&path);
	score_meta(s->opts, s->derived, p);
	p->stream = record_stream_open(&p->record, &p->info, p->record_path, e);
	return p->stream ? 0 : -1;
}

/* What runs in parallel with the load. */
struct beside {
	struct stage *stage;
	struct probe *probe;
	struct profile *profile;
	struct watch_servers *servers;
	struct system_watch *system;
};

static void begin_beside(void *self)
{
	struct beside *b = self;

	b->stage->began_ns = clock_mono_ns();
	if (b->probe)
		probe_start(b->probe);
	profile_watch(b->profile);
}

static void sample(const struct beside *b)
{
	const struct run_hooks *hooks = b->stage->hooks;
	const struct plan *plan = &b->stage->point->plan;
	struct run_sample now = { .record = &b->stage->point->record, .plan = plan,
				  .n_rows = plan->n };

	if (!hooks->sample)
		return;
	now.load = load_progress_total(b->stage->progress);
	/* Roots begin in order; successors when their parents have ended. */
	now.n_begun = plan->n == plan->n_roots ? now.load.admitted : plan->n;
	watch_now(b->servers, &now.server);
	system_now(b->system, &now.system);
	hooks->sample(hooks->self, &now);
}

static int64_t start_beside(void *self)
{
	return dealt_start(((struct beside *)self)->stage);
}

static void tick_beside(void *self)
{
	struct beside *b = self;

	dealt_tick(b->stage);
	profile_tick(b->profile);
	stage_tick(b->stage);
	sample(b);
}

static int run_load(struct stage *s, const struct prepared *prepared,
		    struct load_progress *progress, struct probe *probe, struct err *e)
{
	struct point *p = s->point;
	struct load_opts opts = stage_load_opts(s, PHASE_MAIN);
	struct beside beside = { .stage = s, .probe = probe };
	struct watch_servers *servers;
	int64_t offset;
	int rc;

	if (s->opts->multi_turn)
		multi_turn_load(s, &opts);
	opts.started = begin_beside;
	if (s->hooks->ranks)
		opts.start_at = start_beside;
	opts.tick = tick_beside;
	opts.started_self = opts.tick_self = &beside;
	beside.profile = profile_begin(s, progress);
	stage_say_traffic(s);
	beside.servers = servers = watch_begin(s);
	beside.system = watch_system(s);
	if (probe)
		probe_say(probe);
	stage_tick(s);
	offset = clock_offset_ns();
	rc = load_run(&opts, &p->plan, prepared, &p->record, 0, progress, &p->load,
		      s->hooks->cancel, e);
	p->clock_step_ns = clock_offset_ns() - offset;
	rc = dealt_started(s, rc, e);
	if (rc == 0)
		dealt_ended(s);
	sample(&beside);
	probe_end(probe);
	watch_end(servers, &p->record);
	system_end(beside.system, &p->record);
	profile_end(beside.profile);
	TRACE(run, "main phase: %.3f s, %llu connects, %llu reads\n",
	      (double)(p->record.stop_ns - p->record.start_ns) / 1e9,
	      (unsigned long long)p->load.net.connects, (unsigned long long)p->load.net.reads);
	stage_tick(s);
	/* From here on rows may change again (missing counts): no thread copies them any more. */
	record_stream_stop(p->stream);
	record_info_stop(&p->info);
	return rc;
}

/* Keeps conversations' answers and the headers that keep them together; NULL without any. */
static struct history *continue_sessions(const struct stage *s, struct prepare_opts *how)
{
	const struct serve_opts *o = s->opts;
	const struct history_opts opts = {
		.plan = &s->point->plan, .workload = &s->point->workload,
		.record = &s->point->record,
		.tool_result_words = (uint32_t)o->tool_result_words,
		.is_bad_call_failure = strcmp(o->bad_tool_calls, "fail") == 0,
		.token_header = o->session_token_header,
	};

	if (!s->point->workload.sessions)
		return NULL;
	how->session_header = s->derived->session_header;
	how->token_header = o->session_token_header;
	return how->history = history_new(&opts);
}

int stage_run_main(struct stage *s, struct err *e)
{
	struct point *p = s->point;
	struct load_progress *progress = mem_alloc(sizeof(*progress));
	struct prepare_opts how = stage_prepare_opts(s, false);
	struct prepared prepared = { 0 };
	struct history *history = continue_sessions(s, &how);
	struct probe *probe = NULL;
	bool is_begun = false;
	int rc = -1;

	s->now = STAGE_MAIN;
	s->progress = progress;
	s->total = p->plan.n - (s->opts->multi_turn ? multi_turn_rows(s) : 0);
	s->began_ns = 0;
	how.salt_round = s->run;
	how.elsewhere = s->elsewhere;
	how.is_rehosted = s->derived->load.is_least_loaded;
	if (p->plan.n > p->workload.n)
		how.bytes_max = REPEATED_BYTES_MAX;
	if (s->opts->multi_turn)
		multi_turn_prepare(s, &how);
	if (prepare(&how, &p->plan, &p->workload, &prepared, e) == 0 &&
	    probe_new(s, &probe, e) == 0) {
		if (open_record_file(s, e) == 0) {
			profile_reset_cache(s);
			is_begun = true;
			rc = run_load(s, &prepared, progress, probe, e);
		} else {
			probe_end(probe);
		}
	}
	if (!is_begun)
		rc = dealt_started(s, rc, e);
	prepared_release(&prepared);
	history_free(history);
	free(progress);
	return rc;
}

int64_t extra_number(struct str object, const char *key)
{
	struct json_scan scan = { object, 0 };
	struct json_slice body, v;
	int64_t n;

	if (scan.text.n == 0 || json_next(&scan, &body, NULL) < 0)
		return -1;
	if (!json_member(body, key, &v) || !json_to_i64(v, &n) || n < 0 || n > UINT32_MAX)
		return -1;
	return n;
}

/* The answer length that the members ask for; -1: none. */
static int64_t extra_length(struct str object)
{
	static const char *const keys[] = { "max_tokens", "max_completion_tokens",
					    "max_output_tokens", "max_new_tokens" };
	int64_t n = -1;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && n < 0; i++)
		n = extra_number(object, keys[i]);
	return n;
}

/*
 * Output tokens that requests ask for; 0: the server decides. A request's own members override the
 * extra body, and that the length of the dataset.
 */
static void fill_asked_tokens(struct stage *s)
{
	const struct str extra = str_of(s->derived->extra_body);
	const struct point *p = s->point;
	int64_t forced = extra_length(extra), answers = extra_number(extra, "n");

	for (uint32_t i = 0; i < p->plan.n; i++) {
		const struct sample *sample = &p->workload.v[p->plan.entry[i].sample];
		int64_t own = extra_length(sample->overrides), many = extra_number(sample->overrides, "n");
		int64_t n = own >= 0 ? own : forced >= 0 ? forced : sample->output_len;

		many = many >= 0 ? many : answers;
		if (many > 1 && n <= UINT32_MAX / many)
			n *= many;
		p->record.row[i].asked_tokens = n < 0 ? 0 : (uint32_t)n;
	}
}

static void fill_rows(struct stage *s)
{
	const struct workload *w = &s->point->workload;

	for (uint32_t i = 0; i < s->point->plan.n; i++) {
		struct request_row *row = &s->point->record.row[i];
		const struct sample *sample = &w->v[s->point->plan.entry[i].sample];

		row->prompt_tokens = row->sample_prompt_tokens = sample->prompt_len;
		row->sequences = s->point->endpoint->sequences ?
				 s->point->endpoint->sequences(sample) : 1;
		row->audio_s = sample->audio_s;
		row->priority = sample->priority;
	}
	fill_asked_tokens(s);
}

/* With --record, a long run's record is kept in files in that folder instead of memory. */
static void keep_on_disk(struct stage *s)
{
	const char *path = s->opts->record_path, *slash = strrchr(path, '/');
	char *folder = slash ? mem_copy(path, (size_t)(slash - path) + 1) : mem_text(".");
	struct err why = { 0 };

	if (record_to_disk(&s->point->record, folder, &why) < 0)
		stage_warn(s, "the record of %u requests takes memory that grows while load runs: %s",
			   s->point->plan.n, why.text);
	free(folder);
}

int stage_make_record(struct stage *s, struct err *e)
{
	struct point *p = s->point;
	uint64_t events = 4 * (uint64_t)p->plan.n;
	bool keeps_text = p->tokenizer || s->opts->save_detailed || s->opts->output_json ||
			  correct_is_asked(&p->workload) ||
			  p->workload.sessions;
	bool is_long = s->opts->record_path && p->plan.n >= RECORD_DISK_ROWS;
	uint32_t pass = (uint32_t)reuse_pass_count(&p->workload, &s->opts->data) *
			s->derived->n_urls;

	for (uint32_t i = 0; i < p->plan.n; i++) {
		int64_t asked = p->workload.v[p->plan.entry[i].sample].output_len;

		events += asked > 0 ? (uint64_t)asked : 0;
	}
	if (record_init(&p->record, p->plan.n + (uint32_t)s->opts->num_warmups + pass + 64 +
			(s->opts->multi_turn ? multi_turn_rows(s) : 0),
			s->derived->load.threads + probe_shards(s->opts), is_long ? 0 : events,
			true, keeps_text, e) < 0)
		return -1;
	if (is_long)
		keep_on_disk(s);
	record_add_rows(&p->record, p->plan.n);
	fill_rows(s);
	return 0;
}
