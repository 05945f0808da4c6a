/* SPDX-License-Identifier: Apache-2.0 */
/* form.c - see form.h. */
#include "client/http/form.h"

#include "client/http/head.h"

/*
 * Value of a parameter (name="value" or name=value) in a header's value; p NULL when absent.
 * Names may hold any character but a quote: browsers send those percent-encoded.
 */
static struct str parameter(struct str header, const char *name)
{
	str_cut(&header, ';');
	while (header.n) {
		struct str key = header, value;
		const char *equals = memchr(header.p, '=', header.n);

		if (!equals)
			break;
		key.n = (size_t)(equals - header.p);
		value = (struct str){ equals + 1, header.n - key.n - 1 };
		header = value;
		if (value.n && value.p[0] == '"') {
			value.p++, value.n--;
			header = value;
			value = str_cut(&header, '"');
			str_cut(&header, ';');
		} else {
			value = str_trim(str_cut(&header, ';'));
		}
		if (str_eq_nocase(str_trim(key), str_of(name)))
			return value;
	}
	return (struct str){ 0 };
}

bool form_open(struct form *f, struct str type, struct str body)
{
	struct str kind = type;
	struct str boundary = parameter(type, "boundary");

	kind = str_trim(str_cut(&kind, ';'));
	if (!str_eq_nocase(kind, STR("multipart/form-data")) || boundary.n == 0 ||
	    boundary.n > FORM_BOUNDARY_MAX)
		return false;
	memcpy(f->line, "\r\n--", 4);
	memcpy(f->line + 4, boundary.p, boundary.n);
	f->line_bytes = boundary.n + 4;
	/* The first boundary has no line end before it. */
	if (!str_starts(body, (struct str){ f->line + 2, f->line_bytes - 2 }))
		return false;
	f->rest = (struct str){ body.p + f->line_bytes - 2, body.n - (f->line_bytes - 2) };
	return true;
}

static int part_head(struct form *f, struct form_part *part, struct err *e)
{
	struct str line, disposition = { 0 };

	while (http_head_line(&f->rest, &line)) {
		struct str name = str_cut(&line, ':');

		if (str_eq_nocase(name, STR("content-disposition")))
			disposition = line;
		if (str_eq_nocase(name, STR("content-type")))
			part->type = str_trim(line);
	}
	part->name = parameter(disposition, "name");
	part->filename = parameter(disposition, "filename");
	return part->name.p ? 0 : err_set(e, ERR_PARSE, "a part of the form has no name");
}

int form_next(struct form *f, struct form_part *part, struct err *e)
{
	const char *end;

	*part = (struct form_part){ 0 };
	if (str_starts(f->rest, STR("--")))
		return 0;
	if (!str_starts(f->rest, STR("\r\n")))
		return err_set(e, ERR_PARSE, "the form does not continue after its boundary");
	f->rest = (struct str){ f->rest.p + 2, f->rest.n - 2 };
	if (part_head(f, part, e) < 0)
		return -1;
	end = memmem(f->rest.p, f->rest.n, f->line, f->line_bytes);
	if (!end)
		return err_set(e, ERR_PARSE, "the form ends without its boundary");
	part->body = (struct str){ f->rest.p, (size_t)(end - f->rest.p) };
	f->rest.n -= part->body.n + f->line_bytes;
	f->rest.p = end + f->line_bytes;
	return 1;
}
