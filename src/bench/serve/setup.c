/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c - from options to requests and their plan: model, tokenizer, dataset, traffic. */
#include "bench/serve/point_internal.h"

#include <math.h>
#include <stdio.h>

#include "bench/serve/build_workload.h"
#include "bench/serve/multi_turn.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/rng/rng.h"
#include "host/engine/args.h"
#include "input/data/dataset.h"
#include "input/data/lengths.h"
#include "input/data/request_keys.h"
#include "input/token/remote.h"

#define GUIDED_UNTIL 11000 /* vLLM 0.11 is the first release with structured_outputs alone */

int stage_find_model(struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct point *p = s->point;

	if (!o->model && s->early)
		return 0; /* the server names it */
	if (!o->model)
		return remote_discover_model(&s->remote, s->hooks, &p->model_name, &p->model_id, e);
	p->model_id = mem_text(o->model);
	p->model_name = mem_text(o->served_model_name && *o->served_model_name
				 ? o->served_model_name : o->model);
	return 0;
}

/* Uses the server's own tokenizer when the model has no local tokenizer file. */
static int borrow_tokenizer(struct stage *s, const struct err *why)
{
	struct point *p = s->point;
	struct remote_target target;

	if (remote_target_init(&target, &s->remote, "", NULL) == 0) {
		struct token_server server = { target.url.data, p->model_name, target.opts };

		p->tokenizer = tokenizer_of_server(p->tokenizer_id, &server, NULL);
	}
	remote_target_release(&target);
	if (!p->tokenizer)
		return -1;
	stage_warn(s, "%s; the server's own tokenizer is used, over /tokenize", why->text);
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
	stage_warn(self, "%s", text);
}

/* Warns of modes that give the same ids as hf but not everything their names promise. */
static void warn_of_mode(const struct stage *s)
{
	const char *mode = s->opts->tokenizer_mode;

	if (strcmp(mode, "slow") == 0)
		stage_warn(s, "--tokenizer-mode slow is an older choice; hf gives the same ids");
	else if (strcmp(mode, "custom") == 0)
		stage_warn(s, "--tokenizer-mode custom: a Python class cannot be loaded; the model's own "
			"files are read, as with auto");
	else if (strcmp(mode, "deepseek_v32") == 0)
		stage_warn(s, "--tokenizer-mode deepseek_v32 gives the ids of hf; its chat encoding is a "
			"program without a template");
}

int stage_load_tokenizer(struct stage *s, struct err *e)
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
	if (!o->tokenizer && !p->model_id) {
		err_set(&why, ERR_RUN, "the server names the model, and with it the tokenizer");
		return stage_stand_in(s, &why, e);
	}
	p->tokenizer_id = mem_text(o->tokenizer ? o->tokenizer : p->model_id);
	p->tokenizer = tokenizer_load(p->tokenizer_id, &opts, &why);
	if (p->tokenizer && s->early)
		s->early->has_tokenizer = true;
	if (p->tokenizer)
		return 0;
	if (!o->tokenizer && (why.code == ERR_IO || why.code == ERR_NET)) {
		if (s->early)
			return stage_stand_in(s, &why, e);
		if (stage_may_ask_server(s) && borrow_tokenizer(s, &why) == 0)
			return 0;
	}
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

static int find_chat_template(void *self, struct arena *a, struct chat_wrap *out, struct err *e)
{
	struct stage *s = self;
	struct point *p = s->point;
	struct buf notes = { 0 };

	if (run_chat_find(s->opts, s->derived, p->tokenizer,
			  stage_may_ask_server(s) ? &s->remote : NULL, p->model_name, a, out,
			  e) < 0) {
		if (!s->early || e->code != ERR_RUN)
			return -1;
		stage_wait(s, e);
		*out = (struct chat_wrap){ .source = CHAT_SERVER };
		return 0;
	}
	run_chat_notes(out, s->derived->is_chat, p->tokenizer, &notes);
	if (notes.len)
		stage_warn(s, "%s", notes.data);
	buf_release(&notes);
	return 0;
}

/* Whether the server is a vLLM that knows guided_* and not yet structured_outputs. */
static bool is_guided_server(const struct stage *s, const struct dataset *d)
{
	struct fetch_reply reply;
	struct json_value *about;
	struct arena a = { 0 };
	bool is_old = false;

	if (!d->is_told_version || !stage_may_ask_server(s))
		return false;
	if (remote_ask(&s->remote, "/version", NULL, 0, &reply, NULL) == 0 && reply.status == 200 &&
	    json_parse(&a, buf_str(&reply.body), &about, NULL) == 0) {
		unsigned version = engine_version(json_text(json_get(about, "version"),
							    STR("")).p);

		is_old = version && version < GUIDED_UNTIL;
	}
	fetch_reply_release(&reply);
	arena_release(&a);
	return is_old;
}

/* --priority-classes: after all that the dataset draws. */
static int deal_priorities(struct stage *s, struct err *e)
{
	struct priority_classes classes;

	if (!s->opts->priority_classes)
		return 0;
	return priority_classes_parse("priority-classes", s->opts->priority_classes, &classes, e) < 0 ?
	       -1 : priority_deal("priority-classes", &classes, &s->rng.py, &s->point->workload, e);
}

int stage_build_dataset(struct stage *s, const struct dataset *d, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct run_renderer renderer = {
		.tokenizer = s->point->tokenizer,
		.server = stage_may_ask_server(s) ? &s->remote : NULL,
		.model = s->point->model_name,
		.kwargs = str_of(o->chat_template_kwargs.text),
		.by = s->early ? stage_render_stand_in : NULL, .by_self = s,
	};
	struct run_draw draw = {
		.env = {
			.num_prompts = o->num_prompts, .seed = (uint64_t)o->seed,
			.tokenizer = s->point->tokenizer, .tokenizer_name = s->point->tokenizer_id,
			.request_id_prefix = o->request_id_prefix,
			.backend = o->backend, .is_chat_backend = s->derived->is_chat,
			.is_guided_server = is_guided_server(s, d),
			.render = run_render, .render_self = &renderer,
			.progress = dataset_progress, .download = show_bytes,
			.note = warn_of_cache, .self = s,
			.cancel = s->hooks->cancel,
		},
		.has_no_tokenizer = o->skip_tokenizer_init,
		.find_chat = find_chat_template, .warn = warn_of_cache, .self = s,
	};
	struct err why = { 0 };
	int rc;

	renderer.wrap = &draw.chat;
	rc = run_draw(&draw, d, &o->data, &s->rng, &s->point->workload, &why);
	s->point->chat_template = draw.chat_template;
	if (rc < 0 && stage_may_pass(s, d, draw.is_building, &why)) {
		workload_release(&s->point->workload);
		return 0;
	}
	if (rc < 0) {
		*e = why;
		return draw.is_building ? err_in_user_file(e) : -1;
	}
	if (deal_priorities(s, e) < 0)
		return -1;
	stage_made(s);
	return 0;
}

int stage_salt(struct stage *s, const struct dataset *d, struct err *e)
{
	struct point *p = s->point;
	struct err why = { 0 };
	const char *key;

	if (salt_parse(s->opts->prompt_salt, &p->salt, &key, e) < 0)
		return -1;
	if (p->salt == SALT_NONE)
		return 0;
	if (key)
		snprintf(p->salt_key, sizeof(p->salt_key), "%s", key);
	else
		salt_draw_key(p->salt_key);
	salt_init(&s->salt, p->salt, p->salt_key, p->tokenizer);
	s->salt.keeps_length = p->salt == SALT_FRESH && d->is_rewritten_by_server;
	if (p->salt == SALT_FRESH && salt_check(&s->salt, &p->workload, &why) < 0) {
		p->salt = SALT_NONE;
		s->salt = (struct salt){ 0 };
		stage_warn(s, "the prompts are the same at every point, and the server may have cached "
			   "them: %s", why.text);
		return 0;
	}
	return salt_workload(&s->salt, &s->point->workload, e);
}

void stage_align(struct stage *s, const struct dataset *d)
{
	struct remote_alignment *out = &s->point->alignment;

	remote_align(&s->remote, s->point->model_id, d->is_rewritten_by_server,
		     &s->point->workload, s->hooks, out);
	if (!d->is_rewritten_by_server && out->disagreeing)
		stage_warn(s, "the server's tokenizer gives another length than ours for %u of %u "
			   "prompts; prompt lengths are the server's where it reports usage",
			   out->disagreeing, out->checked);
}

/* ---- the plan ---- */

bool point_is_self_timed(const struct serve_opts *o, const struct point *p)
{
	return o->self_timed == OPT_TRI_YES ||
	       (o->self_timed == OPT_TRI_UNSET && p->workload.is_self_timed);
}

/* Number of arrivals: conversations, or samples if there are none. */
static size_t n_arriving(const struct workload *w)
{
	return w->sessions ? w->sessions->n_sessions : w->n;
}

static int read_times(const struct workload *w, double *out, struct err *e)
{
	for (size_t i = 0; i < n_arriving(w); i++) {
		size_t sample = w->sessions ? w->sessions->session[i].first : i;

		out[i] = w->v[sample].timestamp_s;
		if (isnan(out[i]))
			return err_set(e, ERR_USAGE, "--self-timed: request %zu of the workload has no time",
				       sample);
	}
	return 0;
}

/* Requests that a cap admits in the time if each takes 10 ms: more than any server answers. */
static double count_by_cap(const struct stage *s)
{
	const struct load_opts *load = &s->derived->load;
	uint32_t cap = load->max_concurrency ? load->max_concurrency : load->max_sessions;
	double n = 100.0 * cap * s->opts->duration.v;

	return n < OPEN_ENDED_REQUESTS_MAX ? n : OPEN_ENDED_REQUESTS_MAX;
}

/* Mean number of requests per arrival. */
static double turns_per_arrival(const struct workload *w)
{
	return (double)w->n / (double)n_arriving(w);
}

/* Conversations that begin at the users' rate in that time, plus those in progress. */
static double count_by_users(const struct stage *s)
{
	const struct serve_opts *o = s->opts;

	return ceil(o->user_centric_rate.v * o->duration.v /
		    turns_per_arrival(&s->point->workload)) + (double)o->num_users.v;
}

/* How many arrivals are planned: those of the workload, or what --duration needs. */
static int count_arrivals(const struct stage *s, const struct plan_opts *opts, uint32_t *out,
			  struct err *e)
{
	const struct workload *w = &s->point->workload;
	double n, given = (double)n_arriving(w);

	*out = (uint32_t)given;
	if (!s->derived->load.admission_ns || opts->timestamps_s)
		return 0;
	n = s->opts->user_centric_rate.is_set ? count_by_users(s)
					      : plan_count(opts, s->opts->duration.v);
	if (isinf(n)) {
		n = ceil(count_by_cap(s) / turns_per_arrival(w));
		/* Without a cap there are --num-prompts (serve_load.c). */
		n = n > given ? n : given;
	}
	if (s->derived->is_num_prompts_given && n > given)
		n = given;
	if (n > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "--duration %g at this rate: %.0f requests are more "
			       "than the %u of one run", s->opts->duration.v, n, REQUESTS_MAX);
	*out = n < 1 ? 1 : (uint32_t)n;
	return 0;
}

/* Assigns a server to each entry; the least loaded one is found at admission. */
static void assign_urls(const struct stage *s, struct plan *plan)
{
	struct pcg64 g = rng_fork((uint64_t)s->opts->seed, "balance");
	unsigned n = s->derived->n_urls;

	if (n < 2 || s->derived->balance == BALANCE_LEAST_LOADED)
		return;
	for (uint32_t i = 0; i < plan->n; i++) {
		uint64_t url = i % n;

		if (s->derived->balance == BALANCE_RANDOM)
			url = (uint64_t)pcg64_bounded(&g, 0, n - 1);
		plan->entry[i].endpoint = (uint16_t)url;
	}
}

static void mark_cancelled(const struct stage *s, struct plan *plan)
{
	struct pcg64 g = rng_fork((uint64_t)s->opts->seed, "request-cancellation");
	double share = s->opts->request_cancellation_rate / 100;

	for (uint32_t i = 0; share > 0 && i < plan->n; i++)
		if (pcg64_double(&g) < share)
			plan->entry[i].flags |= PLAN_GIVES_UP;
}

/* Refuses options about conversations for a dataset that has none. */
static int check_without_sessions(const struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	const char *dataset = s->point->workload.dataset;

	if (o->user_centric_rate.is_set)
		return err_set(e, ERR_USAGE, "--user-centric-rate: the %s dataset has no conversations; "
			       "--request-rate says when requests are sent", dataset);
	if (o->max_sessions.is_set || o->think_time || o->tool_time)
		stage_warn(s, "%s has no effect: the %s dataset has no conversations",
			   o->max_sessions.is_set ? "--max-sessions" :
			   o->think_time ? "--think-time" : "--tool-time", dataset);
	return 0;
}

/*
 * Draws the gaps of one kind from a distribution, one per turn, with a separate generator so that
 * no other draws change.
 */
static int set_gaps(const struct stage *s, const char *option, const char *law, bool is_tool,
		    struct plan *plan, struct err *e)
{
	const struct sessions *sessions = s->point->workload.sessions;
	struct pcg64 rng = rng_fork((uint64_t)s->opts->seed + 1, option);
	struct lengths times;

	if (!law)
		return 0;
	if (lengths_parse_time(option, law, &times, e) < 0)
		return -1;
	for (uint32_t i = plan->n_roots; i < plan->n; i++) {
		struct plan_entry *entry = &plan->entry[i];
		bool runs_tool = sessions->turn[entry->sample].gap_kind == TURN_CALLS_TOOLS;

		if (runs_tool == is_tool && !(entry->flags & PLAN_FROM_PHASE))
			entry->due_s = lengths_draw_s(&times, &rng);
	}
	lengths_release(&times);
	return 0;
}

/* Whether any turn needs answers of the server in its messages. */
static bool has_history(const struct sessions *s)
{
	for (size_t i = 0; i < s->n_turns; i++)
		if (s->turn[i].history != TURN_NONE)
			return true;
	return false;
}

/* Turns arrivals into conversations. */
static int add_turns(const struct stage *s, struct plan *plan, struct err *e)
{
	const struct serve_opts *o = s->opts;
	const struct sessions *sessions = s->point->workload.sessions;

	if (!s->derived->is_chat && has_history(sessions))
		return err_set(e, ERR_USAGE, "--backend %s: a conversation needs an API that takes a list "
			       "of messages, such as --backend openai-chat --endpoint "
			       "/v1/chat/completions", o->backend);
	if (plan_sessions(plan, sessions, e) < 0)
		return -1;
	if (set_gaps(s, "--think-time", o->think_time, false, plan, e) < 0 ||
	    set_gaps(s, "--tool-time", o->tool_time, true, plan, e) < 0)
		return -1;
	if (o->user_centric_rate.is_set)
		plan_user_gaps(plan, (uint32_t)o->num_users.v, o->user_centric_rate.v);
	if (s->derived->load.is_session_spread)
		assign_urls(s, plan);
	return 0;
}

static int make_arrivals(struct stage *s, const struct plan_opts *opts, struct plan *plan,
			 struct err *e)
{
	const struct serve_opts *o = s->opts;
	const struct workload *w = &s->point->workload;
	uint32_t n;

	if (!w->sessions && check_without_sessions(s, e) < 0)
		return -1;
	if (count_arrivals(s, opts, &n, e) < 0)
		return -1;
	if (o->user_centric_rate.is_set)
		return plan_users(plan, w->sessions, n, (uint32_t)o->num_users.v,
				  o->user_centric_rate.v, e);
	return plan_arrivals(plan, n, opts, &s->rng, e);
}

int stage_make_plan(struct stage *s, struct err *e)
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

	if (o->multi_turn) {
		multi_turn_plan(s);
		return 0;
	}
	if (point_is_self_timed(s->opts, s->point)) {
		if (w->repeats)
			return err_set(e, ERR_USAGE, "--repeat-count, --repeat-order: requests that are sent "
				       "at times of their own (%s) cannot be repeated or reordered; "
				       "--no-self-timed ignores the times", w->dataset);
		if (o->self_timed == OPT_TRI_UNSET &&
		    (!isinf(o->request_rate) || d->ramp_up != RAMP_NONE))
			stage_warn(s, "%s has no effect: requests are sent at the workload's times "
				   "(--no-self-timed ignores those)",
				   isinf(o->request_rate) ? "--ramp-up-strategy" : "--request-rate");
		timestamps = mem_array(n_arriving(w), sizeof(*timestamps));
		rc = read_times(w, timestamps, e);
		opts.timestamps_s = timestamps;
	}
	if (rc == 0)
		rc = make_arrivals(s, &opts, plan, e);
	free(timestamps);
	if (rc < 0)
		return -1;
	plan_repeat(plan, (uint32_t)n_arriving(w));
	plan_assign_lora(plan, (unsigned)o->lora_modules.n, d->lora, &s->rng);
	assign_urls(s, plan);
	if (w->sessions && add_turns(s, plan, e) < 0)
		return -1;
	mark_cancelled(s, plan);
	return 0;
}

void stage_say_traffic(const struct stage *s)
{
	const struct serve_opts *o = s->opts;
	char number[FMT_F64_BYTES];
	struct buf text = { 0 };

	if (o->multi_turn)
		return; /* its parameters are in its report */
	if (o->user_centric_rate.is_set) {
		stage_say(s, "Traffic user-centric rate: %s requests/s by %lld users",
			  fmt_f64(number, o->user_centric_rate.v), (long long)o->num_users.v);
		return;
	}
	if (point_is_self_timed(s->opts, s->point)) {
		stage_say(s, "Self timing is set, using the timestamps from the trace file.");
		return;
	}
	if (s->derived->ramp_up != RAMP_NONE)
		buf_printf(&text, "Traffic ramp-up strategy: %s.\nWill increase RPS from %lld to %lld "
			   "RPS over the duration of the benchmark.", o->ramp_up_strategy,
			   (long long)o->ramp_up_start_rps.v, (long long)o->ramp_up_end_rps.v);
	else
		buf_printf(&text, "Traffic %s rate: %s", s->point->workload.sessions ? "session"
										     : "request",
			   fmt_f64(number, o->request_rate));
	buf_printf(&text, "\nBurstiness factor: %s (%s)", fmt_f64(number, o->burstiness),
		   o->burstiness == 1.0 ? "Poisson process" : "Gamma distribution");
	if (s->derived->load.max_concurrency)
		buf_printf(&text, "\nMaximum request concurrency: %u",
			   s->derived->load.max_concurrency);
	else
		buf_add_text(&text, "\nMaximum request concurrency: None");
	stage_say(s, "%s", text.data);
	buf_release(&text);
}
