/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/environment.c - see environment.h; provenance is in provenance.c. */
#include "experiment/environment.h"

#include <link.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/redact.h"
#include "experiment/interpreter.h"
#include "gpu/gpu.h"
#include "json/write.h"
#include "version.h"

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

struct found {
	char version[LIBRARIES][64]; /* "" : not loaded */
};

/* "/usr/lib/libcurl.so.4.8.0" is libcurl 4.8.0: what a link leads to says more than the link. */
static int look_at_library(struct dl_phdr_info *info, size_t size, void *self)
{
	struct found *found = self;
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
	struct found found = { 0 };

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

static bool has_line(char *const *lines, struct str name)
{
	for (; lines && *lines; lines++)
		if (str_starts(str_of(*lines), name) && (*lines)[name.n] == '=')
			return true;
	return false;
}

/* Later lines of a list, and those of over, win. */
static void put_lines(struct json_writer *w, char *const *lines, char *const *over)
{
	for (; lines && *lines; lines++) {
		struct str value = str_of(*lines), name = str_cut(&value, '=');

		if (!is_of_interest(name) || has_line(lines + 1, name) || has_line(over, name))
			continue;
		json_key_str(w, name);
		json_put_str(w, value);
	}
}

/* ---- the whole ---- */

/* "2.8.0+cu128": 12.8; what the driver takes where torch does not say. */
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
	json_key(w, "python");
	if (!py->is_known) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
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
