/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus.c - see prometheus.h. */
#include "client/http/prometheus.h"

#include <ctype.h>
#include <math.h>

#include "client/http/head.h"
#include "core/base/str.h"

static void take(struct str *s, size_t n)
{
	s->p += n;
	s->n -= n;
}

static void skip_blanks(struct str *s)
{
	while (s->n && (s->p[0] == ' ' || s->p[0] == '\t'))
		take(s, 1);
}

/* Cuts a metric or label name; empty when there is none. */
static struct str name_cut(struct str *s)
{
	struct str name = { s->p, 0 };

	while (name.n < s->n && (isalnum((unsigned char)s->p[name.n]) || s->p[name.n] == '_' ||
				 s->p[name.n] == ':'))
		name.n++;
	if (name.n && isdigit((unsigned char)name.p[0]))
		name.n = 0;
	take(s, name.n);
	return name;
}

/* Cuts a quoted value, without its quotes, still escaped. */
static bool quoted_cut(struct str *s, struct str *value)
{
	size_t n = 1;

	if (s->n == 0 || s->p[0] != '"')
		return false;
	while (n < s->n && s->p[n] != '"')
		n += s->p[n] == '\\' ? 2 : 1;
	if (n >= s->n)
		return false;
	*value = (struct str){ s->p + 1, n - 1 };
	take(s, n + 1);
	return true;
}

/* The next name="value" of a label list: 1, 0 at its end ('}' or nothing), -1 malformed. */
static int label_cut(struct str *s, struct str *name, struct str *value)
{
	skip_blanks(s);
	if (s->n == 0 || s->p[0] == '}')
		return 0;
	*name = name_cut(s);
	skip_blanks(s);
	if (name->n == 0 || s->n == 0 || s->p[0] != '=')
		return -1;
	take(s, 1);
	skip_blanks(s);
	if (!quoted_cut(s, value))
		return -1;
	skip_blanks(s);
	if (s->n && s->p[0] == ',')
		take(s, 1);
	else if (s->n && s->p[0] != '}')
		return -1;
	return 1;
}

static bool sample_read(struct str line, struct prometheus_sample *out)
{
	struct str name, value, number;

	*out = (struct prometheus_sample){ .name = name_cut(&line) };
	skip_blanks(&line);
	if (out->name.n == 0 || line.n == 0)
		return false;
	if (line.p[0] == '{') {
		int rc;

		take(&line, 1);
		out->labels.p = line.p;
		while ((rc = label_cut(&line, &name, &value)) > 0)
			;
		if (rc < 0 || line.n == 0)
			return false;
		out->labels.n = (size_t)(line.p - out->labels.p);
		take(&line, 1);
		skip_blanks(&line);
	}
	number = line;
	for (number.n = 0; number.n < line.n; number.n++)
		if (line.p[number.n] == ' ' || line.p[number.n] == '\t')
			break;
	return str_to_f64(number, &out->value);
}

int prometheus_next(struct str *rest, struct prometheus_sample *out, struct err *e)
{
	char text[HTTP_EXCERPT_BYTES];

	while (rest->n) {
		struct str line = str_trim(str_cut(rest, '\n'));

		if (line.n == 0 || line.p[0] == '#')
			continue;
		if (sample_read(line, out))
			return 1;
		return err_set(e, ERR_PARSE, "malformed metrics line '%s'",
			       http_excerpt(text, line));
	}
	return 0;
}

bool prometheus_label(struct str labels, const char *name, struct str *value)
{
	struct str one;

	while (label_cut(&labels, &one, value) > 0)
		if (str_is(one, name))
			return true;
	return false;
}

void prometheus_unescape(struct buf *out, struct str value)
{
	for (size_t i = 0; i < value.n; i++) {
		char next = i + 1 < value.n ? value.p[i + 1] : 0;

		if (value.p[i] == '\\' && (next == '\\' || next == '"' || next == 'n')) {
			buf_add_char(out, next == 'n' ? '\n' : next);
			i++;
		} else {
			buf_add_char(out, value.p[i]);
		}
	}
}

/* ---- writing ---- */

/* Help texts leave the quote as it is. */
static void add_escaped(struct buf *out, struct str s, bool is_quoted)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\\' || (s.p[i] == '"' && is_quoted))
			buf_add_char(out, '\\');
		if (s.p[i] == '\n')
			buf_add(out, "\\n", 2);
		else
			buf_add_char(out, s.p[i]);
	}
}

void prometheus_add_family(struct buf *out, const char *name, const char *type,
			   const char *help)
{
	buf_printf(out, "# HELP %s ", name);
	add_escaped(out, str_of(help), false);
	buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

void prometheus_add_label(struct buf *labels, const char *name, struct str value)
{
	if (labels->len)
		buf_add_char(labels, ',');
	buf_printf(labels, "%s=\"", name);
	add_escaped(labels, value, true);
	buf_add_char(labels, '"');
}

void prometheus_add_sample(struct buf *out, const char *name, struct str labels, double value)
{
	char number[FMT_F64_BYTES];

	buf_add_text(out, name);
	if (labels.n) {
		buf_add_char(out, '{');
		buf_add_str(out, labels);
		buf_add_char(out, '}');
	}
	buf_add_char(out, ' ');
	if (isnan(value))
		buf_add_text(out, "NaN");
	else if (isinf(value))
		buf_add_text(out, value > 0 ? "+Inf" : "-Inf");
	else
		buf_add_text(out, fmt_f64(number, value));
	buf_add_char(out, '\n');
}
