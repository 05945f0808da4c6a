/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - paths and their answers; generation continues in start.c. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "sim/serving/serving.h"

enum method { METHOD_GET = 1, METHOD_POST = 2, METHOD_ANY = 3 };

struct route {
	const char *path;
	enum method methods;
	enum ask_api api; /* of a path that generates */
	void (*serve)(struct conn *c, struct str body); /* NULL: it generates */
};

/* ---- answers ---- */

const char *route_extra(const struct conn *c)
{
	return c->is_last ? "connection: close\r\n" : NULL;
}

void route_answer(struct conn *c, unsigned status, const char *type, struct str body)
{
	struct buf out = { 0 };

	assert(status >= 100 && status <= 599);
	http_write_head(&out, status, type, (int64_t)body.n, route_extra(c));
	buf_add_str(&out, body);
	conn_write(c, buf_str(&out));
	buf_release(&out);
}

void route_error(struct conn *c, unsigned status, const char *param, const char *message)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	const char *type = status == 401 ? "AuthenticationError" :
			   status == 404 ? "NotFoundError" :
			   status >= 500 ? "InternalServerError" : "BadRequestError";

	assert(status >= 400 && status <= 599);
	w.is_compact = true;
	json_begin_object(&w);
	json_member_object(&w, "error");
	json_member_text(&w, "message", message);
	json_member_text(&w, "type", type);
	json_member_text(&w, "param", param);
	json_member_int(&w, "code", status);
	json_end_object(&w);
	json_end_object(&w);
	route_answer(c, status, "application/json", buf_str(&out));
	buf_release(&out);
}

/* ---- small paths ---- */

const char *route_model(const struct sim *s)
{
	return s->opts->served_count ? s->opts->served[0] : s->opts->model;
}

static void serve_generate(struct conn *c, struct str body)
{
	stream_start(c, ask_generate_api(body), body);
}

static void answer_ok(struct conn *c)
{
	route_answer(c, 200, NULL, (struct str){ 0 });
}

/* Also serves resets of picture and encoder caches, which are not modelled. */
static void serve_health(struct conn *c, struct str body)
{
	(void)body;
	answer_ok(c);
}

static void serve_version(struct conn *c, struct str body)
{
	(void)body;
	/* The last release that knew guided_json and its like had a version below 0.12. */
	route_answer(c, 200, "application/json", c->sim->opts->is_guided ?
		     STR("{\"version\":\"0.10.0\"}") : STR("{\"version\":\"profllm-sim\"}"));
}

/* root: the model's origin; parent: for an adapter, its model. */
static void model_write(struct json_writer *w, const struct sim *s, const char *id,
			const char *root, const char *parent)
{
	json_begin_object(w);
	json_member_text(w, "id", id);
	json_member_text(w, "object", "model");
	json_member_int(w, "created", s->id_base / 1000000000);
	json_member_text(w, "owned_by", "vllm");
	json_member_text(w, "root", root);
	json_member_text(w, "parent", parent);
	json_member_int(w, "max_model_len", s->opts->max_model_len);
	json_member_array(w, "permission");
	json_end_array(w);
	json_end_object(w);
}

static void serve_models(struct conn *c, struct str body)
{
	const struct sim *s = c->sim;
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	(void)body;
	w.is_compact = true;
	json_begin_object(&w);
	json_member_text(&w, "object", "list");
	json_member_array(&w, "data");
	if (s->opts->served_count == 0)
		model_write(&w, s, s->opts->model, s->opts->model, NULL);
	for (size_t i = 0; i < s->opts->served_count; i++)
		model_write(&w, s, s->opts->served[i], s->opts->model, NULL);
	for (size_t i = 0; i < s->opts->lora_count; i++) {
		const struct sim_lora *l = &s->opts->lora[i];

		model_write(&w, s, l->name, l->path, l->base ? l->base : route_model(s));
	}
	json_end_array(&w);
	json_end_object(&w);
	route_answer(c, 200, "application/json", buf_str(&out));
	buf_release(&out);
}

static void serve_tokenize(struct conn *c, struct str body)
{
	struct sim *s = c->sim;
	struct err e = { 0 };
	struct buf out = { 0 };
	const char *param;
	size_t n;

	if (ask_read(&s->ask, ASK_TOKENIZE, body, &param, &e) < 0) {
		route_error(c, 400, param, e.text);
		return;
	}
	if (!start_serves_model(s, buf_str(&s->ask.model))) {
		err_set(&e, ERR_RUN, "The model `%s` does not exist.", s->ask.model.data);
		route_error(c, 404, "model", e.text);
		return;
	}
	n = ask_tokens(s, true);
	if (n == SIZE_MAX) {
		route_error(c, 400, "prompt", "the prompt cannot be tokenized");
		return;
	}
	buf_printf(&out, "{\"count\":%zu,\"max_model_len\":%" PRId64 ",\"tokens\":[", n,
		   s->opts->max_model_len);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, i ? ",%" PRIu32 : "%" PRIu32, s->ids.id[i]);
	buf_add_text(&out, "]}");
	route_answer(c, 200, "application/json", buf_str(&out));
	buf_release(&out);
}

static void serve_detokenize(struct conn *c, struct str body)
{
	struct sim *s = c->sim;
	struct err e = { 0 };
	struct buf out = { 0 }, text = { 0 };
	const char *param;

	if (ask_read(&s->ask, ASK_DETOKENIZE, body, &param, &e) < 0) {
		route_error(c, 400, param, e.text);
		return;
	}
	for (size_t i = 0; i < s->ask.ids.count; i++) {
		if (s->ask.ids.id[i] < tokenizer_id_limit(s->tokenizer))
			continue;
		err_set(&e, ERR_RUN, "token id %" PRIu32 " is not in the vocabulary",
			s->ask.ids.id[i]);
		route_error(c, 400, "tokens", e.text);
		return;
	}
	tokenizer_decode(s->tokenizer, s->ask.ids.id, s->ask.ids.count, false, &text);
	buf_add_text(&out, "{\"prompt\":");
	json_quote(&out, buf_str(&text), true);
	buf_add_char(&out, '}');
	route_answer(c, 200, "application/json", buf_str(&out));
	buf_release(&text);
	buf_release(&out);
}

/* The part of tokenizer_config.json that clients need: the tokens after the vocabulary. */
static void serve_tokenizer_info(struct conn *c, struct str body)
{
	const struct tokenizer *t = c->sim->tokenizer;
	struct buf out = { 0 }, text = { 0 };
	bool is_first = true;

	(void)body;
	buf_add_text(&out, "{\"tokenizer_class\":\"PreTrainedTokenizerFast\","
			   "\"added_tokens_decoder\":{");
	for (uint32_t id = (uint32_t)tokenizer_vocab_size(t); id < tokenizer_id_limit(t); id++) {
		buf_reset(&text);
		if (tokenizer_decode(t, &id, 1, false, &text) < 0 || text.len == 0)
			continue;
		buf_printf(&out, "%s\"%" PRIu32 "\":{\"content\":", is_first ? "" : ",", id);
		json_quote(&out, buf_str(&text), true);
		buf_printf(&out, ",\"special\":%s}",
			   tokenizer_is_special(t, id) ? "true" : "false");
		is_first = false;
	}
	buf_add_text(&out, "}}");
	route_answer(c, 200, "application/json", buf_str(&out));
	buf_release(&text);
	buf_release(&out);
}

/* Names of the adapters of requests that run, or wait, each once, with commas. */
static void loras_list(const struct sim *s, bool is_running, struct buf *out)
{
	const struct sim_opts *o = s->opts;
	bool *has = mem_array(o->lora_count + 1, sizeof(*has));

	for (const struct conn *c = s->conns; c; c = c->next)
		for (uint32_t i = 0; c->stream.is_active && i < c->stream.choices; i++)
			if ((s->is_oracle || c->stream.choice[i].seq.is_running) == is_running)
				has[c->stream.lora] = true;
	for (size_t i = 0; i < o->lora_count; i++)
		if (has[i + 1])
			buf_printf(out, "%s%s", out->len ? "," : "", o->lora[i].name);
	free(has);
}

static void loras_tell(struct sim *s)
{
	struct counters *k = &s->counters;

	k->loras_max = s->opts->lora_count ? (size_t)s->opts->loras_max : 0;
	if (!k->loras_max)
		return;
	buf_reset(&k->loras_running);
	buf_reset(&k->loras_waiting);
	loras_list(s, true, &k->loras_running);
	loras_list(s, false, &k->loras_waiting);
}

/* Gauges are computed on request, so that they cost nothing per token. */
static void serve_metrics(struct conn *c, struct str body)
{
	struct sim *s = c->sim;
	struct buf out = { 0 };
	double held = 0;

	(void)body;
	for (const struct conn *o = s->conns; o; o = o->next)
		for (uint32_t i = 0; o->stream.is_active && i < o->stream.choices; i++)
			if (s->is_oracle || o->stream.choice[i].seq.is_running)
				held += o->stream.form.prompt_tokens + o->stream.choice[i].done;
	held /= (double)s->opts->kv_cache_tokens * (double)s->lanes;
	s->counters.kv_share = held < 1 ? held : 1;
	s->counters.running = s->is_oracle ? s->stream_count : 0;
	s->counters.waiting = s->counters.preemptions = 0;
	for (size_t i = 0; i < s->lanes; i++) {
		s->counters.running += s->lane[i].engine.running_count;
		s->counters.waiting += s->lane[i].engine.waiting_count;
		s->counters.preemptions += s->lane[i].engine.preempted;
	}
	loras_tell(s);
	s->counters.has_external = s->kv.is_on || s->opts->kv.is_cache_server;
	s->counters.external_queries = s->kv.queries;
	s->counters.external_hits = s->kv.hits;
	counters_write(&s->counters, str_of(route_model(s)), &out);
	route_answer(c, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&out));
	buf_release(&out);
}

/* ---- controls ---- */

static void serve_start_profile(struct conn *c, struct str body)
{
	(void)body;
	profiler_start(&c->sim->profiler);
	answer_ok(c);
}

static void serve_stop_profile(struct conn *c, struct str body)
{
	struct err e = { 0 };

	(void)body;
	if (!c->sim->profiler.is_on)
		route_error(c, 500, NULL, "no profile was started");
	else if (profiler_stop(&c->sim->profiler, c->sim->loop, &e) < 0)
		route_error(c, 500, NULL, e.text);
	else
		answer_ok(c);
}

/* Blocks in the host's memory stay unless their reset is also requested. */
static void serve_reset_prefix(struct conn *c, struct str body)
{
	static const char all[] = "reset_external=true";

	(void)body;
	for (size_t i = 0; i < c->sim->lanes; i++)
		prefix_reset(&c->sim->lane[i].prefix);
	if (c->sim->opts->kv.is_cache_server ||
	    memmem(c->request.target.p, c->request.target.n, all, sizeof(all) - 1))
		prefix_reset(&c->sim->kv.host);
	answer_ok(c);
}

static void serve_sleep(struct conn *c, struct str body)
{
	(void)body;
	c->sim->is_asleep = true;
	answer_ok(c);
}

static void serve_wake(struct conn *c, struct str body)
{
	(void)body;
	c->sim->is_asleep = false;
	stream_wake(c->sim);
	answer_ok(c);
}

static void serve_is_sleeping(struct conn *c, struct str body)
{
	(void)body;
	route_answer(c, 200, "application/json", c->sim->is_asleep ?
		     STR("{\"is_sleeping\":true}") : STR("{\"is_sleeping\":false}"));
}

static void serve_load(struct conn *c, struct str body)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "{\"server_load\":%zu}", c->sim->stream_count);

	(void)body;
	route_answer(c, 200, "application/json", (struct str){ text, (size_t)n });
}

static const struct route routes[] = {
	{ "/v1/completions", METHOD_POST, .api = ASK_COMPLETIONS },
	{ "/v1/chat/completions", METHOD_POST, .api = ASK_CHAT },
	{ "/v1/responses", METHOD_POST, .api = ASK_RESPONSES },
	{ "/v1/audio/transcriptions", METHOD_POST, .api = ASK_AUDIO },
	{ "/v1/audio/translations", METHOD_POST, .api = ASK_AUDIO },
	{ "/v1/messages", METHOD_POST, .api = ASK_ANTHROPIC },
	{ "/generate", METHOD_POST, .serve = serve_generate },
	{ "/generate_stream", METHOD_POST, .api = ASK_TGI_STREAM },
	{ "/completion", METHOD_POST, .api = ASK_LLAMACPP },
	{ "/api/generate", METHOD_POST, .api = ASK_OLLAMA },
	{ "/api/chat", METHOD_POST, .api = ASK_OLLAMA_CHAT },
	{ "/v1/embeddings", METHOD_POST, .serve = pool_embed },
	{ "/embeddings", METHOD_POST, .serve = pool_embed },
	{ "/pooling", METHOD_POST, .serve = pool_pool },
	{ "/rerank", METHOD_POST, .serve = pool_rerank },
	{ "/v1/rerank", METHOD_POST, .serve = pool_rerank },
	{ "/v2/rerank", METHOD_POST, .serve = pool_rerank },
	{ "/score", METHOD_POST, .serve = pool_score },
	{ "/v1/score", METHOD_POST, .serve = pool_score },
	{ "/v1/models", METHOD_GET, .serve = serve_models },
	{ "/health", METHOD_GET, .serve = serve_health },
	{ "/ping", METHOD_ANY, .serve = serve_health },
	{ "/version", METHOD_GET, .serve = serve_version },
	{ "/tokenize", METHOD_POST, .serve = serve_tokenize },
	{ "/detokenize", METHOD_POST, .serve = serve_detokenize },
	{ "/tokenizer_info", METHOD_GET, .serve = serve_tokenizer_info },
	{ "/metrics", METHOD_GET, .serve = serve_metrics },
	{ "/load", METHOD_GET, .serve = serve_load },
	{ "/start_profile", METHOD_POST, .serve = serve_start_profile },
	{ "/stop_profile", METHOD_POST, .serve = serve_stop_profile },
	{ "/reset_prefix_cache", METHOD_POST, .serve = serve_reset_prefix },
	{ "/flush_cache", METHOD_POST, .serve = serve_reset_prefix },
	{ "/reset_mm_cache", METHOD_POST, .serve = serve_health },
	{ "/reset_encoder_cache", METHOD_POST, .serve = serve_health },
	{ "/sleep", METHOD_POST, .serve = serve_sleep },
	{ "/wake_up", METHOD_POST, .serve = serve_wake },
	{ "/is_sleeping", METHOD_GET, .serve = serve_is_sleeping },
	{ "/kv/look", METHOD_POST, .serve = kv_serve_look },
	{ "/kv/keep", METHOD_POST, .serve = kv_serve_keep },
};

/* ---- the way there ---- */

static bool is_allowed(const struct conn *c, struct str path)
{
	struct str given = http_head_value(buf_str(&c->head), "authorization");
	const char *key = c->sim->opts->api_key;

	if (!key || !str_starts(path, STR("/v1/")))
		return true;
	if (str_is(http_head_value(buf_str(&c->head), "x-api-key"), key)) /* Anthropic's way */
		return true;
	if (!str_starts(given, STR("Bearer ")))
		return false;
	return str_is((struct str){ given.p + 7, given.n - 7 }, key);
}

void route_serve(struct conn *c, struct str body)
{
	struct str rest = c->request.target;
	struct str path = str_cut(&rest, '?');
	enum method method = str_is(c->request.method, "GET") ? METHOD_GET :
			     str_is(c->request.method, "POST") ? METHOD_POST : 0;
	char text[256];

	log_request(c, path, body);
	if (!is_allowed(c, path)) {
		route_error(c, 401, NULL, "Unauthorized");
		return;
	}
	if (c->sim->proxy && !str_is(path, "/health") && !str_is(path, "/ping")) {
		proxy_serve(c, path, body);
		return;
	}
	for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
		if (!str_is(path, routes[i].path))
			continue;
		if (!(routes[i].methods & method))
			route_error(c, 405, NULL, "Method Not Allowed");
		else if (routes[i].serve)
			routes[i].serve(c, body);
		else
			stream_start(c, routes[i].api, body);
		return;
	}
	snprintf(text, sizeof(text), "no route %.*s",
		 (int)(path.n < 200 ? path.n : 200), path.p);
	route_error(c, 404, NULL, text);
}
