/* SPDX-License-Identifier: Apache-2.0 */
/* score.c - from a measured point to a report; see score.h. */
#include "bench/serve/score.h"

#include <math.h>

#include "bench/options/salt.h"
#include "bench/serve/multi_turn.h"
#include "bench/serve/point_internal.h"
#include "client/load/pressure.h"
#include "client/net/sock.h"
#include "client/record/series.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/json/read.h"
#include "input/constrain/constrain.h"
#include "input/data/repeat.h"
#include "input/trace/trace.h"
#include "version.h"

/* ---- tokens ---- */

void answer_text(const struct record *r, const struct request_row *row, struct buf *out)
{
	struct buf escaped = { 0 };

	record_text_of(r, row, &escaped);
	json_unescape(out, buf_str(&escaped));
	buf_release(&escaped);
}

/* Tokens of a text that the record keeps; SIZE_MAX: not known. scratch: its two forms. */
static size_t count_text(const struct record *r, const struct request_row *row,
			 void (*text_of)(const struct record *, const struct request_row *,
					 struct buf *),
			 const struct tokenizer *t, struct buf scratch[2])
{
	buf_reset(&scratch[0]);
	buf_reset(&scratch[1]);
	text_of(r, row, &scratch[0]);
	if (scratch[0].len == 0)
		return 0;
	json_unescape(&scratch[1], buf_str(&scratch[0]));
	return tokenizer_count(t, buf_str(&scratch[1]), false);
}

static void count_row(const struct record *r, struct request_row *row, const struct tokenizer *t,
		      bool is_all_text, struct buf scratch[2])
{
	size_t answer = count_text(r, row, record_text_of, t, scratch);
	size_t other = count_text(r, row, record_other_text_of, t, scratch);

	if (answer == SIZE_MAX || other == SIZE_MAX) {
		row->output_tokens = 1;
		row->flags |= ROW_COUNT_UNKNOWN;
		return;
	}
	row->all_text_tokens = (uint32_t)(answer + other);
	row->output_tokens = is_all_text ? row->all_text_tokens : (uint32_t)answer;
	row->flags |= ROW_COUNTED;
}

/*
 * Estimates prompt tokens for a server without usage. The workload's prompt length of a turn
 * includes its history with answers of the requested lengths; the difference to the previous turn
 * includes that answer, which may have been shorter. Answers without a requested length are not
 * included.
 */
static void add_history(const struct record *r, struct request_row *row)
{
	const struct request_row *before;
	int64_t stated, surplus, prompt;

	if (row->history == RECORD_NONE || row->state != REQ_DONE || row->flags & ROW_HAS_USAGE)
		return;
	/* It is complete: it has a lower index, or is a first turn that a warm-up sent. */
	before = &r->row[row->history];
	stated = (int64_t)row->sample_prompt_tokens - before->sample_prompt_tokens;
	surplus = (int64_t)before->output_tokens - before->asked_tokens;
	prompt = (int64_t)before->prompt_tokens + stated + surplus;
	row->prompt_tokens = prompt > 0 ? (uint32_t)prompt : 0;
}

void count_missing(struct record *r, const struct tokenizer *t, bool is_all_text)
{
	struct buf scratch[2] = { 0 };

	for (uint32_t i = 0; i < r->n_rows; i++) {
		struct request_row *row = &r->row[i];

		if (row->state != REQ_DONE || row->output_tokens)
			continue;
		if (t) {
			count_row(r, row, t, is_all_text, scratch);
		} else {
			row->output_tokens = 1;
			row->flags |= ROW_COUNT_UNKNOWN;
		}
	}
	for (uint32_t i = 0; i < r->n_rows; i++)
		add_history(r, &r->row[i]);
	buf_release(&scratch[0]);
	buf_release(&scratch[1]);
}

/* ---- constraints ---- */

/* The latest compiled constraint: most runs have one for all requests. */
struct last_constraint {
	struct str text;            /* borrowed: the sample's */
	struct constraint *compiled; /* NULL: not a constraint that we can check */
};

bool correct_is_asked(const struct workload *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].constraint.n)
			return true;
	return false;
}

static const struct constraint *compile(struct last_constraint *last, struct str text)
{
	if (!last->text.p || !str_eq(last->text, text)) {
		constraint_free(last->compiled);
		last->compiled = constraint_compile_member(text, NULL, NULL);
		last->text = text;
	}
	return last->compiled;
}

/* The body member that holds the constraint, whichever form was chosen. */
static const char *key_among(struct str overrides)
{
	static const char *const keys[] = { "structured_outputs", "guided_json", "guided_regex",
		"guided_choice", "guided_grammar", "response_format" };
	struct json_scan scan = { .text = overrides };
	struct json_slice object, v;

	if (!overrides.n || json_next(&scan, &object, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_member(object, keys[i], &v))
			return keys[i];
	return NULL;
}

/* The body member for constraints that the server knows ("structured_outputs"); NULL: none. */
static const char *constraint_key(const struct workload *w)
{
	const char *key = NULL;

	for (size_t i = 0; i < w->n && !key; i++)
		if (w->v[i].constraint.n)
			key = key_among(w->v[i].overrides);
	return key;
}

static enum row_wrong wrong_of(const struct constraint *c, const struct request_row *row,
			       const char *why, struct str answer)
{
	if (row->finish == FINISH_LENGTH && constraint_can_follow(c, answer))
		return WRONG_TRUNCATED;
	if (str_starts(str_of(why), STR("parse")))
		return WRONG_PARSE;
	return str_starts(str_of(why), STR("schema")) ? WRONG_SCHEMA : WRONG_MATCH;
}

static unsigned judge(const struct constraint *c, const struct request_row *row, struct str answer)
{
	struct constraint_result result;
	unsigned bits = 0;
	int upstream = constraint_check_upstream(c, answer);

	if (upstream >= 0)
		bits |= ROW_UPSTREAM_SCORED | (upstream ? ROW_UPSTREAM_CORRECT : 0);
	if (row->state != REQ_DONE)
		return bits;
	constraint_check(c, answer, &result);
	if (result.verdict == CONSTRAINT_NOT_SCORED)
		return bits;
	bits |= ROW_SCORED;
	if (result.verdict == CONSTRAINT_KEPT)
		return bits | ROW_CORRECT;
	return bits | (unsigned)wrong_of(c, row, result.why, answer) << ROW_WRONG_SHIFT;
}

void correct_answers(struct point *p)
{
	struct buf answer = { 0 };
	struct last_constraint last = { 0 };

	for (uint32_t i = 0; i < p->plan.n; i++) {
		struct request_row *row = &p->record.row[i];
		const struct sample *s = &p->workload.v[row->sample];
		const struct constraint *c = s->constraint.n ? compile(&last, s->constraint) : NULL;

		if (!s->constraint.n || row->state == REQ_UNSENT)
			continue;
		row->correctness = ROW_HAS_CONSTRAINT;
		row->correctness |= key_among(s->overrides) ? ROW_CONSTRAINED : 0;
		if (!c)
			continue;
		buf_reset(&answer);
		answer_text(&p->record, row, &answer);
		row->correctness |= (uint16_t)judge(c, row, buf_str(&answer));
	}
	constraint_free(last.compiled);
	buf_release(&answer);
}

/* ---- what a prefix cache may have held for reasons of the run itself ---- */

static bool is_any_cached(const struct record *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++)
		if (r->row[i].phase == PHASE_MAIN && r->row[i].cached_tokens)
			return true;
	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];

		if (strcmp(s->name, series_name(SERIES_PREFIX_HITS)) == 0 && s->n &&
		    s->point[s->n - 1].value > s->point[0].value)
			return true;
	}
	return false;
}

static bool is_copy_sent(const struct record *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++)
		if ((r->row[i].phase == PHASE_READY || r->row[i].phase == PHASE_WARMUP) &&
		    r->row[i].state == REQ_DONE)
			return true;
	return false;
}

/*
 * A turn finds the prompt and the answer of the one that it continues, whose text is only known
 * once that has ended; its own message is new. Entries that follow others without that: anything.
 */
static double explained_of(const struct point *p, uint32_t entry, double share, double granted)
{
	const struct request_row *row = &p->record.row[entry], *before = NULL;
	double tokens = row->prompt_tokens, explained = share * tokens, history;

	if (row->history != RECORD_NONE)
		before = &p->record.row[row->history];
	if ((!before && p->plan.entry[entry].after != PLAN_NONE) || p->is_prefix_warm)
		return tokens;
	if (before) {
		history = (double)before->prompt_tokens + before->output_tokens;
		explained = history > explained ? history : explained;
	}
	return explained + granted < tokens ? explained + granted : tokens;
}

static void explain_cache(const struct point *p, bool is_chat, struct trust_facts *facts)
{
	double *share, tokens = 0, explained = 0;
	struct str *text;
	uint32_t *entry;
	size_t n = 0, copies;

	if (!is_any_cached(&p->record) || p->workload.n == 0)
		return;
	text = mem_array((size_t)p->plan.n + 1, sizeof(*text));
	entry = mem_array(p->plan.n, sizeof(*entry));
	copies = p->salt == SALT_NONE && is_copy_sent(&p->record);
	if (copies)
		text[0] = prefix_text(&p->workload.v[0]);
	for (uint32_t i = 0; i < p->plan.n; i++) {
		if (!p->record.row[i].sent_ns)
			continue;
		text[copies + n] = prefix_text(&p->workload.v[p->plan.entry[i].sample]);
		entry[n++] = i;
	}
	share = mem_array(copies + n, sizeof(*share));
	prefix_shared(text, copies + n, share);
	for (size_t k = 0; k < n; k++) {
		tokens += p->record.row[entry[k]].prompt_tokens;
		explained += explained_of(p, entry[k], share[copies + k],
					  is_chat ? PREFIX_TEMPLATE_TOKENS : PREFIX_BLOCK_TOKENS);
	}
	facts->knows_explained = tokens > 0;
	facts->cached_explained = tokens > 0 ? explained / tokens : 0;
	free(share);
	free(entry);
	free(text);
}

/* ---- the report ---- */

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static struct metrics_opts metrics_opts(const struct serve_opts *o, const struct serve_derived *d,
					const struct point *p)
{
	struct metrics_opts m = d->metrics;

	m.has_tokenizer = p->tokenizer != NULL;
	m.is_eos_ignored = (o->ignore_eos || p->workload.is_eos_ignored) &&
			   !p->endpoint->is_eos_kept;
	m.is_rate_finite = m.is_rate_finite && !point_is_self_timed(o, p);
	return m;
}

/* Why segments have no stamps although asked for; NULL: they have. */
static const char *no_tap(const struct load_stats *l)
{
	if (l->no_tap.code != ERR_NONE)
		return l->no_tap.text;
	return l->is_tapped && !l->tap.segments ? "none of the server's packets passed this machine's "
	       "network layer under the address that requests are sent to (a Unix socket, or address "
	       "translation)" : NULL;
}

static struct trust_facts trust_facts(const struct serve_derived *d, const struct point *p)
{
	const struct load_stats *l = &p->load;
	double wall = (double)l->wall_ns;

	return (struct trust_facts){
		.cpu_share_max = wall > 0 ? (double)l->cpu_ns_max / wall : 0,
		.reads = l->net.reads, .reads_without_stamp = l->net.reads_without_stamp,
		.clock_step_ns = p->clock_step_ns,
		.wait_share_max = wall > 0 ? (double)l->wait_ns_max / wall : 0,
		.throttled_share = wall > 0 ? (double)l->throttled_ns / wall : 0,
		.connections_most = l->net.connections_most,
		.ports = pressure_ports() * (d->load.net.n_own ? d->load.net.n_own : 1),
		.descriptors = sock_raise_nofile(),
		.no_ports = l->net.no_ports, .no_descriptors = l->net.no_descriptors,
		.resent = l->net.resent, .out_of_order = l->net.out_of_order,
		.resolve_ns = l->net.resolve_ns,
		.is_kernel_stamped = l->is_kernel_stamped,
		.is_interrupted = p->is_interrupted, .lost = p->n_lost,
		.is_aborted = l->end == LOAD_FAILURES || l->end == LOAD_FAILURE_SHARE ||
			      l->end == LOAD_REFUSED,
		.answers = extra_number(str_of(d->extra_body), "n"),
		.told_by = constraint_key(&p->workload),
		.no_tap = no_tap(l),
	};
}

/* The first event is the start itself; the others name the request that passed a whole rate. */
static void ramp_events(const struct serve_opts *o, const struct point *p, struct report_facts *f,
			struct arena *a)
{
	char text[REPORT_DATE_BYTES];
	const struct plan *plan = &p->plan;

	f->n_ramp = plan->n_ramp + 1;
	f->ramp = arena_alloc(a, f->n_ramp * sizeof(*f->ramp));
	for (size_t i = 0; i < f->n_ramp; i++) {
		int64_t at = p->record.start_ns;

		f->ramp[i].rps = o->ramp_up_start_rps.v;
		if (i > 0) {
			const struct plan_ramp *event = &plan->ramp[i - 1];
			const struct request_row *row = &p->record.row[event->entry];

			f->ramp[i].rps = event->rps;
			at = row->due_ns ? row->due_ns
					 : at + clock_span_ns(plan->entry[event->entry].due_s);
		}
		f->ramp[i].timestamp = arena_text(a, str_of(report_timestamp(text, at)));
	}
}

/* The HTTP version, if any answer came; else NULL. */
static const char *http_version(const struct point *p)
{
	uint64_t answers = 0;

	for (uint32_t i = 0; i < p->record.n_rows; i++)
		answers += p->record.row[i].phase == PHASE_MAIN && p->record.row[i].status;
	if (p->load.net.http2 == 0)
		return answers ? "1.1" : NULL;
	return p->load.net.http2 < answers ? "1.1 and 2" : "2";
}

#define USED_UP_SHARE 0.98 /* share of the time; a request that ends the list only near the end
			    * does not count as running out */

static double known(double v)
{
	return isnan(v) ? -1 : v;
}

static void replay_facts(const struct serve_opts *o, const struct point *p, struct report_load *f)
{
	const struct trace_facts *trace = p->workload.trace;

	f->is_replay = point_is_self_timed(o, p);
	f->speedup = o->data.speedup;
	f->ideal_hit_rate = trace ? known(trace->ideal_hit_rate) : -1;
	f->prefix_exact = trace ? known(trace->prefix_exact) : -1;
	f->trace_format = trace ? trace->format : NULL;
}

static void load_facts(const struct serve_opts *o, const struct serve_derived *d,
		       const struct point *p, struct report_load *f, struct arena *a)
{
	const struct load_stats *l = &p->load;

	if (l->end == LOAD_FAILURES)
		f->aborted = arena_printf(a, "--max-errors %lld was reached",
					  (long long)o->max_errors.v);
	else if (l->end == LOAD_FAILURE_SHARE)
		f->aborted = arena_printf(a, "--max-error-rate %g was passed", o->max_error_rate.v);
	else if (l->end == LOAD_REFUSED)
		f->aborted = arena_printf(a, "the first %d requests were all refused with status "
					  "%u", REFUSED_FIRST, p->record.row[0].status);
	if (p->salt != SALT_NONE) {
		f->prompt_salt = salt_kind_name(p->salt);
		f->prompt_salt_key = p->salt_key;
	}
	reuse_facts(&p->workload, &o->data, &f->reuse);
	replay_facts(o, p, f);
	f->is_profile_asked = o->profile || o->profile_batch_threshold.is_set;
	f->is_profiled = p->is_profiled;
	for (unsigned i = 0; d->n_urls > 1 && i < d->n_urls; i++)
		f->urls = f->urls ? arena_printf(a, "%s\n%s", f->urls, d->base_urls[i])
				  : arena_text(a, str_of(d->base_urls[i]));
	if (d->load.admission_ns)
		f->time_limit_s = o->duration.v;
	if ((double)l->used_up_ns < USED_UP_SHARE * (double)d->load.admission_ns)
		f->used_up_s = (double)l->used_up_ns / 1e9;
}

/* A value whose key says that it is a secret is left out, as it is of an option. */
static struct report_pair shown_pair(const struct serve_pair *pair, struct arena *a)
{
	struct buf room = { 0 };
	struct str shown = redact(str_of(pair->value), &room);
	struct report_pair out = { pair->key, pair->value };

	if (redact_is_secret(str_of(pair->key)))
		out.value = REDACTED;
	else if (shown.p != pair->value)
		out.value = arena_text(a, shown);
	buf_release(&room);
	return out;
}

static void report_facts(const struct serve_opts *o, const struct serve_derived *d,
			 const struct point *p, struct report_facts *f, struct arena *a)
{
	bool is_replay = point_is_self_timed(o, p);

	*f = (struct report_facts){
		.backend = o->backend, .label = o->label, .model_id = p->model_id,
		.tokenizer_id = p->tokenizer_id, .num_prompts = o->num_prompts,
		.request_rate = is_replay ? INFINITY : o->request_rate,
		.burstiness = o->burstiness,
		.user_rate = o->user_centric_rate.is_set ? o->user_centric_rate.v : 0,
		.users = o->user_centric_rate.is_set ? o->num_users.v : 0,
		.max_concurrency = d->load.max_concurrency,
		.gpus = d->gpus, .gpu_price = d->gpu_price,
		.n_metadata = d->n_metadata,
		.is_detailed = o->save_detailed, .is_detail_strict = d->compat & COMPAT_DETAIL,
		.is_v011 = d->compat & COMPAT_V011,
		.has_plot_tip = d->compat & COMPAT_STDOUT,
		.version = PROFLLM_VERSION, .build = COMPILER,
		.transport = p->transport ? p->transport->name : NULL,
		.http_version = http_version(p), .dataset = p->workload.dataset,
		.chat_template = p->chat_template,
		.workload_hash = p->workload.hash,
		.request_id_prefix = o->request_id_prefix,
		.warm_connections = d->warm_connections == SERVE_WARM_AUTO ? 0
								  : d->warm_connections,
		.threads = p->load.threads ? p->load.threads : d->load.threads,
		.processes = p->processes, .clock_error_ms = (double)p->clock_error_ns / 1e6,
		.budget = p->budget,
		.segments = { p->load.events_by_segment, p->load.tap.dropped, no_tap(&p->load) },
		.round_trip_ms = p->load.net.round_trips ?
			(double)p->load.net.round_trip_ns / (1e6 * (double)p->load.net.round_trips)
			: 0,
	};
	load_facts(o, d, p, &f->load, a);
	if (!p->endpoint->is_model_unnamed)
		f->load.adapters = (unsigned)o->lora_modules.n;
	report_date(f->date, p->record.stop_ns);
	f->metadata = arena_alloc(a, d->n_metadata * sizeof(*f->metadata));
	for (size_t i = 0; i < d->n_metadata; i++)
		f->metadata[i] = shown_pair(&d->metadata[i], a);
	if (d->ramp_up != RAMP_NONE && !is_replay) {
		f->ramp_strategy = o->ramp_up_strategy;
		f->ramp_start_rps = o->ramp_up_start_rps.v;
		f->ramp_end_rps = o->ramp_up_end_rps.v;
		ramp_events(o, p, f, a);
	}
	f->options = multi_turn_options(o, o->multi_turn ? o->multi_turn->o : NULL, a);
}

static void make_meta(const struct serve_opts *o, const struct serve_derived *d,
		      struct point *point, struct report_meta *out, struct arena *a)
{
	struct buf meta = { 0 };

	out->opts = metrics_opts(o, d, point);
	out->trust = trust_facts(d, point);
	explain_cache(point, d->is_chat, &out->trust);
	report_facts(o, d, point, &out->facts, a);
	report_meta_write(out, &meta);
	free(point->meta);
	point->meta = buf_take(&meta);
	point->record.meta = point->meta;
}

void score_meta(const struct serve_opts *o, const struct serve_derived *d, struct point *point)
{
	struct report_meta meta;
	struct arena arena = { 0 };

	make_meta(o, d, point, &meta, &arena);
	arena_release(&arena);
}

void score_point(const struct serve_opts *o, const struct serve_derived *d, struct point *point,
		 struct scored *out)
{
	*out = (struct scored){ 0 };
	make_meta(o, d, point, &out->meta, &out->arena);
	metrics_score(&out->metrics, &point->record, &out->meta.opts);
	trust_judge(&out->trust, &out->metrics, &out->meta.trust);
	out->report = (struct report){
		.facts = &out->meta.facts, .record = &point->record, .metrics = &out->metrics,
		.trust = &out->trust,
	};
}

void scored_release(struct scored *s)
{
	metrics_release(&s->metrics);
	arena_release(&s->arena);
	*s = (struct scored){ 0 };
}
