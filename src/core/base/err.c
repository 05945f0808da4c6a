/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - see err.h. */
#include "core/base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "core/base/redact.h"
#include "core/base/str.h"

/* Hides secrets before cutting to size, because half a secret would not be recognised. */
static void put(char *out, size_t room, const char *fmt, va_list ap)
{
	char text[4 * sizeof(((struct err *)0)->text)];
	struct buf hidden = { 0 };
	struct str s;

	(void)fmt_vtext(text, sizeof(text), fmt, ap);
	s = redact(str_of(text), &hidden);
	snprintf(out, room, "%.*s", (int)s.n, s.n ? s.p : "");
	buf_release(&hidden);
}

static const struct { const char *topic; enum err_code code; } kinds[] = {
#define X(name, topic, code) [ERR_##name - ERR_CODES - 1] = { #topic, ERR_##code },
	ERR_KINDS(X)
#undef X
};

/* The kind that a system error at the end of a text implies. */
static enum err_code kind_of_system(struct str text)
{
	static const struct { int number; enum err_code kind; } reasons[] = {
		{ ENOSPC, ERR_DISK_FULL }, { EDQUOT, ERR_DISK_FULL },
		{ EACCES, ERR_PERMISSION_DENIED },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (str_ends(text, str_of(strerrordesc_np(reasons[i].number))))
			return reasons[i].kind;
	return ERR_NONE;
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	assert(code != ERR_NONE && code != ERR_CODES);
	if (!e)
		return -1;
	e->kind = code > ERR_CODES ? code : ERR_NONE;
	e->code = e->kind ? kinds[code - ERR_CODES - 1].code : code;
	va_start(ap, fmt);
	put(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (!e->kind)
		e->kind = kind_of_system(str_of(e->text));
	return -1;
}

int err_in_user_file(struct err *e)
{
	if (e && (e->code == ERR_RUN || e->code == ERR_PARSE))
		e->code = ERR_USAGE;
	return -1;
}

enum err_code err_again(const struct err *why)
{
	return why->kind ? why->kind : why->code;
}

const char *err_topic(const struct err *e)
{
	return e->kind ? kinds[e->kind - ERR_CODES - 1].topic : NULL;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->text)];
	va_list ap;
	size_t n;

	if (!e)
		return -1;
	memcpy(old, e->text, sizeof(old));
	va_start(ap, fmt);
	put(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %.*s",
		 (int)(sizeof(e->text) - 3), old);
	return -1;
}

int err_add(struct err *e, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!e)
		return -1;
	n = strlen(e->text);
	va_start(ap, fmt);
	put(e->text + n, sizeof(e->text) - n, fmt, ap);
	va_end(ap);
	return -1;
}

int err_exit_status(const struct err *e)
{
	switch (e->code) {
	case ERR_NONE:
		return 0;
	case ERR_USAGE:
		return 2;
	case ERR_CANCELLED:
		return 130;
	default:
		return 1;
	}
}

/* ---- Debugging lines ---- */

unsigned trace_mask;

int trace_enable(const char *list)
{
#define X(name) #name,
	static const char *const names[] = { TRACE_CATEGORIES(X) };
#undef X
	struct str rest = str_of(list);

	while (rest.n) {
		struct str item = str_cut(&rest, ',');
		unsigned bit = 0;

		if (str_is(item, "all")) {
			trace_mask = ~0u;
			continue;
		}
		while (bit < TRACE_BITS && !str_is(item, names[bit]))
			bit++;
		if (bit == TRACE_BITS)
			return -1;
		trace_mask |= 1u << bit;
	}
	return 0;
}
