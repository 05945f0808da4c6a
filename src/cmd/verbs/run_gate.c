/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_gate.c - see run_verb.h: `require` of an experiment, judged by the documents, so that members
 * that ran as children or were kept by --resume count like the others.
 */
#include "cmd/verbs/run_verb.h"
#include "core/base/limits.h"
#include "results/read/document.h"
#include "results/read/read.h"

int run_gate_check(struct command_run *c, struct gates *g, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < c->suite.n; i++)
		if (c->suite.member[i].is_chosen)
			n += c->suite.member[i].x.n_require;
	return gates_begin_with(g, &c->o.gate, NULL, n, "add require: [CONDITION] to the configuration",
				&c->arena, e);
}

static void judge_member(struct gates *g, const struct suite_member *m, const char *where)
{
	const struct experiment *x = &m->x;
	const struct json_value *row = NULL;
	struct err e = { 0 };
	const struct json_value *v = result_json(m->path, FRAME_FILE_BYTES_MAX, g->log.a, &e);
	struct str reason;

	if (v) {
		row = document_row(v, g->log.a);
		reason = json_text(json_get(json_get(v, "error"), "reason"), STR("it was not measured"));
		err_set(&e, ERR_RUN, "%.*s", (int)reason.n, reason.p);
	}
	if (row)
		gate_judge(x->require, x->n_require, row, where, &g->log);
	else
		gate_judge_none(x->require, x->n_require, e.text, where, &g->log);
}

int run_gate(struct command_run *c, struct gates *g, struct err *e)
{
	const struct suite *s = &c->suite;

	for (size_t i = 0; i < s->n; i++)
		if (s->member[i].is_chosen && s->member[i].x.n_require)
			judge_member(g, &s->member[i], s->is_single ? "" : s->member[i].label);
	return gates_end(g, "profllm run", e);
}
