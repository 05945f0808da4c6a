/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - see container.h. */
#include "experiment/config/container.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "host/proc/keeper.h"
#include "host/proc/roster.h"
#include "host/proc/tool.h"
#include "host/proc/tree.h"

/*
 * Shared by the files of a container only.
 *
 *   container.c       the object and its words
 *   container_life.c  calls of the runtime: begin, end, clean
 */

#define CONTAINER_OWNER "profllm.owner" /* label: HOST USER PID START BOOT NAMESPACE */

/* ---- the object ---- */

static int wrong(struct err *e, const char *key, const char *expected)
{
	return err_set(e, ERR_USAGE, "server.container.%s: expected %s", key, expected);
}

static bool is_text(const struct json_value *v)
{
	return v && v->kind == JSON_STRING && v->text.n > 0;
}

static bool is_texts(const struct json_value *v)
{
	if (!v || v->kind != JSON_ARRAY)
		return false;
	for (size_t i = 0; i < v->count; i++)
		if (!is_text(&v->item[i]))
			return false;
	return true;
}

static bool is_one_of(const struct json_value *v, const char *a, const char *b)
{
	return is_text(v) && (str_is(v->text, a) || str_is(v->text, b));
}

static bool is_flat(const struct json_value *v)
{
	if (v->kind != JSON_OBJECT)
		return false;
	for (size_t i = 0; i < v->count; i++)
		if (v->item[i].kind == JSON_ARRAY || v->item[i].kind == JSON_OBJECT ||
		    !v->key[i].n || memchr(v->key[i].p, '=', v->key[i].n))
			return false;
	return true;
}

static bool is_mounts(const struct json_value *v)
{
	if (!is_texts(v))
		return false;
	for (size_t i = 0; i < v->count; i++)
		if (!memchr(v->item[i].text.p, ':', v->item[i].text.n))
			return false;
	return true;
}

static int check_one(struct str key, const struct json_value *v, struct err *e)
{
	if (str_is(key, "runtime"))
		return is_one_of(v, "docker", "podman") ? 0 : wrong(e, "runtime", "docker or podman");
	if (str_is(key, "image"))
		return is_text(v) && *v->text.p != '-' ? 0 : wrong(e, "image", "an image's name");
	if (str_is(key, "network"))
		return is_one_of(v, "host", "bridge") ? 0 : wrong(e, "network", "host or bridge");
	if (str_is(key, "gpus"))
		return is_one_of(v, "all", "none") ? 0 :
			wrong(e, "gpus", "all or none; without it those of the experiment");
	if (str_is(key, "mounts"))
		return is_mounts(v) ? 0 :
			wrong(e, "mounts", "a list of texts, each SOURCE:TARGET or SOURCE:TARGET:ro");
	if (str_is(key, "env"))
		return is_flat(v) ? 0 : wrong(e, "env", "an object of names and texts");
	if (str_is(key, "args"))
		return is_texts(v) ? 0 : wrong(e, "args", "a list of texts");
	return err_set(e, ERR_USAGE, "server.container.%.*s: unknown key; there are runtime, image, "
		       "network, gpus, mounts, env, args", (int)key.n, key.p);
}

int container_check(const struct json_value *container, struct err *e)
{
	if (!container || container->kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "server.container: expected an object with an image");
	for (size_t i = 0; i < container->count; i++)
		if (check_one(container->key[i], &container->item[i], e) < 0)
			return -1;
	if (!json_get(container, "image"))
		return err_set(e, ERR_USAGE, "server.container.image is missing: expected an image's "
			       "name, such as vllm/vllm-openai:v0.11.0");
	return 0;
}

/* ---- words ---- */

struct maker {
	struct arena *arena;
	char **word, **env;
	size_t n, n_env;
	const struct json_value *given;
	bool is_podman;
};

static void add(struct maker *m, const char *word)
{
	m->word[m->n++] = arena_printf(m->arena, "%s", word);
}

static void add_both(struct maker *m, const char *option, const char *value)
{
	add(m, option);
	add(m, value);
}

static const char *text_of(const struct maker *m, const char *key, const char *otherwise)
{
	return arena_text(m->arena, json_text(json_get(m->given, key), str_of(otherwise)));
}

/* This process, in the form of the label. */
static void owner_label(struct buf *out)
{
	struct tree_process self = { 0 };
	struct roster here;

	roster_init(&here);
	tree_process_read(getpid(), &self);
	buf_printf(out, "%s %u %d %llu %s", here.host, (unsigned)geteuid(), (int)getpid(),
		   (unsigned long long)self.start, here.boot);
	roster_release(&here);
}

static const char *name_of(struct maker *m, const char *run_id, const char *server)
{
	char *name = arena_printf(m->arena, "profllm-%s-%s", run_id, server);

	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.' && *c != '-')
			*c = '-';
	return name;
}

static bool has_arg(const struct maker *m, const char *name)
{
	const struct json_value *args = json_get(m->given, "args");

	for (size_t i = 0; args && i < args->count; i++)
		if (str_starts(args->item[i].text, str_of(name)))
			return true;
	return false;
}

/* -e NAME=VALUE; a secret's value is passed in the runtime's own environment. */
static void add_variable(struct maker *m, struct str name, struct str value)
{
	struct buf room = { 0 };
	const char *line = arena_printf(m->arena, "%.*s=%.*s", (int)name.n, name.p, (int)value.n,
					value.n ? value.p : "");

	if (!redact_is_secret(name) && redact_data(value, &room).p == value.p) {
		add_both(m, "-e", line);
		return;
	}
	buf_release(&room);
	add_both(m, "-e", arena_text(m->arena, name));
	m->env[m->n_env++] = (char *)(uintptr_t)line;
}

static void add_env(struct maker *m, char *const *env)
{
	const struct json_value *own = json_get(m->given, "env");

	for (; env && *env; env++) {
		struct str value = str_of(*env);
		struct str name = str_cut(&value, '=');

		add_variable(m, name, value);
	}
	for (size_t i = 0; own && i < own->count; i++) {
		const struct json_value *v = &own->item[i];
		struct str value = v->kind == JSON_STRING ? v->text : v->raw;

		if (v->kind == JSON_TRUE || v->kind == JSON_FALSE)
			value = v->kind == JSON_TRUE ? STR("1") : STR("0");
		add_variable(m, own->key[i], value);
	}
}

/* docker reads the value as a line of CSV, so a list needs quotes. */
static void add_gpus(struct maker *m, const struct container_how *how)
{
	const char *want = text_of(m, "gpus", "");
	bool is_all = strcmp(want, "all") == 0;
	struct buf list = { 0 };

	if (strcmp(want, "none") == 0 || (!is_all && (!how->gpu || !how->gpu[0])))
		return;
	if (how->is_amd) {
		add_both(m, "--device", "/dev/kfd");
		add_both(m, "--device", "/dev/dri");
		add_both(m, "--group-add", "video");
	} else if (m->is_podman && is_all) {
		add_both(m, "--device", "nvidia.com/gpu=all");
	} else if (is_all) {
		add_both(m, "--gpus", "all");
	}
	for (size_t i = 0; !is_all && how->gpu[i]; i++) {
		buf_printf(&list, "%s%s", i ? "," : "", how->gpu[i]);
		if (m->is_podman && !how->is_amd)
			add_both(m, "--device", arena_printf(m->arena, "nvidia.com/gpu=%s",
							     how->gpu[i]));
	}
	if (list.len && how->is_amd)
		add_variable(m, STR("ROCR_VISIBLE_DEVICES"), buf_str(&list));
	else if (list.len && !m->is_podman)
		add_both(m, "--gpus", arena_printf(m->arena, "\"device=%s\"", list.data));
	buf_release(&list);
}

static void add_mounts(struct maker *m, const struct container_how *how)
{
	const struct json_value *mounts = json_get(m->given, "mounts");

	for (size_t i = 0; mounts && i < mounts->count; i++)
		add_both(m, "-v", arena_text(m->arena, mounts->item[i].text));
	if (how->folder)
		add_both(m, "-v", arena_printf(m->arena, "%s:%s", how->folder, how->folder));
}

static void add_run(struct maker *m, const struct container_how *how, const char *name)
{
	struct buf owner = { 0 };

	owner_label(&owner);
	add(m, "run");
	add(m, "--rm");
	add_both(m, "--name", name);
	add_both(m, "--label", arena_printf(m->arena, CONTAINER_OWNER "=%s", owner.data));
	add_both(m, "--label", arena_printf(m->arena, "profllm.run=%s", how->run_id));
	buf_release(&owner);
	if (strcmp(text_of(m, "network", "host"), "host") == 0)
		add_both(m, "--network", "host");
	else
		add_both(m, "-p", arena_printf(m->arena, "127.0.0.1:%u:%u", how->port, how->port));
	/* Processes of one engine share memory; a container's 64 MB are not enough. */
	if (!has_arg(m, "--ipc") && !has_arg(m, "--shm-size"))
		add_both(m, "--ipc", "host");
}

/*
 * The command's first word is the entry point, whatever the image has: vLLM's images changed
 * theirs, and with it how the model is given.
 */
static void add_command(struct maker *m, const struct container_how *how)
{
	bool is_bridge = strcmp(text_of(m, "network", "host"), "bridge") == 0;

	add_both(m, "--entrypoint", how->words[0]);
	add(m, text_of(m, "image", ""));
	for (char *const *word = how->words + 1; *word; word++) {
		add(m, *word);
		if (is_bridge && strcmp(*word, "--host") == 0 && word[1]) {
			add(m, "0.0.0.0");
			word++;
		}
	}
}

static size_t entries(const struct json_value *object, const char *key)
{
	const struct json_value *v = json_get(object, key);

	return v && (v->kind == JSON_ARRAY || v->kind == JSON_OBJECT) ? v->count : 0;
}

static char **remove_words(struct arena *a, const struct container *c)
{
	const char *words[] = { c->runtime, "rm", "-f", c->name };
	struct word_list list = { .arena = a };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		words_add(&list, (char *)(uintptr_t)words[i]);
	return list.v;
}

int container_words(const struct experiment_server *s, const struct container_how *how,
		    struct arena *a, struct container *out, struct err *e)
{
	struct maker m = { .arena = a, .given = s->container };
	size_t lines = words_count(how->env) + entries(s->container, "env") + 1, gpus = 0, room;

	if (container_check(s->container, e) < 0)
		return -1;
	while (how->gpu && how->gpu[gpus])
		gpus++;
	room = 32 + words_count(how->words) + 2 * (lines + gpus + entries(s->container, "mounts")) +
	       entries(s->container, "args");
	m.word = arena_alloc(a, room * sizeof(*m.word));
	m.env = arena_alloc(a, (lines + 1) * sizeof(*m.env));
	out->runtime = text_of(&m, "runtime", "docker");
	out->image = text_of(&m, "image", "");
	out->name = name_of(&m, how->run_id, s->name);
	m.is_podman = strcmp(out->runtime, "podman") == 0;
	add(&m, out->runtime);
	add_run(&m, how, out->name);
	add_gpus(&m, how);
	add_mounts(&m, how);
	add_env(&m, how->env);
	for (size_t i = 0; i < entries(s->container, "args"); i++)
		add(&m, arena_text(a, json_get(s->container, "args")->item[i].text));
	add_command(&m, how);
	m.word[m.n] = m.env[m.n_env] = NULL;
	out->argv = m.word;
	out->remove = remove_words(a, out);
	out->env = m.env;
	out->digest = NULL;
	return 0;
}

/* ---- what is asked of docker or podman ---- */

#define ASK_TIMEOUT_S 60  /* an answer of the daemon */
#define END_EXTRA_S 30    /* beyond the grace */

static void warn(const struct experiment_hooks *hooks, const char *text)
{
	if (hooks && hooks->warn)
		hooks->warn(hooks->self, text);
}

static void line(const struct experiment_hooks *hooks, const char *text)
{
	if (hooks && hooks->line)
		hooks->line(hooks->self, text);
}

/* The last non-empty line. */
static struct str last_line(struct str text)
{
	struct str last = { 0 };

	while (text.n) {
		struct str one = str_trim(str_cut(&text, '\n'));

		if (one.n && !str_starts(one, STR("See '")))
			last = one;
	}
	return last;
}

/* Returns the exit status; out and errors get its output. -1: it could not be started or hung. */
static int ask(const char *const *argv, unsigned timeout_s, struct buf *out, struct buf *errors,
	       struct err *e)
{
	buf_reset(out);
	buf_reset(errors);
	return tool_run(argv, (struct str){ 0 }, timeout_s, out, errors, e);
}

static int refused(const char *const *argv, int rc, const struct buf *errors, struct err *e)
{
	struct str why = last_line(buf_str(errors));

	if (rc < 0)
		return -1;
	return err_set(e, ERR_RUN, "%s %s: %.*s (exit status %d)", argv[0], argv[1],
		       (int)(why.n < 600 ? why.n : 600), why.n ? why.p : "", rc);
}

/* ---- those of dead owners ---- */

/* "HOST USER PID START BOOT NAMESPACE" of a process that does not exist any more. */
static bool is_owner_dead(struct str label)
{
	struct str host = str_cut(&label, ' '), user = str_cut(&label, ' ');
	struct str pid = str_cut(&label, ' '), start = str_cut(&label, ' ');
	struct str boot, space, here_space;
	struct roster here;
	uint64_t uid, number, began;
	bool is_dead = false;

	label = str_trim(label);
	space = label;
	boot = str_cut(&space, ' ');
	roster_init(&here);
	here_space = str_of(here.boot);
	if (str_is(host, here.host) && str_to_u64(user, &uid) && uid == geteuid() &&
	    str_to_u64(pid, &number) && number > 1 && number <= PROC_TREE_MAX &&
	    str_to_u64(start, &began)) {
		struct str here_boot = str_cut(&here_space, ' ');

		/*
		 * After a reboot no such process exists; in another PID namespace its number says
		 * nothing.
		 */
		if (!str_eq(boot, here_boot))
			is_dead = true;
		else if (str_eq(space, here_space))
			is_dead = !tree_is_running((pid_t)number, began);
	}
	roster_release(&here);
	return is_dead;
}

static void end_one(const char *runtime, struct str id, struct str name,
		    const struct experiment_hooks *hooks, int *ended)
{
	char one[128];
	const char *argv[] = { runtime, "rm", "-f", one, NULL };
	struct buf out = { 0 }, errors = { 0 }, text = { 0 };
	struct err e = { 0 };
	int rc;

	snprintf(one, sizeof(one), "%.*s", (int)id.n, id.p);
	rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, &e);
	if (rc == 0) {
		++*ended;
		buf_printf(&text, "ended container %.*s that an earlier run left when it was killed",
			   (int)name.n, name.p);
	} else {
		refused(argv, rc, &errors, &e);
		buf_printf(&text, "container %.*s, which an earlier run left, cannot be ended: %s",
			   (int)name.n, name.p, e.text);
	}
	warn(hooks, text.data);
	buf_release(&out);
	buf_release(&errors);
	buf_release(&text);
}

/* Inspects one container at a time: one that ends meanwhile must not hide the others. */
static void look_at(const char *runtime, struct str id, const struct experiment_hooks *hooks,
		    int *ended)
{
	char one[128];
	const char *argv[] = { runtime, "inspect", "--format",
		"{{.Name}} {{index .Config.Labels \"" CONTAINER_OWNER "\"}}", one, NULL };
	struct buf out = { 0 }, errors = { 0 };
	struct str label, name;

	snprintf(one, sizeof(one), "%.*s", (int)id.n, id.p);
	if (ask(argv, ASK_TIMEOUT_S, &out, &errors, NULL) == 0) {
		label = str_trim(buf_str(&out));
		name = str_cut(&label, ' ');
		if (name.n && *name.p == '/')
			name = (struct str){ name.p + 1, name.n - 1 };
		if (is_owner_dead(label))
			end_one(runtime, id, name, hooks, ended);
	}
	buf_release(&out);
	buf_release(&errors);
}

/*
 * Ends this user's containers whose owner is dead and reports it. Returns how many. -1: e says why.
 */
static int clean(const char *runtime, const struct experiment_hooks *hooks, struct err *e)
{
	const char *argv[] = { runtime, "ps", "-aq", "--filter", "label=" CONTAINER_OWNER, NULL };
	struct buf out = { 0 }, errors = { 0 };
	int ended = 0, rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, e);
	struct str rest = buf_str(&out);

	if (rc)
		ended = refused(argv, rc, &errors, e);
	while (rc == 0 && rest.n) {
		struct str id = str_trim(str_cut(&rest, '\n'));

		if (id.n)
			look_at(runtime, id, hooks, &ended);
	}
	buf_release(&out);
	buf_release(&errors);
	return ended;
}

/* ---- begin ---- */

/* 1: filled; 0: the image is not there. */
static int digest_read(struct container *c, struct arena *a, struct err *e)
{
	const char *argv[] = { c->runtime, "image", "inspect", "--format",
		"{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}", c->image, NULL };
	struct buf out = { 0 }, errors = { 0 };
	int rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, e);
	struct str line_1 = str_trim(buf_str(&out));

	if (rc == 0 && line_1.n)
		c->digest = arena_text(a, line_1);
	buf_release(&out);
	buf_release(&errors);
	return rc < 0 ? -1 : rc == 0;
}

/* Takes minutes for large images; Ctrl-C ends it. */
static int pull(const struct container *c, const struct experiment_hooks *hooks, struct err *e)
{
	const char *argv[] = { c->runtime, "pull", c->image, NULL };
	struct buf text = { 0 };
	char bytes[4096];
	int fd = file_unnamed(NULL), rc;
	ssize_t n;

	buf_printf(&text, "Pulling image %s", c->image);
	line(hooks, text.data);
	buf_reset(&text);
	rc = child_run(&(struct child_opts){ .argv = (char *const *)(uintptr_t)argv, .out_fd = fd,
					     .err_fd = fd, .grace_s = 5,
					     .cancel = hooks ? hooks->cancel : NULL }, e);
	if (rc > 0 && fd >= 0) {
		for (off_t at = 0; (n = pread(fd, bytes, sizeof(bytes), at)) > 0; at += n)
			buf_add(&text, bytes, (size_t)n);
		refused(argv, rc, &text, e);
		err_wrap(e, "server.container.image %s", c->image);
	}
	if (fd >= 0)
		close(fd);
	buf_release(&text);
	return rc == 0 ? 0 : -1;
}

int container_begin(struct container *c, struct arena *a, const struct experiment_hooks *hooks,
		    struct err *e)
{
	int rc;

	if (!tool_exists(c->runtime))
		return err_set(e, ERR_USAGE, "server.container.runtime: %s is not in PATH",
			       c->runtime);
	if (clean(c->runtime, hooks, e) < 0)
		return -1;
	rc = digest_read(c, a, e);
	if (rc == 0)
		rc = pull(c, hooks, e) < 0 ? -1 : digest_read(c, a, e);
	return rc < 0 ? -1 : 0;
}

/* ---- end ---- */

static bool is_there(const struct container *c, struct err *e, bool *is_known)
{
	char filter[256];
	const char *argv[] = { c->runtime, "ps", "-aq", "--filter", filter, NULL };
	struct buf out = { 0 }, errors = { 0 };
	bool is;

	snprintf(filter, sizeof(filter), "name=^%s$", c->name);
	int rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, e);

	if (rc)
		refused(argv, rc, &errors, e);
	*is_known = rc == 0;
	is = rc == 0 && str_trim(buf_str(&out)).n > 0;
	buf_release(&out);
	buf_release(&errors);
	return is;
}

int container_end(const struct container *c, double grace_s, struct err *e)
{
	char seconds[32];
	const char *stop[] = { c->runtime, "stop", "-t", seconds, c->name, NULL };
	const char *rm[] = { c->runtime, "rm", "-f", c->name, NULL };
	struct buf out = { 0 }, errors = { 0 };
	struct err why = { 0 };
	bool is_known, is = is_there(c, e, &is_known);
	int rc;

	if (!is_known)
		return -1;
	if (!is)
		return 0;
	snprintf(seconds, sizeof(seconds), "%.0f", grace_s);
	rc = ask(stop, (unsigned)grace_s + END_EXTRA_S, &out, &errors, &why);
	if (rc)
		refused(stop, rc, &errors, &why);
	is = is_there(c, e, &is_known);
	if (is_known && is) {
		rc = ask(rm, ASK_TIMEOUT_S, &out, &errors, &why);
		if (rc)
			refused(rm, rc, &errors, &why);
		is = is_there(c, e, &is_known);
	}
	buf_release(&out);
	buf_release(&errors);
	if (!is_known)
		return -1;
	if (is && !why.text[0])
		err_set(&why, ERR_RUN, "it is still there after %s rm -f", c->runtime);
	return is ? err_set(e, ERR_RUN, "container %s cannot be ended: %s", c->name, why.text) : 0;
}
