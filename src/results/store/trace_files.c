/* SPDX-License-Identifier: Apache-2.0 */
/* trace_files.c - see trace_files.h. */
#include "results/store/trace_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"

#define PATH_BYTES_SHOWN 200

/* The document's own; that of a suite's members; the caller's. Files lie in the first or last. */
enum { OWN, MEMBERS, OTHER, FOLDERS };

enum found { FOUND, GONE, OUTSIDE, NO_FILE, UNREADABLE, OTHER_SIZE };

struct finder {
	char *folder[FOLDERS]; /* as realpath has them; NULL: there is no such one */
	struct arena *arena;
	struct trace_files *out;
	size_t named, left_out;
	const char *first;     /* of those left out, and why */
	enum found why;
};

/* The folder of a file's path. Caller frees. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return mem_text(".");
	return mem_copy(path, slash == path ? 1 : (size_t)(slash - path));
}

/* "a/suite.d" of "a/suite.json" or "a/suite.json.gz"; NULL: it is called otherwise. Caller frees. */
static char *members_folder(const char *path)
{
	const char *end = NULL;
	struct buf out = { 0 };

	for (const char *at = strrchr(path, '/'); (at = strstr(at ? at : path, ".json")); at++)
		end = at;
	if (!end)
		return NULL;
	buf_printf(&out, "%.*s.d", (int)(end - path), path);
	return buf_take(&out);
}

static bool is_below(const char *path, const char *folder)
{
	size_t n = folder ? strlen(folder) : 0;

	if (n && folder[n - 1] == '/')
		n--;
	return folder && strncmp(path, folder, n) == 0 && path[n] == '/';
}

static enum found look(const struct finder *f, const char *path, int64_t bytes,
		       struct trace_file *out)
{
	char *real = realpath(path, NULL);
	enum found found = OUTSIDE;
	struct stat st;

	if (!real)
		return errno == EACCES ? UNREADABLE : GONE;
	/* Not the members' folder, which may be a link to anywhere. */
	if (is_below(real, f->folder[OWN]) || is_below(real, f->folder[OTHER]))
		found = FOUND;
	if (found == FOUND && stat(real, &st) < 0)
		found = GONE;
	else if (found == FOUND && !S_ISREG(st.st_mode))
		found = NO_FILE;
	else if (found == FOUND && access(real, R_OK) < 0)
		found = UNREADABLE;
	else if (found == FOUND && bytes >= 0 && st.st_size != bytes)
		found = OTHER_SIZE;
	if (found == FOUND)
		*out = (struct trace_file){
			.path = arena_text(f->arena, str_of(real)), .bytes = (uint64_t)st.st_size,
			.changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		};
	free(real);
	return found;
}

/* In each of the folders; what is wrong with the first one that has a file of that name. */
static enum found find(const struct finder *f, const char *path, int64_t bytes,
		       struct trace_file *out)
{
	enum found found = GONE, here;

	if (path[0] == '/')
		return look(f, path, bytes, out);
	for (size_t i = 0; i < FOLDERS; i++) {
		char *whole = f->folder[i] ? file_join(f->folder[i], path) : NULL;

		here = whole ? look(f, whole, bytes, out) : GONE;
		free(whole);
		if (here == FOUND)
			return FOUND;
		found = found == GONE ? here : found;
	}
	return found;
}

static bool is_taken(const struct trace_files *out, const char *path)
{
	for (size_t i = 0; i < out->n; i++)
		if (strcmp(out->file[i].path, path) == 0)
			return true;
	return false;
}

static void take(struct finder *f, struct json_slice path, struct json_slice bytes)
{
	struct trace_file *file = &f->out->file[f->out->n];
	struct buf text = { 0 };
	int64_t size = -1;
	enum found found;

	if (path.kind != JSON_STRING || f->named == TRACES_MAX)
		return;
	f->named++;
	if (bytes.kind == JSON_INT && !str_to_i64(bytes.raw, &size))
		size = -1;
	json_unescape(&text, path.raw);
	/* U+0000 would end the path early. */
	found = text.len && strlen(text.data) == text.len ? find(f, text.data, size, file) : GONE;
	if (found == FOUND && is_taken(f->out, file->path)) {
		f->named--; /* twice in the list */
	} else if (found == FOUND) {
		file->name = arena_text(f->arena, buf_str(&text));
		f->out->n++;
	} else if (!f->left_out++) {
		f->first = arena_text(f->arena, buf_str(&text));
		f->why = found;
	}
	buf_release(&text);
}

static void take_all(struct finder *f, struct str document)
{
	struct json_scan scan = { .text = document };
	struct json_slice all, list, path, bytes;
	struct json_iter it;
	struct str key;
	size_t n = 0;

	if (json_next(&scan, &all, NULL) < 0 || all.kind != JSON_OBJECT)
		return;
	if (json_path(all, &list, "profiling", "traces", NULL) && list.kind == JSON_ARRAY) {
		for (it = json_iter(list); json_each(&it, &key, &path) > 0;)
			n++;
		f->out->file = arena_alloc(f->arena, (n + 1) * sizeof(*f->out->file));
		for (it = json_iter(list); json_each(&it, &key, &all) > 0;) {
			bytes = (struct json_slice){ .kind = JSON_NULL };
			if (all.kind == JSON_OBJECT && json_member(all, "path", &path)) {
				json_member(all, "bytes", &bytes);
				take(f, path, bytes);
			}
		}
	} else if (json_path(all, &path, "profiling", "trace_file_path", NULL)) {
		f->out->file = arena_alloc(f->arena, sizeof(*f->out->file));
		take(f, path, (struct json_slice){ .kind = JSON_NULL });
	}
}

static void say_left_out(struct finder *f)
{
	static const char *const why[] = {
		[FOUND] = "", [GONE] = "is missing",
		[OUTSIDE] = "is not below the document's folder", [NO_FILE] = "is not a file",
		[UNREADABLE] = "cannot be read",
		[OTHER_SIZE] = "does not have the size that the document says",
	};
	struct buf text = { 0 };

	if (!f->left_out)
		return;
	if (f->named == 1)
		buf_printf(&text, "its trace was left out: ");
	else
		buf_printf(&text, "%zu of its %zu traces %s left out: ", f->left_out, f->named,
			   f->left_out == 1 ? "was" : "were");
	buf_printf(&text, "%.*s %s. `profllm ingest --trace FILE --run RUN_ID` attaches a trace",
		   PATH_BYTES_SHOWN, f->first, why[f->why]);
	f->out->note = arena_str(f->arena, buf_str(&text));
	buf_release(&text);
}

void trace_files_find(struct str document, const char *place, const char *folder,
		      struct arena *a, struct trace_files *out)
{
	char *named[FOLDERS] = { folder_of(place), members_folder(place),
				 folder ? mem_text(folder) : NULL };
	struct finder f = { .arena = a, .out = out };

	*out = (struct trace_files){ 0 };
	for (size_t i = 0; i < FOLDERS; i++)
		f.folder[i] = named[i] ? realpath(named[i], NULL) : NULL;
	take_all(&f, document);
	say_left_out(&f);
	for (size_t i = 0; i < FOLDERS; i++) {
		free(f.folder[i]);
		free(named[i]);
	}
}
