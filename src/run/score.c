/* SPDX-License-Identifier: Apache-2.0 */
/* score.c - see score.h. */
#include "run/score.h"

#include <math.h>

#include "base/clock.h"
#include "base/redact.h"
#include "data/trace.h"
#include "run/correct.h"
#include "run/explained.h"
#include "run/multi_turn.h"
#include "run/reuse.h"
#include "version.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static unsigned selected_blocks(const struct serve_derived *d)
{
	static const struct { unsigned metric; enum metric_block block; } map[] = {
		{ SERVE_TTFT, BLOCK_TTFT }, { SERVE_TPOT, BLOCK_TPOT }, { SERVE_ITL, BLOCK_ITL },
		{ SERVE_E2EL, BLOCK_E2EL }, { SERVE_QUEUE_TIME, BLOCK_QUEUE_TIME },
		{ SERVE_E2EL_WITH_QUEUE, BLOCK_E2EL_WITH_QUEUE },
	};
	unsigned bits = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++)
		if (d->metrics & map[i].metric)
			bits |= BLOCK_BIT(map[i].block);
	return bits;
}

static struct metrics_opts metrics_opts(const struct serve_opts *o, const struct serve_derived *d,
					const struct point *p)
{
	struct metrics_opts m = {
		.percentile = d->percentile, .n_percentiles = d->n_percentiles,
		.selected = selected_blocks(d),
		.is_pooling = p->endpoint->is_pooling,
		.has_tokenizer = p->tokenizer != NULL,
		.is_rate_finite = !isinf(o->request_rate),
		.is_user_stamps = d->is_user_stamps,
		.is_peak_exact = d->compat & COMPAT_PEAK,
		.is_prompt_from_sample = d->compat & COMPAT_V011,
		.is_peak_in_tokens = d->fixes & FIX_PEAK_TOKENS,
		.is_eos_ignored = (o->ignore_eos || p->workload.is_eos_ignored) &&
				  !p->endpoint->is_eos_kept,
		.max_concurrency = d->max_concurrency,
		.reports_cached_tokens = o->report_cached_tokens,
		.finds_steady_state = !o->no_steady_state,
		.steady_threshold = o->steady_state_threshold,
		.steady_min_window_s = o->steady_state_min_window.is_set
				       ? o->steady_state_min_window.v : 0,
	};

	for (size_t i = 0; i < d->n_goodput; i++) {
		unsigned bit = metric_block_bit(str_of(d->goodput[i].name));

		if (!bit) {
			m.session_limit_ms = d->goodput[i].limit_ms;
			continue;
		}
		m.goodput[m.n_goodput++] = (struct metrics_goodput){
			(enum metric_block)__builtin_ctz(bit), d->goodput[i].limit_ms,
		};
	}
	return m;
}

static struct trust_facts trust_facts(const struct point *p)
{
	const struct load_stats *l = &p->load;

	return (struct trust_facts){
		.cpu_share_max = l->wall_ns ? (double)l->cpu_ns_max / (double)l->wall_ns : 0,
		.reads = l->net.reads, .reads_without_stamp = l->net.reads_without_stamp,
		.clock_step_ns = p->clock_step_ns,
		.is_kernel_stamped = l->is_kernel_stamped,
		.is_interrupted = p->is_interrupted,
		.is_aborted = l->end == LOAD_FAILURES || l->end == LOAD_FAILURE_SHARE ||
			      l->end == LOAD_REFUSED,
		.told_by = correct_told_by(&p->workload),
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

/* What it was where any answer came; NULL before. */
static const char *http_version(const struct point *p)
{
	uint64_t answers = 0;

	for (uint32_t i = 0; i < p->record.n_rows; i++)
		answers += p->record.row[i].phase == PHASE_MAIN && p->record.row[i].status;
	if (p->load.net.http2 == 0)
		return answers ? "1.1" : NULL;
	return p->load.net.http2 < answers ? "1.1 and 2" : "2";
}

#define USED_UP_SHARE 0.98 /* of the time: a last request after it is no want of requests */

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
	reuse_told(&p->workload, &o->data, &f->reuse);
	replay_facts(o, p, f);
	f->is_profile_asked = o->profile || o->profile_batch_threshold.is_set;
	f->is_profiled = p->is_profiled;
	for (unsigned i = 0; d->n_urls > 1 && i < d->n_urls; i++)
		f->urls = f->urls ? arena_printf(a, "%s\n%s", f->urls, d->base_urls[i])
				  : arena_text(a, str_of(d->base_urls[i]));
	if (d->duration_ns)
		f->time_limit_s = o->duration.v;
	if ((double)l->used_up_ns < USED_UP_SHARE * (double)d->duration_ns)
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
	*f = (struct report_facts){
		.backend = o->backend, .label = o->label, .model_id = p->model_id,
		.tokenizer_id = p->tokenizer_id, .num_prompts = o->num_prompts,
		.request_rate = o->request_rate, .burstiness = o->burstiness,
		.max_concurrency = d->max_concurrency,
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
		.threads = d->threads,
	};
	load_facts(o, d, p, &f->load, a);
	report_date(f->date, p->record.stop_ns);
	f->metadata = arena_alloc(a, d->n_metadata * sizeof(*f->metadata));
	for (size_t i = 0; i < d->n_metadata; i++)
		f->metadata[i] = shown_pair(&d->metadata[i], a);
	if (d->ramp_up != RAMP_NONE) {
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
	out->trust = trust_facts(point);
	run_explain_cache(point, d->is_chat, &out->trust);
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
