/* SPDX-License-Identifier: Apache-2.0 */
/* check_model.c - whether a server's model is there, and whether it fits its GPUs. */
#include "experiment/check_parts.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "experiment/command.h"
#include "experiment/config.h"
#include "experiment/fit.h"
#include "fetch/hub.h"
#include "proc/tool.h"

#define GIB 1073741824.0
#define EXPLAIN_S_MAX 20
/* The server's default; the simulator's hardware has it too. */
#define UTILIZATION 0.92

/* ---- the simulator tells it itself ---- */

/* The line that begins with head, behind it. */
static struct str line_of(struct str text, const char *head)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (str_starts(line, str_of(head)))
			return str_trim((struct str){ line.p + strlen(head),
						      line.n - strlen(head) });
	}
	return (struct str){ 0 };
}

static char **explain_words(struct checking *c, size_t i, struct err *e)
{
	struct role_at *at = arena_alloc(&c->out->arena, c->x->n_servers * sizeof(*at));
	char **words, **out;
	size_t n = 0;

	for (size_t k = 0; k < c->x->n_servers; k++)
		at[k] = command_at(&c->x->server[k], 1, &c->out->arena);
	if (command_words(c->x, i, at, &c->out->arena, &words, e) < 0)
		return NULL;
	while (words[n])
		n++;
	out = arena_alloc(&c->out->arena, (n + 2) * sizeof(*out));
	memcpy(out, words, n * sizeof(*out));
	out[n] = arena_text(&c->out->arena, STR("--explain"));
	return out;
}

static void simulated(struct checking *c, size_t i)
{
	struct buf out = { 0 }, errors = { 0 };
	struct err e = { 0 };
	char **words = explain_words(c, i, &e);
	const char *what = check_of(c, i, "memory");
	int status = words ? tool_run((const char *const *)words, (struct str){ 0 }, EXPLAIN_S_MAX,
				      &out, &errors, &e) : -1;
	struct str said = str_trim(buf_str(&errors)), kv;

	if (status == 0 && (kv = line_of(buf_str(&out), "KV cache tokens")).n)
		check_add(c, CHECK_PASS, what, "fits as modelled: KV cache of %.*s", (int)kv.n, kv.p);
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

/* Bytes of the weight files beside config.json; 0: there are none. */
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
		check_add(c, CHECK_SKIP, check_of(c, i, "memory"), "no GPU here tells its memory");
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
	return file_exists(path->data) ? 0 : err_set(e, ERR_IO, "%s is not there", path->data);
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
		check_add(c, CHECK_FAIL, what, "%s cannot be had: %s", model, e.text);
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

void check_model(struct checking *c, size_t i)
{
	const struct experiment_server *s = &c->x->server[i];
	struct str model = check_text(s, "model");

	if (s->url || (s->role != ROLE_SERVE && s->role != ROLE_PREFILL && s->role != ROLE_DECODE))
		return;
	if (config_is_sim(s->command))
		simulated(c, i);
	else if (!model.n)
		check_add(c, CHECK_SKIP, check_of(c, i, "model"),
			  "the configuration does not name one; the command may");
	else
		real(c, i, arena_text(&c->out->arena, model));
}
