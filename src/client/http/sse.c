/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sse.c - see sse.h.
 *
 * Two steps: find where an event ends (a blank line), then read its lines. Nothing is interpreted
 * before the end is found, so reads may be cut anywhere. The state between reads is the raw
 * beginning of the event: when its last byte ends a line, the next byte begins one.
 */
#include "client/http/sse.h"

#include <assert.h>

#include "core/base/limits.h"

static void take(struct str *in, size_t n)
{
	in->p += n;
	in->n -= n;
}

/*
 * The first CR or LF at or after p, or end. Searches in growing windows, so that a text with only
 * one kind of line end is not searched to its end for the other kind on every line.
 */
static const char *line_stop(const char *p, const char *end)
{
	for (size_t window = 512; p < end; window *= 2) {
		size_t n = (size_t)(end - p) < window ? (size_t)(end - p) : window;
		const char *lf = memchr(p, '\n', n);
		const char *cr = memchr(p, '\r', lf ? (size_t)(lf - p) : n);

		if (cr || lf)
			return cr ? cr : lf;
		p += n;
	}
	return end;
}

/* Past the line end at stop (CR, LF or CRLF). */
static const char *line_next(const char *stop, const char *end)
{
	if (*stop == '\r' && stop + 1 < end && stop[1] == '\n')
		return stop + 2;
	return stop + 1;
}

/*
 * Length of s up to and including the blank line that ends the event, 0 if there is none. is_fresh:
 * s begins at the start of a line.
 */
static size_t event_end(struct str s, bool is_fresh)
{
	const char *at = s.p, *end = s.p + s.n;

	while (at < end) {
		const char *stop = line_stop(at, end);

		if (stop == end)
			return 0;
		if (is_fresh && stop == at)
			return (size_t)(line_next(stop, end) - s.p);
		at = line_next(stop, end);
		is_fresh = true;
	}
	return 0;
}

/* Cuts the next line, without its end, from *rest. */
static struct str line_cut(struct str *rest)
{
	const char *end = rest->p + rest->n;
	const char *stop = line_stop(rest->p, end);
	struct str line = { rest->p, (size_t)(stop - rest->p) };
	const char *next = stop < end ? line_next(stop, end) : end;

	*rest = (struct str){ next, (size_t)(end - next) };
	return line;
}

/* The value after "<name>:" and one blank; false when the line is of another field. */
static bool field_is(struct str line, struct str name, struct str *value)
{
	if (line.n < name.n || memcmp(line.p, name.p, name.n) != 0 ||
	    (line.n > name.n && line.p[name.n] != ':'))
		return false;
	*value = (struct str){ line.p + name.n, line.n - name.n };
	if (value->n) /* the colon */
		take(value, 1);
	if (value->n && value->p[0] == ' ')
		take(value, 1);
	return true;
}

static struct str bom_skip(struct sse *s, struct str event)
{
	if (!s->is_started && event.n >= 3 && memcmp(event.p, "\xef\xbb\xbf", 3) == 0)
		take(&event, 3);
	s->is_started = true;
	return event;
}

/* Reads the lines of an event; returns how many data lines it has. */
static size_t event_read(struct str event, struct sse_event *out)
{
	size_t count = 0;

	*out = (struct sse_event){ 0 };
	while (event.n) {
		struct str line = line_cut(&event), value;

		if (field_is(line, STR("data"), &value)) {
			out->data = value;
			count++;
		} else if (field_is(line, STR("event"), &value)) {
			out->name = value;
		} else if (count == 0 && field_is(line, STR("error"), &value)) {
			out->data = value;
			out->name = (struct str){ line.p, sizeof("error") - 1 };
		}
	}
	return count;
}

/*
 * Joins the data lines of the event in carry, in place: the joined text is shorter than the lines.
 * The name is first copied to the end of carry, so that it is not overwritten.
 */
static void data_join(struct sse *s, struct str event, struct sse_event *out)
{
	size_t from = (size_t)(event.p - s->carry.data);
	size_t name_at = s->carry.len, name_n = out->name.n;
	size_t joined = from;
	struct str rest, value;

	if (name_n) {
		size_t at = (size_t)(out->name.p - s->carry.data);

		buf_reserve(&s->carry, name_n);
		buf_add(&s->carry, s->carry.data + at, name_n);
	}
	rest = (struct str){ s->carry.data + from, event.n };
	while (rest.n) {
		struct str line = line_cut(&rest);

		if (!field_is(line, STR("data"), &value))
			continue;
		memmove(s->carry.data + joined, value.p, value.n);
		joined += value.n;
		s->carry.data[joined++] = '\n'; /* over the line's own end, or before it */
	}
	assert(joined > from);
	out->data = (struct str){ s->carry.data + from, joined - 1 - from };
	out->name = (struct str){ s->carry.data + name_at, name_n };
}

/* Reads the complete event in carry. */
static bool carry_read(struct sse *s, struct sse_event *out)
{
	struct str event = bom_skip(s, buf_str(&s->carry));

	if (event_read(event, out) > 1)
		data_join(s, event, out);
	s->is_lent = true;
	return out->data.n > 0;
}

static bool is_too_long(const struct sse *s, size_t more)
{
	return more > SSE_EVENT_BYTES_MAX || s->carry.len > SSE_EVENT_BYTES_MAX - more;
}

/* The usual event: one data line and a blank one, whole and in place. 0: not that. */
static size_t plain_read(struct str in, struct sse_event *out)
{
	const char *end = in.p + in.n;
	const char *stop, *last;
	size_t skip;

	if (in.n < 7 || memcmp(in.p, "data:", 5) != 0)
		return 0;
	stop = line_stop(in.p + 5, end);
	if (end - stop >= 2 && stop[0] == '\n' && stop[1] == '\n')
		last = stop + 1;
	else if (end - stop >= 4 && memcmp(stop, "\r\n\r\n", 4) == 0)
		last = stop + 3;
	else
		return 0;
	skip = in.p[5] == ' ' ? 6 : 5;
	out->data = (struct str){ in.p + skip, (size_t)(stop - in.p) - skip };
	out->name = (struct str){ NULL, 0 };
	return (size_t)(last + 1 - in.p);
}

enum taken { TAKEN_EVENT, TAKEN_NOTHING, TAKEN_PART, TAKEN_TOO_LONG };

/* The event at the front of *in, whose beginning may be in carry already. */
static enum taken event_take(struct sse *s, struct str *in, struct sse_event *out)
{
	size_t old = s->carry.len;
	bool is_fresh = old == 0 || s->carry.data[old - 1] == '\n' ||
			s->carry.data[old - 1] == '\r';
	size_t end = event_end(*in, is_fresh);
	struct str event = { in->p, end ? end : in->n };

	assert(event.n > 0);
	if (is_too_long(s, event.n))
		return TAKEN_TOO_LONG;
	s->is_after_cr = event.p[event.n - 1] == '\r';
	take(in, event.n);
	if (end && old == 0) {
		struct str begun = bom_skip(s, event);

		if (event_read(begun, out) <= 1)
			return out->data.n ? TAKEN_EVENT : TAKEN_NOTHING;
		s->is_started = begun.n == event.n; /* the copy in carry is parsed again */
	}
	buf_add_str(&s->carry, event);
	if (!end)
		return TAKEN_PART;
	return carry_read(s, out) ? TAKEN_EVENT : TAKEN_NOTHING;
}

static void carry_return(struct sse *s)
{
	if (s->is_lent)
		buf_reset(&s->carry);
	s->is_lent = false;
}

int sse_next(struct sse *s, struct str *in, struct sse_event *out)
{
	carry_return(s);
	while (in->n) {
		size_t n;

		if (s->is_after_cr && in->p[0] == '\n')
			take(in, 1);
		s->is_after_cr = false;
		if (s->carry.len == 0 && (n = plain_read(*in, out)) > 0) {
			if (n > SSE_EVENT_BYTES_MAX)
				return -1;
			s->is_started = true;
			take(in, n);
			if (out->data.n)
				return 1;
			continue;
		}
		if (in->n == 0)
			break;
		switch (event_take(s, in, out)) {
		case TAKEN_EVENT:
			return 1;
		case TAKEN_NOTHING:
			carry_return(s);
			break;
		case TAKEN_PART:
			return 0;
		case TAKEN_TOO_LONG:
			return -1;
		}
	}
	return 0;
}

int sse_finish(struct sse *s, struct sse_event *out)
{
	if (s->is_lent || s->carry.len == 0)
		return 0;
	return carry_read(s, out);
}

void sse_reset(struct sse *s)
{
	struct buf carry = s->carry;

	if (carry.cap > STREAM_KEPT_BYTES_MAX)
		buf_release(&carry);
	buf_reset(&carry);
	*s = (struct sse){ .carry = carry };
}

void sse_release(struct sse *s)
{
	if (!s)
		return;
	buf_release(&s->carry);
	*s = (struct sse){ 0 };
}
