/* SPDX-License-Identifier: Apache-2.0 */
/* ab.c - see ab.h. */
#include "bench/sweep/ab.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/options/salt.h"
#include "bench/options/serve_opts.h"
#include "bench/serve/score.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/stats/stats.h"
#include "host/proc/exit_reason.h"

#define DEATH_STEP_MS 10
#define DEATH_STEPS 50 /* half a second for a process to end that has dropped its connections */

static const char *const side_names[] = { "A", "B" };

/* ---- their words ---- */

static int read_command(struct ab_servers *s, unsigned side, struct err *e)
{
	size_t n;

	if (words_split(str_of(s->opts->cmd[side]), &s->arena, &s->argv[side], &n, e) < 0)
		return -1;
	if (!n)
		return err_set(e, ERR_USAGE, "the command is empty");
	if (server_address(s->argv[side], &s->where[side], e) < 0)
		return -1;
	if (s->where[side].uds[0])
		return err_set(e, ERR_USAGE, "the server would listen on the socket file %s; bench ab "
			       "needs a port", s->where[side].uds);
	redact_learn_words(s->argv[side]);
	return 0;
}

/* Reads both commands and starts nothing; -1 with ERR_USAGE. opts and hooks are borrowed. */
static int ab_servers_init(struct ab_servers *s, const struct ab_serve *opts,
			   const struct server_hooks *hooks, struct err *e)
{
	*s = (struct ab_servers){ .opts = opts, .hooks = hooks };
	for (unsigned side = 0; side < 2; side++)
		if (read_command(s, side, e) < 0) {
			e->code = ERR_USAGE;
			return err_wrap(e, "--serve-cmd of server %s", side_names[side]);
		}
	if (s->where[0].port == s->where[1].port)
		return err_set(e, ERR_USAGE, "--serve-cmd: both servers would listen on port %u, and both "
			       "run at once; give one of the commands another --port", s->where[0].port);
	return 0;
}

/* ---- start ---- */

static int choose_log(struct ab_servers *s, unsigned side, struct err *e)
{
	const char *in = getenv("TMPDIR");
	int fd;

	in = in && *in ? in : "/tmp";
	if (s->opts->log_dir) {
		s->log[side] = arena_printf(&s->arena, "%s/%s.log", s->opts->log_dir, side ? "b" : "a");
		return 0;
	}
	s->log[side] = arena_printf(&s->arena, "%s/profllm_server_XXXXXX", in);
	fd = mkstemp(s->log[side]);
	if (fd < 0)
		return err_set(e, ERR_IO, "cannot write the log of server %s to %s: %s; give "
			       "--server-logs", side_names[side], in, strerror(errno));
	close(fd);
	s->is_log_ours[side] = true;
	return 0;
}

static int name_side(const struct ab_servers *s, unsigned side, struct err *e)
{
	struct buf room = { 0 };
	struct str cmd = redact(str_of(s->opts->cmd[side]), &room);

	err_wrap(e, "server %s (%.*s)", side_names[side], (int)cmd.n, cmd.p);
	buf_release(&room);
	return -1;
}

static void say(const struct ab_servers *s, void (*hook)(void *self, const char *text), char *text)
{
	if (hook)
		hook(s->hooks->self, text);
}

static int start(struct ab_servers *s, unsigned side, struct err *e)
{
	struct server_opts opts = {
		.argv = s->argv[side], .show_fd = -1,
		.ready_timeout_s = s->opts->ready_timeout_s, .grace_s = s->opts->grace_s,
	};
	struct server_failure why;

	if (choose_log(s, side, e) < 0)
		return -1;
	opts.log_path = s->log[side];
	opts.is_log_removed = s->is_log_ours[side];
	say(s, s->hooks->line, arena_printf(&s->arena, "Starting server %s.", side_names[side]));
	if (server_start(&opts, s->hooks, &s->server[side], &why, e) < 0) {
		s->server[side] = NULL;
		if (e->code == ERR_CANCELLED)
			return -1;
		if (why.fault == SERVER_FAULT_NOT_FOUND || why.fault == SERVER_FAULT_FLAG)
			e->code = ERR_USAGE;
		if (why.fault == SERVER_FAULT_MEMORY && side)
			err_add(e, "; both servers run at once, and on one GPU each needs its share, such as "
				"--gpu-memory-utilization 0.45 in both commands");
		return name_side(s, side, e);
	}
	say(s, s->hooks->line, arena_printf(&s->arena, "Server %s answers at %s after %.3g s.",
					    side_names[side], server_url(s->server[side]),
					    server_startup_s(s->server[side])));
	return 0;
}

/* Returns when both answer; -1: e says which one does not, ERR_CANCELLED by hooks->cancel. */
static int ab_servers_start(struct ab_servers *s, struct err *e)
{
	for (unsigned side = 0; side < 2; side++)
		if (start(s, side, e) < 0)
			return -1;
	return 0;
}

/* ---- while they run ---- */

/* Cheap, from any thread. */
static bool ab_servers_are_alive(struct ab_servers *s)
{
	for (unsigned side = 0; side < 2; side++)
		if (s->server[side] && !server_is_alive(s->server[side]))
			return false;
	return true;
}

/*
 * -1 when one has ended: hooks->warn was given its log's last lines, e says how it ended. With
 * is_suspect (requests failed) it waits a moment, as a server that fails may be about to end.
 */
static int ab_servers_check(struct ab_servers *s, bool is_suspect, struct err *e)
{
	struct server_failure why;
	struct err died = { 0 };

	for (int i = 0; is_suspect && i < DEATH_STEPS && ab_servers_are_alive(s); i++)
		poll(NULL, 0, DEATH_STEP_MS);
	for (unsigned side = 0; side < 2; side++) {
		if (!s->server[side] || server_check(s->server[side], &why, &died) == 0)
			continue;
		*e = died;
		exit_reason_show(why.tail, side ? "the log of server B" : "the log of server A",
				s->hooks->warn, s->hooks->self);
		return name_side(s, side, e);
	}
	return 0;
}

/* Stops what was started, in any state of s; -1: something is left. */
static int ab_servers_stop(struct ab_servers *s, struct err *e)
{
	int rc = 0;

	for (unsigned side = 0; side < 2; side++) {
		struct err left = { 0 };

		if (server_stop(s->server[side], NULL, &left) < 0 && rc == 0) {
			*e = left;
			rc = -1;
		}
		s->server[side] = NULL;
		if (s->is_log_ours[side])
			unlink(s->log[side]);
	}
	arena_release(&s->arena);
	return rc;
}

#define REQUESTS_MIN 20              /* of a block */
#define FIRST_ROUNDS 4               /* of a closed loop, in the pair that is discarded */

/* ---- metrics ---- */

static bool parse_time(struct str name, struct ab_metric *out)
{
	struct str stat = str_cut(&name, '_'), key = str_cut(&name, '_');

	if (!str_is(name, "ms"))
		return false;
	out->block = metric_block_find(key);
	out->percentile = NAN;
	out->better = -1;
	if (out->block > BLOCK_E2EL)
		return false;
	if (str_is(stat, "mean"))
		return true;
	if (str_is(stat, "median")) {
		out->percentile = 50;
		return true;
	}
	if (!stat.n || stat.p[0] != 'p')
		return false;
	stat.p++;
	stat.n--;
	return str_to_f64(stat, &out->percentile) && out->percentile > 0 && out->percentile < 100;
}

int ab_metric_parse(const char *name, struct ab_metric *out, struct err *e)
{
	*out = (struct ab_metric){ .name = name, .better = 1 };
	out->is_output = str_is(str_of(name), "output_throughput");
	out->is_requests = str_is(str_of(name), "request_throughput");
	if (out->is_output || out->is_requests || parse_time(str_of(name), out))
		return 0;
	return err_set(e, ERR_USAGE, "--metric %s: expected output_throughput, request_throughput, or "
		       "mean_, median_ or pNN_ (such as p99_) before ttft_ms, tpot_ms, itl_ms or "
		       "e2el_ms", name);
}

static enum trust_metric trust_of(const struct ab_metric *m)
{
	static const enum trust_metric by_block[] = {
		[BLOCK_TTFT] = TRUST_TTFT, [BLOCK_TPOT] = TRUST_TPOT, [BLOCK_ITL] = TRUST_ITL,
		[BLOCK_E2EL] = TRUST_E2EL,
	};

	if (m->is_output)
		return TRUST_OUTPUT;
	return m->is_requests ? TRUST_REQUESTS : by_block[m->block];
}

/* ---- one block ---- */

struct block {
	struct ab *ab;
	const struct ab_hooks *hooks;
	const struct serve_opts *opts;
	const struct serve_derived *derived;
	uint32_t skipped;
	unsigned side;
	struct paired_pair *pair;
	double e2el_s, rate;          /* of what was counted */
	bool is_interrupted;
	atomic_bool stop;             /* Ctrl-C, or a server that we started is gone */
	char *failure;
};

/* Appends the times of one metric of element i to x, which has room. Returns how many. */
static size_t add_times(const struct metrics *m, uint32_t i, enum metric_block block, double *x)
{
	int64_t gaps = m->output_len[i] - 1;

	switch (block) {
	case BLOCK_TTFT:
		*x = m->ttft[i];
		return 1;
	case BLOCK_TPOT:
		*x = (m->latency[i] - m->ttft[i]) / (double)(gaps > 0 ? gaps : 1);
		return gaps > 0;
	case BLOCK_ITL:
		memcpy(x, m->itl + m->itl_at[i], (m->itl_at[i + 1] - m->itl_at[i]) * sizeof(*x));
		return m->itl_at[i + 1] - m->itl_at[i];
	default:
		*x = m->latency[i];
		return 1;
	}
}

static bool is_counted(const struct block *b, const struct point *p, const struct metrics *m,
		       uint32_t i)
{
	return m->row[i] >= b->skipped && p->record.row[m->row[i]].state == REQ_DONE;
}

/* In ms; NAN without values. */
static double time_of(const struct block *b, const struct point *p, const struct metrics *m,
		      const struct ab_metric *metric)
{
	double *x = mem_array(m->n + m->itl_at[m->n] + 1, sizeof(*x)), value = NAN;
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++)
		if (is_counted(b, p, m, i))
			n += add_times(m, i, metric->block, x + n);
	if (n && isnan(metric->percentile)) {
		value = stats_mean(x, n) * 1000;
	} else if (n) {
		stats_sort(x, n);
		value = stats_percentile(x, n, metric->percentile) * 1000;
	}
	free(x);
	return value;
}

/* Requests, failures, tokens and throughput of what was counted. */
static void count(struct block *b, const struct point *p, const struct metrics *m, double *tokens_s)
{
	uint64_t done = 0, tokens = 0;
	double first = INFINITY, last = -INFINITY, e2el = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		if (m->row[i] < b->skipped)
			continue;
		b->pair->requests[b->side]++;
		if (!is_counted(b, p, m, i)) {
			b->pair->failed[b->side]++;
			continue;
		}
		done++;
		tokens += (uint64_t)m->output_len[i];
		e2el += m->latency[i];
		first = fmin(first, m->start_time[i]);
		last = fmax(last, m->start_time[i] + m->latency[i]);
	}
	b->pair->output_tokens[b->side] = tokens;
	b->e2el_s = done ? e2el / (double)done : 0;
	b->rate = done && last > first ? (double)done / (last - first) : 0;
	*tokens_s = done && last > first ? (double)tokens / (last - first) : NAN;
}

/* Why the first failed request of a side failed; one line. */
static void keep_failure(char **kept, const struct point *p)
{
	struct buf error = { 0 }, safe = { 0 };
	struct str text;

	for (uint32_t i = 0; i < p->plan.n && !*kept; i++) {
		if (p->record.row[i].state != REQ_FAILED)
			continue;
		record_error_of(&p->record, &p->record.row[i], &error);
		text = buf_str(&error); /* and maybe the body of the answer in further lines */
		line_add_safe(&safe, str_cut(&text, '\n'));
		*kept = buf_take(&safe);
	}
	buf_release(&error);
}

/* Keeps the worst reason against a metric. */
static void doubt(struct ab_doubt *d, bool counts, const struct trust *t, enum trust_metric trust)
{
	d->blocks += counts;
	d->degraded += counts && t->metric[trust] == TRUST_DEGRADED;
	d->is_invalid |= t->metric[trust] == TRUST_INVALID;
	for (size_t i = 0; i < t->n_reasons && t->metric[trust] != TRUST_VALID; i++) {
		if (!(t->reason[i].spoils & TRUST_BIT(trust)))
			continue;
		snprintf(d->why, sizeof(d->why), "%s", t->reason[i].text);
		break;
	}
}

static void on_measured(void *self, struct point *p)
{
	struct block *b = self;
	const struct ab_opts *o = b->ab->opts;
	struct scored scored;
	double tokens_s;

	score_point(b->opts, b->derived, p, &scored);
	count(b, p, &scored.metrics, &tokens_s);
	for (size_t i = 0; i < o->paired.n_metrics; i++) {
		const struct ab_metric *m = &o->metric[i];
		double *value = &b->pair->value[b->side][i];

		*value = m->is_output ? tokens_s : m->is_requests ? b->rate :
			 time_of(b, p, &scored.metrics, m);
		if (!p->is_interrupted)
			doubt(&b->ab->doubt[i], b->ab->n_pairs > 0, &scored.trust, trust_of(m));
		if (scored.trust.metric[trust_of(m)] == TRUST_INVALID)
			*value = NAN;
	}
	keep_failure(&b->ab->failure[b->side], p);
	b->is_interrupted = p->is_interrupted;
	if (p->failure && !b->failure)
		b->failure = mem_text(p->failure);
	scored_release(&scored);
}

static void on_warn(void *self, const char *text)
{
	const struct block *b = self;

	/* The same options give the same warnings in every block. */
	if (b->ab->n_pairs == 0 && b->side == PAIRED_A && b->hooks->warn)
		b->hooks->warn(b->hooks->self, text);
}

/* A few times a second while load runs. */
static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	struct block *b = self;

	(void)stage, (void)done, (void)total, (void)load;
	if ((b->hooks->cancel && atomic_load(b->hooks->cancel)) ||
	    !ab_servers_are_alive(&b->ab->servers))
		atomic_store(&b->stop, true);
}

/* ---- the options of a block ---- */

/* Options of bench serve that contradict a pair of blocks. */
static const char *const refused[] = {
	"base-urls", "host", "port", "duration", "num-runs", "sweep-max-concurrency",
	"sweep-request-rate", "multi-turn", "save-result", "append-result", "record", "dry-run",
	"dump-workload", "plot-timeline", "plot-dataset-stats", "plot-load-pattern", "compare",
	"fail-if", "junit", "summary", "strict", "slo", "find-max-rate", "find-max-concurrency",
	"precision", "budget", "level-seconds", NULL
};

struct ab_words { struct serve_opts o; struct opt_result given; struct arena arena; };

static void words_release(struct ab_words *w)
{
	opt_result_release(&w->given);
	arena_release(&w->arena);
}

static int give(struct ab_words *w, const char *option, const char *value, struct err *e)
{
	return opt_give(&serve_opt_set, &w->o, &w->given, option, str_of(value), &w->arena, e);
}

static int read_words(const struct ab_opts *o, struct ab_words *w, struct err *e)
{
	*w = (struct ab_words){ .arena = { 0 } };
	if (opt_parse(&serve_opt_set, o->argc, o->argv, &w->o, &w->given, &w->arena, e) < 0 ||
	    serve_presets(&w->o, &w->given, &w->arena, e) < 0)
		return -1;
	for (size_t i = 0; refused[i]; i++)
		if (opt_given(&serve_opt_set, &w->given, refused[i]))
			return err_set(e, ERR_USAGE, "--%s has no meaning in bench ab, which runs many "
				       "short blocks on two servers; remove it", refused[i]);
	return 0;
}

/* Sets this block's own options over the user's words. */
static int give_block(const struct ab *ab, struct ab_words *w, unsigned side, struct err *e)
{
	int64_t seed = (ab->seed + (int64_t)ab->n_pairs) % ((int64_t)UINT32_MAX + 1);

	if (give(w, "base-url", ab->url[side], e) < 0 ||
	    give(w, "seed", arena_printf(&w->arena, "%lld", (long long)seed), e) < 0 ||
	    give(w, "num-prompts", arena_printf(&w->arena, "%u", ab->requests), e) < 0)
		return -1;
	if (ab->salt == SALT_NONE)
		return 0;
	return give(w, "prompt-salt", arena_printf(&w->arena, "%s:%s-%zu",
						   salt_kind_name(ab->salt), ab->salt_key,
						   ab->n_pairs), e);
}

static int block_options(const struct ab *ab, unsigned side, struct ab_words *w,
			 struct serve_derived *derived, struct err *e)
{
	if (read_words(ab->opts, w, e) < 0 || give_block(ab, w, side, e) < 0)
		return -1;
	serve_opts_fill(&w->o, &w->arena);
	return serve_opts_check(&w->o, &w->given, &w->arena, derived, e);
}

/* Checks, before servers are started or asked, what a block would refuse later. */
static int check_options(const struct ab *ab, struct err *e)
{
	int rc = 0;

	for (unsigned side = 0; side < 2 && rc == 0; side++) {
		struct serve_derived derived = { 0 };
		struct ab_words w;

		rc = block_options(ab, side, &w, &derived, e);
		words_release(&w);
	}
	return rc;
}

static int run_block(struct ab *ab, const struct ab_hooks *hooks, unsigned side,
		     struct block *b, struct err *e)
{
	bool is_ours = ab->servers.server[side];
	struct serve_derived derived = { 0 };
	struct point point = { 0 };
	struct err died = { 0 };
	struct ab_words w;
	const struct run_hooks run = {
		.self = b, .warn = on_warn, .measured = on_measured,
		.progress = is_ours ? on_progress : NULL,
		.cancel = is_ours ? &b->stop : hooks->cancel,
		.is_server_up = is_ours || ab->n_pairs > 0,
	};
	struct paired_pair *pair = b->pair;
	int rc;

	*b = (struct block){ .ab = ab, .hooks = hooks, .opts = &w.o, .derived = &derived,
			     .skipped = ab->skipped, .side = side, .pair = pair };
	rc = block_options(ab, side, &w, &derived, e);
	if (rc == 0)
		rc = run_point(&w.o, &derived, &run, &point, e);
	if (is_ours && ab_servers_check(&ab->servers, rc < 0 || pair->failed[side], &died) < 0) {
		*e = died;
		rc = -1;
	}
	if (rc == 0 && point.workload.sessions)
		rc = err_set(e, ERR_USAGE, "bench ab: the %s dataset has conversations, whose turns "
			     "cannot be paired; use a dataset of single requests",
			     point.workload.dataset);
	if (rc == 0 && b->failure && !b->is_interrupted)
		rc = err_set(e, ERR_RUN, "%s: %s (no request of a block succeeded)",
			     ab->url[side], b->failure);
	free(b->failure);
	point_release(&point);
	words_release(&w);
	return rc;
}

/* ---- the run ---- */

/* Before the first pair neither end-to-end time nor throughput is known. */
static int plan_first(struct ab *ab, const struct ab_words *w, struct err *e)
{
	const struct serve_opts *o = &w->o;
	bool is_closed = isinf(o->request_rate);
	double length_s;

	if (is_closed && !o->max_concurrency.is_set)
		return err_set(e, ERR_USAGE, "--request-rate: bench ab needs a load that lasts; give a "
			       "finite rate, or --max-concurrency for a closed loop");
	ab->block = paired_block(0, is_closed ? 0 : o->request_rate);
	length_s = ab->opts->block_s > 0 ? ab->opts->block_s : ab->block.length_s;
	ab->rate = is_closed ? 0 : o->request_rate;
	ab->requests = is_closed ? (uint32_t)fmin(REQUESTS_MAX, FIRST_ROUNDS *
						  (double)o->max_concurrency.v)
				 : (uint32_t)fmin(REQUESTS_MAX, ceil(length_s * ab->rate));
	if (opt_given(&serve_opt_set, &w->given, "num-prompts")) {
		if (o->num_prompts < 1)
			return err_set(e, ERR_USAGE, "--num-prompts: expected at least 1, got %lld",
				       (long long)o->num_prompts);
		ab->requests = (uint32_t)fmin(REQUESTS_MAX, (double)o->num_prompts);
	} else if (ab->requests < REQUESTS_MIN) {
		ab->requests = REQUESTS_MIN;
	}
	return 0;
}

/* From the second pair on; e2el_s and rate are measured in the first one. */
static void plan_blocks(struct ab *ab, const struct ab_words *w)
{
	bool is_closed = isinf(w->o.request_rate);
	double rate = is_closed ? ab->rate : w->o.request_rate;

	ab->block = paired_block(ab->e2el_s, rate);
	if (ab->opts->block_s > 0)
		ab->block.length_s = ab->opts->block_s;
	if (!opt_given(&serve_opt_set, &w->given, "num-prompts"))
		ab->requests = (uint32_t)fmin(REQUESTS_MAX,
					      fmax(REQUESTS_MIN, ceil(rate * ab->block.length_s)));
	if (rate > 0)
		ab->block.length_s = ab->requests / rate;
	/* At least half of a block is counted, however short the user made it. */
	ab->block.warmup_s = fmin(ab->block.warmup_s, ab->block.length_s / 2);
	ab->skipped = (uint32_t)(ab->requests * ab->block.warmup_s / ab->block.length_s);
}

static int choose_salt(struct ab *ab, const struct ab_words *w, struct err *e)
{
	const char *key = NULL;

	ab->salt = SALT_RUN;
	if (opt_given(&serve_opt_set, &w->given, "prompt-salt") &&
	    salt_parse(w->o.prompt_salt, &ab->salt, &key, e) < 0)
		return -1;
	if (ab->salt == SALT_NONE)
		return 0;
	if (key)
		snprintf(ab->salt_key, sizeof(ab->salt_key), "%s", key);
	else
		salt_draw_key(ab->salt_key);
	return 0;
}

static int run_pair(struct ab *ab, const struct ab_hooks *hooks, struct err *e)
{
	struct ab_pair pair = { .first = paired_toss(&ab->paired) };
	int64_t began_ns = clock_mono_ns();
	double e2el_s = 0, rate = INFINITY;

	for (unsigned turn = 0; turn < 2; turn++) {
		struct block b = { .pair = &pair.measured };

		if (run_block(ab, hooks, turn ? 1 - pair.first : pair.first, &b, e) < 0)
			return -1;
		e2el_s = fmax(e2el_s, b.e2el_s);
		rate = fmin(rate, b.rate);
		ab->is_interrupted = b.is_interrupted;
		if (ab->is_interrupted)
			return 0; /* half a pair does not count */
	}
	pair.measured.seconds = (double)(clock_mono_ns() - began_ns) / 1e9;
	if (!ab->n_pairs) {
		ab->e2el_s = e2el_s;
		ab->rate = rate;
	}
	ab->pair = mem_grow(ab->pair, ab->n_pairs + 1, sizeof(*ab->pair));
	ab->pair[ab->n_pairs++] = pair;
	ab->why = paired_add(&ab->paired, &pair.measured);
	return 0;
}

/* Runs the first pair and all that follow it. */
static int run_pairs(struct ab *ab, const struct ab_words *w, const struct ab_hooks *hooks,
		     struct err *e)
{
	int rc;

	do {
		rc = run_pair(ab, hooks, e);
		if (rc == 0 && ab->n_pairs == 1)
			plan_blocks(ab, w);
		if (rc == 0 && !ab->is_interrupted && hooks->paired)
			hooks->paired(hooks->self, ab);
	} while (rc == 0 && !ab->is_interrupted && ab->why == PAIRED_GO_ON);
	return rc;
}

/* Starts and stops the servers around it, if there are any to start. */
static int run_served(struct ab *ab, const struct ab_words *w, const struct ab_hooks *hooks,
		      struct err *e)
{
	const struct server_hooks say = { .self = hooks->self, .line = hooks->line,
					  .warn = hooks->warn, .cancel = hooks->cancel };
	struct err left = { 0 };
	int rc = -1;

	if (!ab->opts->serve.cmd[0])
		return check_options(ab, e) < 0 ? -1 : run_pairs(ab, w, hooks, e);
	if (ab_servers_init(&ab->servers, &ab->opts->serve, &say, e) == 0) {
		for (unsigned side = 0; side < 2; side++)
			ab->url[side] = ab->started_url[side] =
				mem_text(ab->servers.where[side].url);
		if (check_options(ab, e) == 0 && ab_servers_start(&ab->servers, e) == 0)
			rc = run_pairs(ab, w, hooks, e);
	}
	if (ab_servers_stop(&ab->servers, &left) < 0 && rc == 0) {
		*e = left;
		rc = -1;
	}
	return rc;
}

int ab_run(const struct ab_opts *opts, const struct ab_hooks *hooks, struct ab *out,
	   struct err *e)
{
	struct paired_opts paired = opts->paired;
	struct ab_words w;
	int rc = -1;

	*out = (struct ab){ .opts = opts, .url = { opts->url[0], opts->url[1] } };
	if (read_words(opts, &w, e) < 0)
		goto done;
	out->seed = w.o.seed;
	paired.seed = (uint64_t)out->seed;
	paired_init(&out->paired, &paired);
	if (choose_salt(out, &w, e) < 0 || plan_first(out, &w, e) < 0)
		goto done;
	rc = run_served(out, &w, hooks, e);
	if (rc < 0 && e->code == ERR_CANCELLED) {
		*e = (struct err){ 0 };
		out->is_interrupted = true;
		rc = 0;
	}
done:
	words_release(&w);
	return rc;
}

void ab_release(struct ab *ab)
{
	free(ab->started_url[0]);
	free(ab->started_url[1]);
	free(ab->failure[0]);
	free(ab->failure[1]);
	free(ab->pair);
	*ab = (struct ab){ 0 };
}
