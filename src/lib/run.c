/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - see profllm.h: what `profllm run` does, as a function. */
#include "lib/profllm.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "experiment/suite/suite.h"
#include "host/gpu/gpu.h"
#include "host/proc/tool.h"
#include "version.h"

#define SCRATCH_REMOVE_S 60

extern char **environ;

/* What an outcome's texts are kept in; freed by profllm_release. */
struct own { char *document, *error; };

/* One call. */
struct call {
	struct profllm_request request; /* of the size that this version knows */
	struct arena arena;
	struct config config;
	struct config_know know;
	struct config_findings findings;
	struct suite suite;
	struct suite_opts opts;
	struct suite_checked checked;
	char *scratch;                  /* a folder to be removed; NULL: none */
	struct err err;
};

const char *profllm_version(void)
{
	return PROFLLM_VERSION;
}

unsigned profllm_api(void)
{
	return PROFLLM_API;
}

/* ---- hooks: those of the caller are called as they are ---- */

static void say(void (*to)(void *self, const char *text), void *self, const char *text)
{
	struct buf room = { 0 };
	struct str shown = redact(str_of(text), &room);
	char *copy = mem_copy(shown.n ? shown.p : "", shown.n);

	to(self, copy);
	free(copy);
	buf_release(&room);
}

static void say_line(void *self, const char *text)
{
	const struct profllm_hooks *h = self;

	if (h->line)
		say(h->line, h->self, text);
}

static void say_warning(void *self, const char *text)
{
	const struct profllm_hooks *h = self;

	if (h->warn)
		say(h->warn, h->self, text);
}

static void say_report(void *self, struct str report)
{
	const struct profllm_hooks *h = self;
	struct buf room = { 0 };
	char *text;

	if (!h->report)
		return;
	report = redact_data(report, &room);
	text = mem_copy(report.p, report.n);
	h->report(h->self, text);
	free(text);
	buf_release(&room);
}

static void say_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	const struct profllm_hooks *h = self;

	if (h->progress)
		h->progress(h->self, what, done, total);
}

static void say_child(void *self, const struct suite_member *m, const char *text, bool is_err)
{
	(void)m;
	if (is_err)
		say_warning(self, text);
	else
		say_line(self, text);
}

static void say_lines(struct call *c, struct str text)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (line.n)
			say_warning(&c->request.hooks, arena_text(&c->arena, line));
	}
}

static struct suite_hooks hooks_of(struct call *c)
{
	void *self = &c->request.hooks;

	return (struct suite_hooks){
		.self = self, .child = say_child,
		.run = {
			.self = self, .line = say_line, .text = say_report, .warn = say_warning,
			.progress = say_progress,
			/* One byte that others set: what an atomic_bool is. */
			.cancel = (const atomic_bool *)c->request.cancel,
		},
	};
}

/* ---- before anything is started ---- */

static bool take_request(struct call *c, const struct profllm_request *given)
{
	size_t n = given ? given->size : 0;

	if (n > sizeof(c->request))
		n = sizeof(c->request);
	if (n < offsetof(struct profllm_request, output_path)) {
		err_set(&c->err, ERR_USAGE, "profllm_run: the request has no size; begin with "
			"PROFLLM_REQUEST_INIT");
		return false;
	}
	memcpy(&c->request, given, n);
	if (!c->request.config_path == !c->request.config_text) {
		err_set(&c->err, ERR_USAGE, "profllm_run: expected a config_path or a config_text, got %s",
			c->request.config_path ? "both" : "neither");
		return false;
	}
	return true;
}

static bool read_config(struct call *c)
{
	const struct profllm_request *r = &c->request;
	size_t n = 0;
	int rc;

	while (r->set && r->set[n])
		n++;
	rc = r->config_path ?
		config_read(r->config_path, r->set, n, &c->arena, &c->config, &c->err) :
		config_parse(str_of(r->config_text), "configuration", r->set, n, &c->arena, &c->config,
			     &c->err);
	return rc == 0;
}

/* The document goes to a temporary folder when the configuration names no place for it. */
static bool make_scratch(struct call *c)
{
	const char *tmp = getenv("TMPDIR");
	const struct json_value *output = json_get(c->config.tree, "output");

	if (c->request.output_path || json_text(json_get(output, "path"), STR("")).n) {
		c->opts.output = c->request.output_path;
		return true;
	}
	c->scratch = arena_printf(&c->arena, "%s/profllm-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(c->scratch)) {
		c->scratch = NULL;
		err_set(&c->err, ERR_IO, "no folder can be made in %s", tmp && *tmp ? tmp : "/tmp");
		return false;
	}
	c->opts.output = arena_printf(&c->arena, "%s/results.json", c->scratch);
	return true;
}

/* ---- afterwards ---- */

static void read_document(const struct call *c, struct own *own)
{
	struct buf text = { .limit = UPLOAD_BYTES_MAX };

	if (c->suite.output && file_read(c->suite.output, UPLOAD_BYTES_MAX, &text, NULL) == 0)
		own->document = buf_take(&text);
	buf_release(&text);
}

/* A refused configuration has a document, too, if it names a place that holds no result yet. */
static void refuse(struct call *c, const char *category, struct own *own)
{
	bool is_kept;

	own->error = buf_take(&c->findings.errors);
	if (c->suite.is_single && c->suite.member && !c->scratch &&
	    suite_write_refused(&c->suite.member[0].x, c->suite.output, category, own->error,
				&is_kept, NULL) == 0 && !is_kept)
		read_document(c, own);
}

static int status_of(const struct suite_tally *t)
{
	if (t->is_interrupted)
		return PROFLLM_INTERRUPTED;
	if (t->failed && !t->completed && !t->partial && !t->kept)
		return PROFLLM_FAILED;
	return t->failed || t->partial || t->left ? PROFLLM_PARTIAL : PROFLLM_COMPLETED;
}

static int run_suite(struct call *c, struct own *own)
{
	struct suite_hooks hooks = hooks_of(c);
	struct suite_tally tally;
	int status;

	hooks.checked = &c->checked;
	if (suite_run(&c->suite, &c->opts, &hooks, &tally, &c->err) < 0) {
		status = tally.is_interrupted ? PROFLLM_INTERRUPTED : PROFLLM_FAILED;
		own->error = mem_text(c->err.text);
	} else {
		status = status_of(&tally);
		if (status == PROFLLM_FAILED)
			own->error = mem_text(tally.single && tally.single->reason ?
				tally.single->reason : "no experiment of the suite was completed");
		/* Otherwise the file there may be another run's. */
		read_document(c, own);
	}
	suite_tally_release(&tally);
	return status;
}

static int run(struct call *c, const struct profllm_request *request, struct own *own)
{
	int status = PROFLLM_REFUSED;

	if (!take_request(c, request) || !read_config(c) || !make_scratch(c)) {
		own->error = mem_text(c->err.text);
		return status;
	}
	config_know_gpus(&c->know);
	if (suite_expand(&c->config, &c->know, &c->opts, &c->suite, &c->findings) < 0) {
		refuse(c, "bad configuration", own);
	} else {
		struct suite_hooks hooks = hooks_of(c);
		bool is_sound = suite_check(&c->suite, &c->opts, false, &hooks.run, &c->checked,
					    &c->findings) == 0;

		say_lines(c, buf_str(&c->findings.notes));
		if (is_sound)
			status = run_suite(c, own);
		else if (c->checked.is_cancelled)
			status = PROFLLM_INTERRUPTED;
		else
			status = c->checked.is_world ? PROFLLM_FAILED : PROFLLM_REFUSED;
		if (!is_sound && !c->checked.is_cancelled)
			refuse(c, c->checked.category, own);
	}
	suite_checked_release(&c->checked);
	suite_release(&c->suite);
	return status;
}

static void remove_scratch(const struct call *c)
{
	struct buf said = { 0 };

	if (c->scratch)
		tool_run((const char *const[]){ "rm", "-rf", c->scratch, NULL }, (struct str){ 0 },
			 SCRATCH_REMOVE_S, &said, NULL, NULL);
	buf_release(&said);
}

int profllm_run(const struct profllm_request *request, struct profllm_outcome *outcome)
{
	struct call *c;
	struct own *own;
	locale_t host;
	int status;

	redact_learn_lines(environ);
	if (outcome->size < sizeof(*outcome)) /* no initialiser: no place for a word of why */
		return PROFLLM_REFUSED;
	host = uselocale(fmt_c_locale());
	c = mem_alloc(sizeof(*c));
	own = mem_alloc(sizeof(*own));
	status = run(c, request, own);
	remove_scratch(c);
	config_findings_release(&c->findings);
	arena_release(&c->arena);
	free(c);
	uselocale(host);
	outcome->status = status;
	outcome->document = own->document;
	outcome->error = own->error;
	outcome->own = own;
	return status;
}

void profllm_release(struct profllm_outcome *outcome)
{
	struct own *own = outcome->own;

	if (own) {
		free(own->document);
		free(own->error);
		free(own);
	}
	outcome->own = NULL;
	outcome->document = outcome->error = NULL;
}
