/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_child.c - see suite_internal.h: the input of a member that is a process of its own. The
 * configuration is the merged one: the file that the user gave may have been edited since.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <math.h>
#include <limits.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/json/write.h"
#include "experiment/suite/suite_internal.h"
#include "host/proc/tool.h"

#define WAIT_S 60 /* for GPUs that another child is about to give back */

/* The spelling in the file, if it says more than the value: "1.10", "yes". A child reads YAML. */
static void add_scalar(struct buf *out, const struct json_value *v)
{
	struct json_writer w = json_writer(out);
	struct str raw = v->raw;
	bool is_text = raw.n && memchr(raw.p, 'e', raw.n) && !memchr(raw.p, '.', raw.n);

	if (v->kind == JSON_STRING)
		json_quote(out, v->text, true);
	else if (v->kind == JSON_REAL && isinf(v->real))
		buf_add_text(out, v->real < 0 ? "-.inf" : ".inf");
	else if (raw.n && (v->kind != JSON_REAL || !is_text)) /* 1e5 is a text there */
		buf_add_str(out, raw);
	else
		json_put_value(&w, v);
}

static void add_value(struct buf *out, const struct json_value *v)
{
	bool is_object = v->kind == JSON_OBJECT;

	if (!is_object && v->kind != JSON_ARRAY) {
		add_scalar(out, v);
		return;
	}
	buf_add_char(out, is_object ? '{' : '[');
	for (size_t i = 0; i < v->count; i++) {
		buf_add_text(out, i ? ", " : "");
		if (is_object) {
			json_quote(out, v->key[i], true);
			buf_add_text(out, ": ");
		}
		add_value(out, &v->item[i]);
	}
	buf_add_char(out, is_object ? '}' : ']');
}

/* The differences of a child: where its files go, that it waits for others' GPUs, no upload. */
static const struct json_value *child_tree(const struct suite *s, const struct suite_member *m,
					   struct err *e)
{
	struct json_value folder = { .kind = JSON_STRING, .text = str_of(m->folder) }, null = { 0 };
	struct json_value wait = { .kind = JSON_INT, .integer = WAIT_S };
	const struct json_value *tree = config_put(s->config, m->config, "output.folder", &folder,
						   e);

	if (tree) /* a member's is ignored, as it is without children */
		tree = config_without(s->config, tree, "include");
	if (tree)
		tree = config_put(s->config, tree, "output.upload", &null, e);
	if (tree && m->x.resources.wait_s < WAIT_S)
		tree = config_put(s->config, tree, "resources.wait_s", &wait, e);
	return tree;
}

int suite_child_config(const struct suite *s, const struct suite_member *m, struct buf *out,
		       struct err *e)
{
	const struct json_value *tree = child_tree(s, m, e);
	struct buf text = { .limit = 4 * (size_t)EXPERIMENT_BYTES_MAX };
	int rc = tree ? 0 : -1;

	out->limit = 2 * text.limit;
	if (tree)
		add_value(&text, tree);
	for (size_t i = 0; i < text.len; i++) {
		buf_add_char(out, text.data[i]);
		if (text.data[i] == '$')
			buf_add_char(out, '$');
	}
	if (text.is_over || out->is_over)
		rc = err_set(e, ERR_LIMIT, "the configuration of %s has more than %zu bytes", m->label,
			     text.limit);
	buf_release(&text);
	return rc;
}

char **suite_child_words(const struct suite_sitting *t, const struct suite_member *m,
			 const char *program, const char *config, struct arena *a)
{
	char *stem = m->test ? suite_imported_stem(t->s, m) : NULL;
	char *own[] = {
		arena_text(a, str_of(program)), arena_text(a, STR("run")),
		arena_text(a, STR("--member")),
		arena_printf(a, "%u/%u@%016llx%s%s", m->x.repeat, m->x.repeats,
			     (unsigned long long)m->x.hash, stem ? ":" : "", stem ? stem : ""),
		arena_text(a, STR("--config")), arena_text(a, str_of(config)),
		arena_text(a, STR("--output")), arena_text(a, str_of(m->path)), NULL,
	};
	struct word_list argv = { .arena = a };

	for (char **word = own; *word; word++)
		words_add(&argv, *word);
	for (char *const *word = t->o->child_words; word && *word; word++)
		words_add(&argv, *word);
	free(stem);
	return argv.v;
}

/* ---- for another machine ---- */

/* Texts of a configuration may be secret: owner only. */
static int write_own(const char *path, struct str text, struct err *e)
{
	return file_write_atomic_mode(path, text, 0600, e);
}

/*
 * The last word replaces the shell, so that a signal for the member reaches it. --resume: a member
 * that has ended before, and is started once more because the node was lost at that moment, is not
 * measured twice.
 */
static void script_text(const struct suite_sitting *t, const struct suite_member *m,
			const char *program, const char *config, const char *const *more,
			struct buf *out)
{
	struct arena a = { 0 };
	char cwd[PATH_MAX];

	buf_printf(out, "#!/bin/sh\n# One experiment of profllm run: what its scheduler starts.\ncd ");
	words_quote(out, str_of(getcwd(cwd, sizeof(cwd)) ? cwd : "."));
	buf_printf(out, " || exit %d\nexec", SUITE_NO_FOLDER);
	for (char **word = suite_child_words(t, m, program, config, &a); *word; word++) {
		buf_add_char(out, ' ');
		words_quote(out, str_of(*word));
	}
	buf_add_text(out, " --resume");
	for (; more && *more; more++)
		buf_printf(out, " %s", *more);
	buf_add_char(out, '\n');
	arena_release(&a);
}

int suite_child_files(const struct suite_sitting *t, const struct suite_member *m,
		      const char *stem, const char *const *more, struct err *e)
{
	struct buf config = { 0 }, script = { 0 }, path = { 0 }, program = { 0 };
	const char *given = t->s->scheduler.program;
	int rc = suite_child_config(t->s, m, &config, e);

	buf_printf(&path, "%s.yaml", stem);
	if (rc == 0)
		rc = write_own(path.data, buf_str(&config), e);
	if (rc == 0 && !given)
		rc = program_path(&program, e);
	if (rc == 0) {
		script_text(t, m, given ? given : program.data, path.data, more, &script);
		buf_reset(&path);
		buf_printf(&path, "%s.sh", stem);
		rc = write_own(path.data, buf_str(&script), e);
	}
	buf_release(&config);
	buf_release(&script);
	buf_release(&path);
	buf_release(&program);
	return rc;
}

void suite_child_forget(const char *stem)
{
	static const char *const ending[] = { ".yaml", ".sh" };
	struct buf path = { 0 };

	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		buf_reset(&path);
		buf_printf(&path, "%s%s", stem, ending[i]);
		unlink(path.data);
	}
	buf_release(&path);
}
