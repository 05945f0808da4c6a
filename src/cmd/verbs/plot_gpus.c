/* SPDX-License-Identifier: Apache-2.0 */
/* plot_gpus.c - see plot_gpus.h. */
#include "cmd/verbs/plot_gpus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/console/cli.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "host/engine/args.h"
#include "results/read/files.h"
#include "results/read/read.h"

static bool is_told(const struct frame *records, const char *gpu_count_var)
{
	static const char *const keys[] = {
		"num_gpus", "gpu_count", "tensor_parallel_size", "tp", "pipeline_parallel_size", "pp",
		"data_parallel_size", "dp",
	};

	if (*gpu_count_var && frame_has_column(records, str_of(gpu_count_var)))
		return true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		char dashed[32];

		snprintf(dashed, sizeof(dashed), "%s", keys[i]);
		for (char *c = dashed; *c; c++)
			*c = *c == '_' ? '-' : *c;
		if (frame_has_column(records, str_of(keys[i])) ||
		    frame_has_column(records, str_of(dashed)))
			return true;
	}
	return false;
}

static int64_t gpus_of(const struct json_value *start, struct arena *a)
{
	const struct json_value *command = json_get(start, "command");
	char **argv;

	if (!command || command->kind != JSON_ARRAY)
		return 1;
	argv = arena_alloc(a, (command->count + 1) * sizeof(*argv));
	for (size_t i = 0; i < command->count; i++)
		argv[i] = arena_text(a, json_text(&command->item[i], STR("")));
	return engine_argv_gpus(argv);
}

void plot_gpus_warn(const char *folder, const struct frame *records, const char *gpu_count_var)
{
	char *path = file_join(folder, RESULT_SERVERS);
	const struct json_value *starts = NULL;
	struct arena a = { 0 };
	struct buf text = { 0 };
	int64_t most = 1;

	if (!is_told(records, gpu_count_var) && file_exists(path))
		starts = result_json(path, FRAME_FILE_BYTES_MAX, &a, NULL);
	if (starts && starts->kind == JSON_ARRAY)
		for (size_t i = 0; i < starts->count; i++) {
			int64_t gpus = gpus_of(&starts->item[i], &a);

			most = gpus > most ? gpus : most;
		}
	if (most > 1) {
		buf_printf(&text, "%s names a server of %" PRId64 " GPUs, but the results do not, so each is "
			   "counted as one: sweep tensor_parallel_size by --serve-params, or give the "
			   "benchmark --metadata num_gpus=%" PRId64, path, most, most);
		cli_warn(text.data);
	}
	buf_release(&text);
	arena_release(&a);
	free(path);
}
