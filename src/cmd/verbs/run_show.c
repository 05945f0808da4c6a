/* SPDX-License-Identifier: Apache-2.0 */
/* run_show.c - see run_verb.h: what is only shown. */
#include "cmd/verbs/run_verb.h"
#include "core/base/file.h"
#include "core/base/redact.h"
#include "core/json/write.h"
#include "experiment/suite/check.h"
#include "experiment/suite/suite.h"

int run_plan(struct command_run *c, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	if (c->o.plan) {
		suite_plan_json(&c->suite, &c->asked, &text);
		if (strcmp(c->o.plan, "-") == 0)
			cli_out(buf_str(&text));
		else
			rc = file_write_atomic(c->o.plan, buf_str(&text), e);
		buf_reset(&text);
	}
	if (c->o.dry_run) {
		suite_plan_text(&c->suite, &c->asked, &text);
		cli_out(buf_str(&text));
	}
	buf_release(&text);
	return rc;
}

static bool check_one(struct command_run *c, const struct suite_member *m,
		      const struct experiment_hooks *hooks)
{
	const struct check_opts o = { .hooks = hooks, .upload_url = c->o.upload,
				      .token_file = c->o.token_file, .is_smoke = true };
	struct buf table = { 0 };
	struct check check;
	bool is_good;

	check_experiment(&m->x, &o, &check);
	run_talk_clear(&c->talk);
	check_table(&m->x, &check, &table);
	cli_out(buf_str(&table));
	is_good = check_passed(&check);
	buf_release(&table);
	check_release(&check);
	return is_good;
}

int run_check(struct command_run *c)
{
	struct suite_hooks hooks = run_talk_hooks(&c->talk, -1);
	int status = 0;

	hooks.run.line = NULL;
	hooks.run.text = NULL;
	for (size_t i = 0; i < c->suite.n && !*cli_is_interrupted(); i++) {
		const struct suite_member *m = &c->suite.member[c->suite.order[i]];

		if (m->is_chosen && !check_one(c, m, &hooks.run))
			status = RUN_EXIT_FAILED;
	}
	return *cli_is_interrupted() ? RUN_EXIT_INTERRUPTED : status;
}

/* What each member was told, and what its benchmark and its servers have by themselves. */
static void print_member(struct json_writer *w, const struct suite_member *m)
{
	json_begin_object(w);
	json_member_text(w, "name", m->label);
	json_member_value(w, "given", m->config);
	json_key(w, "benchmark");
	if (m->x.benchmark)
		json_put_value(w, m->x.benchmark);
	else
		json_put_null(w);
	json_member_object(w, "servers");
	for (size_t i = 0; i < m->x.n_servers; i++) {
		json_key(w, m->x.server[i].name);
		if (m->x.server[i].values)
			json_put_value(w, m->x.server[i].values);
		else
			json_put_null(w);
	}
	json_end_object(w);
	json_end_object(w);
}

void run_print_config(struct command_run *c)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	w.indent = 2;
	w.is_raw_utf8 = true;
	json_begin_array(&w);
	for (size_t i = 0; i < c->suite.n; i++)
		if (c->suite.member[i].is_chosen)
			print_member(&w, &c->suite.member[i]);
	json_end_array(&w);
	buf_add_char(&text, '\n');
	redact_tail(&text, 0, REDACT_SETTINGS);
	cli_out(buf_str(&text));
	buf_release(&text);
}
