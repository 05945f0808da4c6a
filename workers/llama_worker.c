/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_worker.c - drives llama.cpp's C library for ProfLLM: docs/guide/adapters.md spoken over
 * the socket that PROFLLM_WORKER_FD names. Generates only; --model is a file in GGUF. Of vLLM's
 * arguments --max-model-len, --max-num-seqs (16), --max-num-batched-tokens (2048) and --seed have
 * a meaning here; --threads is its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "host/worker/frame.h"
#include "llama_engine.h"

#define PROTOCOL 1
#define PROGRESS_NS 100000000
#define SEQUENCES_DEFAULT 16
#define BATCH_DEFAULT 2048
#define NUMBER_MAX (1u << 24)

struct talk {
	int fd;
	struct frames in;
	struct buf out, members; /* of the answer */
	struct arena put;        /* the requests' texts and ids */
	struct llama_request *request;
	size_t requests, room;
	struct llama_engine engine;
	bool is_loaded;
	const char *category;
	char model[4096];
	int64_t sent_ns;
};

/* ---- frames ---- */

static int frame_send(struct talk *t, size_t begin)
{
	size_t sent = 0;
	struct err e;

	if (frame_end(&t->out, begin, &e) < 0)
		return -1;
	while (sent < t->out.len) {
		ssize_t n = send(t->fd, t->out.data + sent, t->out.len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		sent += (size_t)n;
	}
	t->sent_ns = clock_mono_ns();
	return 0;
}

/* 1: a question; 0: the connection was closed. */
static int frame_receive(struct talk *t, struct str *frame)
{
	struct err e;
	int rc;

	while ((rc = frames_next(&t->in, frame, &e)) == 0) {
		ssize_t n = recv(t->fd, frames_room(&t->in, READ_BYTES), READ_BYTES, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		frames_add(&t->in, (size_t)n);
	}
	if (rc < 0)
		fprintf(stderr, "llama_worker: %s\n", e.text);
	return rc > 0;
}

static size_t frame_new(struct talk *t)
{
	buf_reset(&t->out);
	return frame_begin(&t->out);
}

static int error_send(struct talk *t, int64_t id, const char *category, const char *text)
{
	size_t begin = frame_new(t);

	buf_add_char(&t->out, '{');
	if (id >= 0)
		buf_printf(&t->out, "\"id\": %" PRId64 ", ", id);
	buf_printf(&t->out, "\"type\": \"error\", \"category\": \"%s\", \"text\": ", category);
	json_quote(&t->out, str_of(text), false);
	buf_add_char(&t->out, '}');
	fprintf(stderr, "llama_worker: %s\n", text);
	return frame_send(t, begin);
}

static void progress(void *self, size_t done, size_t total)
{
	struct talk *t = self;
	size_t begin;

	if (done < total && clock_mono_ns() - t->sent_ns < PROGRESS_NS)
		return;
	begin = frame_new(t);
	buf_printf(&t->out, "{\"type\": \"progress\", \"done\": %zu, \"total\": %zu}", done, total);
	frame_send(t, begin);
}

/* ---- reading questions ---- */

static struct json_slice member(struct json_slice frame, const char *key)
{
	struct json_slice v = { .kind = JSON_NULL };

	json_member(frame, key, &v);
	return v;
}

static double number(struct json_slice frame, const char *key, double otherwise)
{
	double v;

	return json_to_f64(member(frame, key), &v) ? v : otherwise;
}

static bool truth(struct json_slice frame, const char *key, bool otherwise)
{
	struct json_slice v = member(frame, key);

	return v.kind == JSON_NULL ? otherwise : v.kind == JSON_TRUE;
}

static struct str text_in(struct arena *a, struct str raw)
{
	struct buf text = { .limit = WORKER_FRAME_BYTES_MAX };
	struct str out;

	json_unescape(&text, raw);
	out = arena_str(a, buf_str(&text));
	buf_release(&text);
	return out;
}

/*
 * Whether arg is the option: "--max_num_seqs=4" equals "--max-num-seqs" "4"; value is empty for the
 * latter.
 */
static bool arg_is(struct str arg, const char *name, struct str *value)
{
	struct str rest = arg, head = str_cut(&rest, '=');

	if (head.n != strlen(name))
		return false;
	for (size_t i = 0; i < head.n; i++)
		if (head.p[i] != name[i] && !(i > 1 && head.p[i] == '_' && name[i] == '-'))
			return false;
	*value = rest;
	return true;
}

static int number_arg(struct talk *t, const char *name, struct str value, uint32_t *out,
		      struct err *e)
{
	int64_t n;

	t->category = "flag";
	if (!str_to_i64(value, &n) || n < 0 || n > NUMBER_MAX)
		return err_set(e, ERR_USAGE, "%s %.*s: a whole number up to %u is expected", name,
			       (int)value.n, value.p, NUMBER_MAX);
	*out = (uint32_t)n;
	return 0;
}

/* Ignores arguments that have no meaning here. A value follows its name or is in it. */
static int args_read(struct talk *t, struct json_slice frame, struct llama_load *how, struct err *e)
{
	uint32_t threads = 0;
	const struct { const char *name; uint32_t *out; } numbers[] = {
		{ "--max-model-len", &how->len_max }, { "--max-num-seqs", &how->sequences },
		{ "--max-num-batched-tokens", &how->batch }, { "--seed", &how->seed },
		{ "--threads", &threads },
	};
	struct json_iter it = json_iter(member(frame, "args"));
	struct json_slice v;
	struct str key, value;
	struct arena a = { 0 };
	int rc = 0;

	*t->model = 0;
	while (rc == 0 && json_each(&it, &key, &v) > 0) {
		struct str arg = text_in(&a, v.raw);
		bool is_model = arg_is(arg, "--model", &value);
		size_t i = 0, n = sizeof(numbers) / sizeof(*numbers);

		while (!is_model && i < n && !arg_is(arg, numbers[i].name, &value))
			i++;
		if (!is_model && i == n)
			continue;
		if (!value.n && json_each(&it, &key, &v) > 0)
			value = text_in(&a, v.raw);
		if (is_model)
			snprintf(t->model, sizeof(t->model), "%.*s", (int)value.n, value.p);
		else
			rc = number_arg(t, numbers[i].name, value, numbers[i].out, e);
	}
	arena_release(&a);
	how->threads = (int32_t)threads;
	how->model = t->model;
	if (rc < 0)
		return -1;
	t->category = "flag";
	if (!*t->model)
		return err_set(e, ERR_USAGE, "--model names no file");
	if (!how->sequences || !how->batch)
		return err_set(e, ERR_USAGE, "--max-num-seqs and --max-num-batched-tokens must be at "
			       "least 1");
	return 0;
}

/* ---- answers ---- */

static int on_load(struct talk *t, struct json_slice frame, struct err *e)
{
	struct llama_load how = { .sequences = SEQUENCES_DEFAULT, .batch = BATCH_DEFAULT };
	int64_t began;
	int rc;

	llama_engine_release(&t->engine);
	t->is_loaded = false;
	if (args_read(t, frame, &how, e) < 0)
		return -1;
	if (truth(frame, "async", false)) {
		t->category = "unsupported";
		return err_set(e, ERR_RUN, "llama.cpp has no asynchronous engine");
	}
	began = clock_mono_ns();
	rc = llama_engine_load(&t->engine, &how, e);
	t->category = t->engine.category;
	if (rc < 0)
		return -1;
	buf_printf(&t->members, ", \"began_ns\": %" PRId64 ", \"ended_ns\": %" PRId64, began,
		   clock_mono_ns());
	t->is_loaded = true;
	return 0;
}

static const char *version(const struct talk *t)
{
	const struct llama_library *l = &t->engine.lib;

	return l->ggml_version ? l->ggml_version() : "";
}

static int on_describe(struct talk *t, struct json_slice frame, struct err *e)
{
	const struct llama_engine *g = &t->engine;
	char what[256] = "";
	const struct { const char *key, *text; } texts[] = {
		{ "engine", "llama" }, { "version", version(t) },
		{ "device", llama_library_device(&g->lib) }, { "profile_to", "" },
		{ "profile_dir", "" }, { "model", t->model }, { "model_type", what },
		{ "library", g->lib.path },
	};
	const struct { const char *key; int64_t v; } numbers[] = {
		{ "max_model_len", g->how.len_max }, { "max_num_seqs", g->how.sequences },
		{ "max_num_batched_tokens", g->how.batch },
		{ "kv_tokens", g->lib.n_ctx(g->context) },
		{ "threads", g->how.threads },
		{ "vocab_size", g->lib.vocab_n_tokens(g->vocab) },
	};

	(void)frame;
	(void)e;
	g->lib.model_desc(g->model, what, sizeof(what));
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_printf(&t->members, ", \"%s\": ", texts[i].key);
		json_quote(&t->members, str_of(texts[i].text), false);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		buf_printf(&t->members, ", \"%s\": %" PRId64, numbers[i].key, numbers[i].v);
	buf_add_text(&t->members, ", \"is_pooling\": false");
	return 0;
}

static int request_read(struct talk *t, struct json_slice r, struct llama_request *out,
			struct err *e)
{
	struct json_slice prompt = member(r, "prompt"), v;
	struct str key;
	struct json_iter it;
	struct json_slice wanted = member(r, "output_len");
	double len = wanted.kind == JSON_NULL ? UINT32_MAX : number(r, "output_len", 0);
	int64_t id;

	t->category = "unsupported";
	if (json_truthy(member(r, "media")) || json_truthy(member(r, "messages")) ||
	    json_truthy(member(r, "lora")))
		return err_set(e, ERR_RUN, "the llama worker takes prompts of text or token ids only");
	t->category = "other";
	if (!(len >= 1 && len <= UINT32_MAX) ||
	    (prompt.kind != JSON_STRING && prompt.kind != JSON_ARRAY))
		return err_set(e, ERR_RUN, "a request without prompt or output_len");
	*out = (struct llama_request){ .output_len = (uint32_t)len };
	if (prompt.kind == JSON_STRING) {
		out->text = text_in(&t->put, prompt.raw);
		return 0;
	}
	/* An id takes at least two bytes, its comma among them. */
	out->token = arena_alloc(&t->put, (prompt.raw.n / 2 + 1) * sizeof(*out->token));
	for (it = json_iter(prompt); json_each(&it, &key, &v) > 0;) {
		if (!json_to_i64(v, &id) || id < 0 ||
		    id >= t->engine.lib.vocab_n_tokens(t->engine.vocab))
			return err_set(e, ERR_RUN, "%.*s is no token id of this model", (int)v.raw.n,
				       v.raw.p);
		out->token[out->tokens++] = (int32_t)id;
	}
	return 0;
}

static int on_put(struct talk *t, struct json_slice frame, struct err *e)
{
	struct json_iter it = json_iter(member(frame, "requests"));
	struct json_slice r;
	struct str key;

	if (truth(frame, "is_first", true)) {
		arena_release(&t->put);
		t->requests = 0;
	}
	while (json_each(&it, &key, &r) > 0) {
		if (t->requests == t->room) {
			t->room = t->room ? 2 * t->room : 1024;
			t->request = mem_grow(t->request, t->room, sizeof(*t->request));
		}
		if (request_read(t, r, &t->request[t->requests], e) < 0)
			return -1;
		t->requests++;
	}
	buf_printf(&t->members, ", \"n\": %zu", t->requests);
	return 0;
}

static void counts_write(struct talk *t, const char *key, const uint32_t *count)
{
	buf_printf(&t->members, ", \"%s\": [", key);
	for (size_t i = 0; i < t->requests; i++)
		buf_printf(&t->members, "%s%u", i ? "," : "", count ? count[i] : 1);
	buf_add_char(&t->members, ']');
}

static int on_generate(struct talk *t, struct json_slice frame, struct err *e)
{
	struct llama_run run = {
		.request = t->request, .requests = t->requests,
		.n = (uint32_t)fmin(fmax(number(frame, "n", 1), 1), NUMBER_MAX),
		.temperature = (float)number(frame, "temperature", 1),
		.top_p = (float)number(frame, "top_p", 1),
		.ignore_eos = truth(frame, "ignore_eos", true),
		.detokenize = truth(frame, "detokenize", true),
		.self = t, .progress = truth(frame, "is_progress", false) ? progress : NULL,
	};
	int rc;

	t->category = "unsupported";
	if (truth(frame, "profile", false) || truth(frame, "prequeue", false))
		return err_set(e, ERR_RUN, "llama.cpp neither profiles nor queues ahead");
	run.prompt_tokens = mem_array(t->requests, sizeof(uint32_t));
	run.output_tokens = mem_array(t->requests, sizeof(uint32_t));
	rc = llama_engine_run(&t->engine, &run, e);
	t->category = t->engine.category;
	if (rc == 0) {
		buf_printf(&t->members, ", \"began_ns\": %" PRId64 ", \"ended_ns\": %" PRId64,
			   run.began_ns, run.ended_ns);
		counts_write(t, "prompt_tokens", run.prompt_tokens);
		counts_write(t, "output_tokens", run.output_tokens);
		counts_write(t, "finished", NULL);
	}
	free(run.prompt_tokens);
	free(run.output_tokens);
	return rc;
}

/* ---- the talk ---- */

static const struct {
	const char *type;
	bool needs_model;
	int (*answer)(struct talk *t, struct json_slice frame, struct err *e);
} questions[] = {
	{ "load", false, on_load }, { "describe", true, on_describe }, { "put", true, on_put },
	{ "generate", true, on_generate },
};

static int answer_make(struct talk *t, struct str type, struct json_slice frame, struct err *e)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		if (!str_is(type, questions[i].type))
			continue;
		t->category = "other";
		if (questions[i].needs_model && !t->is_loaded)
			return err_set(e, ERR_RUN, "no model is loaded");
		return questions[i].answer(t, frame, e);
	}
	t->category = "unsupported";
	return err_set(e, ERR_RUN, "the llama worker cannot do %.*s", (int)type.n, type.p);
}

/* 1: continue; 0: it was the last question; -1: the connection is over. */
static int question_answer(struct talk *t, struct str text)
{
	struct json_scan scan = { .text = text };
	struct json_slice frame, type;
	struct err e = { 0 };
	int64_t id;
	size_t begin;
	bool is_last;

	if (json_next(&scan, &frame, &e) < 0 || !json_to_i64(member(frame, "id"), &id))
		return -1;
	type = member(frame, "type");
	is_last = str_is(type.raw, "shutdown");
	buf_reset(&t->members);
	t->members.limit = WORKER_FRAME_BYTES_MAX;
	if (!is_last && answer_make(t, type.raw, frame, &e) < 0)
		return error_send(t, id, t->category ? t->category : "other", e.text) < 0 ? -1 : 1;
	begin = frame_new(t);
	buf_printf(&t->out, "{\"id\": %" PRId64 ", \"type\": \"ok\"", id);
	buf_add_str(&t->out, buf_str(&t->members));
	buf_add_char(&t->out, '}');
	return frame_send(t, begin) < 0 ? -1 : !is_last;
}

static int hello(struct talk *t)
{
	struct err e = { 0 };
	size_t begin;

	if (llama_library_open(&t->engine.lib, &e) < 0) {
		error_send(t, -1, "missing", e.text);
		return -1;
	}
	begin = frame_new(t);
	buf_printf(&t->out, "{\"type\": \"hello\", \"protocol\": %d, \"engine\": \"llama\", "
		   "\"version\": ", PROTOCOL);
	json_quote(&t->out, str_of(version(t)), false);
	buf_add_text(&t->out, ", \"features\": []}");
	return frame_send(t, begin);
}

int main(void)
{
	static struct talk t;
	const char *fd = getenv("PROFLLM_WORKER_FD");
	int64_t number_of = 3;
	struct str frame;

	if (fd && !str_to_i64(str_of(fd), &number_of))
		number_of = 3;
	t.fd = (int)number_of;
	if (hello(&t) < 0)
		return 1;
	while (frame_receive(&t, &frame) && question_answer(&t, frame) > 0)
		continue;
	llama_engine_release(&t.engine);
	arena_release(&t.put);
	frames_release(&t.in);
	buf_release(&t.out);
	buf_release(&t.members);
	free(t.request);
	return 0;
}
