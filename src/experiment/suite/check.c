/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see check.h. */
#include "experiment/suite/check.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/serve/point.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "experiment/config/command.h"
#include "experiment/config/config.h"
#include "experiment/stages/allocate.h"
#include "host/gpu/gpu.h"
#include "host/proc/tool.h"
#include "host/proc/tree.h"
#include "input/fetch/dashboard.h"
#include "input/fetch/hub.h"
#include "input/sets/datasets.h"

struct checking {
	const struct experiment *x;
	const struct check_opts *o;
	struct check *out;
	struct gpu_set *gpus;
	double download_bytes;   /* that the hub's cache will grow by, as far as known */
};

#define BATCHED_TOKENS 8192
#define SEQS 256
#define MAX_SIZE 1e12 /* of one figure in a config.json: products of four stay finite */

/* The first of the names (NULL-ended) with a valid number; else otherwise. */
static int64_t number(const struct json_value *v, const char *const *name, int64_t otherwise)
{
	for (; *name; name++) {
		double n = json_real(json_get(v, *name), -1);

		if (n >= 0 && n <= MAX_SIZE)
			return (int64_t)n;
	}
	return otherwise;
}
#define NUMBER(v, otherwise, ...) number(v, (const char *const[]){ __VA_ARGS__, NULL }, otherwise)

/* Models of several parts keep the language model's sizes in an object of their own. */
static const struct json_value *language_part(const struct json_value *config)
{
	static const char *const part[] = {
		"text_config", "llm_config", "language_config", "thinker_config", "decoder",
	};

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		const struct json_value *v = json_get(config, part[i]);

		if (v && json_get(v, "text_config"))
			v = json_get(v, "text_config");
		if (v && (json_get(v, "hidden_size") || json_get(v, "num_hidden_layers")))
			return v;
	}
	return config;
}

/* Bits of a weight by quantization_config, 0: not quantised. */
static double quantised_bits(const struct json_value *config)
{
	const struct json_value *q = json_get(config, "quantization_config");
	struct str method = json_text(json_get(q, "quant_method"), STR(""));
	const struct json_value *groups = json_get(q, "config_groups");
	double bits = json_real(json_get(q, "bits"), json_real(json_get(q, "w_bit"), 0));

	if (!q || q->kind != JSON_OBJECT)
		return 0;
	if (groups && groups->kind == JSON_OBJECT && groups->count)
		bits = json_real(json_get(json_get(&groups->item[0], "weights"), "num_bits"), bits);
	if (bits <= 0 && json_bool(json_get(q, "load_in_4bit"), false))
		bits = 4;
	if (bits <= 0)
		bits = str_is(method, "mxfp4") || str_is(method, "nvfp4") ? 4 : 8;
	/* Scales and zero points of groups of 128 or 32 values. */
	return bits < 8 ? bits + 0.25 : bits;
}

int fit_model_read(const struct json_value *config, struct fit_model *m, struct err *e)
{
	const struct json_value *v;
	double bits;

	memset(m, 0, sizeof(*m));
	if (!config || config->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "config.json: expected an object");
	v = language_part(config);
	m->layers = NUMBER(v, 0, "num_hidden_layers", "n_layer", "num_layers", "n_layers");
	m->hidden = NUMBER(v, 0, "hidden_size", "n_embd", "d_model");
	m->heads = NUMBER(v, 0, "num_attention_heads", "n_head", "n_heads");
	m->vocabulary = NUMBER(v, NUMBER(config, 0, "vocab_size"), "vocab_size");
	if (!m->layers || !m->hidden || !m->heads || !m->vocabulary)
		return err_set(e, ERR_PARSE, "config.json does not give the number of layers and "
			       "heads and their size");
	m->intermediate = NUMBER(v, 4 * m->hidden, "intermediate_size", "n_inner", "ffn_dim");
	m->kv_heads = NUMBER(v, m->heads, "num_key_value_heads", "num_kv_heads");
	m->head_size = NUMBER(v, m->hidden / m->heads, "head_dim");
	m->experts = NUMBER(v, 0, "num_local_experts", "num_experts", "n_routed_experts");
	m->expert_intermediate = NUMBER(v, m->intermediate, "moe_intermediate_size");
	m->dense_layers = NUMBER(v, 0, "first_k_dense_replace");
	m->shared_experts = NUMBER(v, 0, "n_shared_experts");
	m->kv_lora_rank = NUMBER(v, 0, "kv_lora_rank");
	m->rope_head_size = NUMBER(v, 0, "qk_rope_head_dim");
	m->max_len = NUMBER(v, 0, "max_position_embeddings", "n_positions", "max_seq_len");
	m->is_tied = json_bool(json_get(v, "tie_word_embeddings"),
			       json_bool(json_get(config, "tie_word_embeddings"), false));
	m->other_bits = 16; /* engines run float32 checkpoints in 16 bits, too */
	bits = quantised_bits(config);
	m->weight_bits = bits > 0 ? bits : 16;
	return 0;
}

/* Parameters of all layers, and of embeddings and the output layer. */
static double layer_params(const struct fit_model *m)
{
	double h = (double)m->hidden, q = (double)(m->heads * m->head_size);
	double kv = (double)(m->kv_heads * m->head_size), attention, mlp, moe;
	double dense = m->experts ? (double)m->dense_layers : (double)m->layers;

	attention = m->kv_lora_rank ?
		h * (double)(m->kv_lora_rank + m->rope_head_size) + 2 * h * q +
			(double)m->kv_lora_rank * 2 * q : 2 * h * q + 2 * h * kv;
	mlp = 3 * h * (double)m->intermediate;
	moe = 3 * h * (double)m->expert_intermediate * (double)(m->experts + m->shared_experts) +
		h * (double)m->experts;
	return (double)m->layers * attention + dense * mlp + ((double)m->layers - dense) * moe;
}

static double or_default(int64_t given, double otherwise)
{
	return given > 0 ? (double)given : otherwise;
}

void fit_estimate(const struct fit_model *m, const struct fit_how *how, struct fit *f)
{
	double tp = or_default(how->tp, 1), pp = or_default(how->pp, 1);
	double embedding = (double)m->vocabulary * (double)m->hidden * (m->is_tied ? 1 : 2);
	double in_layers = layer_params(m), bits = how->weight_bits > 0 ? how->weight_bits :
		m->weight_bits;
	double kv_bits = how->kv_bits > 0 ? how->kv_bits : 16, free_bytes, tokens, logits;
	double heads_share = m->kv_lora_rank ? 1 : (double)m->kv_heads < tp ?
		1 / (double)(m->kv_heads ? m->kv_heads : 1) : 1 / tp;

	memset(f, 0, sizeof(*f));
	f->params = in_layers + embedding;
	f->weights_bytes = how->weight_bytes > 0 && how->weight_bits <= 0 ? how->weight_bytes :
		in_layers * bits / 8 + embedding * m->other_bits / 8;
	f->weights_bytes = f->weights_bytes / (tp * pp) - how->cpu_offload_bytes;
	if (f->weights_bytes < 0)
		f->weights_bytes = 0;
	tokens = or_default(how->batched_tokens, BATCHED_TOKENS);
	logits = or_default(how->seqs, SEQS) * (double)m->vocabulary * 4 / tp;
	f->overhead_bytes = FIT_LIBRARY_BYTES +
		tokens * (double)m->hidden * 2 * FIT_LIVE * (0.5 + 0.5 / tp) + logits;
	f->kv_token_bytes = m->kv_lora_rank ?
		(double)m->layers * (double)(m->kv_lora_rank + m->rope_head_size) * kv_bits / 8 :
		2 * (double)m->layers * (double)(m->kv_heads * m->head_size) * kv_bits / 8;
	f->kv_token_bytes *= heads_share / pp;
	free_bytes = how->memory_bytes * how->utilization - f->weights_bytes - f->overhead_bytes;
	f->kv_bytes = how->kv_bytes > 0 ? how->kv_bytes : free_bytes > 0 ? free_bytes : 0;
	f->kv_tokens = f->kv_token_bytes > 0 ? f->kv_bytes / f->kv_token_bytes : 0;
	f->max_len = how->max_len > 0 ? how->max_len : m->max_len;
	f->is_fitting = free_bytes > 0 && f->kv_bytes <= free_bytes &&
		f->kv_tokens >= (double)f->max_len;
}

#define GB 1e9
#define DISK_LEAST_BYTES (200 * 1e6)   /* a document, its logs and a record */
#define DISK_SCARCE_BYTES (5 * GB)
#define URL_TIMEOUT_MS 5000

/* ---- rows ---- */

/* Adds a row; past CHECK_ROWS_MAX nothing happens. */
__attribute__((format(printf, 4, 5)))
static void check_add(struct checking *c, enum check_verdict verdict, const char *what,
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

/* "server", or "server NAME" if there are several: the subject of a row. */
static const char *check_of(struct checking *c, size_t server, const char *what)
{
	if (c->x->n_servers < 2)
		return what;
	return arena_printf(&c->out->arena, "%s of %s", what, c->x->server[server].name);
}

/* An engine argument in effect as a text or number; empty if it is neither. */
static struct str check_text(const struct experiment_server *s, const char *name)
{
	return json_text(json_get(s->values, name), (struct str){ 0 });
}

static double check_number(const struct experiment_server *s, const char *name, double otherwise)
{
	return json_real(json_get(s->values, name), otherwise);
}

static const atomic_bool *check_cancel(const struct checking *c)
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
		check_add(c, CHECK_PASS, check_of(c, i, "port"), "the first free port from %u to "
			"%u",
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

static void gpus(struct checking *c)
{
	size_t n, allowed = 0, available = 0;
	const struct gpu *g = gpu_list(c->gpus, &n);
	unsigned want = choose_wanted(c->x);
	const char *note = gpu_note(c->gpus);
	bool is_sim_alone = true;

	for (size_t i = 0; i < n; i++)
		if (g[i].is_allowed && !g[i].is_split && g[i].part < 0) {
			struct gpu_sample now;

			allowed++;
			gpu_sample(c->gpus, i, &now);
			available += gpu_processes(c->gpus, i, NULL, 0) == 0 &&
				     !(now.memory_free_bytes <
				       c->x->resources.memory_free_min * g[i].memory_bytes);
		}
	for (size_t i = 0; i < c->x->n_servers; i++)
		is_sim_alone &= c->x->server[i].url || config_is_sim(c->x->server[i].command);
	if (!want || (!allowed && is_sim_alone))
		check_add(c, CHECK_PASS, "GPUs", want ? "none here; the simulator needs none" :
			  "none needed");
	else if (!allowed && c->x->resources.want == GPUS_AUTO)
		check_add(c, CHECK_NOTE, "GPUs", "%u would be used, but there is none here%s%s: "
			  "the server runs without GPUs", want, *note ? ": " : "", note);
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
		check_add(c, CHECK_SKIP, "tokenizer", "checked when the rows below pass");
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
		check_add(c, CHECK_NOTE, "dataset", "%s, %s: %zu request%s; the server applies the "
			  "chat template", name, path, early->n_requests, early->n_requests == 1 ? "" : "s");
	else if (early->n_requests)
		check_add(c, CHECK_PASS, "dataset", "%s, %s: %zu request%s", name, path,
			  early->n_requests, early->n_requests == 1 ? "" : "s");
	else
		check_add(c, CHECK_SKIP, "dataset", "checked when there is a tokenizer");
}

/* Prepares the benchmark as a run does before it starts a server. */
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
		check_add(c, CHECK_NOTE, "results", "%s: the free space is unknown", folder);
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

static void say_smoke(struct checking *c, const struct outcome *o)
{
	struct arena a = { 0 };
	struct json_value *v = NULL;
	double done, ttft;

	if (!o->result.n || json_parse(&a, o->result, &v, NULL) < 0)
		v = NULL;
	done = json_real(json_get(v, "completed"), NAN);
	ttft = json_real(json_get(v, "mean_ttft_ms"), NAN);
	arena_release(&a);
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
	x.search.find = NULL;
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

/* ---- whether a server's model is there, and whether it fits its GPUs ---- */

#define GIB 1073741824.0
#define EXPLAIN_S_MAX 20
/* The server's default; the simulator's hardware has it too. */
#define UTILIZATION 0.92

/* ---- the simulator tells it itself ---- */

static void simulated(struct checking *c, size_t i)
{
	struct buf out = { 0 }, errors = { 0 };
	struct err e = { 0 };
	struct arena *a = &c->out->arena;
	struct role_at *at = arena_alloc(a, c->x->n_servers * sizeof(*at));
	struct word_list words = { .arena = a };
	const char *what = check_of(c, i, "memory");
	struct str said, kv;
	char **argv;
	int status;

	for (size_t k = 0; k < c->x->n_servers; k++)
		at[k] = command_at(&c->x->server[k], 1, a);
	status = command_words(c->x, i, at, a, &argv, &e);
	if (status == 0) {
		for (; *argv; argv++)
			words_add(&words, *argv);
		words_add(&words, arena_text(a, STR("--explain")));
		status = tool_run((const char *const *)words.v, (struct str){ 0 }, EXPLAIN_S_MAX,
				  &out, &errors, &e);
	}
	said = str_trim(buf_str(&errors));
	kv = str_after(buf_str(&out), "\nKV cache tokens");
	kv = str_trim(str_cut(&kv, '\n'));
	if (status == 0 && kv.n)
		check_add(c, CHECK_PASS, what, "fits as modelled: tokens of KV cache: %.*s", (int)kv.n,
			  kv.p);
	else if (status == 0)
		check_add(c, CHECK_SKIP, what, "the simulator models no memory with these settings");
	else if (status < 0)
		check_add(c, CHECK_FAIL, what, "%s", e.text);
	else
		check_add(c, CHECK_FAIL, what, "%.*s", (int)said.n, said.p);
	buf_release(&out);
	buf_release(&errors);
}

/* ---- a real one ---- */

/* Bytes of the weight files next to config.json; 0: there are none. */
static double weights_beside(const char *config)
{
	char *folder = file_beside(config, ".");
	struct dirent *entry;
	double bytes[2] = { 0, 0 };
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		struct str name = str_of(entry->d_name);
		bool is_safe = str_ends(name, STR(".safetensors"));
		char *path = file_join(folder, entry->d_name);
		struct stat st;

		if ((is_safe || str_ends(name, STR(".bin"))) && stat(path, &st) == 0)
			bytes[is_safe ? 0 : 1] += (double)st.st_size;
		free(path);
	}
	if (dir)
		closedir(dir);
	free(folder);
	return bytes[0] > 0 ? bytes[0] : bytes[1];
}

static double bits_of(struct str name)
{
	static const struct { const char *like; double bits; } known[] = {
		{ "fp8", 8 }, { "int8", 8 }, { "bitsandbytes", 4.25 }, { "mxfp4", 4.25 },
	};

	for (size_t i = 0; name.n && i < sizeof(known) / sizeof(*known); i++)
		if (str_starts(name, str_of(known[i].like)))
			return known[i].bits;
	return 0;
}

static double least_memory(const struct checking *c)
{
	size_t n;
	const struct gpu *g = gpu_list(c->gpus, &n);
	double least = NAN;

	for (size_t i = 0; i < n; i++)
		if (g[i].is_allowed && !g[i].is_split)
			least = fmin(least, g[i].memory_bytes);
	return least;
}

static void say_fit(struct checking *c, size_t i, const struct fit *f, const struct fit_how *how)
{
	const char *what = check_of(c, i, "memory");
	double requests = f->max_len > 0 ? f->kv_tokens / (double)f->max_len : 0;

	if (!f->is_fitting)
		check_add(c, CHECK_FAIL, what, "about %.1f GiB of weights and %.1f GiB of activations a "
			  "GPU leave %.1f GiB of %.1f GiB x %.2f for the KV cache: %.0f tokens, while one "
			  "request may have %lld; raise tensor_parallel_size, or lower max_model_len",
			  f->weights_bytes / GIB, f->overhead_bytes / GIB, f->kv_bytes / GIB,
			  how->memory_bytes / GIB, how->utilization, f->kv_tokens,
			  (long long)f->max_len);
	else
		check_add(c, requests < 4 ? CHECK_NOTE : CHECK_PASS, what, "about %.1f GiB of weights, "
			  "%.1f GiB of activations and %.1f GiB of KV cache a GPU: %.0f tokens, %.1f "
			  "requests of %lld", f->weights_bytes / GIB, f->overhead_bytes / GIB,
			  f->kv_bytes / GIB, f->kv_tokens, requests, (long long)f->max_len);
}

static void estimate(struct checking *c, size_t i, const struct fit_model *m, double weights)
{
	const struct experiment_server *s = &c->x->server[i];
	struct str cache = check_text(s, "kv_cache_dtype");
	struct fit_how how = {
		.memory_bytes = least_memory(c),
		.utilization = check_number(s, "gpu_memory_utilization", UTILIZATION),
		.weight_bytes = weights,
		.cpu_offload_bytes = check_number(s, "cpu_offload_gb", 0) * GIB,
		.kv_bits = str_starts(cache, STR("fp8")) || str_starts(cache, STR("int8")) ? 8 : 16,
		.kv_bytes = check_number(s, "kv_cache_memory_bytes", 0),
		.weight_bits = m->weight_bits < 16 ? 0 : bits_of(check_text(s, "quantization")),
		.tp = (int64_t)check_number(s, "tensor_parallel_size", 1),
		.pp = (int64_t)check_number(s, "pipeline_parallel_size", 1),
		.max_len = (int64_t)check_number(s, "max_model_len", 0),
		.batched_tokens = (int64_t)check_number(s, "max_num_batched_tokens", 0),
		.seqs = (int64_t)check_number(s, "max_num_seqs", 0),
	};
	struct fit f;

	if (!(how.memory_bytes > 0)) {
		check_add(c, CHECK_SKIP, check_of(c, i, "memory"), "no GPU here reports its "
			"memory");
		return;
	}
	fit_estimate(m, &how, &f);
	say_fit(c, i, &f, &how);
}

/* config.json of a folder or of the hub's cache; HUB_NO_FILE or -1: e says why not. */
static int find_config(struct checking *c, const struct experiment_server *s, const char *model,
		       struct buf *path, struct err *e)
{
	struct str revision = check_text(s, "revision");
	struct hub_opts hub = {
		.revision = revision.n ? arena_text(&c->out->arena, revision) : NULL,
		.cancel = check_cancel(c),
	};

	if (!file_is_dir(model))
		return hub_file(&hub, model, "config.json", path, e);
	buf_printf(path, "%s/config.json", model);
	return file_exists(path->data) ? 0 : err_set(e, ERR_IO, "%s does not exist", path->data);
}

static int read_config(const char *path, struct fit_model *m, struct err *e)
{
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct json_value *v;
	int rc = file_read(path, CONFIG_BYTES_MAX, &text, e) < 0 ||
		json_parse(&a, buf_str(&text), &v, e) < 0 ? -1 : fit_model_read(v, m, e);

	buf_release(&text);
	arena_release(&a);
	return rc;
}

static void real(struct checking *c, size_t i, const char *model)
{
	const struct experiment_server *s = &c->x->server[i];
	const char *what = check_of(c, i, "model");
	struct buf path = { 0 };
	struct err e = { 0 };
	struct fit_model m;
	struct fit f;
	double weights;

	if (find_config(c, s, model, &path, &e) != 0) {
		check_add(c, CHECK_FAIL, what, "%s is not available: %s", model, e.text);
	} else if (read_config(path.data, &m, &e) < 0) {
		check_add(c, CHECK_NOTE, what, "%s is there, but its size is not known: %s", model, e.text);
	} else {
		weights = weights_beside(path.data);
		fit_estimate(&m, &(struct fit_how){ 0 }, &f);
		if (weights > 0) {
			check_add(c, CHECK_PASS, what, "%s is there: %.1f billion parameters, %.1f GiB of "
				  "weight files", model, f.params / 1e9, weights / GIB);
		} else {
			c->download_bytes += f.weights_bytes;
			check_add(c, CHECK_NOTE, what, "%s: about %.1f GiB of weights are not here and are "
				  "downloaded when the server starts", model, f.weights_bytes / GIB);
		}
		estimate(c, i, &m, weights);
	}
	buf_release(&path);
}

/* Adds the rows about a server's model, and whether it fits. */
static void check_model(struct checking *c, size_t i)
{
	const struct experiment_server *s = &c->x->server[i];
	struct str model = check_text(s, "model");

	if (s->url || (s->role != ROLE_SERVE && s->role != ROLE_PREFILL && s->role != ROLE_DECODE))
		return;
	if (config_is_sim(s->command))
		simulated(c, i);
	else if (!model.n)
		check_add(c, CHECK_SKIP, check_of(c, i, "model"),
			  "not in the configuration; the command may name one");
	else
		real(c, i, arena_text(&c->out->arena, model));
}

/* ---- all of it ---- */

void check_experiment(const struct experiment *x, const struct check_opts *o, struct check *out)
{
	struct checking c = { .x = x, .o = o, .out = out };
	bool is_sound;

	*out = (struct check){ 0 };
	c.gpus = gpu_open(NULL);
	check_add(&c, CHECK_PASS, "configuration", "every value is valid");
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
		check_add(&c, CHECK_SKIP, "smoke load", "checked when the rows above pass");
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

void check_table(const struct experiment *x, const struct check *c, struct buf *out)
{
	static const char *const verdicts[] = { "pass", "note", "FAIL", "skipped" };
	int width = 0;

	for (size_t i = 0; i < c->n; i++)
		if ((int)strlen(c->row[i].what) > width)
			width = (int)strlen(c->row[i].what);
	buf_printf(out, "Check of %s\n", x->name ? x->name : "the experiment");
	for (size_t i = 0; i < c->n; i++)
		buf_printf(out, "  %-7s  %-*s  %s\n", verdicts[c->row[i].verdict], width,
			   c->row[i].what, c->row[i].found);
}
