/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see check.h. */
#include "experiment/check_parts.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "data/datasets.h"
#include "experiment/command.h"
#include "experiment/config.h"
#include "fetch/dashboard.h"
#include "proc/port.h"
#include "proc/tool.h"
#include "run/early.h"

#define GB 1e9
#define DISK_LEAST_BYTES (200 * 1e6)   /* a document, its logs and a record */
#define DISK_SCARCE_BYTES (5 * GB)
#define URL_TIMEOUT_MS 5000

/* ---- rows ---- */

void check_add(struct checking *c, enum check_verdict verdict, const char *what,
	       const char *fmt, ...)
{
	struct check *out = c->out;
	char text[2048];
	va_list args;

	if (out->n == CHECK_ROWS_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	out->row[out->n++] = (struct check_row){
		what, verdict, arena_text(&out->arena, str_of(text)),
	};
}

const char *check_of(struct checking *c, size_t server, const char *what)
{
	if (c->x->n_servers < 2)
		return what;
	return arena_printf(&c->out->arena, "%s of %s", what, c->x->server[server].name);
}

struct str check_text(const struct experiment_server *s, const char *name)
{
	const struct json_value *v = json_get(s->args, name);

	return json_text(v ? v : json_get(s->values, name), (struct str){ 0 });
}

double check_number(const struct experiment_server *s, const char *name, double otherwise)
{
	const struct json_value *v = json_get(s->args, name);
	double number;

	if (!v)
		v = json_get(s->values, name);
	if (v && v->kind == JSON_STRING)
		return str_to_f64(v->text, &number) ? number : otherwise;
	return json_real(v, otherwise);
}

const atomic_bool *check_cancel(const struct checking *c)
{
	return c->o->hooks ? c->o->hooks->cancel : NULL;
}

/* ---- servers ---- */

static bool answers(const char *url, struct fetch_opts how, long *status, struct err *e)
{
	struct fetch_reply reply = { 0 };
	int rc;

	how.timeout_ms = URL_TIMEOUT_MS;
	rc = fetch(url, NULL, &how, &reply, e);
	*status = reply.status;
	fetch_reply_release(&reply);
	return rc == 0;
}

static void attached(struct checking *c, size_t i)
{
	const char *url = arena_printf(&c->out->arena, "%s/health", c->x->server[i].url);
	struct err e = { 0 };
	long status = 0;

	if (!answers(url, (struct fetch_opts){ .cancel = check_cancel(c) }, &status, &e))
		check_add(c, CHECK_FAIL, check_of(c, i, "server"), "%s", e.text);
	else
		check_add(c, status == 200 ? CHECK_PASS : CHECK_NOTE, check_of(c, i, "server"),
			  "%s answers %ld", url, status);
}

static void command(struct checking *c, size_t i)
{
	const struct experiment_server *s = &c->x->server[i];
	const char *what = check_of(c, i, "command"), *path;
	struct err e = { 0 };

	if (command_find(s, &c->out->arena, &path, &e) < 0)
		check_add(c, CHECK_FAIL, what, "%s", e.text);
	else
		check_add(c, CHECK_PASS, what, "%s", path ? path : config_is_sim(s->command) ?
			  "the simulator of this program" : "this program");
}

static void port(struct checking *c, size_t i)
{
	const struct experiment_server *s = &c->x->server[i];
	enum check_verdict busy = c->x->resources.wait_s > 0 ? CHECK_NOTE : CHECK_FAIL;
	pid_t holder = 0;

	if (!s->port) {
		check_add(c, CHECK_PASS, check_of(c, i, "port"), "the first free one of %u to %u",
			  c->x->resources.port_first, c->x->resources.port_last);
		return;
	}
	if (port_look((uint16_t)s->port, NULL, 0, &holder) == PORT_FREE)
		check_add(c, CHECK_PASS, check_of(c, i, "port"), "%u is free", s->port);
	else if (holder)
		check_add(c, busy, check_of(c, i, "port"), "%u is taken by process %d", s->port,
			  (int)holder);
	else
		check_add(c, busy, check_of(c, i, "port"), "%u is taken", s->port);
}

/* ---- GPUs ---- */

static unsigned gpus_wanted(const struct experiment *x)
{
	unsigned n = 0;

	if (x->resources.want == GPUS_NONE)
		return 0;
	if (x->resources.want == GPUS_COUNT)
		return x->resources.count;
	if (x->resources.want == GPUS_LIST) {
		while (x->resources.list && x->resources.list[n])
			n++;
		return n;
	}
	for (size_t i = 0; i < x->n_servers; i++)
		n += x->server[i].url ? 0 : x->server[i].gpus;
	return n;
}

static bool is_sim_alone(const struct experiment *x)
{
	for (size_t i = 0; i < x->n_servers; i++)
		if (!x->server[i].url && !config_is_sim(x->server[i].command))
			return false;
	return true;
}

static bool is_free(const struct checking *c, size_t i, const struct gpu *g)
{
	struct gpu_sample now;

	if (gpu_processes(c->gpus, i, NULL, 0) > 0)
		return false;
	gpu_sample(c->gpus, i, &now);
	return !(now.memory_free_bytes < c->x->resources.memory_free_min * g->memory_bytes);
}

static void gpus(struct checking *c)
{
	size_t n, allowed = 0, available = 0;
	const struct gpu *g = gpu_list(c->gpus, &n);
	unsigned want = gpus_wanted(c->x);
	const char *note = gpu_note(c->gpus);

	for (size_t i = 0; i < n; i++)
		if (g[i].is_allowed && !g[i].is_split && g[i].part < 0) {
			allowed++;
			available += is_free(c, i, &g[i]);
		}
	if (!want || (!allowed && is_sim_alone(c->x)))
		check_add(c, CHECK_PASS, "GPUs", want ? "none here; the simulator needs none" :
			  "none needed");
	else if (!allowed && c->x->resources.want == GPUS_AUTO)
		check_add(c, CHECK_NOTE, "GPUs", "%u would be taken, none is here%s%s: the server runs "
			  "without", want, *note ? ": " : "", note);
	else if (allowed < want)
		check_add(c, CHECK_FAIL, "GPUs", "%u are needed, %zu may be used here%s%s", want, allowed,
			  *note ? ": " : "", note);
	else if (available < want && !c->x->resources.is_shared)
		check_add(c, c->x->resources.wait_s > 0 ? CHECK_NOTE : CHECK_FAIL, "GPUs",
			  "%u are needed, %zu of %zu are free now", want, available, allowed);
	else
		check_add(c, CHECK_PASS, "GPUs", "%u needed, %zu of %zu are free", want, available,
			  allowed);
}

/* ---- what the load needs ---- */

static void tokenizer(struct checking *c, const struct point_early *early, const struct err *e)
{
	const struct serve_opts *o = &c->x->serve;

	if (e->code != ERR_NONE && early->part == PART_TOKENIZER)
		check_add(c, CHECK_FAIL, "tokenizer", "%s", e->text);
	else if (o->skip_tokenizer_init)
		check_add(c, CHECK_SKIP, "tokenizer", "not used");
	else if (early->has_tokenizer)
		check_add(c, CHECK_PASS, "tokenizer", "%s", o->tokenizer ? o->tokenizer : o->model);
	else if (early->waits.code != ERR_NONE)
		check_add(c, CHECK_NOTE, "tokenizer", "%s; the server's own is used if it has /tokenize",
			  early->waits.text);
	else
		check_add(c, CHECK_SKIP, "tokenizer", "not before the rows below pass");
}

static void dataset(struct checking *c, const struct point_early *early, const struct err *e)
{
	const struct serve_opts *o = &c->x->serve;
	bool has_turns = c->x->mode == MODE_MULTI_TURN;
	const char *name = has_turns ? "conversations" : o->dataset_name;
	const char *path = has_turns ? c->x->turns.input_file : o->data.path ? o->data.path :
			   dataset_find(o->dataset_name)->forbids_path ? "made here" : "of the hub";

	if (e->code != ERR_NONE && early->part == PART_DATASET)
		check_add(c, CHECK_FAIL, "dataset", "%s", e->text);
	else if (early->n_requests && early->has_tokenizer && early->waits.code != ERR_NONE)
		check_add(c, CHECK_NOTE, "dataset", "%s, %s: %zu requests; the server is asked for their "
			  "chat template", name, path, early->n_requests);
	else if (early->n_requests)
		check_add(c, CHECK_PASS, "dataset", "%s, %s: %zu requests", name, path,
			  early->n_requests);
	else
		check_add(c, CHECK_SKIP, "dataset", "not before there is a tokenizer");
}

/* What a run prepares before it starts a server. */
static void benchmark(struct checking *c)
{
	struct experiment_hooks none = { .cancel = check_cancel(c) };
	struct point_early early = { 0 };
	struct err e = { 0 };

	experiment_prepare(c->x, c->o->hooks ? c->o->hooks : &none, &early, &e);
	tokenizer(c, &early, &e);
	dataset(c, &early, &e);
	if (e.code != ERR_NONE && early.part == PART_RECORD)
		check_add(c, CHECK_FAIL, "record", "%s", e.text);
	else if (e.code != ERR_NONE && early.part == PART_OPTIONS)
		check_add(c, CHECK_FAIL, "benchmark", "%s", e.text);
	point_early_release(&early);
}

/* ---- where results go ---- */

/* The nearest folder above path that exists. Caller frees. */
static char *nearest_folder(const char *path)
{
	char *at = file_beside(path, ".");
	char *slash;

	while (!file_is_dir(at)) {
		size_t n = strlen(at);

		if (n < 3)
			break;
		at[n - 2] = 0; /* "a/b/." becomes "a/b" */
		slash = strrchr(at, '/');
		if (!slash)
			break;
		memcpy(slash + 1, ".", 2);
	}
	if (!file_is_dir(at)) {
		free(at);
		at = file_beside("x", ".");
	}
	return at;
}

static void disk(struct checking *c)
{
	const char *path = c->x->output.path ? c->x->output.path : "x";
	char *folder = nearest_folder(path);
	struct statvfs fs;
	double left;

	if (access(folder, W_OK) < 0) {
		check_add(c, CHECK_FAIL, "results", "%s cannot be written in: %s", folder, strerror(errno));
	} else if (statvfs(folder, &fs) < 0) {
		check_add(c, CHECK_NOTE, "results", "%s: how much room is left is not told", folder);
	} else {
		left = (double)fs.f_bavail * (double)fs.f_frsize;
		check_add(c, left < DISK_LEAST_BYTES ? CHECK_FAIL :
			  left < DISK_SCARCE_BYTES ? CHECK_NOTE : CHECK_PASS, "results",
			  "%.1f GB are left where %s goes", left / GB,
			  c->x->output.path ? path : "the document");
	}
	free(folder);
}

static void cache_room(struct checking *c)
{
	const char *home = getenv("HF_HOME"), *user = getenv("HOME");
	const char *in = home ? home : user ? user : "/";
	char *folder = nearest_folder(arena_printf(&c->out->arena, "%s/x", in));
	struct statvfs fs;
	double left;

	if (c->download_bytes > 0 && statvfs(folder, &fs) == 0) {
		left = (double)fs.f_bavail * (double)fs.f_frsize;
		check_add(c, left < c->download_bytes ? CHECK_FAIL : CHECK_PASS, "disk for the model",
			  "%.1f GB are to be downloaded, %.1f GB are left", c->download_bytes / GB,
			  left / GB);
	}
	free(folder);
}

static void upload(struct checking *c)
{
	const char *url = c->o->upload_url;
	struct dashboard to;
	struct fetch_opts how;
	struct err e = { 0 };
	long status = 0;

	if (!url)
		return;
	if (dashboard_find(url, c->o->token_file, &to, &e) < 0) {
		check_add(c, CHECK_FAIL, "upload", "%s", e.text);
	} else {
		how = dashboard_opts(&to);
		how.header = NULL;
		how.cancel = check_cancel(c);
		if (answers(to.base.data, how, &status, &e))
			check_add(c, CHECK_PASS, "upload", "%s answers", url);
		else
			check_add(c, CHECK_NOTE, "upload", "%s; documents would wait in the spool",
				  e.text);
	}
	dashboard_release(&to);
}

/* ---- the smoke load ---- */

/* The text at a path of the result's keys as a number; NAN. */
static double result_number(const struct outcome *o, const char *key)
{
	struct arena a = { 0 };
	struct json_value *v;
	double out = NAN;

	if (o->result.n && json_parse(&a, o->result, &v, NULL) == 0)
		out = json_real(json_get(v, key), NAN);
	arena_release(&a);
	return out;
}

static void say_smoke(struct checking *c, const struct outcome *o)
{
	double done = result_number(o, "completed"), ttft = result_number(o, "mean_ttft_ms");

	if (o->status == OUTCOME_COMPLETED && done > 0)
		check_add(c, CHECK_PASS, "smoke load", "%.0f of %d prompts answered, the first token "
			  "after %.1f ms, all of it in %.1f s", done, CHECK_SMOKE_PROMPTS, ttft,
			  o->duration_s);
	else
		check_add(c, CHECK_FAIL, "smoke load", "%s, at stage %s: %s",
			  outcome_status_name(o->status), outcome_stage_name(o->stage),
			  o->reason ? o->reason : "no request was answered");
}

static void smoke(struct checking *c)
{
	struct experiment x = *c->x;
	struct experiment_hooks none = { .cancel = check_cancel(c) };
	const char *tmp = getenv("TMPDIR");
	char *folder = arena_printf(&c->out->arena, "%s/profllm-check-XXXXXX",
				    tmp && *tmp ? tmp : "/tmp");
	struct outcome o = { 0 };
	struct buf said = { 0 };

	if (!mode_is_served(x.mode)) {
		check_add(c, CHECK_SKIP, "smoke load", "only of a server; this is mode %s",
			  experiment_mode_name(x.mode));
		return;
	}
	if (!mkdtemp(folder)) {
		check_add(c, CHECK_FAIL, "smoke load", "%s cannot be made: %s", folder, strerror(errno));
		return;
	}
	x.output = (struct experiment_output){
		.path = arena_printf(&c->out->arena, "%s/check.json", folder), .folder = folder,
	};
	x.profiling.is_enabled = false;
	x.serve.profile = false;
	x.serve.num_prompts = CHECK_SMOKE_PROMPTS;
	x.turns.max_num_requests = (struct opt_int){ true, x.turns.num_clients };
	x.serve.num_warmups = 0;
	x.serve.num_runs = 1;
	x.serve.request_rate = INFINITY;
	x.serve.ramp_up_strategy = NULL;
	x.serve.duration = (struct opt_real){ 0 };
	x.serve.record_path = x.serve.output_json = NULL;
	experiment_run(&x, c->o->hooks ? c->o->hooks : &none, &o);
	say_smoke(c, &o);
	outcome_release(&o);
	tool_run((const char *const[]){ "rm", "-rf", folder, NULL }, (struct str){ 0 }, 60, &said, NULL,
		 NULL);
	buf_release(&said);
}

/* ---- all of it ---- */

void check_experiment(const struct experiment *x, const struct check_opts *o, struct check *out)
{
	struct checking c = { .x = x, .o = o, .out = out };
	bool is_sound;

	*out = (struct check){ 0 };
	c.gpus = gpu_open(NULL);
	check_add(&c, CHECK_PASS, "configuration", "every value and rule holds");
	for (size_t i = 0; i < x->n_servers; i++) {
		if (x->server[i].url) {
			attached(&c, i);
			continue;
		}
		command(&c, i);
		port(&c, i);
	}
	gpus(&c);
	for (size_t i = 0; i < x->n_servers; i++)
		check_model(&c, i);
	if (mode_is_served(x->mode))
		benchmark(&c);
	disk(&c);
	cache_room(&c);
	upload(&c);
	gpu_close(c.gpus);
	is_sound = check_passed(out);
	if (o->is_smoke && is_sound)
		smoke(&c);
	else if (o->is_smoke)
		check_add(&c, CHECK_SKIP, "smoke load", "not before the rows above pass");
}

void check_release(struct check *c)
{
	arena_release(&c->arena);
}

bool check_passed(const struct check *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->row[i].verdict == CHECK_FAIL)
			return false;
	return true;
}

static const char *verdict_name(enum check_verdict v)
{
	static const char *const name[] = { "pass", "note", "FAIL", "skipped" };

	return name[v];
}

void check_table(const struct experiment *x, const struct check *c, struct buf *out)
{
	int width = 0;

	for (size_t i = 0; i < c->n; i++)
		if ((int)strlen(c->row[i].what) > width)
			width = (int)strlen(c->row[i].what);
	buf_printf(out, "Check of %s\n", x->name ? x->name : "the experiment");
	for (size_t i = 0; i < c->n; i++)
		buf_printf(out, "  %-7s  %-*s  %s\n", verdict_name(c->row[i].verdict), width,
			   c->row[i].what, c->row[i].found);
}
