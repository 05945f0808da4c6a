/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk.h - conversations written as a table, sent over a transport that answers in
 * memory and remembers what it was sent. For one loop.
 */
#pragma once
#include <stdio.h>

#include "bench/serve/prepare.h"
#include "client/load/load.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

#define TALK_MAX 512
#define TALK_WAITS 4

/* One turn: what it says, and -1-ended lists of turn numbers of its session. */
struct talk_turn {
	const char *says;  /* the user's messages, with | between; "system:..." is the system's */
	int history;       /* -1: none */
	int wait[TALK_WAITS]; /* ended by -1 */
	uint16_t number;
	double gap_s;
	bool is_gap_from_start;
};

/* What the server does with request n (from 0), whose last message is `last`. */
struct talk_answer {
	const char *text;  /* NULL: "re:" and the last message */
	const char *calls; /* tool_calls of a delta, or NULL */
	const char *head;  /* further header lines, or NULL */
	unsigned status;   /* 0: 200 */
	int64_t delay_ns;
};

struct talk {
	struct workload w;
	struct plan plan;
	struct record record;
	struct history *history;
	struct prepared prepared;
	struct load_opts opts;
	struct prepare_opts how;
	struct load_progress progress;
	struct load_stats stats;
	struct err e;
	struct talk_answer (*answer)(unsigned n, const char *last);
};

/* ---- the server ---- */

static struct {
	struct talk_answer (*answer)(unsigned n, const char *last);
	char *request[TALK_MAX];
	char *last[TALK_MAX];  /* content of its last message */
	int64_t at_ns[TALK_MAX];
	unsigned n;
	struct { struct exchange *x; int64_t at_ns; unsigned n; } open[TALK_MAX];
	unsigned n_open;
} talk_server;

static void talk_forget(void)
{
	for (unsigned i = 0; i < talk_server.n; i++) {
		free(talk_server.request[i]);
		free(talk_server.last[i]);
	}
	memset(&talk_server, 0, sizeof(talk_server));
}

/* The messages of request n, as in its body. */
static inline const char *talk_messages(unsigned n)
{
	static char text[16384];
	const char *from = strstr(talk_server.request[n], "\"messages\": "), *to;

	assert_non_null(from);
	from += strlen("\"messages\": ");
	to = strstr(from, ", \"max_completion_tokens\"");
	assert_non_null(to);
	snprintf(text, sizeof(text), "%.*s", (int)(to - from), from);
	return text;
}

static char *last_content(const char *request)
{
	const char *at = request, *found = NULL, *end;

	while ((at = strstr(at, "\"content\": \"")))
		found = at += strlen("\"content\": \"");
	end = found ? strchr(found, '"') : NULL;
	return mem_copy(found ? found : "", found ? (size_t)(end - found) : 0);
}

static void *talk_open(const struct transport_opts *o, struct err *e)
{
	(void)o;
	(void)e;
	return &talk_server;
}

static void talk_start(void *self, struct exchange *x)
{
	unsigned n = talk_server.n++;

	(void)self;
	assert_true(n < TALK_MAX);
	talk_server.request[n] = mem_copy(x->request.p, x->request.n);
	talk_server.last[n] = last_content(talk_server.request[n]);
	x->attempts = 1;
	x->sink->on_send(x, clock_real_ns());
	x->sink->on_sent(x, clock_real_ns());
	/* A server reads what was sent: its delay begins no earlier than the stamp. */
	talk_server.at_ns[n] = clock_mono_ns();
	talk_server.open[talk_server.n_open].x = x;
	talk_server.open[talk_server.n_open].n = n;
	talk_server.open[talk_server.n_open++].at_ns =
		talk_server.at_ns[n] + talk_server.answer(n, talk_server.last[n]).delay_ns;
}

static void talk_reply(struct exchange *x, unsigned n)
{
	struct talk_answer a = talk_server.answer(n, talk_server.last[n]);
	int64_t now = clock_real_ns();
	struct buf head = { 0 }, body = { 0 };

	buf_printf(&head, "HTTP/1.1 %u Said\r\n%s\r\n", a.status ? a.status : 200,
		   a.head ? a.head : "");
	if (a.calls)
		buf_printf(&body, "data: {\"choices\":[{\"delta\":{\"tool_calls\":%s}}]}\n\n", a.calls);
	else if (a.text)
		buf_printf(&body, "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}\n\n", a.text);
	else
		buf_printf(&body, "data: {\"choices\":[{\"delta\":{\"content\":\"re:\"}}]}\n\n"
			   "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}\n\n",
			   talk_server.last[n]);
	buf_add_text(&body, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
		     "data: [DONE]\n\n");
	x->sink->on_head(x, a.status ? a.status : 200, !a.status, buf_str(&head), now, now);
	x->sink->on_body(x, buf_str(&body), now, now);
	x->sink->on_end(x, FAIL_NONE, "", now);
	buf_release(&head);
	buf_release(&body);
}

static void talk_cancel(void *self, struct exchange *x)
{
	unsigned i = 0;

	(void)self;
	while (talk_server.open[i].x != x)
		i++;
	talk_server.open[i] = talk_server.open[--talk_server.n_open];
	x->sink->on_end(x, FAIL_CANCELLED, "cancelled", clock_real_ns());
}

static void talk_poll(void *self, int64_t until_mono_ns, bool is_exact,
		      struct transport_stats *stats)
{
	(void)self;
	(void)is_exact;
	stats->reads++;
	for (;;) {
		struct timespec pause = { 0, 200000 };
		int64_t now = clock_mono_ns();
		unsigned first = UINT32_MAX;

		for (unsigned i = 0; i < talk_server.n_open; i++)
			if (talk_server.open[i].at_ns <= now &&
			    (first == UINT32_MAX ||
			     talk_server.open[i].n < talk_server.open[first].n))
				first = i;
		if (first != UINT32_MAX) {
			struct exchange *x = talk_server.open[first].x;
			unsigned n = talk_server.open[first].n;

			talk_server.open[first] = talk_server.open[--talk_server.n_open];
			talk_reply(x, n);
			return;
		}
		if (now >= until_mono_ns)
			return;
		nanosleep(&pause, NULL);
	}
}

static void talk_wake(void *self)
{
	(void)self;
}

static void talk_close(void *self, struct transport_stats *stats)
{
	(void)self, (void)stats;
}

static const struct transport talk_transport = {
	.name = "talk", .open = talk_open, .start = talk_start, .cancel = talk_cancel,
	.poll = talk_poll, .wake = talk_wake, .close = talk_close,
};

static struct talk_answer talk_echo(unsigned n, const char *last)
{
	(void)n;
	(void)last;
	return (struct talk_answer){ 0 };
}

/* ---- the conversations ---- */

static struct str talk_says(struct arena *a, const char *says)
{
	struct str rest = str_of(says);
	struct buf list = { 0 };
	struct str text;

	buf_add_char(&list, '[');
	while (rest.n) {
		struct str one = str_cut(&rest, '|');
		bool is_system = str_starts(one, STR("system:"));

		if (is_system)
			one = (struct str){ one.p + 7, one.n - 7 };
		buf_printf(&list, "%s{\"role\": \"%s\", \"content\": \"%.*s\"}", list.len > 1 ? ", " : "",
			   is_system ? "system" : "user", (int)one.n, one.p);
	}
	buf_add_char(&list, ']');
	text = arena_str(a, buf_str(&list));
	buf_release(&list);
	return text;
}

/* n_sessions conversations of these n turns each, in a plan in which they all begin at 0. */
static void talk_init(struct talk *t, const struct talk_turn *turn, uint32_t n, uint32_t n_sessions)
{
	struct sessions *s;
	uint32_t waits = 0;

	memset(t, 0, sizeof(*t));
	talk_forget();
	talk_server.answer = talk_echo;
	s = arena_alloc(&t->w.arena, sizeof(*s));
	s->turn = arena_alloc(&t->w.arena, (size_t)n * n_sessions * sizeof(*s->turn));
	s->waits = arena_alloc(&t->w.arena,
			       (size_t)n * n_sessions * TALK_WAITS * sizeof(*s->waits));
	s->session = arena_alloc(&t->w.arena, n_sessions * sizeof(*s->session));
	for (uint32_t k = 0; k < n_sessions; k++) {
		uint32_t first = k * n;

		s->session[k] = (struct session){
			str_of(arena_printf(&t->w.arena, "talk-%u", k)), first, n };
		for (uint32_t i = 0; i < n; i++) {
			struct sample *sample = workload_add(&t->w);
			struct turn *to = &s->turn[first + i];
			int history = turn[i].history;

			sample->messages = talk_says(&t->w.arena, turn[i].says);
			sample->output_len = 4;
			sample->prompt_len = 10;
			*to = (struct turn){
				.session = k, .wait = waits, .number = turn[i].number,
				.history = history < 0 ? TURN_NONE : first + (uint32_t)history,
				.gap_s = turn[i].gap_s,
				.is_gap_from_start = turn[i].is_gap_from_start,
			};
			for (; turn[i].wait[to->n_waits] >= 0; to->n_waits++)
				s->waits[waits++] = first + (uint32_t)turn[i].wait[to->n_waits];
		}
	}
	s->n_turns = t->w.n;
	s->n_waits = waits;
	s->n_sessions = n_sessions;
	t->w.sessions = s;
	t->w.dataset = "talk";
}

/* The plan may be changed between this and talk_run. */
static void talk_plan(struct talk *t)
{
	struct plan_opts all = { .request_rate = INFINITY, .burstiness = 1 };
	struct compat_rng rng;

	compat_rng_seed(&rng, 0);
	if (plan_arrivals(&t->plan, (uint32_t)t->w.sessions->n_sessions, &all, &rng, &t->e) < 0 ||
	    plan_sessions(&t->plan, t->w.sessions, &t->e) < 0)
		fail_msg("%s", t->e.text);
}

static void talk_ready(struct talk *t)
{
	static const char *const url[] = { "http://talk.invalid" }, *const proxy[] = { NULL };
	struct history_opts h = { .plan = &t->plan, .workload = &t->w, .record = &t->record,
				  .token_header = t->how.token_header };

	t->how.endpoint = endpoint_find("openai-chat");
	t->how.encode.model = STR("m");
	t->how.base_url = url;
	t->how.path = "/v1/chat/completions";
	t->how.proxy = proxy;
	t->how.n_urls = 1;
	t->how.version = "0";
	t->how.request_id_prefix = "";
	t->how.is_without_ids = true;
	t->how.history = t->history = history_new(&h);
	if (record_init(&t->record, t->plan.n, 1, 1000, true, true, &t->e) < 0 ||
	    prepare(&t->how, &t->plan, &t->w, &t->prepared, &t->e) < 0)
		fail_msg("%s", t->e.text);
	record_add_rows(&t->record, t->plan.n);
	t->opts.transport = &talk_transport;
	t->opts.net.base_url = url;
	t->opts.net.n_endpoints = 1;
	t->opts.endpoint = t->how.endpoint;
	t->opts.workload = &t->w;
	t->opts.threads = 1;
}

static void talk_run(struct talk *t)
{
	talk_ready(t);
	if (load_run(&t->opts, &t->plan, &t->prepared, &t->record, 0, &t->progress, &t->stats, NULL,
		     &t->e) < 0)
		fail_msg("%s", t->e.text);
}

static void talk_release(struct talk *t)
{
	prepared_release(&t->prepared);
	history_free(t->history);
	plan_release(&t->plan);
	record_release(&t->record);
	workload_release(&t->w);
	talk_forget();
}
