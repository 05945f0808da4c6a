/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - see worker.h: frames of the socket pair, questions and answers, loading, --account and
 * the profiler's traces.
 */
#include "sim/serving/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "sim/serving/ask.h"
#include "sim/serving/worker_internal.h"

/* All n bytes; the number that came before the stream's end, -1 with errno. */
static ssize_t read_all(int fd, void *to, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t k = read(fd, (char *)to + got, n - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		got += (size_t)k;
	}
	return (ssize_t)got;
}

int wire_read(int fd, struct buf *body, struct err *e)
{
	uint8_t head[4];
	ssize_t got = read_all(fd, head, sizeof(head));
	size_t n;

	if (got == 0)
		return 0;
	if (got < 0)
		return err_set(e, ERR_IO, "reading the socket: %s", strerror(errno));
	if (got < (ssize_t)sizeof(head))
		return err_set(e, ERR_PARSE, "the socket ended inside a frame");
	n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (n > WORKER_FRAME_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "a frame of %zu bytes; WORKER_FRAME_BYTES_MAX is %u", n,
			       WORKER_FRAME_BYTES_MAX);
	buf_reset(body);
	if (buf_reserve(body, n) < 0)
		return err_set(e, ERR_LIMIT, "a frame of %zu bytes is too long", n);
	got = read_all(fd, body->data, n);
	if (got < 0)
		return err_set(e, ERR_IO, "reading the socket: %s", strerror(errno));
	if ((size_t)got < n)
		return err_set(e, ERR_PARSE, "the socket ended inside a frame");
	body->len = n;
	body->data[n] = '\0';
	return 1;
}

static int send_all(int fd, struct str bytes)
{
	while (bytes.n) {
		ssize_t k = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		bytes = (struct str){ bytes.p + k, bytes.n - (size_t)k };
	}
	return 0;
}

/* Sends bytes that are not a frame. */
static void wire_noise(int fd, struct str bytes)
{
	send_all(fd, bytes);
}

int wire_write(int fd, struct str body, struct err *e)
{
	char head[4] = { (char)(body.n >> 24), (char)(body.n >> 16), (char)(body.n >> 8),
			 (char)body.n };

	if (body.n > WORKER_FRAME_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "an answer of %zu bytes; WORKER_FRAME_BYTES_MAX is %u",
			       body.n, WORKER_FRAME_BYTES_MAX);
	if (send_all(fd, (struct str){ head, sizeof(head) }) < 0 || send_all(fd, body) < 0)
		return err_set(e, ERR_IO, "writing to the socket: %s", strerror(errno));
	return 0;
}

/* ---- See worker_internal.h: --account, and the profiler's traces ---- */

#define TRACE_STEPS_MAX 100000

/* One line in one write, so that workers that share the file do not mix theirs. */
static void line_add(const struct worker_talk *t, const struct buf *line)
{
	int fd = open(t->model.account, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd < 0)
		return;
	file_write_all(fd, buf_str(line));
	close(fd);
}

static void account_load(const struct worker_talk *t, int64_t began_ns, int64_t ended_ns)
{
	const struct sim_model *m = &t->model;
	struct buf line = { 0 };
	double modelled = 0;

	if (!t->model.account)
		return;
	for (size_t i = 0; i < m->phases; i++)
		modelled += m->phase[i].modelled_s;
	buf_add_text(&line, "{\"kind\": \"load\", \"model\": ");
	json_quote(&line, str_of(m->opts->model), false);
	buf_printf(&line, ", \"is_compiled\": %s, \"modelled_s\": %.9f, \"wall_s\": %.9f, "
		   "\"phases\": {", m->is_compiled ? "true" : "false", modelled,
		   (double)(ended_ns - began_ns) * 1e-9);
	for (size_t i = 0; i < m->phases; i++)
		buf_printf(&line, "%s\"%s\": {\"modelled_s\": %.9f, \"wall_s\": %.9f}",
			   i ? ", " : "", m->phase[i].name, m->phase[i].modelled_s, m->phase[i].s);
	buf_add_text(&line, "}}\n");
	line_add(t, &line);
	buf_release(&line);
}

void account_run(const struct worker_talk *t, const struct worker_outcome *o)
{
	struct buf line = { 0 };

	if (!t->model.account)
		return;
	buf_printf(&line, "{\"kind\": \"%s\", \"requests\": %zu, \"prompt_tokens\": %" PRIu64
		   ", \"cached_tokens\": %" PRIu64 ", \"output_tokens\": %" PRIu64 ", \"lora\": %"
		   PRIu64 ", \"media\": %" PRIu64, o->question, o->n, o->prompt_tokens,
		   o->known_tokens, o->output_tokens, o->lora, o->media);
	buf_printf(&line, ", \"steps\": %" PRIu64 ", \"preempted\": %" PRIu64
		   ", \"frontend_s\": %.9f, \"encoder_s\": %.9f, \"steps_s\": %.9f, "
		   "\"modelled_s\": %.9f, \"wall_s\": %.9f}\n", o->sum.steps, o->sum.preempted,
		   o->frontend_s, (double)o->sum.encode_ns * 1e-9, (double)o->sum.steps_ns * 1e-9,
		   (double)o->modelled_ns * 1e-9, (double)(o->ended_ns - o->began_ns) * 1e-9);
	line_add(t, &line);
	buf_release(&line);
}

/* ---- the profiler ---- */

void profile_step(struct worker_talk *t, int64_t end_ns)
{
	if (t->steps == TRACE_STEPS_MAX)
		return;
	if (t->steps == t->steps_cap) {
		t->steps_cap = t->steps_cap ? t->steps_cap * 2 : 256;
		t->step = mem_grow(t->step, t->steps_cap, sizeof(*t->step));
	}
	t->step[t->steps++] = t->profile_base_ns + end_ns;
}

int profile_write(struct worker_talk *t, struct err *e)
{
	struct buf out = { 0 };
	char name[96], *path;
	int rc;

	buf_add_text(&out, "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [");
	for (size_t i = 0; i < t->steps; i++) {
		int64_t begin = i ? t->step[i - 1] : t->step[i];

		buf_printf(&out, "%s\n{\"ph\": \"X\", \"cat\": \"sim\", \"name\": \"step\", \"pid\": %d, "
			   "\"tid\": 1, \"ts\": %.3f, \"dur\": %.3f}", i ? "," : "", getpid(),
			   (double)begin * 1e-3, (double)(t->step[i] - begin) * 1e-3);
	}
	buf_add_text(&out, "\n]}\n");
	snprintf(name, sizeof(name), "sim_%d.%" PRId64 ".pt.trace.json", getpid(), clock_real_ns());
	path = file_join(t->model.profile_dir, name);
	rc = file_mkdirs(t->model.profile_dir, e);
	if (rc == 0)
		rc = file_write_atomic(path, buf_str(&out), e);
	free(path);
	buf_release(&out);
	return rc;
}

/* ---- See serving/worker.h: the talk, and loading ---- */

#define ARGS_MAX 4096 /* the engine's arguments */

/* ---- frames ---- */

static int hello_send(struct worker_talk *t, struct err *e)
{
	struct json_writer w = json_writer(&t->out);

	static const char *const features[] = {
		"chat", "beam", "encode", "async", "prequeue", "profile", "lora", "render",
		"mm_stats", "priority", "sampling",
	};

	buf_reset(&t->out);
	json_begin_object(&w);
	json_member_text(&w, "type", "hello");
	json_member_int(&w, "protocol", 1);
	json_member_text(&w, "engine", "sim");
	json_member_text(&w, "version", t->host->version);
	json_member_array(&w, "features");
	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
		json_put_text(&w, features[i]);
	json_end_array(&w);
	json_end_object(&w);
	return wire_write(t->fd, buf_str(&t->out), e);
}

static int error_send(struct worker_talk *t, int64_t id, const char *category, const char *text,
		      struct err *e)
{
	buf_reset(&t->out);
	if (id >= 0)
		buf_printf(&t->out, "{\"id\": %" PRId64 ", ", id);
	else
		buf_add_char(&t->out, '{');
	buf_printf(&t->out, "\"type\": \"error\", \"category\": \"%s\", \"text\": ", category);
	json_quote(&t->out, str_of(text), false);
	buf_add_char(&t->out, '}');
	return wire_write(t->fd, buf_str(&t->out), e);
}

int talk_progress(struct worker_talk *t, uint64_t done, uint64_t total)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "{\"type\": \"progress\", \"done\": %" PRIu64
			 ", \"total\": %" PRIu64 "}", done, total);

	assert(done <= total);
	return wire_write(t->fd, (struct str){ text, (size_t)n }, NULL);
}

static const char *category_of(const struct worker_talk *t, const struct err *e)
{
	if (t->category)
		return t->category;
	return e->code == ERR_USAGE ? "flag" : "other";
}

/* ---- loading ---- */

/* The texts of a list, ended by NULL; the caller frees it and its texts. */
static char **args_read(struct json_slice frame)
{
	char **args = mem_array(ARGS_MAX + 1, sizeof(*args));
	struct json_slice list, v;
	struct json_iter it;
	struct str key;
	size_t n = 0;

	if (!json_member(frame, "args", &list) || list.kind != JSON_ARRAY)
		return args;
	it = json_iter(list);
	while (n < ARGS_MAX && json_each(&it, &key, &v) > 0)
		if (v.kind == JSON_STRING) {
			struct buf text = { 0 };

			json_unescape(&text, v.raw);
			args[n++] = buf_take(&text);
		}
	return args;
}

static void args_free(char **args)
{
	for (size_t i = 0; args[i]; i++)
		free(args[i]);
	free(args);
}

static void engine_drop(struct worker_talk *t)
{
	batch_engine_release(&t->engine);
	encoder_release(&t->encoder);
	tokenizer_free(t->tokenizer);
	t->tokenizer = NULL;
	t->is_loaded = false;
}

/* Checks the arguments before the clock starts. */
static int engine_plan(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	const struct sim_opts *o;
	char **args = args_read(frame);
	int rc = t->host->plan(t->host->self, args, &t->model, e);

	args_free(args);
	if (rc < 0) {
		t->category = e->code == ERR_RUN ? "memory" : NULL;
		return -1;
	}
	o = t->model.opts;
	if (mishap_read(&t->mishap, t->model.mishap, e) < 0)
		return -1;
	if (!t->host->mishap && mishap_strikes(&t->mishap, STR("hello")))
		return err_set(e, ERR_USAGE, "--worker-fault %s: a hello fails on the worker's own "
			       "command line alone: --worker-cmd 'profllm sim --engine-worker "
			       "--worker-fault ...'", t->model.mishap);
	if (o->output_len && dist_parse(&t->output_len, "--output-len", o->output_len, e) < 0)
		return -1;
	t->tokenizer = tokenizer_load(o->tokenizer, NULL, e);
	if (t->tokenizer)
		return 0;
	t->category = "model";
	return -1;
}

static void phases_write(struct worker_talk *t)
{
	const struct sim_model *m = &t->model;

	if (!isnan(m->compilation_s))
		buf_printf(&t->members, ", \"compilation_s\": %.9f", m->compilation_s);
	if (!isnan(m->encoder_compilation_s))
		buf_printf(&t->members, ", \"encoder_compilation_s\": %.9f",
			   m->encoder_compilation_s);
	buf_add_text(&t->members, ", \"phases\": [");
	for (size_t i = 0; i < m->phases; i++)
		buf_printf(&t->members, "%s{\"name\": \"%s\", \"s\": %.9f}", i ? ", " : "",
			   m->phase[i].name, m->phase[i].s);
	buf_add_char(&t->members, ']');
}

static int on_load(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	struct json_slice wants;
	struct json_slice wish;
	int64_t began, ended;

	t->has_media_stats = json_member(frame, "mm_stats", &wish) && wish.kind == JSON_TRUE;
	engine_drop(t);
	if (engine_plan(t, frame, e) < 0)
		return -1;
	if (json_member(frame, "mm_stats", &wants) && wants.kind == JSON_TRUE)
		t->has_media_stats = true;
	began = clock_mono_ns();
	if (t->host->start(t->host->self, &t->model, e) < 0) {
		t->category = "memory";
		return -1;
	}
	ended = clock_mono_ns();
	batch_engine_init(&t->engine, t->model.opts);
	t->encoder.is_uncached = t->model.is_media_uncached;
	pcg64_seed(&t->rng, t->model.opts->seed);
	t->is_loaded = true;
	if (t->model.opts->die_after_ns)
		t->died_ns = ended + t->model.opts->die_after_ns;
	buf_printf(&t->members, ", \"began_ns\": %" PRId64 ", \"ended_ns\": %" PRId64, began, ended);
	phases_write(t);
	account_load(t, began, ended);
	return 0;
}

static int on_describe(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	const struct sim_model *m = &t->model;
	const struct sim_opts *o = m->opts;
	struct json_writer w = json_writer(&t->members);
	const struct { const char *key, *text; } texts[] = {
		{ "engine", "sim" }, { "version", t->host->version }, { "device", m->device },
		{ "profile_to", m->profile_to }, { "profile_dir", m->profile_dir },
		{ "model", o->model }, { "tokenizer", o->tokenizer }, { "dtype", m->dtype },
	};
	const struct { const char *key; int64_t v; } numbers[] = {
		{ "max_model_len", o->max_model_len }, { "max_num_seqs", o->max_num_seqs },
		{ "max_num_batched_tokens", o->max_num_batched_tokens },
		{ "kv_cache_tokens", o->kv_cache_tokens }, { "engines", o->engines },
		{ "vocab_size", (int64_t)tokenizer_vocab_size(t->tokenizer) },
	};

	(void)frame;
	(void)e;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_printf(&t->members, ", \"%s\": ", texts[i].key);
		json_put_text(&w, texts[i].text);
		w = json_writer(&t->members);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		buf_printf(&t->members, ", \"%s\": %" PRId64, numbers[i].key, numbers[i].v);
	buf_printf(&t->members, ", \"is_pooling\": %s, \"prefix_caching\": %s",
		   m->is_pooling ? "true" : "false", o->is_prefix_cached ? "true" : "false");
	return 0;
}

/* ---- small questions ---- */

static int on_render(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	struct json_slice messages = { 0 }, tools;
	struct buf text = { 0 };
	int rc;

	json_member(frame, "messages", &messages);
	rc = ask_messages(&text, "messages", messages, e);
	if (rc == 0) {
		buf_add_text(&t->members, ", \"text\": ");
		if (json_member(frame, "tools", &tools) && tools.kind == JSON_ARRAY) {
			struct buf all = { 0 };

			buf_printf(&all, "<|tools|>\n%.*s\n%s", (int)tools.raw.n, tools.raw.p,
				   text.data);
			json_quote(&t->members, buf_str(&all), false);
			buf_release(&all);
		} else {
			json_quote(&t->members, buf_str(&text), false);
		}
	} else {
		t->category = "other";
	}
	buf_release(&text);
	return rc;
}

static int on_put(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	if (requests_put(&t->requests, frame, e) < 0)
		return -1;
	buf_printf(&t->members, ", \"n\": %zu", t->requests.n);
	return 0;
}

static int on_profile(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	struct json_slice type = { 0 };

	json_member(frame, "type", &type);
	if (!*t->model.profile_to)
		return err_set(e, ERR_RUN, "Profiling is not enabled. Please set --profiler-config.");
	if (str_is(type.raw, "profile_start")) {
		t->is_profiling = true;
		t->steps = 0;
		return 0;
	}
	t->is_profiling = false;
	return profile_write(t, e);
}

static int on_mm_stats(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	(void)frame;
	(void)e;
	buf_add_text(&t->members, ", \"requests\": {");
	for (size_t i = 0; i < t->stats && t->has_media_stats; i++) {
		const struct media_times *m = &t->stat[i].times;

		buf_printf(&t->members, "%s\"%" PRIu64 "\": {\"get_mm_hashes_secs\": %.9f, "
			   "\"get_cache_missing_items_secs\": %.9f, \"apply_hf_processor_secs\": %.9f, "
			   "\"merge_mm_kwargs_secs\": %.9f, \"apply_prompt_updates_secs\": %.9f, "
			   "\"preprocessor_total_secs\": %.9f, \"encoder_forward_secs\": %.9f, "
			   "\"num_encoder_calls\": %u}", i ? ", " : "", t->stat[i].id, m->hash,
			   m->missing, m->processor, m->merge, m->updates, m->total, m->forward,
			   m->calls);
	}
	buf_add_char(&t->members, '}');
	t->stats = 0;
	return 0;
}

static int on_shutdown(struct worker_talk *t, struct json_slice frame, struct err *e)
{
	(void)t;
	(void)frame;
	(void)e;
	return 0;
}

/* ---- questions ---- */

static const struct {
	const char *type;
	bool needs_engine;
	int (*answer)(struct worker_talk *t, struct json_slice frame,
		      struct err *e); /* NULL: a batch */
} questions[] = {
	{ "load", false, on_load }, { "describe", true, on_describe },
	{ "render", false, on_render }, { "put", true, on_put }, { "generate", true, NULL },
	{ "chat", true, NULL }, { "beam", true, NULL }, { "encode", true, NULL },
	{ "profile_start", true, on_profile }, { "profile_stop", true, on_profile },
	{ "mm_stats", true, on_mm_stats }, { "shutdown", false, on_shutdown },
};

static int answer_make(struct worker_talk *t, struct str type, struct json_slice frame,
		       struct err *e)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		if (!str_is(type, questions[i].type))
			continue;
		if (questions[i].needs_engine && !t->is_loaded)
			return err_set(e, ERR_RUN, "%s before load", questions[i].type);
		if (questions[i].answer)
			return questions[i].answer(t, frame, e);
		return run_question(t, type, frame, e);
	}
	t->category = "unsupported";
	return err_set(e, ERR_RUN, "the simulated engine has no question \"%.*s\"", (int)type.n,
		       type.p);
}

static _Noreturn void stay_for_ever(void)
{
	while (true)
		pause();
}

/* Goes wrong instead of answering. 0: it only spoils the answer. */
static int mishap_before(struct worker_talk *t, int64_t id, struct err *e)
{
	static const char oversize[] = "\xff\xff\xff\xff", noise[] = "Traceback (most recent call "
		"last):\n  File \"worker\", line 1\n";
	char how[32];

	snprintf(how, sizeof(how), "%.*s", (int)t->mishap.how.n, t->mishap.how.p);
	switch (t->mishap.kind) {
	case MISHAP_CLOSE:
		shutdown(t->fd, SHUT_RDWR);
		stay_for_ever();
	case MISHAP_GARBAGE: case MISHAP_OVERSIZE:
		if (t->mishap.kind == MISHAP_GARBAGE)
			wire_noise(t->fd, (struct str){ noise, sizeof(noise) - 1 });
		else
			wire_noise(t->fd, (struct str){ oversize, 4 });
		stay_for_ever();
	case MISHAP_HANG:
		stay_for_ever();
	case MISHAP_CRASH:
		t->host->crash(t->host->self, how);
		return 1;
	case MISHAP_NOT_JSON:
		return wire_write(t->fd, STR("{\"id\": 1, \"type\": ok"), e) < 0 ? -1 : 1;
	case MISHAP_ANSWER:
		return error_send(t, id, how, "this worker fails on purpose", e) < 0 ? -1 : 1;
	default:
		return 0;
	}
}

static int answer_send(struct worker_talk *t, int64_t id, bool is_struck, struct err *e)
{
	static const char cut[] = { 0, 0, 1, 0, '{' };

	if (is_struck && t->mishap.kind == MISHAP_CUT) {
		wire_noise(t->fd, (struct str){ cut, sizeof(cut) });
		return err_set(e, ERR_RUN, "the answer is cut off, as --worker-fault wants it");
	}
	buf_reset(&t->out);
	buf_printf(&t->out, "{\"id\": %" PRId64 ", \"type\": \"ok\"",
		   is_struck && t->mishap.kind == MISHAP_WRONG_ID ? id + 1 : id);
	buf_add_str(&t->out, buf_str(&t->members));
	buf_add_char(&t->out, '}');
	if (t->out.is_over)
		return err_set(e, ERR_LIMIT, "the answer is longer than BUF_BYTES_MAX");
	return wire_write(t->fd, buf_str(&t->out), e);
}

/* Serves one question. 1: continue, 0: it was the last one, -1: the exchange broke. */
static int question_serve(struct worker_talk *t, struct err *e)
{
	struct json_scan scan = { .text = buf_str(&t->in) };
	struct json_slice frame, type, number;
	struct err why = { 0 };
	int64_t id;
	bool is_struck;
	int rc;

	if (json_next(&scan, &frame, e) < 0 || !json_at_end(&scan))
		return e->code ? -1 : err_set(e, ERR_PARSE, "a frame with more than one value");
	if (!json_member(frame, "type", &type) || type.kind != JSON_STRING ||
	    !json_member(frame, "id", &number) || !json_to_i64(number, &id))
		return err_set(e, ERR_PARSE, "a question without type or id");
	is_struck = mishap_strikes(&t->mishap, type.raw);
	rc = is_struck ? mishap_before(t, id, e) : 0;
	if (rc)
		return rc;
	buf_reset(&t->members);
	t->category = NULL;
	rc = answer_make(t, type.raw, frame, &why);
	/* A load has the options that may select the fault. */
	if (rc == 0 && !is_struck && mishap_strikes(&t->mishap, type.raw)) {
		is_struck = true;
		if ((rc = mishap_before(t, id, e)))
			return rc;
	}
	if (t->is_dead)
		return err_set(e, ERR_RUN, "the engine died, as --die-after wants it");
	if (rc < 0)
		rc = error_send(t, id, category_of(t, &why), why.text, e);
	else
		rc = answer_send(t, id, is_struck, e);
	return rc < 0 ? -1 : !str_is(type.raw, "shutdown");
}

static void talk_release(struct worker_talk *t)
{
	engine_drop(t);
	requests_release(&t->requests);
	buf_release(&t->in);
	buf_release(&t->out);
	buf_release(&t->members);
	free(t->stat);
	free(t->step);
}

int sim_worker_serve(const struct sim_worker_host *host, int fd, struct err *e)
{
	struct worker_talk t = { .host = host, .fd = fd };
	int rc = mishap_read(&t.mishap, host->mishap, e);

	if (rc == 0 && mishap_strikes(&t.mishap, STR("hello"))) {
		rc = mishap_before(&t, -1, e);
		if (rc > 0)
			return err_set(e, ERR_RUN, "no hello, as --worker-fault wants it");
	}
	if (rc == 0)
		rc = hello_send(&t, e);
	while (rc >= 0) {
		rc = wire_read(fd, &t.in, e);
		if (rc > 0)
			rc = question_serve(&t, e);
		if (rc == 0)
			break;
	}
	talk_release(&t);
	return rc;
}
