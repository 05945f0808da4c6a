/* SPDX-License-Identifier: Apache-2.0 */
/* args_file.c - see args_file.h. */
#include "cmd/verbs/args_file.h"

#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"

char *args_file_default(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	struct buf path = { 0 };

	if (config && *config == '/')
		buf_printf(&path, "%s/profllm/engine_args.json", config);
	else if (home && *home)
		buf_printf(&path, "%s/.config/profllm/engine_args.json", home);
	else
		return NULL;
	return buf_take(&path);
}

int args_file_load(const char *path, struct arena *a, struct engine_extra *out, struct err *e)
{
	char *own = path ? NULL : args_file_default();
	struct buf text = { 0 };
	int rc = -1;

	*out = (struct engine_extra){ .version = "" };
	if (!path)
		path = own && file_exists(own) ? own : NULL;
	if (!path) {
		rc = 0;
		goto done;
	}
	if (file_read(path, CONFIG_BYTES_MAX, &text, e) < 0) {
		e->code = ERR_USAGE;
		goto done;
	}
	rc = engine_extra_parse(arena_str(a, buf_str(&text)), a, out, e);
	if (rc < 0) {
		err_wrap(e, "%s", path);
		e->code = ERR_USAGE;
	}
done:
	free(own);
	buf_release(&text);
	return rc;
}
