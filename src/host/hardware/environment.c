/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c - see hardware.h. */
#include "host/hardware/hardware.h"

#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "host/gpu/gpu.h"
#include "host/proc/tool.h"
#include "version.h"

#define SCRIPT_HEAD_BYTES 4096

/* ---- which one ---- */

static bool is_python(const char *word)
{
	const char *slash = strrchr(word, '/');

	return strncmp(slash ? slash + 1 : word, "python", 6) == 0;
}

/*
 * "#!/opt/venv/bin/python3 -s", "#!/usr/bin/env python3"; and, where the path is too long for a
 * first line, a shell's second line: '''exec' "/very/long/python" "$0" "$@"
 */
static const char *script_python(const char *path, struct arena *a)
{
	char head[SCRIPT_HEAD_BYTES];
	struct str rest, line, word;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);
	head[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	if (strncmp(head, "#!", 2) != 0)
		return NULL;
	rest = str_of(head + 2);
	line = str_trim(str_cut(&rest, '\n'));
	word = str_cut(&line, ' ');
	if (str_ends(word, STR("/env")))
		word = str_trim(str_cut(&line, ' '));
	if (str_ends(word, STR("/sh"))) {
		line = str_cut(&rest, '\n');
		if (!str_starts(line, STR("'''exec' ")))
			return NULL;
		line = str_trim((struct str){ line.p + 9, line.n - 9 });
		if (line.n && *line.p == '"') {
			str_cut(&line, '"');
			word = str_cut(&line, '"');
		} else {
			word = str_cut(&line, ' ');
		}
	}
	path = arena_text(a, word);
	return word.n && is_python(path) ? path : NULL;
}

/* Words that start another command, which follows their options. */
static bool is_wrapper(const char *word)
{
	static const char *const wrappers[] = {
		"env", "nice", "numactl", "taskset", "exec", "time", "nohup", "setsid", "ionice",
		"chrt", "stdbuf", "nsys",
	};
	const char *slash = strrchr(word, '/');

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++)
		if (strcmp(slash ? slash + 1 : word, wrappers[i]) == 0)
			return true;
	return false;
}

const char *interpreter_find(char *const *command, struct arena *a)
{
	bool is_wrapped = false;

	for (; command && *command; command++) {
		const char *word = *command, *found;
		char *path;

		if (is_python(word))
			return arena_text(a, str_of(word));
		path = strchr(word, '/') ? mem_text(word) : tool_path(word);
		found = path ? script_python(path, a) : NULL;
		free(path);
		if (found)
			return found;
		is_wrapped |= is_wrapper(word);
		if (!is_wrapped && !strchr(word, '='))
			return NULL;
	}
	return NULL;
}

/* ---- asking it ---- */

static const char question[] =
	"import json,sys\n"
	"from importlib.metadata import version\n"
	"found={}\n"
	"for name in sys.argv[1:]:\n"
	"    try: found[name]=version(name)\n"
	"    except Exception: pass\n"
	"print(json.dumps({'version':sys.version.split()[0],'packages':found}))\n";

static const char *const packages[] = {
	"vllm", "sglang", "torch", "transformers", "tokenizers", "triton", "pytorch-triton-rocm",
	"flashinfer-python", "flash-attn", "xformers", "lmcache", "nixl", "ray",
	"compressed-tensors", "bitsandbytes", "safetensors", "huggingface-hub", "numpy",
	"nvidia-cuda-runtime-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12", "nvidia-cublas-cu12",
	"nvidia-cuda-runtime", "nvidia-nccl-cu13", "nvidia-cudnn-cu13", "fastapi", "uvicorn",
	"uvloop", "pydantic", "llama-cpp-python",
};
#define PACKAGES (sizeof(packages) / sizeof(*packages))

/* The last line is the answer: site packages may print before it. */
static void take_answer(struct str said, struct interpreter *out)
{
	struct str rest = str_trim(said), line = rest;
	struct json_value *v;

	while (rest.n)
		line = str_cut(&rest, '\n');
	if (json_parse(&out->arena, line, &v, NULL) < 0 || v->kind != JSON_OBJECT)
		return;
	out->version = json_text(json_get(v, "version"), STR("")).p;
	out->packages = json_get(v, "packages");
	out->is_known = out->packages && out->packages->kind == JSON_OBJECT;
	for (size_t i = 0; out->is_known && i < out->packages->count; i++)
		out->is_known = out->packages->item[i].kind == JSON_STRING;
}

void interpreter_ask(char *const *command, double deadline_s, struct interpreter *out)
{
	const char *python = interpreter_find(command, &out->arena);
	const char *argv[PACKAGES + 4] = { python, "-c", question };
	struct buf said = { 0 }, errors = { 0 };

	if (!python)
		return;
	for (size_t i = 0; i < PACKAGES; i++)
		argv[3 + i] = packages[i];
	if (tool_run(argv, STR(""), (unsigned)(deadline_s < 1 ? 1 : deadline_s), &said, &errors,
		     NULL) == 0)
		take_answer(buf_str(&said), out);
	buf_release(&said);
	buf_release(&errors);
}

void interpreter_release(struct interpreter *p)
{
	arena_release(&p->arena);
}

extern char **environ;

#ifdef __clang__
#define COMPILER "clang " __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	json_member_text(w, key, text && *text ? text : NULL);
}

/* ---- libraries ---- */

static const char *const libraries[] = {
	"libc", "libcrypto", "libcurl", "libnvidia-ml", "libpcre2-8", "libssl", "libyaml-0", "libz",
	"libzstd",
};
#define LIBRARIES (sizeof(libraries) / sizeof(*libraries))

struct found_libraries {
	char version[LIBRARIES][64]; /* "" : not loaded */
};

/* "/usr/lib/libcurl.so.4.8.0" is libcurl 4.8.0: a link's target has the full version. */
static int look_at_library(struct dl_phdr_info *info, size_t size, void *self)
{
	struct found_libraries *found = self;
	char *path = info->dlpi_name && *info->dlpi_name ? realpath(info->dlpi_name, NULL) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL, *so;

	(void)size;
	so = slash ? strstr(slash, ".so.") : NULL;
	for (size_t i = 0; so && i < LIBRARIES; i++)
		if (str_is((struct str){ slash + 1, (size_t)(so - slash - 1) }, libraries[i]))
			snprintf(found->version[i], sizeof(found->version[i]), "%s", so + 4);
	free(path);
	return 0;
}

static void put_libraries(struct json_writer *w)
{
	struct found_libraries found = { 0 };

	dl_iterate_phdr(look_at_library, &found);
	json_member_object(w, "libraries");
	for (size_t i = 0; i < LIBRARIES; i++)
		if (*found.version[i])
			put_text(w, libraries[i], found.version[i]);
	json_end_object(w);
}

/* ---- variables ---- */

static bool is_of_interest(struct str name)
{
	static const char *const beginnings[] = {
		"VLLM_", "SGLANG_", "LMCACHE_", "CUDA_", "NVIDIA_", "NCCL_", "UCX_", "NIXL_",
		"HIP_", "ROCR_", "ROCM_", "HSA_", "RCCL_", "GPU_", "ZE_", "XPU_", "HF_",
		"TRANSFORMERS_", "TOKENIZERS_", "TORCH", "PYTORCH_", "TRITON_", "FLASHINFER_",
		"OMP_", "MKL_", "KMP_", "OPENBLAS_", "GLOO_", "RAY_", "LD_PRELOAD",
		"MALLOC_", "PYTHONHASHSEED", "GGML_", "LLAMA_",
	};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (str_starts(name, str_of(beginnings[i])))
			return true;
	return false;
}

/* Later lines of a list, and those of over, win. */
static void put_lines(struct json_writer *w, char *const *lines, char *const *over)
{
	for (; lines && *lines; lines++) {
		struct str value = str_of(*lines), name = str_cut(&value, '=');

		if (!is_of_interest(name) || environment_variable(lines + 1, name) ||
		    environment_variable(over, name))
			continue;
		json_key_str(w, name);
		json_put_str(w, value);
	}
}

/* ---- the whole ---- */

/* From "2.8.0+cu128": 12.8; the driver's version if torch does not report one. */
static void put_cuda(struct json_writer *w, const struct interpreter *py, const struct gpu *g)
{
	const char *torch = json_text(json_get(py->packages, "torch"), STR("")).p;
	const char *tag = strstr(torch, "+cu");
	char text[32] = "";
	size_t n = tag ? strspn(tag + 3, "0123456789") : 0;

	if (n >= 2 && n < 8)
		snprintf(text, sizeof(text), "%.*s.%c", (int)n - 1, tag + 3, tag[2 + n]);
	put_text(w, "cuda", *text ? text : g ? g->cuda : "");
}

static void put_python(struct json_writer *w, const struct interpreter *py)
{
	if (!py->is_known) {
		json_member_null(w, "python");
		return;
	}
	json_member_object(w, "python");
	put_text(w, "version", py->version);
	json_member_value(w, "packages", py->packages);
	json_end_object(w);
}

void environment_json(const struct environment_opts *o, struct buf *out)
{
	struct gpu_set *set = gpu_open(NULL);
	size_t n;
	const struct gpu *g = gpu_list(set, &n);
	struct json_writer w = json_writer(out);
	size_t from = out->len;
	struct interpreter py = { 0 };

	if (o->command && o->deadline_s > 0)
		interpreter_ask(o->command, o->deadline_s, &py);
	json_begin_object(&w);
	put_text(&w, "profllm", PROFLLM_VERSION);
	put_text(&w, "build", COMPILER);
	put_libraries(&w);
	json_member_object(&w, "server");
	put_text(&w, "kind", o->server_kind);
	put_text(&w, "version", o->server_version);
	json_end_object(&w);
	put_python(&w, &py);
	put_cuda(&w, &py, n ? &g[0] : NULL);
	put_text(&w, "driver", n ? g[0].driver : "");
	json_member_object(&w, "variables");
	put_lines(&w, environ, o->env);
	put_lines(&w, o->env, NULL);
	json_end_object(&w);
	json_end_object(&w);
	redact_tail(out, from, REDACT_SETTINGS);
	interpreter_release(&py);
	gpu_close(set);
}

/* ---- provenance: where the measured engine came from ---- */

#define NAMES 5

/* A value and the variables it is taken from: ours, GitHub's, GitLab's, Buildkite's. */
static const struct {
	const char *key;
	const char *variable[NAMES];
} values[] = {
	/* A commit of the checkout is the engine's only when the engine's own pipeline runs. */
	{ "engine_commit", { "PROFLLM_ENGINE_COMMIT", "VLLM_COMMIT", NULL } },
	{ "branch", { "PROFLLM_ENGINE_BRANCH", "GITHUB_HEAD_REF", "CI_COMMIT_REF_NAME",
		      "BUILDKITE_BRANCH", NULL } },
	{ "pr", { "PROFLLM_ENGINE_PR", "CI_MERGE_REQUEST_IID", "BUILDKITE_PULL_REQUEST", NULL } },
	{ "build", { "PROFLLM_BUILD", "GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILDKITE_BUILD_NUMBER",
		     NULL } },
	{ "trigger", { "PROFLLM_TRIGGER", "GITHUB_EVENT_NAME", "CI_PIPELINE_SOURCE",
		       "BUILDKITE_SOURCE", NULL } },
};
#define VALUES (sizeof(values) / sizeof(*values))

/* "0.11.1.dev12+gabcdef0.d20250101": abcdef0; empty: a release. */
static struct str version_commit(const char *version)
{
	const char *plus = version ? strchr(version, '+') : NULL, *at = plus;

	while (at) {
		size_t n = 0;

		if (at[1] == 'g')
			while (str_hex(at[2 + n]) >= 0)
				n++;
		if (n >= 7 && n <= 40 && (!at[2 + n] || at[2 + n] == '.'))
			return (struct str){ at + 2, n };
		at = strchr(at + 1, '.');
	}
	return STR("");
}

/* True for a CI variable that is set and not "false". */
static bool is_reported(const char *text)
{
	return text && *text && strcmp(text, "false") != 0;
}

/* "refs/pull/123/merge" of GitHub: 123. */
static struct str pull_of(const char *ref)
{
	struct str rest = str_of(ref ? ref : "");

	if (!str_starts(rest, STR("refs/pull/")))
		return STR("");
	rest = (struct str){ rest.p + 10, rest.n - 10 };
	return str_cut(&rest, '/');
}

static struct str find(size_t i, const struct json_value *given, const char *server_version,
		       const char *(*get)(const char *name))
{
	const struct json_value *own = json_get(given, values[i].key);

	if (own && own->kind == JSON_STRING)
		return own->text;
	if (own && own->kind == JSON_INT)
		return own->raw;
	for (const char *const *name = values[i].variable; *name; name++)
		if (is_reported(get(*name)))
			return str_of(get(*name));
	if (i == 0)
		return version_commit(server_version);
	if (strcmp(values[i].key, "pr") == 0)
		return pull_of(get("GITHUB_REF"));
	if (strcmp(values[i].key, "branch") == 0 && is_reported(get("GITHUB_REF_NAME")))
		return str_of(get("GITHUB_REF_NAME"));
	return STR("");
}

static bool is_one_of_ours(struct str key)
{
	for (size_t i = 0; i < VALUES; i++)
		if (str_is(key, values[i].key))
			return true;
	return false;
}

void provenance_json(const struct json_value *given, const char *server_version,
		     const char *(*get)(const char *name), struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	for (size_t i = 0; i < VALUES; i++) {
		struct str text = find(i, given, server_version, get);

		if (text.n)
			json_member_str(&w, values[i].key, text);
		else
			json_member_null(&w, values[i].key);
	}
	for (size_t i = 0; given && given->kind == JSON_OBJECT && i < given->count; i++) {
		const struct json_value *v = &given->item[i];

		if (is_one_of_ours(given->key[i]))
			continue;
		json_key_str(&w, given->key[i]);
		if (v->kind == JSON_INT || v->kind == JSON_REAL)
			json_put_str(&w, v->raw);
		else
			json_put_str(&w, json_text(v, STR("")));
	}
	json_end_object(&w);
}
