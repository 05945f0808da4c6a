/* SPDX-License-Identifier: Apache-2.0 */
/* workload_file.c - see workload_file.h. */
#include "input/data/workload_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/plan/workload.h"
#include "core/base/err.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/data/build.h"
#include "input/data/request_keys.h"

/*
 * The sessions of a workload file: their turns, which turns wait for which, and the gaps between.
 *
 * Bytes, in the machine's order: struct workload_sessions_head; a record per session, then one per
 * turn; the waits (uint32_t: turns); the sessions' ids. Turns are the file's requests in order.
 */
struct workload_sessions_head {
	uint64_t bytes;      /* of all, with this head */
	uint64_t n_sessions, n_turns, n_waits;
};

/* ---- sessions ---- */

#define REQUEST_ID_BYTES_MAX 4096 /* it goes into a header */

struct session_record { uint32_t n, id_bytes; };

struct turn_record {
	uint32_t history, n_waits; /* waits of turns follow each other */
	uint16_t number;
	uint8_t gap_kind, from; /* enum from */
	uint32_t zero;
	double gap_s;
};

enum from { FROM_END, FROM_START, FROM_ARRIVAL };

/* ---- writing ---- */

static struct turn_record record_of(const struct turn *t)
{
	return (struct turn_record){
		.history = t->history, .n_waits = t->n_waits, .number = t->number,
		.gap_kind = t->gap_kind, .gap_s = t->gap_s,
		.from = t->is_gap_from_start ? FROM_START :
			t->is_gap_from_arrival ? FROM_ARRIVAL : FROM_END,
	};
}

static void workload_sessions_put(const struct sessions *s, struct buf *out)
{
	struct workload_sessions_head head = { .n_sessions = s->n_sessions, .n_turns = s->n_turns };
	size_t at = out->len;

	buf_add(out, &head, sizeof(head));
	for (size_t k = 0; k < s->n_sessions; k++) {
		struct session_record r = { s->session[k].n, (uint32_t)s->session[k].id.n };

		buf_add(out, &r, sizeof(r));
	}
	for (size_t i = 0; i < s->n_turns; i++) {
		struct turn_record r = record_of(&s->turn[i]);

		buf_add(out, &r, sizeof(r));
		head.n_waits += r.n_waits;
	}
	for (size_t i = 0; i < s->n_turns; i++)
		buf_add(out, s->waits + s->turn[i].wait, s->turn[i].n_waits * sizeof(*s->waits));
	for (size_t k = 0; k < s->n_sessions; k++)
		buf_add_str(out, s->session[k].id);
	head.bytes = out->len - at;
	memcpy(out->data + at, &head, sizeof(head));
}

/* ---- reading ---- */

struct workload_reader {
	const char *session, *turn, *wait, *id, *end; /* where the next one is */
	struct session_build *made;
	bool *is_waited; /* of the session's turns */
	uint32_t n_sessions, n_turns; /* in the file */
	uint64_t waits_left;
};

static bool is_header_text(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return false;
	return text.n <= REQUEST_ID_BYTES_MAX;
}

/* Whether the last turn waits for `turn`, directly or by way of others. */
static bool is_after(struct workload_reader *r, uint32_t first, uint32_t turn)
{
	const struct session_build *b = r->made;
	uint32_t last = (uint32_t)b->n_turns - 1;

	memset(r->is_waited, 0, last - first + 1);
	r->is_waited[last - first] = true;
	for (uint32_t i = last; i > turn; i--) {
		const struct turn *t = &b->turn[i];

		for (uint32_t k = 0; r->is_waited[i - first] && k < t->n_waits; k++)
			r->is_waited[b->waits[t->wait + k] - first] = true;
	}
	return r->is_waited[turn - first];
}

/* The turn that comes next, of a session that begins with turn `first`. */
static bool take_turn(struct workload_reader *r, uint32_t first)
{
	uint32_t at = (uint32_t)r->made->n_turns, wait;
	struct turn_record own;
	struct turn *t;

	memcpy(&own, r->turn, sizeof(own));
	r->turn += sizeof(own);
	if (own.number == UINT16_MAX || own.gap_kind > TURN_CALLS_TOOLS ||
	    own.from > FROM_ARRIVAL ||
	    !(own.gap_s >= 0 && own.gap_s <= DUE_S_MAX) || own.n_waits > r->waits_left ||
	    (own.history != TURN_NONE && (own.history < first || own.history >= at)))
		return false;
	session_add_turn(r->made, own.history);
	r->waits_left -= own.n_waits;
	for (uint32_t k = 0; k < own.n_waits; k++, r->wait += sizeof(wait)) {
		memcpy(&wait, r->wait, sizeof(wait));
		if (wait < first || wait >= at)
			return false;
		session_wait_for(r->made, wait);
	}
	t = &r->made->turn[at];
	t->number = own.number;
	t->gap_kind = own.gap_kind;
	t->gap_s = own.gap_s;
	t->is_gap_from_start = own.from == FROM_START;
	t->is_gap_from_arrival = own.from == FROM_ARRIVAL;
	return own.history == TURN_NONE || is_after(r, first, own.history);
}

static bool take_session(struct workload_reader *r)
{
	struct session_record own;
	uint32_t first = (uint32_t)r->made->n_turns;

	memcpy(&own, r->session, sizeof(own));
	r->session += sizeof(own);
	if (!own.n || own.n > r->n_turns - first || own.id_bytes > (size_t)(r->end - r->id) ||
	    !is_header_text((struct str){ r->id, own.id_bytes }))
		return false;
	session_begin(r->made, (struct str){ r->id, own.id_bytes });
	r->id += own.id_bytes;
	free(r->is_waited);
	r->is_waited = mem_array(own.n, sizeof(*r->is_waited));
	for (uint32_t k = 0; k < own.n; k++)
		if (!take_turn(r, first))
			return false;
	return true;
}

static bool lay_out(struct str content, const struct workload_sessions_head *h,
		    struct workload_reader *r)
{
	uint64_t front;

	if (h->bytes > content.n || h->n_sessions > REQUESTS_MAX || h->n_turns > REQUESTS_MAX ||
	    h->n_waits > content.n / sizeof(uint32_t) || h->n_sessions > h->n_turns ||
	    h->n_sessions == 0)
		return false;
	r->session = content.p + sizeof(*h);
	r->turn = r->session + h->n_sessions * sizeof(struct session_record);
	r->wait = r->turn + h->n_turns * sizeof(struct turn_record);
	r->id = r->wait + h->n_waits * sizeof(uint32_t);
	r->end = content.p + h->bytes;
	front = (uint64_t)(r->id - content.p);
	r->n_sessions = (uint32_t)h->n_sessions;
	r->n_turns = (uint32_t)h->n_turns;
	r->waits_left = h->n_waits;
	return front <= h->bytes;
}

/*
 * Reads sessions from the beginning of content: *bytes of it. out has the first `most` sessions (or
 * all), whose ids point into content. ERR_PARSE: malformed, or sessions that cannot be sent (turns
 * that wait for later ones, histories that may not have ended); out is then empty.
 */
static int workload_sessions_read(struct str content, size_t most, struct session_build *out,
				  uint64_t *bytes, struct err *e)
{
	struct workload_reader r = { .made = out };
	struct workload_sessions_head h = { 0 };
	size_t k = 0;
	bool is_good;

	*out = (struct session_build){ 0 };
	if (content.n >= sizeof(h))
		memcpy(&h, content.p, sizeof(h));
	if (content.n < sizeof(h) || !lay_out(content, &h, &r))
		return err_set(e, ERR_PARSE, "its sessions are cut");
	while (k < r.n_sessions && k < most && take_session(&r))
		k++;
	is_good = k == r.n_sessions || k == most;
	if (k == r.n_sessions && (out->n_turns != r.n_turns || r.waits_left || r.id != r.end))
		is_good = false;
	free(r.is_waited);
	*bytes = h.bytes;
	if (is_good)
		return 0;
	session_build_release(out);
	return err_set(e, ERR_PARSE, "session %zu is malformed", k);
}

/* ---- the file ---- */

#define MAGIC "PROFLLMW"
#define LAYOUT_MAX 3

enum text {
	PROMPT, REQUEST_ID, MESSAGES, MEDIA, OVERRIDES, FILE_BYTES, FILE_NAME, TEXTS_1,
	HEADERS = TEXTS_1, EXPECTED, CONSTRAINT, TEXTS,
};

/* Of layout 1. */
struct workload_record {
	uint64_t at;              /* of the first text, from the first record */
	uint32_t bytes[TEXTS_1];  /* texts follow each other */
	uint32_t kind;            /* enum prompt_kind */
	int64_t output_len;
	double timestamp_s;
	uint32_t prompt_len, sequences;
	float audio_s;
	uint32_t zero;
};
/* Added after the record in layout 2; its texts follow those of layout 1. */
struct record_more {
	uint32_t bytes[TEXTS - TEXTS_1];
	uint32_t has_priorities;  /* of the workload: the same in all */
	int64_t priority;
};

static size_t record_bytes(uint32_t layout)
{
	return sizeof(struct workload_record) + (layout > 1 ? sizeof(struct record_more) : 0);
}

static int texts_in(uint32_t layout)
{
	return layout > 1 ? TEXTS : TEXTS_1;
}

/* ---- writing ---- */

struct workload_writer {
	int fd;
	char *block;
	size_t used;
	struct buf sums; /* of the blocks that are full */
	const atomic_bool *cancel;
};

static int flush(struct workload_writer *w)
{
	uint8_t sum[DIGEST_BYTES];

	if (!w->used)
		return 0;
	if (w->cancel && atomic_load(w->cancel)) {
		errno = ECANCELED;
		return -1;
	}
	digest(DIGEST_SHA256, STR(""), (struct str){ w->block, w->used }, sum);
	buf_add(&w->sums, sum, sizeof(sum));
	if (file_write_all(w->fd, (struct str){ w->block, w->used }) < 0)
		return -1;
	w->used = 0;
	return 0;
}

static int put(struct workload_writer *w, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		size_t room = WORKLOAD_FILE_BLOCK - w->used, part = n < room ? n : room;

		memcpy(w->block + w->used, p, part);
		w->used += part;
		p += part;
		n -= part;
		if (w->used == WORKLOAD_FILE_BLOCK && flush(w) < 0)
			return -1;
	}
	return 0;
}

static void texts_of(const struct sample *s, struct str prefix, struct str text[TEXTS])
{
	text[PROMPT] = s->prompt;
	text[REQUEST_ID] = s->request_id;
	if (prefix.n && str_starts(s->request_id, prefix)) {
		text[REQUEST_ID].p += prefix.n;
		text[REQUEST_ID].n -= prefix.n;
	}
	text[MESSAGES] = s->messages;
	text[MEDIA] = s->media;
	text[OVERRIDES] = s->overrides;
	text[FILE_BYTES] = s->file;
	text[FILE_NAME] = str_of(s->file_name);
	text[HEADERS] = s->headers;
	text[EXPECTED] = s->expected;
	text[CONSTRAINT] = s->constraint;
}

static uint32_t layout_of(const struct workload *w)
{
	if (w->sessions)
		return 3;
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].headers.n || w->v[i].expected.n || w->v[i].constraint.n)
			return 2;
	return w->has_priorities ? 2 : 1;
}

/* Appends all bytes to content. 1: a text is too long to be kept. */
static int put_records(struct workload_writer *out, const struct workload *w, struct str prefix,
		       uint32_t layout, uint64_t *content)
{
	uint64_t at = w->n * record_bytes(layout);
	struct str text[TEXTS];

	for (size_t i = 0; i < w->n; i++) {
		const struct sample *s = &w->v[i];
		struct workload_record r = {
			.at = at, .kind = s->kind, .output_len = s->output_len,
			.timestamp_s = s->timestamp_s, .prompt_len = s->prompt_len,
			.sequences = s->sequences, .audio_s = s->audio_s,
		};
		struct record_more more = {
			.has_priorities = w->has_priorities, .priority = s->priority,
		};

		texts_of(s, prefix, text);
		for (int t = 0; t < texts_in(layout); t++) {
			uint32_t *bytes = t < TEXTS_1 ? &r.bytes[t] : &more.bytes[t - TEXTS_1];

			if (text[t].n > UINT32_MAX)
				return 1;
			*bytes = (uint32_t)text[t].n;
			at += text[t].n;
		}
		if (put(out, &r, sizeof(r)) < 0 ||
		    (layout > 1 && put(out, &more, sizeof(more)) < 0))
			return -1;
	}
	*content += at;
	return 0;
}

static int put_sessions(struct workload_writer *out, const struct workload *w, uint64_t *content)
{
	struct buf bytes = { 0 };
	int rc;

	if (!w->sessions)
		return 0;
	workload_sessions_put(w->sessions, &bytes);
	rc = put(out, bytes.data, bytes.len);
	*content = bytes.len;
	buf_release(&bytes);
	return rc;
}

static int put_texts(struct workload_writer *out, const struct workload *w, struct str prefix,
		     uint32_t layout)
{
	struct str text[TEXTS];
	size_t since = 0;

	for (size_t i = 0; i < w->n; i++) {
		texts_of(&w->v[i], prefix, text);
		for (int t = 0; t < texts_in(layout); t++) {
			if (put(out, text[t].p, text[t].n) < 0)
				return -1;
			since += text[t].n;
		}
		if (since > WORKLOAD_FORGET_BYTES) {
			workload_forget(w);
			since = 0;
		}
	}
	return flush(out);
}

static struct workload_file_head head_of(const struct workload *w, struct str description)
{
	struct workload_file_head h = { .layout = layout_of(w), .n = w->n };

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.description_bytes = (uint32_t)description.n;
	return h;
}

static size_t content_at(const struct workload_file_head *h)
{
	return (sizeof(*h) + h->description_bytes + 7) & ~(size_t)7;
}

static int write_file(int fd, const struct workload *w, struct str prefix, struct str description,
		      const atomic_bool *cancel, struct workload_file_head *h)
{
	static const char pad[8];
	struct workload_writer out = {
		.fd = fd, .block = mem_alloc(WORKLOAD_FILE_BLOCK), .cancel = cancel,
	};
	size_t front = sizeof(*h) + description.n;
	int rc = -1;

	*h = head_of(w, description);
	if (file_write_all(fd, (struct str){ (const char *)h, sizeof(*h) }) == 0 &&
	    file_write_all(fd, description) == 0 &&
	    file_write_all(fd, (struct str){ pad, content_at(h) - front }) == 0) {
		rc = put_sessions(&out, w, &h->content_bytes);
		if (rc == 0)
			rc = put_records(&out, w, prefix, h->layout, &h->content_bytes);
		if (rc == 0)
			rc = put_texts(&out, w, prefix, h->layout);
	}
	if (rc == 0) {
		digest(DIGEST_SHA256, STR(""), buf_str(&out.sums), h->hash);
		rc = lseek(fd, 0, SEEK_SET) < 0 ? -1 :
			file_write_all(fd, (struct str){ (const char *)h, sizeof(*h) });
	}
	buf_release(&out.sums);
	free(out.block);
	return rc;
}

static void hex_of(const uint8_t hash[DIGEST_BYTES], char *out)
{
	for (size_t i = 0; i < DIGEST_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static int refuse_writing(const char *path, struct err *e)
{
	if (errno == ECANCELED)
		return err_set(e, ERR_CANCELLED, "interrupted before %s was written", path);
	return err_set(e, ERR_IO, "%s cannot be written: %s", path, strerror(errno));
}

int workload_file_write(const char *path, const struct workload *w, struct str prefix,
			struct str description, const atomic_bool *cancel, char *hash,
			struct err *e)
{
	struct workload_file_head h;
	struct file_swap swap;
	int rc;

	if (file_swap_begin(&swap, path) < 0)
		return refuse_writing(path, e);
	rc = write_file(swap.fd, w, prefix, description, cancel, &h);
	if (rc < 0)
		refuse_writing(path, e);
	else if (rc > 0)
		err_set(e, ERR_LIMIT, "%s: a request holds a text of 4 GiB or more", path);
	if (file_swap_end(&swap, rc == 0) < 0 && rc == 0)
		rc = refuse_writing(path, e);
	if (rc == 0)
		hex_of(h.hash, hash);
	return rc ? -1 : 0;
}

/* ---- reading ---- */

struct block_check {
	struct str content;
	uint8_t (*sum)[DIGEST_BYTES];
};

static bool sum_block(void *self, size_t i, unsigned worker)
{
	struct block_check *c = self;
	size_t at = i * WORKLOAD_FILE_BLOCK, left = c->content.n - at;
	struct str block = { c->content.p + at,
			     left < WORKLOAD_FILE_BLOCK ? left : WORKLOAD_FILE_BLOCK };

	(void)worker;
	digest(DIGEST_SHA256, STR(""), block, c->sum[i]);
	file_forget(block);
	return true;
}

static bool is_whole(struct str content, const uint8_t hash[DIGEST_BYTES])
{
	size_t blocks = (content.n + WORKLOAD_FILE_BLOCK - 1) / WORKLOAD_FILE_BLOCK;
	struct block_check c = { content, mem_array(blocks + 1, DIGEST_BYTES) };
	uint8_t got[DIGEST_BYTES];

	parallel_for(0, blocks, sum_block, &c);
	digest(DIGEST_SHA256, STR(""), (struct str){ (char *)c.sum, blocks * DIGEST_BYTES }, got);
	free(c.sum);
	return memcmp(got, hash, DIGEST_BYTES) == 0;
}

static int read_head(const char *path, struct str all, struct workload_file_head *h,
		     struct str *description, struct str *content, struct err *e)
{
	if (all.n < sizeof(*h) || memcmp(all.p, MAGIC, sizeof(h->magic)) != 0)
		return err_set(e, ERR_PARSE, "%s: not a workload file of `profllm dataset compile`",
			       path);
	memcpy(h, all.p, sizeof(*h));
	if (h->layout < 1 || h->layout > LAYOUT_MAX)
		return err_set(e, ERR_PARSE, "%s: a workload file of layout %u; this version reads 1 "
			       "to %d", path, h->layout, LAYOUT_MAX);
	if (content_at(h) > all.n || all.n - content_at(h) != h->content_bytes ||
	    h->n > REQUESTS_MAX || h->n * record_bytes(h->layout) > h->content_bytes)
		return err_set(e, ERR_PARSE, "%s: the file is cut off: it has %zu bytes, but its "
			       "header says %llu, for %llu requests", path, all.n,
			       (unsigned long long)(h->content_bytes + content_at(h)),
			       (unsigned long long)h->n);
	*description = (struct str){ all.p + sizeof(*h), h->description_bytes };
	*content = (struct str){ all.p + content_at(h), h->content_bytes };
	if (!is_whole(*content, h->hash))
		return err_set(e, ERR_PARSE, "%s: the file is damaged: its content does not match "
			       "the hash in its header", path);
	return 0;
}

/* Empty, or one JSON value of that kind. */
static bool is_json(struct str text, enum json_kind kind)
{
	struct json_scan scan = { text, 0 };
	struct json_slice v;

	return !text.n || (json_next(&scan, &v, NULL) == 0 && json_at_end(&scan) && v.kind == kind);
}

/* Whether it may be part of headers: without characters that end them. */
static bool is_sendable(struct str headers)
{
	struct json_scan scan = { headers, 0 };
	struct json_slice v;
	struct err ignored;

	return is_json(headers, JSON_OBJECT) &&
	       (!headers.n || (json_next(&scan, &v, NULL) == 0 &&
			       request_keys_check_headers(v, &ignored) == 0));
}

/* Whether texts have the right kinds, without characters that would break a message. */
static bool are_valid(const struct workload_record *r, const struct str text[TEXTS])
{
	if (r->output_len < -1 || isinf(r->timestamp_s) || !is_header_text(text[REQUEST_ID]) ||
	    !is_header_text(text[FILE_NAME]) || !is_sendable(text[HEADERS]))
		return false;
	return r->kind <= PROMPT_JSON && is_json(text[MESSAGES], JSON_ARRAY) &&
	       is_json(text[MEDIA], JSON_ARRAY) && is_json(text[OVERRIDES], JSON_OBJECT) &&
	       is_json(text[CONSTRAINT], JSON_OBJECT) &&
	       (r->kind != PROMPT_JSON || is_json(text[PROMPT], JSON_ARRAY) ||
		is_json(text[PROMPT], JSON_OBJECT));
}

/* Texts follow each other without gaps, so each byte is read once, whatever records say. */
static bool cut_texts(const struct workload_record *r, const struct record_more *more,
		      uint32_t layout, struct str content, uint64_t *at, struct str text[TEXTS])
{
	if (r->at != *at)
		return false;
	for (int t = 0; t < texts_in(layout); t++) {
		uint32_t bytes = t < TEXTS_1 ? r->bytes[t] : more->bytes[t - TEXTS_1];

		if (*at > content.n || bytes > content.n - *at)
			return false;
		text[t] = (struct str){ content.p + *at, bytes };
		*at += bytes;
	}
	return true;
}

static bool take_record(const struct workload_record *r, const struct record_more *more,
			uint32_t layout, struct str content, uint64_t *at, const char *prefix,
			struct workload *w)
{
	struct str text[TEXTS] = { { 0 } };
	struct sample *s;

	if (!cut_texts(r, more, layout, content, at, text) || !are_valid(r, text))
		return false;
	s = workload_add(w);
	*s = (struct sample){
		.prompt = text[PROMPT], .kind = (enum prompt_kind)r->kind,
		.prompt_len = r->prompt_len, .output_len = r->output_len,
		.timestamp_s = r->timestamp_s, .messages = text[MESSAGES], .media = text[MEDIA],
		.overrides = text[OVERRIDES], .file = text[FILE_BYTES],
		.headers = text[HEADERS], .expected = text[EXPECTED],
		.constraint = text[CONSTRAINT], .priority = more->priority,
		.sequences = r->sequences, .audio_s = r->audio_s,
	};
	w->has_priorities |= more->has_priorities != 0;
	if (text[REQUEST_ID].n)
		s->request_id = str_of(arena_printf(&w->arena, "%s%.*s", prefix,
						    (int)text[REQUEST_ID].n, text[REQUEST_ID].p));
	if (text[FILE_NAME].n)
		s->file_name = arena_text(&w->arena, text[FILE_NAME]);
	return true;
}

/* The first `most` requests of n, whose records content begins with. */
static int take_records(const char *path, struct str content, uint32_t layout, uint64_t n,
			size_t most, const char *prefix, struct workload *w, struct err *e)
{
	uint64_t at = n * record_bytes(layout);
	size_t since = 0;

	for (size_t i = 0; i < n && i < most; i++) {
		const char *from = content.p + i * record_bytes(layout);
		struct record_more more = { 0 };
		struct workload_record r;

		memcpy(&r, from, sizeof(r));
		if (layout > 1)
			memcpy(&more, from + sizeof(r), sizeof(more));
		if (!take_record(&r, &more, layout, content, &at, prefix, w))
			return err_set(e, ERR_PARSE, "%s: request %zu is malformed", path, i);
		since += r.bytes[PROMPT] + r.bytes[MEDIA];
		if (since > WORKLOAD_FORGET_BYTES) {
			workload_forget(w);
			since = 0;
		}
	}
	return 0;
}

static int read_with_sessions(const char *path, struct str content,
			      const struct workload_file_head *h, size_t most, const char *prefix,
			      struct workload *w, struct err *e)
{
	struct session_build made;
	uint64_t bytes = 0;
	int rc = workload_sessions_read(content, most, &made, &bytes, e);

	if (rc < 0)
		return err_wrap(e, "%s", path);
	/* Offsets of texts count from the first byte after the sessions. */
	content.p += bytes;
	content.n -= bytes;
	if (made.n_turns > h->n || h->n * record_bytes(h->layout) > content.n)
		rc = err_set(e, ERR_PARSE, "%s: its sessions have %zu turns, and it has %llu requests",
			     path, made.n_turns, (unsigned long long)h->n);
	if (rc == 0)
		rc = take_records(path, content, h->layout, h->n, made.n_turns, prefix, w, e);
	if (rc == 0)
		session_finish(&made, w);
	session_build_release(&made);
	return rc;
}

int workload_file_read(const char *path, size_t most, const char *prefix, struct workload *w,
		       struct str *description, char *hash, struct err *e)
{
	struct workload_file_head h;
	struct str all, content = { 0 };

	assert(w->n == 0);
	if (file_map(path, &all, e) < 0)
		return -1;
	workload_adopt(w, all);
	if (read_head(path, all, &h, description, &content, e) < 0)
		return -1;
	hex_of(h.hash, hash);
	if (h.layout > 2)
		return read_with_sessions(path, content, &h, most, prefix, w, e);
	return take_records(path, content, h.layout, h.n, most, prefix, w, e);
}

/* ---- the dataset ---- */

/*
 * The requests of a workload file (`profllm dataset compile`), in its order.
 */

static bool has_true(struct json_slice object, const char *key)
{
	struct json_slice v;

	return json_member(object, key, &v) && v.kind == JSON_TRUE;
}

/* Reads properties of all requests of the file, which are not needed for reading them. */
static void take_description(struct str description, const struct dataset_env *env,
			     const char *path, struct workload *w)
{
	struct json_scan scan = { description, 0 };
	struct json_slice object, v;
	struct buf name = { 0 };

	if (json_next(&scan, &object, NULL) < 0 || object.kind != JSON_OBJECT)
		return;
	w->is_eos_ignored = has_true(object, "ignore_eos");
	w->is_self_timed = has_true(object, "self_timed");
	if (env->tokenizer_name && json_member(object, "tokenizer", &v) && v.kind == JSON_STRING) {
		json_unescape(&name, v.raw);
		if (!str_is(buf_str(&name), env->tokenizer_name))
			dataset_note(w, "%s was made with the tokenizer %.200s, and prompt lengths are "
				     "counted with it, not with %.200s", path, name.data,
				     env->tokenizer_name);
		buf_release(&name);
	}
}

/* True for a list of ids; a chat message is text or parts. */
static bool is_ids(const struct sample *s)
{
	struct str list = s->prompt;

	while (list.n && *list.p == '[')
		list = str_trim((struct str){ list.p + 1, list.n - 1 });
	return s->kind == PROMPT_JSON && list.n && *list.p >= '0' && *list.p <= '9';
}

static int check_chat(const struct workload *w, const char *path, const char *backend,
		      struct err *e)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->v[i].messages.n && is_ids(&w->v[i]))
			return err_set(e, ERR_RUN, "%s: request %zu is a list of token ids, which --backend "
				       "%s cannot send; openai can", path, i, backend);
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	size_t most = env->num_prompts > 0 ? (size_t)env->num_prompts : SIZE_MAX;
	char hash[DIGEST_HEX];
	struct str description;
	size_t held;

	(void)rng; /* nothing is drawn: the file was made once */
	if (workload_file_read(o->path, most, env->request_id_prefix, w, &description, hash, e) < 0)
		return -1;
	held = w->sessions ? w->sessions->n_sessions : w->n;
	if (most != SIZE_MAX && held < most)
		return err_set(e, ERR_RUN, "%s holds %zu %s, and --num-prompts asks for %" PRId64,
			       o->path, held, w->sessions ? "conversations" : "requests",
			       env->num_prompts);
	w->hash = arena_text(&w->arena, str_of(hash));
	take_description(description, env, o->path, w);
	for (size_t i = 0; i < w->n; i++)
		w->v[i].timestamp_s /= dataset_speedup(o);
	dataset_note_media(w, env);
	return env->is_chat_backend ? check_chat(w, o->path, env->backend, e) : 0;
}

static const char *const options[] = { "self-timed", "speedup", NULL };

const struct dataset dataset_workload = {
	.name = "workload", .summary = "requests of a file that dataset compile made",
	.needs_path = true, .takes_all = true, .is_whole = true, .may_have_timestamps = true,
	.options = options, .build = build,
};
