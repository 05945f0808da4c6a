/* SPDX-License-Identifier: Apache-2.0 */
/* run_send.c - see run_verb.h: documents to a dashboard. */
#include "cmd/verbs/named_traces.h"
#include "cmd/verbs/run_verb.h"
#include "core/base/file.h"

static struct upload_opts upload_opts(struct command_run *c, const struct json_value *told)
{
	const struct suite_hooks hooks = run_talk_hooks(&c->talk, -1);
	struct upload_opts o = { .url = c->o.upload, .token_file = c->o.token_file,
				 .cancel = hooks.run.cancel, .self = &c->talk,
				 .line = hooks.run.line, .warn = hooks.run.warn };
	struct str url = json_text(json_get(told, "url"), (struct str){ 0 });
	struct str token = json_text(json_get(told, "token_file"), (struct str){ 0 });

	if (!o.url && url.n)
		o.url = arena_text(&c->arena, url);
	if (!o.token_file && token.n)
		o.token_file = arena_text(&c->arena, token);
	return o;
}

int run_upload_check(struct command_run *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < c->suite.n; i++) {
		const struct json_value *output = json_get(c->suite.member[i].config, "output");
		struct upload_opts o = upload_opts(c, json_get(output, "upload"));

		if (o.url && c->suite.member[i].is_chosen)
			rc = upload_check(&o, e);
	}
	return rc;
}

/* The traces of the member, which lie below its document or in a folder of its own. */
static void find_traces(struct command_run *c, const struct suite_member *m, struct str document,
			struct arena *a, struct upload_opts *o)
{
	struct str note;

	if (c->o.no_upload_traces)
		return;
	named_traces(document, m->path, m->x.output.folder, a, o, &note);
	if (note.n)
		cli_warn(arena_printf(a, "%s: %.*s", m->label, (int)note.n, note.p));
}

/* *is_sent: it has arrived, so what waits may be tried, too. */
static int upload_one(struct command_run *c, const struct suite_member *m, bool *is_sent,
		      struct err *e)
{
	const struct json_value *output = json_get(m->config, "output");
	struct upload_opts o = upload_opts(c, json_get(output, "upload"));
	struct arena a = { 0 };
	struct buf text = { 0 };
	int rc;

	if (!o.url || !file_exists(m->path))
		return 0;
	rc = file_read(m->path, BUF_BYTES_MAX, &text, e);
	if (rc == 0) {
		find_traces(c, m, buf_str(&text), &a, &o);
		rc = upload_document(&o, buf_str(&text), m->label, e);
	}
	*is_sent |= rc == UPLOAD_SENT;
	buf_release(&text);
	arena_release(&a);
	return rc < 0 ? -1 : 0;
}

int run_upload(struct command_run *c, struct err *e)
{
	struct err one = { 0 };
	struct upload_opts waiting = upload_opts(c, NULL);
	bool is_sent = false;

	for (size_t i = 0; i < c->suite.n; i++) {
		if (!c->suite.member[i].is_chosen ||
		    upload_one(c, &c->suite.member[i], &is_sent, &one) == 0)
			continue;
		if (e->code)
			cli_warn(one.text);
		else
			*e = one;
	}
	if (is_sent)
		upload_spool(&waiting, NULL, NULL);
	return e->code ? -1 : 0;
}

int run_send_spool(struct command_run *c, struct err *e)
{
	struct upload_opts o = upload_opts(c, NULL);
	size_t left = 0;
	int sent;

	o.is_moved = o.url != NULL;
	if (o.is_moved && upload_check(&o, e) < 0)
		return -1;
	sent = upload_spool(&o, &left, e);

	if (sent < 0)
		return -1;
	printf("%d sent, %zu waiting\n", sent, left);
	return left ? RUN_EXIT_FAILED : 0;
}
