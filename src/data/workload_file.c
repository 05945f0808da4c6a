/* SPDX-License-Identifier: Apache-2.0 */
/* workload_file.c - see workload_file.h. */
#include "data/workload_file.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "data/request_keys.h"
#include "data/workload_sessions.h"
#include "json/read.h"

#define MAGIC "PROFLLMW"
#define LAYOUT_MAX 3
#define REQUEST_ID_BYTES_MAX 4096

enum text {
	PROMPT, REQUEST_ID, MESSAGES, MEDIA, OVERRIDES, FILE_BYTES, FILE_NAME, TEXTS_1,
	HEADERS = TEXTS_1, EXPECTED, CONSTRAINT, TEXTS,
};

/* Of layout 1. */
struct record {
	uint64_t at;              /* of the first text, from the first record */
	uint32_t bytes[TEXTS_1];  /* texts follow each other */
	uint32_t kind;            /* enum prompt_kind */
	int64_t output_len;
	double timestamp_s;
	uint32_t prompt_len, sequences;
	float audio_s;
	uint32_t zero;
};
/* What layout 2 has behind it; its texts follow those of layout 1. */
struct record_more {
	uint32_t bytes[TEXTS - TEXTS_1];
	uint32_t has_priorities;  /* of the workload: the same in all */
	int64_t priority;
};

static size_t record_bytes(uint32_t layout)
{
	return sizeof(struct record) + (layout > 1 ? sizeof(struct record_more) : 0);
}

static int texts_in(uint32_t layout)
{
	return layout > 1 ? TEXTS : TEXTS_1;
}

/* ---- writing ---- */

struct writer {
	int fd;
	char *block;
	size_t used;
	struct buf sums; /* of the blocks that are full */
	const atomic_bool *cancel;
};

static int flush(struct writer *w)
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

static int put(struct writer *w, const void *bytes, size_t n)
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

/* content: to which all bytes are added. 1: a text is too long to be kept. */
static int put_records(struct writer *out, const struct workload *w, struct str prefix,
		       uint32_t layout, uint64_t *content)
{
	uint64_t at = w->n * record_bytes(layout);
	struct str text[TEXTS];

	for (size_t i = 0; i < w->n; i++) {
		const struct sample *s = &w->v[i];
		struct record r = {
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

static int put_sessions(struct writer *out, const struct workload *w, uint64_t *content)
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

static int put_texts(struct writer *out, const struct workload *w, struct str prefix,
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
	struct writer out = {
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
		rc = pwrite(fd, h, sizeof(*h), 0) == sizeof(*h) ? 0 : -1;
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

struct checking {
	struct str content;
	uint8_t (*sum)[DIGEST_BYTES];
};

static bool sum_block(void *self, size_t i, unsigned worker)
{
	struct checking *c = self;
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
	struct checking c = { content, mem_array(blocks + 1, DIGEST_BYTES) };
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
		return err_set(e, ERR_PARSE, "%s: the file is cut: %zu bytes where its head speaks of "
			       "%llu and %llu requests", path, all.n,
			       (unsigned long long)(h->content_bytes + content_at(h)),
			       (unsigned long long)h->n);
	*description = (struct str){ all.p + sizeof(*h), h->description_bytes };
	*content = (struct str){ all.p + content_at(h), h->content_bytes };
	if (!is_whole(*content, h->hash))
		return err_set(e, ERR_PARSE, "%s: the file is damaged: its content does not have the "
			       "hash in its head", path);
	return 0;
}

/* Empty, or one JSON value of that kind. */
static bool is_json(struct str text, enum json_kind kind)
{
	struct json_scan scan = { text, 0 };
	struct json_slice v;

	return !text.n || (json_next(&scan, &v, NULL) == 0 && json_at_end(&scan) && v.kind == kind);
}

/* Goes into a header: nothing that would end it. */
static bool is_header_text(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return false;
	return text.n <= REQUEST_ID_BYTES_MAX;
}

static bool is_sendable(struct str headers)
{
	struct json_scan scan = { headers, 0 };
	struct json_slice v;
	struct err ignored;

	return is_json(headers, JSON_OBJECT) &&
	       (!headers.n || (json_next(&scan, &v, NULL) == 0 &&
			       request_keys_check_headers(v, &ignored) == 0));
}

/* Of these kinds, and nothing that would break a message. */
static bool are_valid(const struct record *r, const struct str text[TEXTS])
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

/* Texts follow each other without gaps: no byte is looked at twice, whatever records say. */
static bool cut_texts(const struct record *r, const struct record_more *more, uint32_t layout,
		      struct str content, uint64_t *at, struct str text[TEXTS])
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

static bool take_record(const struct record *r, const struct record_more *more, uint32_t layout,
			struct str content, uint64_t *at, const char *prefix, struct workload *w)
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
		struct record r;

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
	uint64_t bytes;
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
