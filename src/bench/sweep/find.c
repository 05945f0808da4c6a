/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - see find.h. */
#include "bench/sweep/find.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "bench/options/serve_opts.h"
#include "bench/serve/point_internal.h"
#include "bench/serve/score.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

/* More prompts than needed on average, so that a level ends by time and not for lack of prompts. */
#define SPARE_DEVIATIONS 4
#define SPARE_PROMPTS 10
#define SPARE_SHARE 1.3         /* of a closed loop, whose throughput is only expected */
#define DRAIN_HOLDS 3.0         /* a level that takes so much longer than its time is cancelled */
#define DRAIN_LEAST_S 60.0
#define SPOILT_MAX 3
#define SATURATION_BUDGET 0.15  /* share of the budget that saturation may take */
#define SATURATION_LEAST 20     /* requests that have to end all the same */
#define SATURATION_MOST 20000
#define SATURATION_BLIND_MOST 3200 /* where the server does not say what runs */
#define SATURATION_GAIN 1.1     /* twice the prompts have to gain so much */
#define SATURATION_TIMES 5      /* prompts for each that runs at once */
#define REFUSED_SHARE 0.01

const char *find_unit(enum capacity_load load)
{
	return load == CAPACITY_RATE ? "requests/s" : "requests at once";
}

/* ---- requests of a level ---- */

struct view { struct level_request *r; double *value; size_t n; };

static void view_begin(struct view *v, const struct slo *slo, size_t room)
{
	*v = (struct view){ .r = mem_array(room + 1, sizeof(*v->r)) };
	if (slo_has_mean(slo))
		v->value = mem_array((room + 1) * (slo->n + 1), sizeof(*v->value));
}

static void view_add(struct view *v, const struct slo *slo, const struct slo_request *r)
{
	slo_mark(slo, r, v->value ? v->value + v->n * (slo->n + 1) : NULL, &v->r[v->n]);
	v->n++;
}

static int by_due(const void *a, const void *b)
{
	const struct level_request *x = a, *y = b;

	return (x->due_s > y->due_s) - (x->due_s < y->due_s);
}

static void view_take(struct view *v, const struct slo *slo, double warmup_s, double sent_s,
		      struct level *out)
{
	double last = 0;

	qsort(v->r, v->n, sizeof(*v->r), by_due);
	if (v->n)
		last = v->r[v->n - 1].due_s;
	if (isinf(sent_s))
		sent_s = last;
	if (warmup_s > 0)
		warmup_s = level_warmup_s(v->r, v->n, warmup_s, sent_s);
	level_take(out, v->r, v->n, slo->n + 1, warmup_s, sent_s);
	free(v->r);
	free(v->value);
}

static double seconds(int64_t ns, int64_t from_ns)
{
	return (double)(ns - from_ns) / 1e9;
}

/* An open loop's requests are due by the plan; a closed loop's when a slot is free. */
static double due_of(const struct record *r, const struct plan *plan, uint32_t i, bool is_closed,
		     int64_t sent_ns)
{
	return is_closed ? fmax(0, seconds(sent_ns, r->start_ns)) : plan->entry[i].due_s;
}

void find_level_of(const struct slo *slo, const struct point *p, const struct metrics *m,
		   bool is_closed, double warmup_s, double sent_s, struct level *out)
{
	const struct record *rec = &p->record;
	struct view v;

	view_begin(&v, slo, m->n);
	for (uint32_t k = 0; k < m->n; k++) {
		uint32_t i = m->row[k];
		const struct request_row *row = &rec->row[i];

		if (row->state != REQ_DONE && row->state != REQ_FAILED)
			continue;
		view_add(&v, slo, &(struct slo_request){
			.due_s = due_of(rec, &p->plan, i, is_closed, row->sent_ns ? row->sent_ns
									     : row->admitted_ns),
			.end_s = seconds(row->end_ns, rec->start_ns), .e2el_s = m->latency[k],
			.ttft_s = row->state == REQ_DONE ? m->ttft[k] : NAN,
			.tokens = (double)m->output_len[k],
			.is_failed = row->state == REQ_FAILED });
	}
	view_take(&v, slo, warmup_s, sent_s, out);
}

void find_level_now(const struct slo *slo, const struct run_sample *now, bool is_closed,
		    double warmup_s, double sent_s, double at_s, struct level *out)
{
	const struct record *rec = now->record;
	struct view v;

	view_begin(&v, slo, now->n_rows);
	for (uint32_t i = 0; i < now->n_rows; i++) {
		const struct request_row *row = &rec->row[i];
		int64_t sent_ns = record_stamp(&row->sent_ns);
		int64_t first_ns = record_stamp(&row->first_event_ns);
		bool has_ended = record_is_published(row);
		struct slo_request r = { .end_s = INFINITY, .ttft_s = NAN };

		if (has_ended && !sent_ns)
			sent_ns = row->admitted_ns;
		if ((is_closed && !sent_ns) || (has_ended && row->state != REQ_DONE &&
						row->state != REQ_FAILED))
			continue;
		r.due_s = due_of(rec, now->plan, i, is_closed, sent_ns);
		if (r.due_s > at_s)
			continue;
		r.age_s = sent_ns ? at_s - seconds(sent_ns, rec->start_ns) : 0;
		r.is_failed = has_ended && row->state == REQ_FAILED;
		if (first_ns && sent_ns && !r.is_failed)
			r.ttft_s = seconds(first_ns, sent_ns);
		if (has_ended) {
			r.end_s = seconds(row->end_ns, rec->start_ns);
			r.e2el_s = seconds(row->last_event_ns, sent_ns);
			r.tokens = row->output_tokens ? row->output_tokens : row->n_events;
		}
		view_add(&v, slo, &r);
	}
	view_take(&v, slo, warmup_s, sent_s, out);
}

/* ---- one run ---- */

struct run {
	struct find *f;
	const struct find_hooks *hooks;
	const struct serve_opts *opts;
	const struct serve_derived *derived;
	struct level *level;        /* filled; NULL: not wanted */
	double hold_s, look_s;      /* INFINITY: all prompts, no looks */
	double warmup_s;
	double abandon_s;           /* given up then, once SATURATION_LEAST have ended */
	double sent_s;              /* when admission was closed; INFINITY: it was not */
	bool is_closed_loop, is_cut, is_reported; /* is_reported: capacity_look said to stop */
	atomic_bool close, abandon;
	/* the result */
	double per_s, running;      /* running: the most that the server said; NAN: nothing */
	uint32_t attempted, failed, lost; /* lost: connections */
	char *failure, *error;      /* why all failed; of the first failed one, if any */
	bool is_spoilt, is_doubted;
	struct trust_reason doubt;   /* the worst on what a limit is on, if is_doubted */
};

static void look(struct run *r, const struct run_sample *now, double at_s)
{
	double next_s;

	find_level_now(&r->f->opts->slo, now, r->is_closed_loop, r->warmup_s, at_s, at_s, r->level);
	switch (capacity_look(r->f->search, r->level, at_s, &next_s)) {
	case CAPACITY_STOP_CANCEL:
		r->is_cut = true;
		atomic_store(&r->abandon, true);
		/* fall through */
	case CAPACITY_STOP_DRAIN:
		r->is_reported = true;
		r->sent_s = at_s;
		atomic_store(&r->close, true);
		break;
	default:
		r->look_s = next_s;
	}
}

static void on_sample(void *self, const struct run_sample *now)
{
	struct run *r = self;
	double at_s;

	if (now->server.running >= 1)
		r->running = fmax(isnan(r->running) ? 0 : r->running, now->server.running);
	if (!now->record->start_ns || r->is_cut)
		return;
	at_s = seconds(clock_real_ns(), now->record->start_ns);
	if (at_s > r->abandon_s && now->load.done >= SATURATION_LEAST) {
		r->is_cut = true;
		atomic_store(&r->abandon, true);
	} else if (isinf(r->sent_s) && now->load.admitted == now->n_rows) {
		return; /* a closed loop has used its prompts up */
	} else if (isinf(r->sent_s) && at_s >= r->hold_s) {
		r->sent_s = at_s;
		atomic_store(&r->close, true);
	} else if (isinf(r->sent_s) && at_s >= r->look_s) {
		look(r, now, at_s);
	} else if (at_s > r->sent_s + fmax(DRAIN_LEAST_S, DRAIN_HOLDS * r->hold_s)) {
		find_level_now(&r->f->opts->slo, now, r->is_closed_loop, r->warmup_s, r->sent_s,
			       at_s, r->level);
		r->is_cut = true;
		atomic_store(&r->abandon, true);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Finished requests/s over the middle half of the completions; 0: too few. */
static double middle_rate(const struct point *p)
{
	double *end = mem_array(p->plan.n + 1, sizeof(*end)), span, rate = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < p->plan.n; i++)
		if (p->record.row[i].state == REQ_DONE)
			end[n++] = seconds(p->record.row[i].end_ns, p->record.start_ns);
	qsort(end, n, sizeof(*end), by_value);
	span = n ? end[n * 3 / 4] - end[n / 4] : 0;
	if (span > 0 && n >= 4)
		rate = (double)(n * 3 / 4 - n / 4) / span;
	else if (n && end[n - 1] > 0)
		rate = (double)n / end[n - 1];
	free(end);
	return rate;
}

bool find_is_by_load(const struct trust_reason *reason)
{
	static const char *const codes[] = { "no_success", "failures", "rate_not_carried",
					     "queue_growing", "interrupted", "aborted" };

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (strcmp(reason->code, codes[i]) == 0)
			return true;
	return false;
}

static void judge(struct run *r, const struct trust *t)
{
	unsigned limited = slo_trust_bits(&r->f->opts->slo);

	for (size_t i = 0; i < t->n_reasons && !r->is_doubted; i++) {
		const struct trust_reason *reason = &t->reason[i]; /* the worst first */

		r->is_doubted = reason->level != TRUST_VALID && reason->spoils & limited &&
				!find_is_by_load(reason);
		if (!r->is_doubted)
			continue;
		r->doubt = *reason;
		r->is_spoilt = reason->level == TRUST_INVALID;
		if (r->is_spoilt)
			snprintf(r->f->why_spoilt, sizeof(r->f->why_spoilt), "%s", reason->text);
	}
}

static void count_doubt(struct find *f, const struct run *r, bool is_counted)
{
	if (!r->is_doubted)
		return;
	f->doubts.degraded += is_counted;
	f->doubts.invalid += !is_counted;
	f->doubts.code = r->doubt.code;
	snprintf(f->doubts.why, sizeof(f->doubts.why), "%s", r->doubt.text);
}

static void count_failures(struct run *r, const struct point *p)
{
	struct buf error = { 0 }, safe = { 0 };
	struct str text;

	for (uint32_t i = 0; i < p->plan.n; i++) {
		const struct request_row *row = &p->record.row[i];

		if (row->state == REQ_FAILED && !r->failed)
			record_error_of(&p->record, row, &error);
		r->attempted += row->state == REQ_DONE || row->state == REQ_FAILED;
		r->failed += row->state == REQ_FAILED;
		r->lost += row->state == REQ_FAILED &&
			   (row->fail == FAIL_CONNECT || row->fail == FAIL_RESET ||
			    row->fail == FAIL_TLS || row->fail == FAIL_TRUNCATED);
	}
	text = buf_str(&error); /* and maybe the body of the answer in further lines */
	line_add_safe(&safe, str_cut(&text, '\n'));
	r->error = buf_take(&safe);
	buf_release(&error);
}

static void on_measured(void *self, struct point *p)
{
	struct run *r = self;
	struct scored scored;

	score_point(r->opts, r->derived, p, &scored);
	if (!r->is_cut)
		judge(r, &scored.trust);
	if (r->level && !r->is_cut)
		find_level_of(&r->f->opts->slo, p, &scored.metrics, r->is_closed_loop, r->warmup_s,
			      r->sent_s, r->level);
	count_failures(r, p);
	r->per_s = middle_rate(p);
	if (p->failure && !r->is_cut)
		r->failure = mem_text(p->failure);
	if (!r->f->model && p->model_id)
		r->f->model = mem_text(p->model_id);
	scored_release(&scored);
}

static void on_warn(void *self, const char *text)
{
	const struct run *r = self;

	/* The same options give the same warnings in every run. */
	if (r->f->runs == 0 && r->hooks->warn)
		r->hooks->warn(r->hooks->self, text);
}

static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	const struct run *r = self;

	if (r->hooks->progress)
		r->hooks->progress(r->hooks->self, stage, done, total, load);
}

/* ---- the options of a run ---- */

/* Options of bench serve that contradict a search. */
static const char *const refused[] = {
	"duration", "num-runs", "sweep-max-concurrency", "sweep-request-rate", "multi-turn",
	"max-sessions", "user-centric-rate", "ramp-up-strategy", "load-pattern", "self-timed",
	"request-cancellation-rate", "append-result", "record", "dump-workload", "plot-timeline",
	"plot-dataset-stats", "plot-load-pattern", "compare", "live", "dashboard", "fail-if", "junit",
	"summary", NULL
};

struct find_words { struct serve_opts o; struct opt_result given; struct arena arena; };

static void words_release(struct find_words *w)
{
	opt_result_release(&w->given);
	arena_release(&w->arena);
}

static int give(struct find_words *w, const char *option, const char *value, struct err *e)
{
	return opt_give(&serve_opt_set, &w->o, &w->given, option, str_of(value), &w->arena, e);
}

static int read_words(const struct find_opts *o, struct find_words *w, struct err *e)
{
	*w = (struct find_words){ .arena = { 0 } };
	if (o->serve) {
		w->o = *o->serve;
		w->given = *o->given;
		w->given.notes = (struct buf){ 0 };
	} else if (opt_parse(&serve_opt_set, o->argc, o->argv, &w->o, &w->given, &w->arena,
			     e) < 0) {
		return -1;
	}
	if (serve_presets(&w->o, &w->given, &w->arena, e) < 0)
		return -1;
	for (size_t i = 0; refused[i]; i++)
		if (opt_given(&serve_opt_set, &w->given, refused[i]))
			return err_set(e, ERR_USAGE, "--%s has no meaning in a search for the largest "
				       "load, which runs many levels; remove it", refused[i]);
	return 0;
}

static int give_run(const struct find *f, struct find_words *w, const struct find_load *l,
		    struct err *e)
{
	int64_t seed = (f->seed + (int64_t)f->runs) % ((int64_t)UINT32_MAX + 1);
	struct arena *a = &w->arena;
	const char *rate = isinf(l->rate) ? "inf" : arena_printf(a, "%.17g", l->rate);

	if (give(w, "request-rate", rate, e) < 0 ||
	    give(w, "num-prompts", arena_printf(a, "%.0f", fmin(l->prompts, REQUESTS_MAX)), e) < 0 ||
	    give(w, "seed", arena_printf(a, "%lld", (long long)seed), e) < 0)
		return -1;
	/* The first steps have fewer prompts than prefixes. */
	if (l->prompts < (double)w->o.data.prefix_repetition_num_prefixes)
		w->o.data.prefix_repetition_num_prefixes = (int64_t)l->prompts;
	if (l->cap && give(w, "max-concurrency", arena_printf(a, "%u", l->cap), e) < 0)
		return -1;
	if (!l->cap)
		w->o.max_concurrency = (struct opt_int){ 0 };
	if (f->runs && give(w, "num-warmups", "0", e) < 0)
		return -1;
	if (f->salt == SALT_NONE)
		return 0;
	return give(w, "prompt-salt", arena_printf(a, "%s:%s-%u", salt_kind_name(f->salt),
						   f->salt_key, f->runs), e);
}

/* r has what is to be done; the rest of it is filled. run_release in any case. */
static int run_one(struct run *r, const struct find_load *l, struct err *e)
{
	struct find *f = r->f;
	struct serve_derived derived = { 0 };
	struct point point = { 0 };
	struct find_words w;
	struct run_hooks hooks = {
		.self = r, .warn = on_warn, .progress = on_progress, .sample = on_sample,
		.measured = on_measured, .cancel = r->hooks->cancel, .close = &r->close,
		.abandon = &r->abandon,
	};
	int rc = -1;

	r->opts = &w.o;
	r->derived = &derived;
	r->is_closed_loop = isinf(l->rate);
	r->sent_s = INFINITY;
	r->running = NAN;
	if (read_words(f->opts, &w, e) < 0 || give_run(f, &w, l, e) < 0)
		goto done;
	/* A starting server is waited for only when the user says so. */
	hooks.is_server_up = f->runs || !opt_given(&serve_opt_set, &w.given,
						   "ready-check-timeout-sec");
	serve_opts_fill(&w.o, &w.arena);
	if (serve_opts_check(&w.o, &w.given, &w.arena, &derived, e) < 0)
		goto done;
	rc = run_point(&w.o, &derived, &hooks, &point, e);
	if (rc == 0 && point.workload.sessions)
		rc = err_set(e, ERR_USAGE, "the %s dataset has conversations, whose requests do not "
			     "arrive at a rate of their own; use a dataset of single requests, or bench "
			     "sweep serve_sla --sla-search bisect", point.workload.dataset);
	if (rc == 0 && (point.endpoint->is_pooling || point_is_self_timed(&w.o, &point)))
		rc = err_set(e, ERR_USAGE, "%s; a search for the largest load needs generated text and "
			     "its own arrival times", point.endpoint->is_pooling ?
			     "--backend: it answers with vectors or scores" :
			     "--self-timed: the dataset has its own times (use --no-self-timed)");
	f->runs++;
done:
	if (rc < 0 && e->code == ERR_CANCELLED)
		f->is_interrupted = true;
	if (rc == 0 && r->hooks->cancel && atomic_load(r->hooks->cancel))
		f->is_interrupted = true;
	point_release(&point);
	words_release(&w);
	r->opts = NULL;
	r->derived = NULL;
	return rc;
}

static struct run new_run(struct find *f, const struct find_hooks *hooks)
{
	return (struct run){ .f = f, .hooks = hooks, .hold_s = INFINITY, .look_s = INFINITY,
			     .abandon_s = INFINITY };
}

static void run_release(struct run *r)
{
	free(r->failure);
	free(r->error);
}

/* ---- the steps ---- */

/* Sends one request. -1: e says why it was not answered (is_any: not reached). */
static int ask_once(struct find *f, const struct find_hooks *hooks, bool is_any, struct err *e)
{
	struct run r = new_run(f, hooks);
	int rc = run_one(&r, &(struct find_load){ INFINITY, 1, 1 }, e);

	if (rc == 0 && !f->is_interrupted && r.failure && (!is_any || r.lost))
		rc = err_set(e, ERR_RUN, "%s", r.failure);
	run_release(&r);
	return rc;
}

static int probe(struct find *f, const struct find_hooks *hooks, struct err *e)
{
	int64_t began_ns = clock_mono_ns();
	int rc = ask_once(f, hooks, false, e);

	if (!f->is_interrupted)
		capacity_tell_probe(f->search, rc == 0, seconds(clock_mono_ns(), began_ns));
	return rc;
}

static int unloaded(struct find *f, const struct find_hooks *hooks, struct err *e)
{
	struct run r = new_run(f, hooks);
	int64_t began_ns = clock_mono_ns();
	int rc;

	r.level = &f->level;
	f->level = (struct level){ .load = 1 };
	rc = run_one(&r, &(struct find_load){ INFINITY, 1, (double)f->step.requests }, e);
	if (rc == 0 && !f->is_interrupted && r.failure)
		rc = err_set(e, ERR_RUN, "%s", r.failure);
	f->level.spent_s = seconds(clock_mono_ns(), began_ns);
	if (rc == 0 && !f->is_interrupted)
		capacity_tell_unloaded(f->search, &f->level);
	run_release(&r);
	return rc;
}

/* With more failures than this the server refuses what saturates it. */
static double refused_share(const struct find *f)
{
	return fmax(REFUSED_SHARE, f->opts->failed_share);
}

bool find_next_saturation(const struct find_saturated *r, double last_per_s, struct find_load *l)
{
	double n = l->prompts;

	if (r->is_refused) {
		if (l->cap == 1)
			return false;
		l->cap = (uint32_t)fmax(1, floor((l->cap ? l->cap : n) / 2));
		l->prompts = fmax(SATURATION_TIMES * 10.0, SATURATION_TIMES * (double)l->cap);
		return true;
	}
	if (l->cap || r->is_cut)
		return false;
	if (!isnan(r->running)) {
		l->prompts = fmin(SATURATION_TIMES * r->running, SATURATION_MOST);
		return l->prompts > n;
	}
	l->prompts = 2 * n;
	return n < SATURATION_BLIND_MOST && r->per_s > SATURATION_GAIN * last_per_s;
}

double find_carried_per_s(const struct capacity_saturation *m, double e2e_s)
{
	return e2e_s > 0 ? fmin(m->per_s, m->at_once / e2e_s) : m->per_s;
}

static int saturate(struct find *f, const struct find_hooks *hooks, struct err *e)
{
	struct find_load l = { INFINITY, 0, (double)f->step.requests }, now;
	struct capacity_saturation *m = &f->saturation;
	int64_t began_ns = clock_mono_ns();
	bool goes_on;

	do {
		struct run r = new_run(f, hooks);
		struct find_saturated saturated;
		int rc;

		r.abandon_s = SATURATION_BUDGET * f->opts->budget_s;
		now = l;
		rc = run_one(&r, &l, e);
		saturated = (struct find_saturated){ r.per_s, r.running, r.is_cut,
						     r.failed > refused_share(f) * r.attempted };
		goes_on = rc == 0 && !f->is_interrupted &&
			  find_next_saturation(&saturated, m->per_s, &l);
		m->requests += (uint64_t)now.prompts;
		if (r.per_s > 0)
			m->per_s = r.per_s;
		m->at_once = now.cap ? now.cap : isnan(r.running) ? now.prompts : r.running;
		/* A limit on the rate, not on the number at once, may be met at a lower rate. */
		if (rc == 0 && !f->is_interrupted && !goes_on && saturated.is_refused &&
		    (r.failure || f->opts->load == CAPACITY_CONCURRENCY))
			rc = err_set(e, ERR_RUN, "requests fail even one at a time: %s",
				     r.failure ? r.failure : r.error);
		run_release(&r);
		if (rc < 0)
			return -1;
	} while (goes_on);
	m->spent_s = seconds(clock_mono_ns(), began_ns);
	if (f->is_interrupted)
		return 0;
	if (!(m->per_s > 0))
		return err_set(e, ERR_RUN, "the server finished no request while it was saturated");
	m->per_s = find_carried_per_s(m, f->level.e2e_s);
	capacity_tell_saturation(f->search, m);
	return 0;
}

double find_prompts(const struct find *f, const struct capacity_step *s)
{
	double e2el_s = fmax(1e-3, f->level.e2e_s), n;

	if (f->opts->load == CAPACITY_RATE) {
		n = s->load * s->hold_s;
		return ceil(n + SPARE_DEVIATIONS * sqrt(n) + SPARE_PROMPTS);
	}
	n = f->saturation.per_s > 0 ? f->saturation.per_s : s->load / e2el_s;
	return ceil(SPARE_SHARE * n * s->hold_s + 2 * s->load + SPARE_PROMPTS);
}

/* A server that is gone ends the search; its last level's result is dropped. */
static int check_alive(struct find *f, const struct find_hooks *hooks, const struct run *r,
		       struct err *e)
{
	struct err why = { 0 };

	if (!r->lost || ask_once(f, hooks, true, &why) == 0 || f->is_interrupted)
		return 0;
	return err_set(e, ERR_RUN, "the server stopped answering at %.4g %s: %s", f->step.load,
		       find_unit(f->opts->load), why.text);
}

static int level(struct find *f, const struct find_hooks *hooks, struct err *e)
{
	const struct capacity_step s = f->step;
	bool is_rate = f->opts->load == CAPACITY_RATE;
	const struct find_load l = { is_rate ? s.load : INFINITY, is_rate ? 0 : (uint32_t)s.load,
				     find_prompts(f, &s) };
	struct run r = new_run(f, hooks);
	int64_t began_ns = clock_mono_ns();
	struct level measured = { .load = s.load };
	int rc;

	r.level = &measured;
	r.hold_s = s.hold_s;
	r.look_s = s.look_s;
	r.warmup_s = s.warmup_s;
	rc = run_one(&r, &l, e);
	measured.load = s.load;
	measured.spent_s = seconds(clock_mono_ns(), began_ns);
	if (rc == 0 && !f->is_interrupted)
		rc = check_alive(f, hooks, &r, e);
	run_release(&r);
	if (rc < 0 || f->is_interrupted)
		return rc;
	f->level = measured;
	f->spoilt = r.is_spoilt && !r.is_reported ? f->spoilt + 1 : 0;
	if (!s.is_bracketing)
		count_doubt(f, &r, !f->spoilt);
	if (f->spoilt == SPOILT_MAX)
		return err_set(e, ERR_RUN, "the level of %.4g %s cannot be measured: %s", s.load,
			       find_unit(f->opts->load), f->why_spoilt);
	if (!f->spoilt)
		capacity_tell_level(f->search, &measured);
	return 0;
}

/* ---- the search ---- */

static int choose_salt(struct find *f, const struct find_words *w, struct err *e)
{
	const char *key = NULL;

	f->salt = SALT_RUN;
	if (opt_given(&serve_opt_set, &w->given, "prompt-salt") &&
	    salt_parse(w->o.prompt_salt, &f->salt, &key, e) < 0)
		return -1;
	if (f->salt == SALT_NONE)
		return 0;
	if (key)
		snprintf(f->salt_key, sizeof(f->salt_key), "%.50s", key);
	else
		salt_draw_key(f->salt_key);
	return 0;
}

static int begin(struct find *f, const struct find_hooks *hooks, struct err *e)
{
	const struct find_opts *o = f->opts;
	bool is_rate = o->load == CAPACITY_RATE;
	struct find_words w;
	int rc = -1;

	if (read_words(o, &w, e) < 0 || choose_salt(f, &w, e) < 0)
		goto done;
	f->seed = w.o.seed;
	rc = 0;
	if (is_rate && opt_given(&serve_opt_set, &w.given, "max-concurrency"))
		rc = err_set(e, ERR_USAGE, "--max-concurrency keeps requests in the client, where no "
			     "limit sees them wait; remove it, or search for the largest "
			     "concurrency instead");
	else if (opt_given(&serve_opt_set, &w.given, "num-prompts") && hooks->warn)
		hooks->warn(hooks->self, "--num-prompts has no effect in a search: each level has as "
			    "many prompts as its time needs");
done:
	words_release(&w);
	return rc;
}

static int take_step(struct find *f, const struct find_hooks *hooks, struct err *e)
{
	switch (f->step.ask) {
	case CAPACITY_PROBE:
		return probe(f, hooks, e);
	case CAPACITY_UNLOADED_REQUESTS:
		return unloaded(f, hooks, e);
	case CAPACITY_SATURATE:
		return saturate(f, hooks, e);
	default:
		return level(f, hooks, e);
	}
}

double find_load_max(const struct find_opts *o)
{
	double files = o->load == CAPACITY_CONCURRENCY ?
		       fmin((double)stage_connections_max(true), CAPACITY_LOAD_MAX) : 0;

	return o->load_max > 0 && files > 0 ? fmin(o->load_max, files) : fmax(o->load_max, files);
}

int find_run(const struct find_opts *o, const struct find_hooks *hooks, struct find *out,
	     struct err *e)
{
	struct capacity_opts c = { .load = o->load, .precision = o->precision,
				   .budget_s = o->budget_s, .level_s = o->level_s,
				   .load_min = o->load_min, .load_max = find_load_max(o),
				   .failed_share = o->failed_share,
				   .has_saturation = true };
	int rc;

	slo_limits(&o->slo, &c);
	*out = (struct find){ .opts = o, .search = capacity_new(&c) };
	rc = begin(out, hooks, e);
	while (rc == 0 && !out->is_interrupted) {
		out->step = capacity_next(out->search);
		if (out->step.ask == CAPACITY_DONE)
			break;
		if (hooks->begun)
			hooks->begun(hooks->self, out);
		rc = take_step(out, hooks, e);
		if (rc == 0 && !out->is_interrupted && hooks->ended)
			hooks->ended(hooks->self, out);
	}
	capacity_stop(out->search);
	if (rc < 0 && e->code == ERR_CANCELLED) {
		*e = (struct err){ 0 };
		rc = 0;
	}
	return rc;
}

void find_release(struct find *f)
{
	capacity_free(f->search);
	free(f->model);
	*f = (struct find){ 0 };
}
