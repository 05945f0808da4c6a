/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_talk.c - conversations with the simulated worker over a socket: what each question
 * is answered in modelled time, what is refused, what goes wrong on purpose, and the account.
 *
 * The arguments of a load are NAME or NAME=VALUE, which plan() below turns into a model.
 *
 * threads: yes
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/net/loop.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "sim/serving/serving.h"
#include "sim/serving/worker.h"
#define ANSWERS_MAX 200
#include "answers.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define FRAMES_MAX 10

struct host {
	struct sim_opts opts;
	struct sim_worker_host host;
	int fd, rc;
	char account[128], profiles[128], crashed[32];
	char kept[3][32]; /* texts of the latest load */
	struct err e;
};

static const char *value_of(const char *arg, const char *name)
{
	size_t n = strlen(name);

	return strncmp(arg, name, n) == 0 && (!arg[n] || arg[n] == '=') ? arg + n + !!arg[n] : NULL;
}

static const char *keep(char room[static 32], const char *text)
{
	snprintf(room, 32, "%s", text);
	return room;
}

static int plan(void *self, char *const *args, struct sim_model *out, struct err *e)
{
	struct host *h = self;
	const char *v;

	h->opts = sim_defaults();
	h->opts.model = "m";
	h->opts.tokenizer = "sim";
	h->opts.is_prefix_cached = false;
	h->opts.cost = (struct engine_cost){ .prefill_base_us = 100, .prefill_us_per_token = 10,
					     .decode_base_us = 100, .decode_us_per_seq = 5 };
	*out = (struct sim_model){ .opts = &h->opts, .device = "cpu", .dtype = "auto", .profile_to = "",
				   .profile_dir = h->profiles, .compilation_s = NAN,
				   .encoder_compilation_s = NAN };
	for (; *args; args++) {
		if (value_of(*args, "refused"))
			return err_set(e, ERR_USAGE, "--refused is not an argument");
		if (value_of(*args, "large"))
			return err_set(e, ERR_RUN, "it does not fit");
		out->is_pooling |= !!value_of(*args, "pooling");
		out->is_in_process |= !!value_of(*args, "in-process");
		out->is_media_uncached |= !!value_of(*args, "uncached");
		h->opts.is_prefix_cached |= !!value_of(*args, "prefixes");
		h->opts.is_by_priority |= !!value_of(*args, "priority");
		if (value_of(*args, "account"))
			out->account = h->account;
		if (value_of(*args, "profile"))
			out->profile_to = "torch";
		if ((v = value_of(*args, "mishap")))
			out->mishap = keep(h->kept[0], v);
		if ((v = value_of(*args, "output-len")))
			h->opts.output_len = keep(h->kept[1], v);
		if ((v = value_of(*args, "context")))
			h->opts.max_model_len = (int)strtol(v, NULL, 10);
		if ((v = value_of(*args, "tokenizer")))
			h->opts.tokenizer = keep(h->kept[2], v);
		if ((v = value_of(*args, "die-after")))
			h->opts.die_after_requests = (int)strtol(v, NULL, 10);
		if (value_of(*args, "compiled")) {
			out->is_compiled = true;
			out->compilation_s = 1.5;
			out->encoder_compilation_s = 0.25;
		}
		if (value_of(*args, "phases")) {
			out->phases = 2;
			out->phase[0] = (struct sim_phase){ .name = "weights", .modelled_s = 1 };
			out->phase[1] = (struct sim_phase){ .name = "graphs", .modelled_s = 0.5 };
		}
	}
	return 0;
}

static int start(void *self, struct sim_model *m, struct err *e)
{
	(void)self;
	if (m->opts->max_model_len == 7)
		return err_set(e, ERR_RUN, "no memory at the start");
	for (size_t i = 0; i < m->phases; i++)
		m->phase[i].s = m->phase[i].modelled_s * 2;
	return 0;
}

static void crash(void *self, const char *how)
{
	struct host *h = self;

	snprintf(h->crashed, sizeof(h->crashed), "%s", how);
	shutdown(h->fd, SHUT_RDWR);
}

static void *serve(void *self)
{
	struct host *h = self;

	h->rc = sim_worker_serve(&h->host, h->fd, &h->e);
	shutdown(h->fd, SHUT_RDWR);
	return NULL;
}

/* ---- this side ---- */

static void put_frame(int fd, const char *text)
{
	size_t n = strlen(text);
	char head[4] = { (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n };

	if (send(fd, head, 4, MSG_NOSIGNAL) == 4)
		(void)!send(fd, text, n, MSG_NOSIGNAL);
}

/* The next frame, or what comes instead of one; false: nothing more. */
static bool take_frame(int fd, struct buf *out)
{
	unsigned char head[4];
	ssize_t got = recv(fd, head, 4, MSG_WAITALL);
	size_t n;
	char piece[4096];

	if (got <= 0)
		return false;
	n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (got < 4 || n > (1u << 20)) {
		for (ssize_t i = 0; i < got; i++)
			buf_printf(out, "%02x", head[i]);
		return true;
	}
	while (n && (got = recv(fd, piece, n < sizeof(piece) ? n : sizeof(piece), 0)) > 0) {
		buf_add(out, piece, (size_t)got);
		n -= (size_t)got;
	}
	if (n)
		buf_printf(out, " (%zu bytes are missing)", n);
	return true;
}

static void mask_key(struct buf *b, const char *key)
{
	struct buf out = { 0 };
	const char *from = b->data, *at;

	while ((at = strstr(from, key))) {
		at += strlen(key);
		buf_add(&out, from, (size_t)(at - from));
		buf_add_char(&out, '#');
		from = at + strcspn(at, ",}");
	}
	buf_add_text(&out, from);
	buf_release(b);
	*b = out;
}

/* Moments of this machine's clock become #. */
static void mask_moments(struct buf *b)
{
	static const char *const key[] = { "\"began_ns\": ", "\"ended_ns\": ", "\"wall_s\": " };

	for (size_t i = 0; i < COUNT(key); i++)
		mask_key(b, key[i]);
}

#define MODELLED_S 10

/* What took place within some seconds took no longer, but for a few that are modelled. */
static void check_walls(const struct buf *b, double seconds)
{
	static const char key[] = "\"wall_s\": ";

	for (const char *at = b->data; at && (at = strstr(at, key));) {
		double wall_s = strtod(at += sizeof(key) - 1, NULL);

		if (!(wall_s >= 0 && wall_s <= seconds + MODELLED_S))
			fail_msg("%g s within %g s: %s", wall_s, seconds, b->data);
	}
}

#define LOAD(args) "{\"id\": 1, \"type\": \"load\", \"args\": [" args "], \"mm_stats\": true}"
#define PUT(requests) "{\"id\": 2, \"type\": \"put\", \"is_first\": true, \"requests\": [" requests "]}"
#define TEXT "{\"prompt\": \"one two three\", \"output_len\": 4}"
#define IDS "{\"prompt\": [1, 2, 3, 4, 5, 6, 7, 8], \"output_len\": 3}"
#define CHAT "{\"messages\": [{\"role\": \"user\", \"content\": \"hello there\"}], \"output_len\": 2}"
#define ASK(what, more) "{\"id\": 3, \"type\": \"" what "\"" more "}"

static const struct {
	const char *title, *frame[FRAMES_MAX];
	const char *mishap; /* before the load */
	bool stays;         /* the worker never ends by itself */
} talk[] = {
	{ "before a load", { ASK("describe", ""), ASK("put", ""), ASK("generate", ""), ASK("profile_start", ""),
			     ASK("odd", ""), ASK("shutdown", ""), ASK("describe", "") }, NULL, false },
	{ "loads", { LOAD("\"refused\""), LOAD("\"large\""), LOAD("\"context=7\""), LOAD("\"tokenizer=/no/such\""),
		     LOAD("\"mishap=odd\""), LOAD("\"output-len=odd\""), LOAD("7, \"compiled\", \"phases\""),
		     ASK("describe", "") }, NULL, false },
	{ "no questions", { "{\"type\": \"load\"}" }, NULL, false },
	{ "an id of text", { "{\"type\": \"load\", \"id\": \"x\"}" }, NULL, false },
	{ "two values", { "{\"type\": \"load\", \"id\": 1} {}" }, NULL, false },
	{ "no JSON", { "{\"type\": " }, NULL, false },
	{ "texts and ids", { LOAD(""), PUT(TEXT ", " IDS), ASK("generate", ""),
			     ASK("generate", ", \"detokenize\": true"), ASK("generate", ", \"prequeue\": true"),
			     ASK("generate", ", \"n\": 3"), ASK("generate", ", \"batch_max\": 1"),
			     ASK("generate", ", \"n\": 0"), ASK("generate", ", \"batch_max\": \"x\"") }, NULL, false },
	{ "more requests", { LOAD("\"in-process\""), PUT(TEXT), "{\"id\": 2, \"type\": \"put\", \"requests\": [" IDS
			     "]}", ASK("generate", ", \"n\": 100001"), ASK("generate", ""),
			     "{\"id\": 2, \"type\": \"put\", \"requests\": [7]}" }, NULL, false },
	{ "a chat", { LOAD(""), PUT(CHAT), ASK("chat", ""), ASK("render", ", \"messages\": [{\"role\": \"user\", "
		      "\"content\": \"hi\"}]"), ASK("render", ", \"messages\": [{\"role\": \"user\", \"content\": "
		      "\"hi\"}], \"tools\": [{\"name\": \"f\"}]"), ASK("render", ", \"messages\": 7"),
		      ASK("render", "") }, NULL, false },
	{ "beams", { LOAD(""), PUT(TEXT ", " IDS), ASK("beam", ", \"n\": 2"), ASK("beam", ", \"n\": 1"),
		     ASK("beam", ", \"n\": 4, \"batch_max\": 2") }, NULL, false },
	{ "beams with prefixes", { LOAD("\"prefixes\""), PUT(IDS ", " IDS), ASK("beam", ", \"n\": 2") }, NULL,
	  false },
	{ "embeddings", { LOAD("\"pooling\""), PUT(IDS), ASK("encode", ""), ASK("generate", ""),
			  ASK("describe", "") }, NULL, false },
	{ "a model that embeds nothing", { LOAD(""), PUT(IDS), ASK("encode", "") }, NULL, false },
	{ "a small context", { LOAD("\"context=10\""), PUT(IDS), ASK("generate", ""),
			       PUT("{\"prompt\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], \"output_len\": 1}"),
			       ASK("generate", ""), PUT("{\"prompt\": [1, 2, 3], \"output_len\": 20}"),
			       ASK("generate", ""), PUT("{\"prompt\": [1, 2, 3], \"output_len\": 0}"),
			       ASK("generate", "") }, NULL, false },
	{ "answers that end by themselves", { LOAD("\"output-len=5\""), PUT(IDS), ASK("generate", ""),
			ASK("generate", ", \"ignore_eos\": true"), PUT("{\"prompt\": [1, 2, 3]}"),
			ASK("generate", ", \"ignore_eos\": true"), LOAD("\"output-len=2\""), PUT(IDS),
			ASK("generate", "") }, NULL, false },
	{ "priorities", { LOAD(""), PUT("{\"prompt\": [1, 2], \"output_len\": 2, \"priority\": 3}"),
			  ASK("generate", ""), LOAD("\"priority\""),
			  PUT("{\"prompt\": [1, 2], \"output_len\": 2, \"priority\": 3}, " IDS),
			  ASK("generate", ", \"prequeue\": true, \"batch_max\": 1") }, NULL, false },
	{ "statistics of media", { LOAD(""), PUT("{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
			"\"text\", \"text\": \"look\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
			"\"data:image/png;base64,AAAA\"}}]}], \"output_len\": 2}"), ASK("chat", ""),
			ASK("mm_stats", ""), ASK("mm_stats", ""), LOAD("\"uncached\""), ASK("mm_stats", "") }, NULL,
	  false },
	{ "no profiler", { LOAD(""), PUT(IDS), ASK("profile_start", ""), ASK("generate", ", \"profile\": true") },
	  NULL, false },
	{ "an account", { LOAD("\"account\", \"phases\""), PUT(TEXT ", " IDS), ASK("generate", ""),
			  ASK("beam", ", \"n\": 2") }, NULL, false },
	{ "a death", { LOAD("\"die-after=1\""), PUT(IDS ", " IDS), ASK("generate", ""), ASK("generate", "") }, NULL,
	  false },
	{ "a wrong id", { LOAD("\"mishap=wrong-id@put\""), PUT(IDS), ASK("generate", "") }, NULL, false },
	{ "not JSON", { LOAD("\"mishap=not-json\""), PUT(IDS), ASK("generate", "") }, NULL, false },
	{ "cut", { LOAD("\"mishap=cut@put\""), PUT(IDS), ASK("generate", "") }, NULL, false },
	{ "short", { LOAD("\"mishap=short\""), PUT(IDS ", " IDS), ASK("generate", "") }, NULL, false },
	{ "an answer", { LOAD("\"mishap=memory\""), PUT(IDS), ASK("generate", "") }, NULL, false },
	{ "an answer to the load", { LOAD("\"mishap=flag@load\""), LOAD("") }, NULL, false },
	{ "a crash", { LOAD("\"mishap=exit=3\""), PUT(IDS), ASK("generate", "") }, NULL, false },
	{ "garbage", { LOAD("\"mishap=garbage\""), PUT(IDS), ASK("generate", "") }, NULL, true },
	{ "oversize", { LOAD("\"mishap=oversize@put\""), PUT(IDS) }, NULL, true },
	{ "closed", { LOAD("\"mishap=close@put\""), PUT(IDS) }, NULL, true },
	{ "a hello of the command line alone", { LOAD("\"mishap=garbage@hello\"") }, NULL, false },
	{ "no hello", { LOAD("") }, "exit=3@hello", false },
	{ "garbage for a hello", { LOAD("") }, "garbage@hello", true },
	{ "a wrong word", { LOAD("") }, "odd", false },
};

static void put_file(struct buf *out, const char *path)
{
	struct buf text = { 0 };

	if (file_read(path, 1 << 20, &text, NULL) == 0)
		buf_printf(out, "account:\n%s", text.data);
	buf_release(&text);
}

static void converse(size_t i)
{
	struct host *h = mem_alloc(sizeof(*h)); /* one that stays uses it to the end */
	int64_t began_ns = clock_mono_ns();
	struct buf out = { 0 };
	pthread_t thread;
	int fd[2];

	snprintf(h->account, sizeof(h->account), "%s/account-%zu", dir, i);
	snprintf(h->profiles, sizeof(h->profiles), "%s/profiles", dir);
	h->host = (struct sim_worker_host){ .self = h, .version = "1.0", .mishap = talk[i].mishap,
					    .plan = plan, .start = start, .crash = crash };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	h->fd = fd[1];
	assert_int_equal(pthread_create(&thread, NULL, serve, h), 0);
	buf_printf(&out, "%s\n", talk[i].title);
	if (take_frame(fd[0], &out))
		buf_add_char(&out, '\n');
	for (size_t k = 0; k < FRAMES_MAX && talk[i].frame[k]; k++) {
		put_frame(fd[0], talk[i].frame[k]);
		if (!take_frame(fd[0], &out)) {
			buf_printf(&out, "the end, at question %zu\n", k + 1);
			break;
		}
		buf_add_char(&out, '\n');
		if (talk[i].stays && k == (talk[i].mishap ? 0 : 2))
			break;
	}
	shutdown(fd[0], SHUT_RDWR);
	if (talk[i].stays) {
		pthread_detach(thread);
	} else {
		pthread_join(thread, NULL);
		buf_printf(&out, "%d %d %s\n%s", h->rc, (int)h->e.code, h->e.text, h->crashed);
		put_file(&out, h->account);
		free(h);
		close(fd[1]);
	}
	close(fd[0]);
	check_walls(&out, (double)(clock_mono_ns() - began_ns) * 1e-9);
	mask_moments(&out);
	answers_release(&out);
}

static void conversations(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(talk); i++)
		converse(i);
}

/* Progress is what has ended so far, in modelled time. */
static void progress(void **state)
{
	struct host h = { .host = { .self = &h, .version = "1.0", .plan = plan, .start = start,
				    .crash = crash } };
	struct buf frame = { 0 }, seen = { 0 };
	pthread_t thread;
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	h.fd = fd[1];
	assert_int_equal(pthread_create(&thread, NULL, serve, &h), 0);
	assert_true(take_frame(fd[0], &frame));
	put_frame(fd[0], LOAD(""));
	put_frame(fd[0], PUT("{\"prompt\": [1, 2], \"output_len\": 3000}, {\"prompt\": [3], \"output_len\": "
			     "4000}"));
	put_frame(fd[0], ASK("generate", ", \"is_progress\": true, \"batch_max\": 1"));
	for (int ok = 0; ok < 3;) {
		buf_reset(&frame);
		assert_true(take_frame(fd[0], &frame));
		ok += !!strstr(frame.data, "\"ok\"");
		if (strstr(frame.data, "\"progress\""))
			buf_printf(&seen, "%s\n", frame.data);
	}
	answers_release(&seen);
	shutdown(fd[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	close(fd[0]);
	close(fd[1]);
	buf_release(&frame);
}

/* ---- traces ---- */

/* The only file of a folder of traces, which is removed with it. */
static void take_trace(const char *folder, struct buf *out)
{
	char command[300];
	FILE *f;
	int c;

	snprintf(command, sizeof(command), "ls %s | grep -c . && cat %s/*.pt.trace.json && rm -r %s",
		 folder, folder, folder);
	f = popen(command, "r");
	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		buf_add_char(out, (char)c);
	assert_int_equal(pclose(f), 0);
}

/* Moments and this process's number become #. */
static void mask_trace(struct buf *b)
{
	char pid[40];

	snprintf(pid, sizeof(pid), "\"pid\": %d,", (int)getpid());
	answers_mask(b, pid, "\"pid\": SELF,");
	answers_release(b);
}

/* Steps of a question that is profiled, and of those between start and stop. */
static void worker_traces(void **state)
{
	static const char *const question[] = {
		LOAD("\"profile\""), PUT(IDS), ASK("generate", ", \"profile\": true"),
		ASK("profile_start", ""), ASK("generate", ""), ASK("profile_stop", ""),
	};
	struct host h = { .host = { .self = &h, .version = "1.0", .plan = plan, .start = start,
				    .crash = crash } };
	struct buf frame = { 0 }, trace = { 0 };
	pthread_t thread;
	int fd[2];

	(void)state;
	snprintf(h.profiles, sizeof(h.profiles), "%s/traces", dir);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	h.fd = fd[1];
	assert_int_equal(pthread_create(&thread, NULL, serve, &h), 0);
	assert_true(take_frame(fd[0], &frame));
	for (size_t i = 0; i < COUNT(question); i++) {
		buf_reset(&frame);
		put_frame(fd[0], question[i]);
		assert_true(take_frame(fd[0], &frame));
		assert_non_null(strstr(frame.data, "\"ok\""));
		if (i == 2 || i + 1 == COUNT(question))
			take_trace(h.profiles, &trace);
	}
	shutdown(fd[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	close(fd[0]);
	close(fd[1]);
	mask_key(&trace, "\"ts\": ");
	mask_trace(&trace);
	buf_release(&frame);
}

/* Spans outside start and stop, and without a folder, are not kept. */
static void server_traces(void **state)
{
	char folder[160];
	struct profiler p = { .dir = folder }, none = { 0 };
	struct buf trace = { 0 };
	struct err e = { 0 };
	struct loop *l = loop_new(&e);
	int64_t until_ns = clock_mono_ns() + 60000000000;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/server-traces", dir);
	profiler_span(&p, "before", 1, 1000, 2000, 3);
	profiler_start(&p);
	profiler_span(&p, "step", 1, 1000, 2500, 3);
	profiler_span(&p, "prefill", 2, 2500, 2600, 0);
	assert_int_equal(profiler_stop(&p, l, &e), 0);
	profiler_span(&p, "after", 1, 1000, 2000, 3);
	take_trace(folder, &trace);
	profiler_start(&p);
	assert_int_equal(profiler_stop(&p, l, &e), 0);
	take_trace(folder, &trace);
	/* A file that grows slowly is whole in the end. */
	p.write_ns = 50000000;
	profiler_start(&p);
	profiler_span(&p, "slow", 1, 1000, 2500, 3);
	assert_int_equal(profiler_stop(&p, l, &e), 0);
	assert_non_null(p.loop);
	while (p.loop && clock_mono_ns() < until_ns)
		loop_poll(l, clock_mono_ns() + 5000000, false);
	take_trace(folder, &trace);
	profiler_release(&p);
	profiler_start(&none);
	profiler_span(&none, "nowhere", 1, 1000, 2000, 3);
	assert_int_equal(none.events.len, 0);
	assert_int_equal(profiler_stop(&none, l, &e), 0);
	loop_free(l);
	mask_trace(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conversations), cmocka_unit_test(progress),
		cmocka_unit_test(worker_traces), cmocka_unit_test(server_traces),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
