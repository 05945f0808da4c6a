/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - see err.h. */
#include "base/err.h"

#include "base/fmt.h"
#include "base/redact.h"

/* Sentences quote what they refuse. Cut after secrets are gone: half of one is still one. */
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

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -1;
	e->code = code;
	va_start(ap, fmt);
	put(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
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
