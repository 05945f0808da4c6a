/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - see frame.h. */
#include "host/worker/frame.h"

#include <assert.h>
#include <string.h>

#include "core/base/limits.h"

#define HEAD_BYTES 4
#define SHOWN_BYTES 60 /* of an invalid message, shown in the error */

/* ---- bytes ---- */

void frames_release(struct frames *f)
{
	buf_release(&f->in);
	*f = (struct frames){ 0 };
}

char *frames_room(struct frames *f, size_t n)
{
	f->in.limit = HEAD_BYTES + WORKER_FRAME_BYTES_MAX + READ_BYTES;
	if (f->at) {
		buf_cut(&f->in, f->at);
		f->at = 0;
	}
	/* A frame that is too long was refused when its head came. */
	if (buf_reserve(&f->in, n) < 0)
		assert(!"more bytes than a frame has");
	return f->in.data + f->in.len;
}

void frames_add(struct frames *f, size_t n)
{
	assert(n < f->in.cap - f->in.len);
	f->in.len += n;
	f->in.data[f->in.len] = 0;
}

/* A print statement on the wrong descriptor is the usual reason. */
static int refuse_length(const unsigned char *head, uint32_t n, struct err *e)
{
	bool is_text = true;

	for (int i = 0; i < HEAD_BYTES; i++)
		is_text &= (head[i] >= ' ' && head[i] < 0x7f) || head[i] == '\n';
	if (is_text)
		return err_set(e, ERR_PARSE, "'%.4s' found where a frame's length was expected", head);
	return err_set(e, ERR_PARSE, "a frame of %lu bytes; at most %lu", (unsigned long)n,
		       (unsigned long)WORKER_FRAME_BYTES_MAX);
}

int frames_next(struct frames *f, struct str *frame, struct err *e)
{
	const unsigned char *p = (const unsigned char *)f->in.data + f->at;
	size_t left = f->in.len - f->at;
	uint32_t n;

	if (left < HEAD_BYTES)
		return 0;
	n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	if (n > WORKER_FRAME_BYTES_MAX)
		return refuse_length(p, n, e);
	if (left - HEAD_BYTES < n)
		return 0;
	*frame = (struct str){ (const char *)p + HEAD_BYTES, n };
	f->at += HEAD_BYTES + n;
	return 1;
}

bool frames_is_amid(const struct frames *f)
{
	return f->in.len > f->at;
}

size_t frame_begin(struct buf *out)
{
	size_t begin = out->len;

	out->limit = HEAD_BYTES + (size_t)WORKER_FRAME_BYTES_MAX;
	buf_add(out, "\0\0\0", HEAD_BYTES);
	return begin;
}

int frame_end(struct buf *out, size_t begin, struct err *e)
{
	size_t n = out->len - begin - HEAD_BYTES;

	assert(out->is_over || begin + HEAD_BYTES <= out->len);
	if (out->is_over)
		return err_set(e, ERR_LIMIT, "a question of more than %lu bytes (WORKER_FRAME_BYTES_MAX)",
			       (unsigned long)WORKER_FRAME_BYTES_MAX);
	for (int i = 0; i < HEAD_BYTES; i++)
		out->data[begin + (size_t)i] = (char)(n >> (24 - 8 * i) & 0xff);
	return 0;
}

/* ---- meaning ---- */

static const struct { const char *type; enum message_kind kind; bool needs_id; } types[] = {
	{ "hello", MESSAGE_HELLO, false }, { "ok", MESSAGE_OK, true },
	{ "error", MESSAGE_ERROR, false }, { "progress", MESSAGE_PROGRESS, false },
	{ "line", MESSAGE_LINE, false },
};

/* Shows it as received; unprintable bytes become dots. */
static int refuse_frame(struct str frame, const char *why, struct err *e)
{
	char shown[SHOWN_BYTES + 1];
	size_t n = frame.n < SHOWN_BYTES ? frame.n : SHOWN_BYTES;

	for (size_t i = 0; i < n; i++)
		shown[i] = frame.p[i] >= ' ' && frame.p[i] < 0x7f ? frame.p[i] : '.';
	shown[n] = 0;
	return err_set(e, ERR_PARSE, "%s: %s%s", why, shown, frame.n > n ? "..." : "");
}

/* false: present but not a text. */
static bool read_text(struct json_slice body, const char *key, struct str *out)
{
	struct json_slice v;

	if (!json_member(body, key, &v))
		return true;
	*out = v.raw;
	return v.kind == JSON_STRING;
}

static bool read_count(struct json_slice body, const char *key, uint64_t *out)
{
	struct json_slice v;
	int64_t n = 0;

	if (!json_member(body, key, &v))
		return true;
	if (!json_to_i64(v, &n) || n < 0)
		return false;
	*out = (uint64_t)n;
	return true;
}

static bool read_features(struct json_slice body, struct json_slice *out)
{
	struct json_slice v;
	struct json_iter it;
	struct str key;

	*out = (struct json_slice){ JSON_ARRAY, STR("[]") };
	if (!json_member(body, "features", &v))
		return true;
	if (v.kind != JSON_ARRAY)
		return false;
	*out = v;
	it = json_iter(v);
	while (json_each(&it, &key, &v) == 1)
		if (v.kind != JSON_STRING)
			return false;
	return true;
}

static int read_members(struct str frame, struct worker_message *m, struct err *e)
{
	struct json_slice v;

	switch (m->kind) {
	case MESSAGE_HELLO:
		if (!json_member(m->body, "protocol", &v) || !json_to_i64(v, &m->protocol))
			return refuse_frame(frame, "a hello without the protocol's version", e);
		if (!read_text(m->body, "engine", &m->engine) ||
		    !read_text(m->body, "version", &m->version) ||
		    !read_features(m->body, &m->features))
			return refuse_frame(frame, "a hello with a member of a wrong type", e);
		break;
	case MESSAGE_ERROR:
		if (!read_text(m->body, "category", &m->category) ||
		    !read_text(m->body, "text", &m->text) || !m->text.n)
			return refuse_frame(frame, "an error without a text", e);
		break;
	case MESSAGE_PROGRESS:
		if (!read_count(m->body, "done", &m->done) || !read_count(m->body, "total", &m->total))
			return refuse_frame(frame, "progress that is no count", e);
		break;
	case MESSAGE_LINE:
		if (!read_text(m->body, "text", &m->text))
			return refuse_frame(frame, "a line that is no text", e);
		break;
	case MESSAGE_OK:
		break;
	}
	return 0;
}

int message_read(struct str frame, struct worker_message *m, struct err *e)
{
	struct json_scan scan = { frame, 0 };
	struct json_slice type, id;
	size_t i = 0;

	*m = (struct worker_message){ 0 };
	if (json_next(&scan, &m->body, NULL) < 0 || !json_at_end(&scan) ||
	    m->body.kind != JSON_OBJECT)
		return refuse_frame(frame, "a frame that is not a JSON object", e);
	if (!json_member(m->body, "type", &type) || type.kind != JSON_STRING)
		return refuse_frame(frame, "a frame without a type", e);
	while (i < sizeof(types) / sizeof(*types) && !str_is(type.raw, types[i].type))
		i++;
	if (i == sizeof(types) / sizeof(*types))
		return refuse_frame(frame, "a frame of an unknown type", e);
	m->kind = types[i].kind;
	m->has_id = json_member(m->body, "id", &id);
	if (m->has_id && !json_to_i64(id, &m->id))
		return refuse_frame(frame, "an id that is no integer", e);
	if (types[i].needs_id && !m->has_id)
		return refuse_frame(frame, "an answer without an id", e);
	return read_members(frame, m, e);
}
