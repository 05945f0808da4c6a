/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point.c - one measured point: the order of its stages; see point.h and point_internal.h.
 *
 * Read run_point() first. What is sent before the main phase (ready check, warm-up) goes through
 * the same driver with another phase.
 */
#include "bench/serve/point_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "bench/serve/build_workload.h"
#include "bench/serve/calibrate.h"
#include "bench/serve/multi_turn.h"
#include "bench/serve/remote.h"
#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/sets/datasets.h"
#include "input/token/tokenizer.h"
#include "input/trace/trace.h"
#include "out/report/report.h"

static int find_endpoint(struct stage *s, struct err *e)
{
	const struct endpoint *ep = s->derived->endpoint;

	s->point->endpoint = ep;
	if (s->opts->lora_modules.n && ep->is_model_unnamed)
		stage_warn(s, "--lora-modules has no effect: requests of --backend %s name no model",
			   ep->name);
	if (s->opts->ignore_eos && ep->is_eos_kept)
		stage_warn(s, "--backend %s has no ignore_eos: answers may end before the length "
			   "that was asked for", ep->name);
	return endpoint_check_url(ep, s->derived->api_url, e);
}

/* Prints what is known of a trace before it is replayed. */
static void say_replay(const struct stage *s)
{
	const struct workload *w = &s->point->workload;
	const struct trace_facts *f = w->trace;
	struct buf text = { 0 };

	buf_printf(&text, "trace: %s (%s), %zu request%s", f->format,
		   f->is_format_given ? "--trace-format" : "found by its content", w->n,
		   w->n == 1 ? "" : "s");
	if (f->sessions)
		buf_printf(&text, " in %zu sessions", f->sessions);
	if (f->block)
		buf_printf(&text, ", %u tokens an id", f->block);
	if (w->is_self_timed)
		buf_printf(&text, ", speed-up %g", f->speedup);
	if (!isnan(f->ideal_hit_rate))
		buf_printf(&text, ", ideal hit rate %.2f %%", 100 * f->ideal_hit_rate);
	if (!isnan(f->prefix_exact))
		buf_printf(&text, ", shared prefixes exact in %.2f %% of the prompts",
			   100 * f->prefix_exact);
	stage_say(s, "%s", text.data);
	buf_release(&text);
}

/* Prints, as upstream does, how a trace was read. */
static void say_trace(const struct stage *s, const struct dataset *dataset)
{
	const struct dataset_opts *o = &s->opts->data;
	char multiplier[FMT_F64_BYTES];

	if (s->point->workload.trace)
		say_replay(s);
	if (strcmp(dataset->name, "timed_trace") != 0)
		return;
	stage_say(s, "timed-trace: chunk_size: %lld, sec_multiplier: %s, label_ts: \"%s\", "
		  "label_input_length: \"%s\", label_output_length: \"%s\", label_hash_ids: \"%s\"",
		  (long long)o->timed_trace_chunk_hash_size,
		  fmt_f64(multiplier, o->timed_trace_sec_multiplier),
		  o->timed_trace_label_timestamp, o->timed_trace_label_input_length,
		  o->timed_trace_label_output_length, o->timed_trace_label_hash_ids);
}

static struct contact contact_of(const struct stage *s, unsigned url)
{
	const struct serve_opts *o = s->opts;
	const struct endpoint *ep = s->derived->endpoint;
	struct contact c = { .remote = s->remote, .path = o->endpoint,
			     .key_variable = ep->key_variable,
			     .has_adapters = o->lora_modules.n > 0 };

	c.remote.base_url = s->derived->base_urls[url];
	c.remote.fetch.proxy = s->proxy[url] ? s->proxy[url] : "";
	/*
	 * Adapters have names of their own, and a described API may treat models differently.
	 * Without --model the server is asked for one, and --served-model-name has no effect.
	 */
	if (o->model && !ep->is_model_unnamed && !o->backend_file && !o->lora_modules.n)
		c.model = o->served_model_name && *o->served_model_name ? o->served_model_name
									: o->model;
	return c;
}

/*
 * Contacts the server before anything is loaded. With a ready check the server may have to start
 * first.
 */
static int first_contact(const struct stage *s, struct err *e)
{
	if (!stage_may_ask_server(s) || (s->derived->compat & COMPAT_V011) ||
	    (s->opts->ready_check_timeout_sec > 0 && !s->hooks->is_server_up))
		return 0;
	for (unsigned i = 0; i < s->derived->n_urls; i++) {
		struct contact c = contact_of(s, i);

		if (contact_check(&c, e) < 0)
			return -1;
	}
	return stage_is_cancelled(s) ? stage_cancelled(e) : 0;
}

/* Fills point->failure. */
static void explain_failure(const struct stage *s)
{
	struct point *p = s->point;
	const struct request_row *failed = NULL;
	struct buf error = { 0 }, text = { 0 }, safe = { 0 };
	struct contact c;

	free(p->failure);
	p->failure = NULL;
	for (uint32_t i = 0; i < p->plan.n; i++) {
		const struct request_row *row = &p->record.row[i];

		if (row->state == REQ_DONE)
			return;
		if (!failed && row->state == REQ_FAILED)
			failed = row;
	}
	if (!failed)
		return;
	c = contact_of(s, failed->endpoint);
	record_error_of(&p->record, failed, &error);
	contact_add_failure(&c, failed, buf_str(&error), &text);
	buf_release(&error);
	line_add_safe(&safe, buf_str(&text));
	buf_release(&text);
	p->failure = buf_take(&safe);
}

static int make_requests(struct stage *s, const struct dataset *dataset, struct err *e)
{
	if (stage_take_early(s))
		return 0;
	stage_part(s, PART_TOKENIZER);
	if (stage_load_tokenizer(s, e) < 0)
		return -1;
	stage_part(s, PART_DATASET);
	if ((s->opts->multi_turn ? multi_turn_requests(s, e)
				 : stage_build_dataset(s, dataset, e)) < 0)
		return -1;
	stage_part(s, PART_OPTIONS);
	return 0;
}

static int prepare_point(struct stage *s, struct err *e)
{
	const struct dataset *dataset = dataset_find(s->opts->dataset_name);

	assert(dataset); /* serve_check_dataset */
	stage_part(s, PART_DATASET);
	if (!s->opts->multi_turn &&
	    run_draw_check(dataset, &s->opts->data, s->opts->skip_tokenizer_init, e) < 0)
		return -1;
	stage_part(s, PART_OPTIONS);
	if (find_endpoint(s, e) < 0 || first_contact(s, e) < 0 || stage_find_model(s, e) < 0 ||
	    make_requests(s, dataset, e) < 0)
		return -1;
	say_trace(s, dataset);
	TRACE(run, "dataset %s: %zu requests\n", dataset->name, s->point->workload.n);
	if (stage_is_cancelled(s))
		return stage_cancelled(e);
	if (stage_may_ask_server(s) && !(s->derived->compat & COMPAT_V011) && !s->opts->multi_turn)
		stage_align(s, dataset);
	if (s->derived->is_temperature_unset && s->derived->compat & COMPAT_STDOUT)
		stage_say(s, "WARNING: vllm bench serve no longer sets temperature==0 (greedy) in requests "
		    "by default. The default will be determined on the server side and can be "
		    "model/API specific. For the old behavior, include --temperature=0.");
	if (s->early && !s->point->workload.n)
		return 0; /* the substitute gave none */
	return stage_salt(s, dataset, e) < 0 || stage_make_plan(s, e) < 0 ? -1 : 0;
}

/* Before anything is sent: --timestamps tap is refused where it is not allowed. */
static int check_tap(const struct stage *s, struct err *e)
{
	struct tap *tap;

	if (s->derived->load.tap != LOAD_TAP_NEEDED || s->point->transport != &transport_native)
		return 0;
	tap = tap_open(e);
	tap_close(tap);
	return tap ? 0 : err_wrap(e, "--timestamps tap");
}

static int check_own_addresses(const struct stage *s, struct err *e)
{
	const struct transport_opts *net = &s->derived->load.net;

	if (net->n_own && s->point->transport == &transport_curl)
		return err_set(e, ERR_USAGE, "--source-addresses: HTTP/2, redirects and such proxies are "
			       "left to libcurl, which cannot choose where connections come from");
	for (unsigned i = 0; i < net->n_own; i++)
		if (sock_try_own(&net->own[i], e) < 0) {
			e->code = ERR_USAGE;
			return err_wrap(e, "--source-addresses %s", s->opts->source_addresses.v[i]);
		}
	return 0;
}

static int choose_route(struct stage *s, const struct point_env *env, struct err *e)
{
	struct point *p = s->point;

	for (unsigned i = 0; i < s->derived->n_urls; i++)
		if (serve_proxy(s->opts, env, &s->derived->url[i], &s->proxy[i], e) < 0)
			return -1;
	if (serve_transport(s->opts, s->derived, s->proxy, s->derived->n_urls, &p->transport,
			    e) < 0)
		return -1;
	if (s->hooks->transport)
		p->transport = s->hooks->transport;
	s->remote.fetch.proxy = s->proxy[0] ? s->proxy[0] : "";
	return check_own_addresses(s, e) < 0 ? -1 : check_tap(s, e);
}

static int measure(struct stage *s, struct err *e)
{
	struct point *p = s->point;

	if (stage_run_main(s, e) < 0)
		return -1;
	p->is_interrupted = p->record.is_interrupted;
	if (!p->endpoint->is_pooling)
		count_missing(&p->record, p->tokenizer, p->endpoint->is_ours ||
			      s->derived->fixes & FIX_ALL_TEXT);
	correct_answers(p);
	if (dealt_gather(s, e) < 0)
		return -1;
	explain_failure(s);
	stage_budget(s);
	if (s->hooks->measured)
		s->hooks->measured(s->hooks->self, p);
	stage_stop_profiler(s);
	return 0;
}

/* Runs the same plan repeatedly, each time into a new record. */
static int measure_all(struct stage *s, struct err *e)
{
	struct point *p = s->point;
	int rc;

	if (measure(s, e) < 0)
		return -1;
	for (s->run = 1; s->run < s->opts->num_runs; s->run++) {
		bool is_over = p->is_interrupted || p->load.end == LOAD_FAILURES ||
			       p->load.end == LOAD_FAILURE_SHARE || p->load.end == LOAD_REFUSED;

		if (s->hooks->ranks &&
		    ranks_share(s->hooks->ranks, &is_over, sizeof(is_over), e) < 0)
			return -1;
		if (is_over)
			break;
		record_stream_close(p->stream, NULL);
		p->stream = NULL;
		record_info_release(&p->info);
		record_release(&p->record);
		rc = stage_make_record(s, e);
		if (s->hooks->ranks)
			rc = ranks_agree(s->hooks->ranks, rc, e);
		if (rc < 0 || measure(s, e) < 0)
			return -1;
	}
	return 0;
}

/* Everything that comes before a plan can be carried out. */
static int begin(struct stage *s, const struct serve_opts *opts,
		 const struct serve_derived *derived, const struct run_hooks *hooks,
		 struct err *e)
{
	struct point_env env;

	assert(derived->endpoint && derived->n_urls >= 1 && derived->n_urls <= ENDPOINTS_MAX);
	if (!hooks->ranks && ranks_are_started())
		return err_set(e, ERR_USAGE, "mpirun started several processes of this command, and each "
			       "would send all of the load; only bench serve divides a run among them");
	s->opts = opts;
	s->derived = derived;
	s->hooks = hooks;
	s->remote = (struct remote){
		.base_url = derived->base_url, .header = derived->header,
		.n_headers = derived->n_headers,
		.fetch = {
			.is_insecure = opts->insecure, .ca_file = opts->cacert,
			.cert_file = opts->client_cert, .key_file = opts->client_key,
			.is_http2 = derived->load.net.is_http2, .cancel = hooks->cancel,
			.timeout_ms = derived->load.net.request_timeout_ns / 1000000,
		},
	};
	if (hooks->env)
		env = *hooks->env;
	else
		point_env_read(&env);
	s->remote.api_key = serve_api_key(derived->endpoint, &env, hooks->env != NULL,
					  &s->remote.key_header);
	*s->point = (struct point){ 0 };
	if (choose_route(s, &env, e) < 0 || (!s->early && stage_place(s, e) < 0))
		return -1;
	compat_rng_seed(&s->rng, (uint32_t)opts->seed);
	return prepare_point(s, e);
}

/* What comes between the plan and the main run; of several processes only one sends it. */
static int get_ready(struct stage *s, struct err *e)
{
	if (stage_check_files(s, e) < 0 || stage_make_record(s, e) < 0)
		return -1;
	dealt_begin(s);
	if (s->hooks->ranks && s->hooks->ranks->rank)
		return 0;
	return stage_ready_check(s, e) < 0 || stage_warm_up(s, e) < 0 ||
	       (s->opts->multi_turn && multi_turn_warm_up(s, e) < 0) ? -1 : 0;
}

int run_point(const struct serve_opts *opts, const struct serve_derived *derived,
	      const struct run_hooks *hooks, struct point *out, struct err *e)
{
	struct stage s = { .point = out };
	int rc = begin(&s, opts, derived, hooks, e);

	if (rc == 0 && !opts->dry_run)
		rc = get_ready(&s, e);
	if (hooks->ranks)
		rc = ranks_agree(hooks->ranks, rc, e);
	if (rc < 0 || opts->dry_run)
		goto done;
	rc = -1;
	if (stage_is_cancelled(&s)) {
		stage_cancelled(e);
		goto done;
	}
	TRACE(run, "ready: %u rows\n", out->record.n_rows);
	if (!(derived->compat & COMPAT_V011)) /* otherwise it is printed at the end of the ready
					       * check */
		stage_say(&s, "Starting main benchmark run...");
	rc = measure_all(&s, e);
done:
	stage_unplace(&s);
	arena_release(&s.dealt);
	return rc;
}

int run_point_early(const struct serve_opts *opts, const struct serve_derived *derived,
		    const struct run_hooks *hooks, struct point_early *out, struct err *e)
{
	struct arena arena = out->arena;
	struct stage s = { .point = &out->point, .early = out };

	*out = (struct point_early){ .arena = arena, .request_id_prefix = opts->request_id_prefix };
	if (begin(&s, opts, derived, hooks, e) < 0 || stage_check_files(&s, e) < 0)
		return -1;
	stage_part(&s, PART_RECORD);
	if (stage_check_record(&s, e) < 0)
		return -1;
	out->is_whole = stage_is_whole(&s);
	return 0;
}

int point_store(struct point *p, struct err *e)
{
	bool is_recounted = false;
	int rc;

	if (!p->stream)
		return 0;
	rc = record_stream_close(p->stream, e);
	p->stream = NULL;
	/*
	 * Rows were written as they ended; counts found later require writing the whole file again.
	 */
	for (uint32_t i = 0; i < p->record.n_rows; i++)
		is_recounted |= (p->record.row[i].flags & (ROW_COUNTED | ROW_COUNT_UNKNOWN)) != 0 ||
				p->record.row[i].correctness;
	if (rc == 0 && is_recounted)
		rc = record_file_save(&p->record, &p->info, p->record_path, e);
	return rc < 0 ? err_wrap(e, "--record") : 0;
}

void point_release(struct point *p)
{
	if (!p)
		return;
	record_stream_close(p->stream, NULL);
	record_info_release(&p->info);
	record_release(&p->record);
	workload_release(&p->workload);
	plan_release(&p->plan);
	tokenizer_free(p->tokenizer);
	free(p->model_id);
	free(p->model_name);
	free(p->tokenizer_id);
	free(p->meta);
	free(p->failure);
	free(p->record_path);
	*p = (struct point){ 0 };
}

void point_early_release(struct point_early *p)
{
	point_release(&p->point);
	buf_release(&p->notes);
	arena_release(&p->arena);
	*p = (struct point_early){ 0 };
}
