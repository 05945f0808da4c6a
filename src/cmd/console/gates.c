/* SPDX-License-Identifier: Apache-2.0 */
/* gates.c - see gates.h. */
#include "cmd/console/gates.h"

#include <stdio.h>
#include <string.h>

#include "cmd/console/target.h"
#include "core/base/file.h"

int gates_begin_with(struct gates *g, const struct gate_opts *o, struct gate *gate, size_t n,
		     const char *needs, struct arena *a, struct err *e)
{
	*g = (struct gates){ .o = o, .gate = gate, .n = n,
			     .log = { .a = a, .is_unjudged_allowed = o->allow_unjudged } };
	if (!n && (o->junit || o->summary))
		return err_set(e, ERR_USAGE, "--%s: there is no condition to report on; %s",
			       o->junit ? "junit" : "summary", needs);
	if (o->junit && target_check("--junit", o->junit, e) < 0)
		return -1;
	return o->summary ? target_check("--summary", o->summary, e) : 0;
}

int gates_begin(struct gates *g, const struct gate_opts *o, struct arena *a, struct err *e)
{
	size_t n = o->fail_if.n;
	struct gate *gate = arena_alloc(a, (n + 1) * sizeof(*gate));

	if (n > GATE_CONDITIONS_MAX)
		return err_set(e, ERR_USAGE, "--fail-if: %zu conditions, more than %d", n,
			       GATE_CONDITIONS_MAX);
	for (size_t i = 0; i < n; i++)
		if (gate_parse(&gate[i], str_of(o->fail_if.v[i]), a, e) < 0) {
			if (!strpbrk(o->fail_if.v[i], "<>"))
				err_add(e, "; in a shell it needs quotes");
			return err_wrap(e, "--fail-if");
		}
	return gates_begin_with(g, o, gate, n, "add --fail-if CONDITION", a, e);
}

int gates_judge_json(struct gates *g, struct str json, const char *where, struct err *e)
{
	struct json_value *record;

	if (!g->n)
		return 0;
	if (json_parse(g->log.a, json, &record, e) < 0)
		return err_wrap(e, "the result that --fail-if is to judge");
	gate_judge(g->gate, g->n, record, where, &g->log);
	return 0;
}

static int write_file(const char *option, const char *path, const struct buf *text, struct err *e)
{
	if (text->is_over)
		return err_set(e, ERR_LIMIT, "--%s: the file passes the limit of a buffer", option);
	return file_write_atomic(path, buf_str(text), e) < 0 ? err_wrap(e, "--%s", option) : 0;
}

int gates_end(struct gates *g, const char *title, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	if (!g->n)
		return 0;
	gate_lines(&g->log, &text);
	fflush(stdout);
	if (text.len)
		fputs(text.data, stderr);
	buf_reset(&text);
	if (g->o->junit) {
		gate_junit(&g->log, title, &text);
		rc = write_file("junit", g->o->junit, &text, e);
	}
	buf_reset(&text);
	if (rc == 0 && g->o->summary) {
		gate_markdown(&g->log, title, &text);
		rc = write_file("summary", g->o->summary, &text, e);
	}
	buf_release(&text);
	return rc < 0 ? -1 : gate_is_failed(&g->log) ? GATE_EXIT : 0;
}
