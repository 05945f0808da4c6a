/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/interpreter.c - see interpreter.h. */
#include "experiment/interpreter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "proc/tool.h"

#define SCRIPT_HEAD_BYTES 4096

/* ---- which one ---- */

static bool is_python(const char *word)
{
	const char *slash = strrchr(word, '/');

	return strncmp(slash ? slash + 1 : word, "python", 6) == 0;
}

/* The first bytes of a file; "" when it cannot be read. */
static void read_head(const char *path, char out[static SCRIPT_HEAD_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, SCRIPT_HEAD_BYTES - 1);

	out[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

/*
 * "#!/opt/venv/bin/python3 -s", "#!/usr/bin/env python3"; and, where the path is too long for a
 * first line, a shell's second line: '''exec' "/very/long/python" "$0" "$@"
 */
static const char *script_python(const char *path, struct arena *a)
{
	char head[SCRIPT_HEAD_BYTES];
	struct str rest, line, word;

	read_head(path, head);
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

/* Words that start another command: it follows, behind their options. */
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
