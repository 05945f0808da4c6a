/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/program.h"

#include <dlfcn.h>
#include <unistd.h>

#include "base/file.h"
#include "proc/tool.h"

#define OWN "/proc/self/exe"

/* The file this code was loaded from: a library. NULL: it is part of the program. */
static const char *library(void)
{
	Dl_info info;
	const char *slash;

	if (!dladdr((const void *)(uintptr_t)program_path, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	return strstr(slash ? slash : info.dli_fname, ".so") ? info.dli_fname : NULL;
}

static bool is_program(const char *path)
{
	return !file_is_dir(path) && access(path, X_OK) == 0;
}

static bool find_near(const char *lib, struct buf *out)
{
	static const char *const folder[] = { "", "../bin/", "../../bin/" };
	const char *slash = strrchr(lib, '/');
	int n = slash ? (int)(slash - lib + 1) : 0;

	for (size_t i = 0; i < sizeof(folder) / sizeof(*folder); i++) {
		buf_reset(out);
		buf_printf(out, "%.*s%sprofllm", n, lib, folder[i]);
		if (is_program(out->data))
			return true;
	}
	return false;
}

static int find(const char *lib, struct buf *out, struct err *e)
{
	const char *given = getenv("PROFLLM_PROGRAM");
	char *path;

	if (given && *given) {
		buf_reset(out);
		buf_add_text(out, given);
		return is_program(given) ? 0 : err_set(e, ERR_USAGE,
			"PROFLLM_PROGRAM names no program: %s", given);
	}
	if (find_near(lib, out))
		return 0;
	path = tool_path("profllm");
	buf_reset(out);
	if (path)
		buf_add_text(out, path);
	free(path);
	return out->len ? 0 : err_set(e, ERR_RUN, "the program profllm is neither beside %s, nor in "
		"../bin, nor in PATH; PROFLLM_PROGRAM may name it", lib);
}

int program_path(struct buf *out, struct err *e)
{
	const char *lib = library();
	char path[4096];
	ssize_t n;

	if (lib)
		return find(lib, out, e);
	n = readlink(OWN, path, sizeof(path));
	buf_reset(out);
	buf_add_str(out, n > 0 ? (struct str){ path, (size_t)n } : STR(OWN));
	return 0;
}

int program_exec(struct buf *out, struct err *e)
{
	const char *lib = library();

	if (lib)
		return find(lib, out, e);
	buf_reset(out);
	buf_add_text(out, OWN);
	return 0;
}
