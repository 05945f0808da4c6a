/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_record.c - the result files of a sweep's runs: read, merged with parameters, summed up. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "run/sweep_parts.h"

/* A benchmark that was cut short says so in what it saved. */
static bool is_cut_short(const struct json_value *result)
{
	return json_bool(json_get(json_get(result, "profllm"), "interrupted"), false);
}

static struct json_value *read_result(const char *path, struct arena *a, struct err *e)
{
	struct json_value *result = NULL;
	struct buf text = { 0 };

	if (file_read(path, FILE_BYTES_MAX, &text, e) == 0 &&
	    json_parse(a, buf_str(&text), &result, e) < 0)
		err_wrap(e, "%s", path);
	buf_release(&text);
	if (result && result->kind != JSON_OBJECT) {
		err_set(e, ERR_PARSE, "%s: expected the object of one result", path);
		result = NULL;
	}
	return result;
}

bool sweep_record_is_whole(const char *path)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	const struct json_value *result = file_exists(path) ? read_result(path, &a, &e) : NULL;
	bool is_whole = result && !is_cut_short(result);

	arena_release(&a);
	return is_whole;
}

/* As base/file.c calls what it is about to put in another file's place. */
#define HALF_WRITTEN ".profllm-"

void sweep_record_sweep_out(struct sweep *s, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, HALF_WRITTEN, strlen(HALF_WRITTEN)) == 0)
			unlink(sweep_path(s, folder, entry->d_name));
	if (dir)
		closedir(dir);
}

static const struct json_value *merged(struct sweep *s, const struct json_value *result,
				       const struct sweep_run *run)
{
	const struct json_value *record = params_with_int(result, "run_number", run->number,
							  &s->arena);

	record = params_or(record, run->first, &s->arena);
	return params_or(record, run->second, &s->arena);
}

const struct json_value *sweep_record_read(struct sweep *s, const struct sweep_run *run)
{
	struct err e = { 0 };
	const struct json_value *result = file_exists(run->path) ?
		read_result(run->path, &s->arena, &e) : NULL;

	return result && !is_cut_short(result) ? merged(s, result, run) : NULL;
}

const struct json_value *sweep_record_merge(struct sweep *s, const struct sweep_run *run,
					    struct err *e)
{
	const struct json_value *record = read_result(run->path, &s->arena, e);

	if (!record)
		return NULL;
	record = merged(s, record, run);
	return sweep_save(run->path, record, e) < 0 ? NULL : record;
}

int sweep_record_summary(struct sweep *s, const char *folder, const struct sweep_records *records,
			 struct err *e)
{
	struct json_value list = { .kind = JSON_ARRAY, .count = records->n };

	list.item = arena_alloc(&s->arena, (records->n + 1) * sizeof(*list.item));
	for (size_t i = 0; i < records->n; i++)
		list.item[i] = *records->v[i];
	return sweep_save(sweep_path(s, folder, "summary.json"), &list, e);
}
