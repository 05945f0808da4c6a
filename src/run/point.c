/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point.c - one measured point, stage by stage; see point.h.
 *
 * Read run_point() at the end first: it is the order of things. What is sent
 * before the main phase (ready check, warm-up) goes through the same driver
 * with another phase.
 */
#include "run/point.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/fmt.h"
#include "base/mem.h"
#include "base/trace.h"
#include "data/dataset.h"
#include "net/sock.h"
#include "run/chat.h"
#include "run/component.h"
#include "run/count.h"
#include "run/prepare.h"
#include "run/remote.h"
#include "run/score.h"
#include "token/remote.h"
#include "version.h"

#define READY_PAUSE_NS 5000000000  /* between tries of the ready check, as upstream */
#define READY_SECONDS_MAX 1000000000 /* 31 years: longer waits are the same */
#define FILES_SPARE 64             /* descriptors besides connections */

/* What the stages share; gone when run_point returns. */
struct stage {
	const struct serve_opts *opts;
	const struct serve_derived *derived;
	const struct run_hooks *hooks;
	struct point *point;
	struct compat_rng rng;
	struct remote remote;
	const char *proxy;
	enum point_stage now;
	struct load_progress *progress;
	uint64_t total;
};

static void say(const struct stage *s, const char *text)
{
	if (s->hooks->line)
		s->hooks->line(s->hooks->self, text);
}

static void warn(const struct stage *s, const char *text)
{
	if (s->hooks->warn)
		s->hooks->warn(s->hooks->self, text);
}

static bool is_cancelled(const struct stage *s)
{
	return s->hooks->cancel && atomic_load(s->hooks->cancel);
}

static int cancelled(struct err *e)
{
	return err_set(e, ERR_CANCELLED, "interrupted before the benchmark began");
}

/* ---- model, tokenizer, dataset ---- */

static int find_model(struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct point *p = s->point;

	if (!o->model)
		return remote_discover_model(&s->remote, s->hooks, &p->model_name, &p->model_id, e);
	p->model_id = mem_text(o->model);
	p->model_name = mem_text(o->served_model_name && *o->served_model_name
				 ? o->served_model_name : o->model);
	return 0;
}

static bool may_ask_server(const struct stage *s)
{
	return !s->opts->dry_run && !s->hooks->transport;
}

/* The server's own tokenizer, when no file of the model's is to be had. */
static int borrow_tokenizer(struct stage *s, const struct err *why)
{
	struct point *p = s->point;
	struct remote_target target;
	struct buf note = { 0 };

	if (remote_target_init(&target, &s->remote, "", NULL) == 0) {
		struct token_server server = { target.url.data, p->model_name, target.opts };

		p->tokenizer = tokenizer_of_server(p->tokenizer_id, &server, NULL);
	}
	remote_target_release(&target);
	if (!p->tokenizer)
		return -1;
	buf_printf(&note, "%s; the server's own tokenizer is used, over /tokenize", why->text);
	warn(s, note.data);
	buf_release(&note);
	return 0;
}

static void show_bytes(void *self, const char *file, int64_t done, int64_t total)
{
	const struct stage *s = self;

	if (s->hooks->bytes)
		s->hooks->bytes(s->hooks->self, file, (uint64_t)done, (uint64_t)total);
}

static void warn_of_cache(void *self, const char *text)
{
	warn(self, text);
}

/* Modes that give the same ids as hf, but not all else that their names promise. */
static void warn_of_mode(const struct stage *s)
{
	const char *mode = s->opts->tokenizer_mode;

	if (strcmp(mode, "slow") == 0)
		warn(s, "--tokenizer-mode slow is an older choice; hf gives the same ids");
	else if (strcmp(mode, "deepseek_v32") == 0)
		warn(s, "--tokenizer-mode deepseek_v32 gives the ids of hf; its chat encoding is a "
			"program without a template");
}

static int load_tokenizer(struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct point *p = s->point;
	struct tokenizer_load_opts opts = {
		.mode = o->tokenizer_mode,
		.cancel = s->hooks->cancel, .progress = show_bytes, .note = warn_of_cache,
		.self = s,
	};
	struct err why = { 0 };

	if (o->skip_tokenizer_init)
		return 0;
	warn_of_mode(s);
	p->tokenizer_id = mem_text(o->tokenizer ? o->tokenizer : p->model_id);
	p->tokenizer = tokenizer_load(p->tokenizer_id, &opts, &why);
	if (p->tokenizer)
		return 0;
	if (!o->tokenizer && (why.code == ERR_IO || why.code == ERR_NET) && may_ask_server(s) &&
	    borrow_tokenizer(s, &why) == 0)
		return 0;
	*e = why;
	if (!o->tokenizer)
		err_wrap(e, "no tokenizer for model %s (name one with --tokenizer, or use "
			 "--skip-tokenizer-init)", p->model_id);
	return -1;
}

static void dataset_progress(void *self, size_t done, size_t total)
{
	struct stage *s = self;

	if (s->hooks->progress)
		s->hooks->progress(s->hooks->self, STAGE_DATASET, done, total, NULL);
}

static int check_dataset(const struct dataset *d, const struct dataset_opts *data,
			 const struct serve_opts *o, struct err *e)
{
	if (d->needs_path && !data->path)
		return err_set(e, ERR_RUN, "--dataset-name %s needs --dataset-path", d->name);
	if (d->needs_tokenizer && o->skip_tokenizer_init)
		return err_set(e, ERR_RUN, "--dataset-name %s needs a tokenizer and cannot be used "
			       "with --skip-tokenizer-init", d->name);
	return 0;
}

static int find_chat_template(struct stage *s, const struct dataset *d,
			      const struct dataset_opts *data, struct chat_wrap *out,
			      struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct point *p = s->point;
	struct buf notes = { 0 };

	*out = (struct chat_wrap){ 0 };
	if (!d->is_templated || (d->is_templated_for && !d->is_templated_for(data)) ||
	    (d->is_chat_plain && data->enable_multimodal_chat))
		return 0;
	p->chat_template = "skipped";
	if (data->skip_chat_template && !d->is_always_templated)
		return 0;
	if (run_chat_find(o, s->derived, p->tokenizer, may_ask_server(s) ? &s->remote : NULL,
			  p->model_name, &p->workload.arena, out, e) < 0)
		return -1;
	p->chat_template = chat_source_name(out->source);
	run_chat_notes(out, s->derived->is_chat, p->tokenizer, &notes);
	if (notes.len)
		warn(s, notes.data);
	buf_release(&notes);
	return 0;
}

static void warn_lines(struct stage *s, struct str lines)
{
	struct arena a = { 0 };

	while (lines.n)
		warn(s, arena_text(&a, str_cut(&lines, '\n')));
	arena_release(&a);
}

/* One set of a mix: its options, and its own chat template where it has one. */
static int make_component(void *self, struct json_slice object, struct arena *a,
			  struct dataset_component *out, struct err *e)
{
	struct stage *s = self;
	struct chat_wrap *chat = arena_alloc(a, sizeof(*chat));
	struct buf notes = { 0 };
	int rc = run_component(object, a, out, &notes, e);

	if (rc == 0)
		warn_lines(s, buf_str(&notes));
	buf_release(&notes);
	if (rc < 0 || check_dataset(out->dataset, &out->opts, s->opts, e) < 0 ||
	    find_chat_template(s, out->dataset, &out->opts, chat, e) < 0)
		return -1;
	out->chat = chat;
	return 0;
}

static int build_dataset(struct stage *s, const struct dataset *d, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct workload *w = &s->point->workload;
	struct chat_wrap chat;
	struct run_renderer renderer = {
		.wrap = &chat, .tokenizer = s->point->tokenizer,
		.server = may_ask_server(s) ? &s->remote : NULL, .model = s->point->model_name,
		.kwargs = str_of(o->chat_template_kwargs.text),
	};
	struct dataset_env env = {
		.num_prompts = o->num_prompts, .seed = (uint64_t)o->seed,
		.tokenizer = s->point->tokenizer, .tokenizer_name = s->point->tokenizer_id,
		.request_id_prefix = o->request_id_prefix,
		.backend = o->backend, .is_chat_backend = s->derived->is_chat,
		.chat = &chat, .render = run_render, .render_self = &renderer,
		.component = make_component, .component_self = s,
		.progress = dataset_progress, .download = show_bytes,
		.note = warn_of_cache, .self = s,
		.cancel = s->hooks->cancel,
	};

	if (find_chat_template(s, d, &o->data, &chat, e) < 0 ||
	    (d->check && d->check(&o->data, &env, e) < 0) ||
	    d->build(&o->data, &env, &s->rng, w, e) < 0 ||
	    dataset_drop_long(w, &o->data, e) < 0)
		return -1;
	w->dataset = d->name;
	if (w->n == 0)
		return err_set(e, ERR_RUN, "No requests provided.");
	warn_lines(s, w->notes);
	return 0;
}

static void align(struct stage *s, const struct dataset *d)
{
	struct remote_alignment *out = &s->point->alignment;
	struct buf text = { 0 };

	remote_align(&s->remote, s->point->model_id, d->is_rewritten_by_server,
		     &s->point->workload, s->hooks, out);
	if (!d->is_rewritten_by_server && out->disagreeing) {
		buf_printf(&text, "the server's tokenizer gives another length than ours for %u of "
			   "%u prompts; prompt lengths are the server's where it reports usage",
			   out->disagreeing, out->checked);
		warn(s, text.data);
	}
	buf_release(&text);
}

/* ---- plan ---- */

static bool is_self_timed(const struct stage *s)
{
	enum opt_tri asked = s->opts->self_timed;

	return asked == OPT_TRI_YES || (asked == OPT_TRI_UNSET && s->point->workload.is_self_timed);
}

static int read_times(const struct workload *w, double *out, struct err *e)
{
	for (size_t i = 0; i < w->n; i++) {
		out[i] = w->v[i].timestamp_s;
		if (isnan(out[i]))
			return err_set(e, ERR_RUN, "--self-timed: request %zu of the workload has no time",
				       i);
	}
	return 0;
}

static int make_plan(struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	const struct serve_derived *d = s->derived;
	struct plan_opts opts = {
		.request_rate = o->request_rate, .burstiness = o->burstiness, .ramp_up = d->ramp_up,
		.ramp_start_rps = (double)o->ramp_up_start_rps.v,
		.ramp_end_rps = (double)o->ramp_up_end_rps.v,
	};
	const struct workload *w = &s->point->workload;
	struct plan *plan = &s->point->plan;
	double *timestamps = NULL;
	int rc = 0;

	if (is_self_timed(s)) {
		if (o->self_timed == OPT_TRI_UNSET && !isinf(o->request_rate))
			warn(s, "--request-rate has no effect: requests are sent at the workload's times "
			     "(--no-self-timed ignores those)");
		timestamps = mem_array(w->n, sizeof(*timestamps));
		rc = read_times(w, timestamps, e);
		opts.timestamps_s = timestamps;
	}
	if (rc == 0)
		rc = plan_arrivals(plan, (uint32_t)w->n, &opts, &s->rng, e);
	free(timestamps);
	if (rc < 0)
		return -1;
	plan_assign_lora(plan, (unsigned)o->lora_modules.n, d->lora, &s->rng);
	return 0;
}

static void say_traffic(const struct stage *s)
{
	const struct serve_opts *o = s->opts;
	char number[FMT_F64_BYTES];
	struct buf text = { 0 };

	if (is_self_timed(s)) {
		say(s, "Self timing is set, using the timestamps from the trace file.");
		return;
	}
	if (s->derived->ramp_up != RAMP_NONE)
		buf_printf(&text, "Traffic ramp-up strategy: %s.\nWill increase RPS from %lld to %lld "
			   "RPS over the duration of the benchmark.", o->ramp_up_strategy,
			   (long long)o->ramp_up_start_rps.v, (long long)o->ramp_up_end_rps.v);
	else
		buf_printf(&text, "Traffic request rate: %s", fmt_f64(number, o->request_rate));
	buf_printf(&text, "\nBurstiness factor: %s (%s)", fmt_f64(number, o->burstiness),
		   o->burstiness == 1.0 ? "Poisson process" : "Gamma distribution");
	if (s->derived->max_concurrency)
		buf_printf(&text, "\nMaximum request concurrency: %u", s->derived->max_concurrency);
	else
		buf_add_text(&text, "\nMaximum request concurrency: None");
	say(s, text.data);
	buf_release(&text);
}

/* ---- load ---- */

static void on_tick(void *self)
{
	struct stage *s = self;

	if (s->hooks->progress)
		s->hooks->progress(s->hooks->self, s->now,
				   load_progress_total(s->progress).done, s->total, s->progress);
}

static struct load_opts load_opts(struct stage *s, enum request_phase phase)
{
	const struct serve_derived *d = s->derived;
	bool is_main = phase == PHASE_MAIN;

	return (struct load_opts){
		.transport = s->hooks->transport ? s->hooks->transport : &transport_native,
		.net = {
			.base_url = &d->base_url, .n_endpoints = 1, .proxy = &s->proxy,
			.is_insecure = s->opts->insecure, .ca_file = s->opts->cacert,
			.is_stamped = true,
			.warm_connections = is_main && d->warm_connections != SERVE_WARM_AUTO
					    ? d->warm_connections : 0,
			.connect_timeout_ns = d->connect_timeout_ns,
			.request_timeout_ns = d->request_timeout_ns,
		},
		.endpoint = s->point->endpoint,
		.workload = &s->point->workload,
		.threads = is_main ? d->threads : 1,
		.max_concurrency = d->max_concurrency,
		.phase = phase,
		.is_user_stamps = d->is_user_stamps,
		.is_role_chunk_skipped = d->compat & COMPAT_ROLE_CHUNK,
		.is_stream_error_ignored = d->compat & COMPAT_STREAM_ERROR,
		.is_usage_with_choices = d->fixes & FIX_USAGE,
		.tick = on_tick, .tick_self = s,
	};
}

static struct prepare_opts prepare_opts(const struct stage *s, bool is_without_ids)
{
	const struct serve_derived *d = s->derived;

	return (struct prepare_opts){
		.endpoint = s->point->endpoint,
		.encode = {
			.model = str_of(s->point->model_name),
			.is_ignore_eos = s->opts->ignore_eos || s->point->workload.is_eos_ignored,
			.has_logprobs = s->opts->logprobs.is_set, .logprobs = s->opts->logprobs.v,
			.extra_body = str_of(d->extra_body),
		},
		.base_url = &d->base_url, .path = s->opts->endpoint, .proxy = &s->proxy,
		.n_urls = 1,
		.header = d->header, .n_headers = d->n_headers, .api_key = s->remote.api_key,
		.lora = s->opts->lora_modules.n ? s->opts->lora_modules.v : NULL,
		.is_without_ids = is_without_ids, .version = PROFLLM_VERSION,
	};
}

/* n copies of the first prompt in another phase; rows are added to the record. */
static int send_copies(struct stage *s, uint32_t n, enum request_phase phase, int64_t deadline_ns,
		       uint32_t *first_row, struct err *e)
{
	struct load_opts opts = load_opts(s, phase);
	struct record *record = &s->point->record;
	struct load_progress *progress = mem_alloc(sizeof(*progress));
	struct prepare_opts how = prepare_opts(s, true);
	struct prepared prepared = { 0 };
	struct load_stats stats;
	struct plan plan;
	int rc = -1;

	plan_same(&plan, n, 0);
	*first_row = record_add_rows(record, n);
	s->now = phase == PHASE_READY ? STAGE_READY : STAGE_WARMUP;
	s->progress = progress;
	s->total = n;
	opts.deadline_ns = deadline_ns;
	on_tick(s);
	if (prepare(&how, &plan, &s->point->workload, &prepared, e) == 0) {
		rc = load_run(&opts, &plan, &prepared, record, *first_row, progress, &stats,
			      s->hooks->cancel, e);
		on_tick(s);
	}
	prepared_release(&prepared);
	plan_release(&plan);
	free(progress);
	return rc;
}

static void pause_until(const struct stage *s, int64_t until_ns)
{
	while (clock_mono_ns() < until_ns && !is_cancelled(s)) {
		struct timespec step = { 0, 50000000 };

		nanosleep(&step, NULL);
	}
}

/* The last line of a failed try's error. */
static void last_line(struct buf *text)
{
	char *newline = text->data ? strrchr(text->data, '\n') : NULL;

	if (newline && newline[1])
		buf_cut(text, (size_t)(newline + 1 - text->data));
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
	say(s, text.data);
	while ((left = deadline - clock_mono_ns()) > 0 && !is_cancelled(s)) {
		struct err failure = { 0 };
		uint32_t row;
		int sent = send_copies(s, 1, PHASE_READY, left, &row, &failure);

		/* A name that does not resolve yet may do so once the server is up. */
		if (sent < 0 && failure.code != ERR_NET) {
			*e = failure;
			goto done;
		}
		if (sent == 0 && s->point->record.row[row].state == REQ_DONE) {
			say(s, "Initial test run completed.");
			rc = 0;
			goto done;
		}
		if (is_cancelled(s))
			break;
		buf_reset(&why);
		if (sent == 0)
			record_error_of(&s->point->record, &s->point->record.row[row], &why);
		else
			buf_add_text(&why, failure.text);
		last_line(&why);
		buf_reset(&text);
		buf_printf(&text, "Endpoint is not ready. Error='%s'", why.len ? why.data : "");
		warn(s, text.data);
		left = deadline - clock_mono_ns();
		pause_until(s, clock_mono_ns() + (left < READY_PAUSE_NS ? left : READY_PAUSE_NS));
	}
	if (is_cancelled(s)) {
		cancelled(e);
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

static int ready_check(struct stage *s, struct err *e)
{
	say(s, "Starting initial single prompt test run...");
	if (s->opts->ready_check_timeout_sec > 0)
		return wait_until_ready(s, e);
	say(s, "Skipping endpoint ready check.");
	return 0;
}

static int warm_up(struct stage *s, struct err *e)
{
	struct buf text = { 0 };
	uint32_t row;
	int rc;

	if (s->opts->num_warmups <= 0)
		return 0;
	buf_printf(&text, "Warming up with %lld requests...", (long long)s->opts->num_warmups);
	say(s, text.data);
	buf_release(&text);
	rc = send_copies(s, (uint32_t)s->opts->num_warmups, PHASE_WARMUP, 0, &row, e);
	if (rc == 0)
		say(s, "Warmup run completed.");
	return rc;
}

/* One descriptor per request that can be open at once. */
static int check_files(struct stage *s, struct err *e)
{
	size_t limit = sock_raise_nofile(), open = s->point->plan.n;
	const uint32_t cap = s->derived->max_concurrency;
	struct buf text = { 0 };

	if (cap && cap < open)
		open = cap;
	if (open + FILES_SPARE <= limit)
		return 0;
	buf_printf(&text, "up to %zu connections may be open at once, but this process may open only "
		   "%zu files (ulimit -n); raise the limit or lower --max-concurrency", open, limit);
	if (cap || isinf(s->opts->request_rate)) {
		err_set(e, ERR_RUN, "%s", text.data);
		buf_release(&text);
		return -1;
	}
	warn(s, text.data);
	buf_release(&text);
	return 0;
}

static int64_t clock_offset_ns(void)
{
	return clock_real_ns() - clock_mono_ns();
}

/* From here on a crash loses at most a tenth of a second of what was measured. */
static int open_record_file(struct stage *s, struct err *e)
{
	struct point *p = s->point;

	record_info_here(&p->info, 0, p->record.n_shards);
	if (!s->opts->record_path)
		return 0;
	score_meta(s->opts, s->derived, p);
	p->stream = record_stream_open(&p->record, &p->info, s->opts->record_path, e);
	return p->stream ? 0 : -1;
}

static int run_main(struct stage *s, struct err *e)
{
	struct point *p = s->point;
	struct load_opts opts = load_opts(s, PHASE_MAIN);
	struct load_progress *progress = mem_alloc(sizeof(*progress));
	struct prepare_opts how = prepare_opts(s, false);
	struct prepared prepared = { 0 };
	int64_t offset;
	int rc = -1;

	s->now = STAGE_MAIN;
	s->progress = progress;
	s->total = p->plan.n;
	if (prepare(&how, &p->plan, &p->workload, &prepared, e) == 0 &&
	    open_record_file(s, e) == 0) {
		say_traffic(s);
		on_tick(s);
		offset = clock_offset_ns();
		rc = load_run(&opts, &p->plan, &prepared, &p->record, 0, progress, &p->load,
			      s->hooks->cancel, e);
		p->clock_step_ns = clock_offset_ns() - offset;
		TRACE(run, "main phase: %.3f s, %llu connects, %llu reads\n",
		      (double)(p->record.stop_ns - p->record.start_ns) / 1e9,
		      (unsigned long long)p->load.net.connects,
		      (unsigned long long)p->load.net.reads);
		on_tick(s);
		/* From here rows may change again (missing counts): nobody copies them now. */
		record_stream_stop(p->stream);
		record_info_stop(&p->info);
	}
	prepared_release(&prepared);
	free(progress);
	return rc;
}

static void fill_rows(struct stage *s)
{
	const struct workload *w = &s->point->workload;

	for (uint32_t i = 0; i < s->point->plan.n; i++) {
		struct request_row *row = &s->point->record.row[i];
		const struct sample *sample = &w->v[s->point->plan.entry[i].sample];

		row->prompt_tokens = row->sample_prompt_tokens = sample->prompt_len;
		row->asked_tokens = sample->output_len < 0 ? 0 : (uint32_t)sample->output_len;
		row->sequences = sample->sequences ? sample->sequences : 1;
		row->audio_s = sample->audio_s;
	}
}

static int make_record(struct stage *s, struct err *e)
{
	struct point *p = s->point;
	uint64_t events = 0;
	bool keeps_text = p->tokenizer || s->opts->save_detailed;

	for (size_t i = 0; i < p->workload.n; i++)
		if (p->workload.v[i].output_len > 0)
			events += (uint64_t)p->workload.v[i].output_len;
	if (record_init(&p->record, p->plan.n + (uint32_t)s->opts->num_warmups + 64,
			s->derived->threads, events + 4 * (uint64_t)p->plan.n, true, keeps_text,
			e) < 0)
		return -1;
	record_add_rows(&p->record, p->plan.n);
	fill_rows(s);
	return 0;
}

/* ---- the order of things ---- */

static int find_endpoint(struct stage *s, struct err *e)
{
	s->point->endpoint = endpoint_find(s->opts->backend);
	if (!s->point->endpoint)
		return err_set(e, ERR_USAGE, "--backend %s: not in this version", s->opts->backend);
	return endpoint_check_url(s->point->endpoint, s->derived->api_url, e);
}

static int prepare_point(struct stage *s, struct err *e)
{
	const struct dataset *dataset = dataset_find(s->opts->dataset_name);

	assert(dataset); /* serve_check_dataset */
	if (check_dataset(dataset, &s->opts->data, s->opts, e) < 0 || find_endpoint(s, e) < 0 ||
	    find_model(s, e) < 0 || load_tokenizer(s, e) < 0 || build_dataset(s, dataset, e) < 0)
		return -1;
	TRACE(run, "dataset %s: %zu requests\n", dataset->name, s->point->workload.n);
	if (is_cancelled(s))
		return cancelled(e);
	if (may_ask_server(s))
		align(s, dataset);
	if (s->derived->is_temperature_unset)
		say(s, "WARNING: vllm bench serve no longer sets temperature==0 (greedy) in requests "
		    "by default. The default will be determined on the server side and can be "
		    "model/API specific. For the old behavior, include --temperature=0.");
	return make_plan(s, e);
}

int run_point(const struct serve_opts *opts, const struct serve_derived *derived,
	      const struct run_hooks *hooks, struct point *out, struct err *e)
{
	struct point_env env;
	struct stage s = {
		.opts = opts, .derived = derived, .hooks = hooks, .point = out,
		.remote = { .base_url = derived->base_url, .is_insecure = opts->insecure,
			    .ca_file = opts->cacert, .header = derived->header,
			    .n_headers = derived->n_headers,
			    .cancel = hooks->cancel },
	};

	if (hooks->env)
		env = *hooks->env;
	else
		point_env_read(&env);
	s.remote.api_key = env.api_key;
	s.proxy = prepare_proxy(&env, derived->base_url);
	*out = (struct point){ 0 };
	compat_rng_seed(&s.rng, (uint32_t)opts->seed);
	if (prepare_point(&s, e) < 0)
		return -1;
	if (opts->dry_run)
		return 0;
	if (check_files(&s, e) < 0 || make_record(&s, e) < 0 || ready_check(&s, e) < 0 ||
	    warm_up(&s, e) < 0)
		return -1;
	if (is_cancelled(&s))
		return cancelled(e);
	TRACE(run, "ready: %u rows\n", out->record.n_rows);
	say(&s, "Starting main benchmark run...");
	if (run_main(&s, e) < 0)
		return -1;
	out->is_interrupted = out->record.is_interrupted;
	count_missing(&out->record, out->tokenizer);
	return 0;
}

int point_store(struct point *p, const struct serve_opts *opts, struct err *e)
{
	bool is_recounted = false;
	int rc;

	if (!p->stream)
		return 0;
	rc = record_stream_close(p->stream, e);
	p->stream = NULL;
	/* Rows were written as they ended; counts found later need the file whole again. */
	for (uint32_t i = 0; i < p->record.n_rows; i++)
		is_recounted |= (p->record.row[i].flags & (ROW_COUNTED | ROW_COUNT_UNKNOWN)) != 0;
	if (rc == 0 && is_recounted)
		rc = record_file_save(&p->record, &p->info, opts->record_path, e);
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
	*p = (struct point){ 0 };
}
