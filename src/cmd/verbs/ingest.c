/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.c - `profllm ingest`: results into a store, or to a dashboard.
 *
 * Files are read into a batch, and a batch is one transaction of the store: a commit for
 * each of a thousand files would cost more than reading them.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/http/url.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/ingest_tell.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/opt/opt.h"
#include "experiment/suite/upload.h"
#include "input/fetch/dashboard.h"
#include "results/read/files.h"
#include "results/read/pieces.h"
#include "results/read/read.h"
#include "results/store/store.h"
#include "results/store/trace_files.h"

#define BATCH_RUNS 256
#define BATCH_BYTES (16u << 20)
#define BAR_EVERY_NS 100000000

#define R(member, flag, ...) OPT(struct ingest_opts, member, flag, __VA_ARGS__)
#define WHERE "Where to"
#define WHAT "What"

static const struct opt rows[] = {
	R(paths, "PATH", .flags = OPT_POSITIONAL,
	  .help = "files and folders: documents of profllm run, results of the bench commands (of "
		  "ProfLLM and vLLM), sweeps; also compressed by gzip or zstd"),
	R(store, "store", .group = WHERE, .arg = "URL",
	  .words = "db database",
	  .help = "sqlite:PATH or postgresql://...; default: sqlite, in the user's data folder"),
	R(traces_dir, "traces-dir", .group = WHERE, .arg = "DIR",
	  .help = "folder for traces; default: next to the SQLite file"),
	R(server, "server", .group = WHERE, .arg = "URL",
	  .words = "url dashboard",
	  .help = "dashboard to send the results to instead of a store: http://host:8080, or "
	  "unix:PATH"),
	R(token_file, "token-file", .group = WHERE, .arg = "FILE",
	  .words = "token api-key auth",
	  .help = "the token for --server is its first line; a dashboard of this user on this "
		  "machine needs none"),
	R(is_watching, "watch", .group = WHAT,
	  .help = "watch the folders and ingest new files until interrupted"),
	R(no_traces, "no-traces", .group = WHAT,
	  .help = "do not store the profiler's traces that a document names"),
	R(trace, "trace", .group = WHAT, .arg = "FILE",
	  .help = "a profiler's trace that belongs to a run"),
	R(run, "run", .group = WHAT, .arg = "ID",
	  .help = "run that the trace belongs to, by run_id or number; default: the run just "
	  "ingested"),
	R(is_json, "json", .group = WHAT, .help = "report the outcome of each file as a line of JSON"),
};
static const struct ingest_opts defaults = { 0 };
static const char *const groups[] = { WHERE, WHAT, NULL };

const struct opt_set cmd_ingest_set = {
	.command = "ingest",
	.summary = "Adds results to the store of the dashboard. A result that is already there is "
		"not added again.",
	.usage = "PATH... [options]",
	.epilog = "Examples:\n"
		  "  profllm ingest results.json\n"
		  "  profllm ingest results/ --store sqlite:runs.db --watch\n"
		  "  profllm ingest results.json --server http://host:8080 --token-file token\n"
		  "  profllm ingest --trace traces/rank0.json.gz --run exp_20260131_120000_c0ffee",
	OPT_SET_OF(rows, defaults), .groups = groups,
};

/* ---- into the store ---- */

struct batch {
	struct arena arena;       /* of what is read and reported */
	struct entry {
		char *path;
		struct buf bytes; /* the runs borrow from them */
		struct read_file file;
	} entry[BATCH_RUNS];
	size_t n, runs, bytes;
};

static void batch_empty(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->entry[i].path);
		buf_release(&b->entry[i].bytes);
	}
	arena_release(&b->arena);
	b->n = b->runs = b->bytes = 0;
}

/* Stores the traces that the run's document names. *note: about those left out. */
static int take_named(struct ingest *g, const char *path, struct str document,
		      struct ingest_run *run, struct arena *a, struct str *note, struct err *e)
{
	struct trace_files files;
	struct err why = { 0 };
	bool is_new;

	trace_files_find(document, path, NULL, a, &files);
	*note = files.note;
	for (size_t i = 0; i < files.n; i++) {
		if (store_trace_take(g->store, run->id, str_of(files.file[i].name),
				     files.file[i].path, &is_new, &why) == 0) {
			run->traces += is_new;
		} else if (why.code == ERR_USAGE) {
			*note = str_of(arena_printf(a, "its traces were skipped: %s", why.text));
			return 0;
		} else {
			*e = why;
			return err_wrap(e, "%s: its traces", path);
		}
	}
	return 0;
}

/* A note about one of a file's n runs: it names the run where there are several. */
static struct str ingest_run_note(struct arena *a, const struct ingest_run *run, size_t n,
				  struct str note)
{
	return n == 1 ? note : str_of(arena_printf(a, "%.*s: %.*s", (int)run->run_id.n,
						   run->run_id.p, (int)note.n, note.p));
}

/* A run stays stored even when its trace cannot be. */
static int tell_entry(struct ingest *g, const struct entry *entry, const struct put_result *result,
		      struct arena *a, struct err *e)
{
	const struct read_file *file = &entry->file;
	struct ingest_run *run = arena_alloc(a, (file->n + 1) * sizeof(*run));
	struct str *note = arena_alloc(a, (file->n_notes + file->n + 1) * sizeof(*note));
	size_t n_notes = file->n_notes;
	int rc = 0;

	if (n_notes)
		memcpy(note, file->note, n_notes * sizeof(*note));
	for (size_t i = 0; i < file->n; i++) {
		struct str said = { 0 };

		run[i] = (struct ingest_run){ file->run[i].run_id, result[i].reason,
					      result[i].id, (int)result[i].outcome, 0 };
		if (run[i].id && !g->o->no_traces && rc == 0)
			rc = take_named(g, entry->path, file->run[i].document, &run[i], a, &said,
					e);
		if (said.n)
			note[n_notes++] = ingest_run_note(a, &run[i], file->n, said);
	}
	ingest_tell(g, entry->path, run, file->n, note, n_notes);
	return rc;
}

/* Stores and reports what has been read. */
static int ingest_flush(struct ingest *g, struct err *e)
{
	struct batch *b = g->batch;
	struct read_run *run;
	struct put_result *result;
	size_t at = 0;
	int rc = 0;

	if (!b || !b->n)
		return 0;
	run = arena_alloc(&b->arena, (b->runs + 1) * sizeof(*run));
	result = arena_alloc(&b->arena, (b->runs + 1) * sizeof(*result));
	for (size_t i = 0; i < b->n; i++)
		for (size_t k = 0; k < b->entry[i].file.n; k++)
			run[at++] = b->entry[i].file.run[k];
	rc = store_put(g->store, run, b->runs, STR("ingest"), &b->arena, result, e);
	at = 0;
	for (size_t i = 0; rc == 0 && i < b->n; i++) {
		rc = tell_entry(g, &b->entry[i], result + at, &b->arena, e);
		at += b->entry[i].file.n;
	}
	batch_empty(b);
	return rc;
}

static void show_bar(struct ingest *g)
{
	int64_t now = clock_mono_ns();

	if (!g->is_bar || now - g->shown_ns < BAR_EVERY_NS)
		return;
	g->shown_ns = now;
	fprintf(stderr, "\r\033[K%zu files, %zu runs", g->files + g->batch->n, g->runs + g->batch->runs);
}

/* Adds a file to the batch under the name used in messages and for sweeps; takes over the bytes. */
static int keep(struct ingest *g, const char *path, struct buf *bytes, bool is_found, struct err *e)
{
	struct batch *b = g->batch;
	struct entry *entry = &b->entry[b->n];
	struct err why = { 0 };

	*entry = (struct entry){ .bytes = *bytes };
	*bytes = (struct buf){ 0 };
	if (read_document(str_of(path), buf_str(&entry->bytes), &b->arena, &entry->file,
			  &why) < 0) {
		buf_release(&entry->bytes);
		if (ingest_flush(g, e) < 0) /* files are reported in their order */
			return -1;
		ingest_tell_wrong(g, path, is_found, &why);
		return 0;
	}
	entry->path = mem_text(path);
	b->n++;
	b->runs += entry->file.n;
	b->bytes += entry->bytes.len;
	show_bar(g);
	return b->n == BATCH_RUNS || b->runs >= BATCH_RUNS || b->bytes >= BATCH_BYTES ?
		ingest_flush(g, e) : 0;
}

/* ---- to a dashboard: a request for each file ---- */

#define SEND_TIMEOUT_MS 120000
#define ANSWER_BYTES_MAX (64u << 20) /* a file of 100,000 runs has an outcome for each */

static int post(struct ingest *g, const char *url, struct str body, struct fetch_reply *reply,
		struct err *e)
{
	struct fetch_opts how = dashboard_opts(&g->dashboard);

	how.timeout_ms = SEND_TIMEOUT_MS;
	how.body_bytes_max = ANSWER_BYTES_MAX;
	how.cancel = cli_is_interrupted();
	return fetch(url, &body, &how, reply, e);
}

static int outcome_named(struct str name)
{
	for (int k = 0; k <= PUT_INVALID; k++)
		if (str_is(name, put_outcome_name((enum put_outcome)k)))
			return k;
	return PUT_INVALID;
}

static void warn(void *self, const char *text)
{
	(void)self;
	cli_warn(text);
}

/* Sends the traces that the documents name, each to its run. Notes: about those left out. */
static int send_named(struct ingest *g, const char *path, struct str bytes, struct ingest_run *run,
		      size_t n, struct arena *a, struct str *note, size_t *n_notes, struct err *e)
{
	struct upload_opts o = { .url = g->o->server, .token_file = g->o->token_file,
				 .cancel = cli_is_interrupted(), .warn = warn };
	struct read_file file = { 0 };
	int rc = 0;

	/* Few documents name any: the others are not read a second time. */
	if (g->o->no_traces || (!result_is_packed(bytes) && !memmem(bytes.p, bytes.n, "\"profiling\"",
								  strlen("\"profiling\""))) ||
	    read_document(str_of(path), bytes, a, &file, NULL) < 0)
		return 0;
	for (size_t i = 0; rc == 0 && i < n && i < file.n; i++) {
		struct str id = str_of(arena_printf(a, "%lld", (long long)run[i].id)), said;

		if (!run[i].id)
			continue;
		named_traces(file.run[i].document, path, NULL, a, &o, &said);
		if (said.n)
			note[(*n_notes)++] = ingest_run_note(a, &run[i], n, said);
		if (o.n_traces)
			rc = upload_traces(&o, id, run[i].outcome != PUT_NEW, &run[i].traces, e);
	}
	return rc < 0 ? err_wrap(e, "%s: its traces", path) : 0;
}

/* Reports the answer to an upload. -1: it is malformed, or a trace cannot be sent. */
static int tell_answer(struct ingest *g, const char *path, struct str bytes,
		       const struct json_value *answer, struct arena *a, struct err *e)
{
	const struct json_value *results = json_get(answer, "results");
	const struct json_value *notes = json_get(answer, "notes");
	size_t n_notes = notes && notes->kind == JSON_ARRAY ? notes->count : 0;
	struct ingest_run *run;
	struct str *note;
	int rc;

	if (!results || results->kind != JSON_ARRAY)
		return err_set(e, ERR_NET, "%s did not answer as a dashboard does", g->o->server);
	run = arena_alloc(a, (results->count + 1) * sizeof(*run));
	note = arena_alloc(a, (n_notes + results->count + 1) * sizeof(*note));
	for (size_t i = 0; i < results->count; i++) {
		const struct json_value *v = &results->item[i];

		run[i] = (struct ingest_run){
			json_text(json_get(v, "run_id"), STR("")),
			json_text(json_get(v, "reason"), STR("")), json_int(json_get(v, "id"), 0),
			outcome_named(json_text(json_get(v, "outcome"), STR(""))), 0,
		};
	}
	for (size_t i = 0; i < n_notes; i++)
		note[i] = json_text(&notes->item[i], STR(""));
	rc = send_named(g, path, bytes, run, results->count, a, note, &n_notes, e);
	ingest_tell(g, path, run, results->count, note, n_notes);
	return rc;
}

static int say_status(const struct ingest *g, const struct fetch_reply *reply, struct err *e)
{
	struct buf text = { 0 };

	if (reply->status == 401 && !g->o->token_file)
		return err_set(e, ERR_NET, "%s answered 401: a token with the role upload is required; "
			       "--token-file names the file that has it", g->o->server);
	if (reply->status == 401)
		return err_set(e, ERR_NET, "%s answered 401: the token in %s is not one of this "
			       "dashboard's", g->o->server, g->o->token_file);
	dashboard_add_answer(reply, &text);
	err_set(e, ERR_NET, "%s %s", g->o->server, text.data);
	buf_release(&text);
	return -1;
}

static bool has(struct str text, const char *part)
{
	return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

static int ingest_send(struct ingest *g, const char *path, struct str bytes, bool is_found,
		struct err *e)
{
	struct buf url = { 0 };
	struct fetch_reply reply = { 0 };
	struct arena a = { 0 };
	struct json_value *answer = NULL;
	struct ingest_run invalid = { .outcome = PUT_INVALID };
	int rc;

	buf_printf(&url, "%s/api/upload/raw?name=", g->dashboard.base.data);
	url_add_encoded(&url, str_of(path));
	rc = post(g, url.data, bytes, &reply, e);
	if (rc < 0 && reply.fault == FETCH_FAULT_CONNECT && reply.error)
		err_set(e, ERR_NET, "cannot connect to %s: %s. Is the dashboard running?", g->o->server,
			strerror(reply.error));
	if (rc == 0 && json_parse(&a, buf_str(&reply.body), &answer, NULL) < 0)
		answer = NULL;
	if (rc == 0 && reply.status == 422) {
		invalid.reason = json_text(json_get(answer, "detail"), STR("refused"));
		if (is_found && (has(invalid.reason, READ_NOTHING_KNOWN) ||
				 has(invalid.reason, READ_NOT_ENDED)))
			invalid.outcome = INGEST_SKIPPED;
		ingest_tell(g, path, &invalid, 1, NULL, 0);
	} else if (rc == 0 && (reply.status < 200 || reply.status > 299)) {
		rc = say_status(g, &reply, e);
	} else if (rc == 0) {
		rc = tell_answer(g, path, bytes, answer, &a, e);
	}
	fetch_reply_release(&reply);
	arena_release(&a);
	buf_release(&url);
	return rc;
}

static int ingest_send_trace(struct ingest *g, const char *path, const char *run, struct err *e)
{
	const struct upload_opts o = { .url = g->o->server, .token_file = g->o->token_file,
				       .cancel = cli_is_interrupted() };

	return upload_trace(&o, str_of(run), path, e) < 0 ? err_wrap(e, "--trace") : 0;
}

/* ---- a file that is too large to be read whole ---- */

/* Every piece is read before the first one is stored: an error in one refuses the file. */
static int check_pieces(const char *path, struct str text, struct err *e)
{
	struct result_pieces p;
	struct buf piece = { 0 };
	int rc = result_pieces_begin(&p, text, RESULT_PIECE_BYTES, e), more = 1;

	while (rc == 0 && !*cli_is_interrupted() &&
	       (more = result_pieces_next(&p, &piece, e)) > 0) {
		struct arena a = { 0 };
		struct read_file file;

		if (read_document(str_of(path), buf_str(&piece), &a, &file, e) < 0)
			rc = err_wrap(e, "in the part with %s %zu to %zu, counted from there",
				      p.is_list ? "results" : "lines", p.first, p.last);
		else if (p.is_list && file.n && str_is(file.run[0].kind, "pytorch"))
			rc = err_set(e, ERR_LIMIT, "a list with a record for each metric may have at "
				     "most %u MiB: take the results themselves in, not their "
				     ".pytorch.json", INGEST_BYTES_MAX >> 20);
		arena_release(&a);
	}
	buf_release(&piece);
	return more < 0 ? -1 : rc;
}

/* Each piece is stored by itself: after an interruption the same command stores the rest. */
static int keep_pieces(struct ingest *g, const char *path, struct str text, bool is_found,
		       struct err *e)
{
	struct result_pieces p;
	struct buf piece = { 0 };
	int rc = result_pieces_begin(&p, text, RESULT_PIECE_BYTES, e);

	while (rc == 0 && !*cli_is_interrupted() && (rc = result_pieces_next(&p, &piece, e)) > 0) {
		snprintf(g->part, sizeof(g->part), "%s %zu to %zu", p.is_list ? "results" : "lines",
			 p.first, p.last);
		rc = g->store ? keep(g, path, &piece, is_found, e) :
				ingest_send(g, path, buf_str(&piece), is_found, e);
		if (rc == 0)
			rc = ingest_flush(g, e);
	}
	buf_release(&piece);
	return rc;
}

static int ingest_pieces(struct ingest *g, const char *path, bool is_found, struct err *e)
{
	struct err why = { 0 };
	struct str text;
	int rc = ingest_flush(g, e); /* files are reported in their order */

	if (rc < 0)
		return -1;
	if (file_map(path, &text, &why) < 0) {
		ingest_tell_wrong(g, path, false, &why);
		return 0;
	}
	if (check_pieces(path, text, &why) < 0) {
		ingest_tell_wrong(g, path, is_found, &why);
	} else if (!*cli_is_interrupted()) {
		rc = keep_pieces(g, path, text, is_found, e);
		ingest_tell_parts(g);
	}
	file_unmap(text);
	return rc;
}

/*
 * Ingests one file. is_found: it is from a folder, so it is skipped if it holds no result. -1: the
 * store or the dashboard fails; an error in the file itself is reported and counted.
 */
static int ingest_file(struct ingest *g, const char *path, bool is_found, struct err *e)
{
	struct buf bytes = { 0 };
	struct err why = { 0 };
	int rc;

	if (file_read(path, INGEST_BYTES_MAX, &bytes, &why) < 0 && why.code == ERR_LIMIT) {
		rc = ingest_pieces(g, path, is_found, e);
	} else if (why.code != ERR_NONE) {
		rc = ingest_flush(g, e);
		if (rc == 0) {
			why.code = ERR_IO;
			ingest_tell_wrong(g, path, false, &why);
		}
	} else {
		result_add_commands(path, &bytes);
		rc = g->store ? keep(g, path, &bytes, is_found, e) :
				ingest_send(g, path, buf_str(&bytes), is_found, e);
	}
	buf_release(&bytes);
	return rc;
}

/* Ingests a file or a folder's files. */
static int ingest_path(struct ingest *g, const char *path, struct err *e)
{
	struct result_files found = { 0 };
	int rc = 0;

	if (!file_exists(path))
		return err_set(e, ERR_USAGE, "%s does not exist; a result file or a folder is expected",
			       path);
	if (!file_is_dir(path))
		return ingest_file(g, path, false, e);
	if (result_files_find(path, RESULT_FILES_ALL, &found, NULL, NULL, e) < 0)
		rc = -1;
	for (size_t i = 0; rc == 0 && i < found.n && !*cli_is_interrupted(); i++)
		rc = ingest_file(g, found.path[i], true, e);
	result_files_release(&found);
	return rc;
}

/* ---- a trace ---- */

static int take_trace(struct ingest *g, struct err *e)
{
	const char *slash = strrchr(g->o->trace, '/');
	struct str name = str_of(slash ? slash + 1 : g->o->trace);
	int64_t run = g->last_id, id;

	if (g->o->run) {
		run = store_find(g->store, str_of(g->o->run));
		if (!run && (!str_to_i64(str_of(g->o->run), &run) || run < 1))
			return err_set(e, ERR_USAGE, "--run: there is no run '%s'", g->o->run);
	}
	if (store_trace_put(g->store, run, name, g->o->trace, &id, e) < 0)
		return err_wrap(e, "--trace");
	if (!g->o->is_json)
		printf("trace %lld of run %lld: %s\n", (long long)id, (long long)run, g->o->trace);
	return 0;
}

static int attach(struct ingest *g, struct err *e)
{
	char number[32];

	if (!g->o->trace || *cli_is_interrupted())
		return 0;
	if (!g->o->run && !g->last_id)
		return err_set(e, ERR_USAGE, "--trace: no run was ingested; name the run with "
			"--run");
	if (g->store)
		return take_trace(g, e);
	snprintf(number, sizeof(number), "%lld", (long long)g->last_id);
	return ingest_send_trace(g, g->o->trace, g->o->run ? g->o->run : number, e);
}

/* ---- --watch: what is there, then what comes, until a signal ---- */

/*
 * A folder is watched before its files are listed, so that none is missed. A file counts once its
 * writer has closed it or renamed it. A file that cannot be read yet and was changed a moment ago
 * is still being written: it comes again when it is closed.
 */

#define WAIT_MS 500
#define YOUNG_S 5       /* a file changed more recently may still be being written */
#define EVENT_BYTES 65536

struct watch {
	struct ingest *g;
	int fd;
	char **folder;      /* by watch descriptor; NULL: gone */
	size_t cap;
	struct result_files late; /* not to be read, perhaps because they are being written */
	struct map taken;        /* files of folders by path, to their number in state */
	uint64_t *state;         /* their states when they were ingested */
	size_t n_states, cap_states;
	struct arena names;      /* of taken */
};

/* Detects that a listed file is reported by an event as well, so that it is read once. */
static uint64_t state_of(const char *path)
{
	struct stat st = { 0 };

	if (stat(path, &st) < 0)
		return 0;
	return map_hash((struct str){ (const char *)&st.st_mtim, sizeof(st.st_mtim) }) ^
	       (uint64_t)st.st_size ^ (uint64_t)st.st_ino << 32;
}

static bool is_taken(const struct watch *w, const char *path)
{
	uint64_t at;

	return map_get(&w->taken, str_of(path), &at) && w->state[at] == state_of(path);
}

static int take(struct watch *w, const char *path, struct err *e)
{
	uint64_t at;

	if (!map_get(&w->taken, str_of(path), &at)) {
		at = w->n_states++;
		if (at == w->cap_states) {
			w->cap_states = w->cap_states ? 2 * w->cap_states : 64;
			w->state = mem_grow(w->state, w->cap_states, sizeof(*w->state));
		}
		map_put(&w->taken, arena_str(&w->names, str_of(path)), at);
	}
	w->state[at] = state_of(path);
	return ingest_file(w->g, path, true, e);
}

static void late_drop(struct watch *w, size_t i)
{
	free(w->late.path[i]);
	w->late.path[i] = w->late.path[--w->late.n];
}

static void late_forget(struct watch *w, const char *path)
{
	for (size_t i = w->late.n; i-- > 0;)
		if (strcmp(w->late.path[i], path) == 0)
			late_drop(w, i);
}

static int add_folder(void *self, const char *path, struct err *e)
{
	struct watch *w = self;
	const uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR;
	int wd = inotify_add_watch(w->fd, path, events);

	if (wd < 0 && errno == ENOENT)
		return 0; /* gone meanwhile */
	if (wd < 0)
		return err_set(e, ERR_IO, "%s cannot be watched: %s", path, errno == ENOSPC ?
			       "too many folders; see fs.inotify.max_user_watches" : strerror(errno));
	if ((size_t)wd >= w->cap) {
		size_t cap = 2 * (size_t)wd + 16;

		w->folder = mem_grow(w->folder, cap, sizeof(*w->folder));
		memset(w->folder + w->cap, 0, (cap - w->cap) * sizeof(*w->folder));
		w->cap = cap;
	}
	free(w->folder[wd]);
	w->folder[wd] = mem_text(path);
	return 0;
}

static bool is_young(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && clock_real_ns() / 1000000000 - st.st_mtime < YOUNG_S;
}

/* Whether the file is complete, so that the store is not asked about half a file. */
static bool is_whole(const char *path)
{
	struct buf bytes = { 0 };
	struct arena a = { 0 };
	struct read_file file;
	bool is_good = file_read(path, INGEST_BYTES_MAX, &bytes, NULL) == 0 &&
		       read_document(str_of(path), buf_str(&bytes), &a, &file, NULL) == 0;

	arena_release(&a);
	buf_release(&bytes);
	return is_good;
}

/* Watches a new folder and takes the files already in it. */
static int take_folder(struct watch *w, const char *path, struct err *e)
{
	struct result_files found = { 0 };
	struct err why = { 0 };
	int rc = 0;

	if (result_files_find(path, RESULT_FILES_ALL, &found, add_folder, w, &why) < 0 &&
	    why.code != ERR_IO) {
		*e = why;
		rc = -1;
	}
	for (size_t i = 0; rc == 0 && i < found.n && !*cli_is_interrupted(); i++)
		if (is_taken(w, found.path[i]))
			continue;
		else if (!is_young(found.path[i]) || is_whole(found.path[i]))
			rc = take(w, found.path[i], e);
		else
			result_files_add(&w->late, found.path[i]);
	result_files_release(&found);
	return rc;
}

/* Takes files as they are that have not been closed for a while. */
static int take_late(struct watch *w, struct err *e)
{
	int rc = 0;

	for (size_t i = w->late.n; rc == 0 && i-- > 0;) {
		if (is_young(w->late.path[i]))
			continue;
		if (file_exists(w->late.path[i]))
			rc = take(w, w->late.path[i], e);
		late_drop(w, i);
	}
	return rc == 0 ? ingest_flush(w->g, e) : -1;
}

static int take_all(struct watch *w, struct err *e)
{
	const struct opt_list *paths = &w->g->o->paths;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < paths->n && !*cli_is_interrupted(); i++)
		rc = file_is_dir(paths->v[i]) ? take_folder(w, paths->v[i], e) :
						ingest_path(w->g, paths->v[i], e);
	return rc == 0 ? ingest_flush(w->g, e) : -1;
}

static int on_event(struct watch *w, const struct inotify_event *event, struct err *e)
{
	const char *folder;
	char *path;
	int rc = 0;

	if (event->mask & IN_Q_OVERFLOW)
		return take_all(w, e);
	if (event->wd < 0 || (size_t)event->wd >= w->cap || !(folder = w->folder[event->wd]))
		return 0;
	if (event->mask & IN_IGNORED) {
		free(w->folder[event->wd]);
		w->folder[event->wd] = NULL;
		return 0;
	}
	if (!event->len || event->name[0] == '.')
		return 0;
	path = file_join(folder, event->name);
	if (event->mask & IN_ISDIR)
		rc = take_folder(w, path, e);
	else if (!(event->mask & IN_CREATE) && result_file_is(folder, event->name) &&
		 file_exists(path) && !is_taken(w, path)) {
		late_forget(w, path);
		rc = take(w, path, e);
	}
	free(path);
	return rc;
}

static int read_events(struct watch *w, struct err *e)
{
	_Alignas(struct inotify_event) char bytes[EVENT_BYTES];
	ssize_t n = read(w->fd, bytes, sizeof(bytes));
	int rc = 0;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 :
			err_set(e, ERR_IO, "the folders cannot be watched: %s", strerror(errno));
	for (ssize_t at = 0; rc == 0 && at < n;) {
		const struct inotify_event *event = (const void *)(bytes + at);

		rc = on_event(w, event, e);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return rc == 0 ? ingest_flush(w->g, e) : -1;
}

static int ingest_watch(struct ingest *g, struct err *e)
{
	struct watch w = { .g = g, .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
	struct pollfd poll_fd = { .fd = w.fd, .events = POLLIN };
	int rc;

	if (w.fd < 0)
		return err_set(e, ERR_IO, "folders cannot be watched: %s", strerror(errno));
	rc = take_all(&w, e);
	if (rc == 0 && !*cli_is_interrupted())
		fprintf(stderr, "Watching; Ctrl-C ends it.\n");
	while (rc == 0 && !*cli_is_interrupted())
		rc = poll(&poll_fd, 1, WAIT_MS) > 0 ? read_events(&w, e) : take_late(&w, e);
	result_files_release(&w.late);
	map_release(&w.taken);
	free(w.state);
	arena_release(&w.names);
	for (size_t i = 0; i < w.cap; i++)
		free(w.folder[i]);
	free(w.folder);
	close(w.fd);
	return rc;
}

/* ---- the verb ---- */

static int check(const struct ingest_opts *o, struct err *e)
{
	if (!o->paths.n && !o->trace)
		return err_set(e, ERR_USAGE, "a file or a folder is needed");
	if (o->server && o->store)
		return err_set(e, ERR_USAGE, "--store and --server exclude each other");
	if (o->token_file && !o->server)
		return err_set(e, ERR_USAGE, "--token-file needs --server");
	if (o->run && !o->trace)
		return err_set(e, ERR_USAGE, "--run needs --trace");
	if (o->trace && (!file_exists(o->trace) || file_is_dir(o->trace)))
		return err_set(e, ERR_USAGE, "--trace: %s is not a file", o->trace);
	if (o->is_watching && (o->trace || !o->paths.n))
		return err_set(e, ERR_USAGE, "--watch needs a folder, and excludes --trace");
	for (size_t i = 0; i < o->paths.n; i++)
		if (!file_exists(o->paths.v[i]))
			return err_set(e, ERR_USAGE, "%s does not exist; a result file or a folder is "
				       "expected", o->paths.v[i]);
	return 0;
}

static int open_place(struct ingest *g, struct err *e)
{
	struct store_opts store = { .url = g->o->store, .traces = g->o->traces_dir,
				    .has_no_index = true };

	if (!g->o->server) {
		g->batch = mem_alloc(sizeof(*g->batch));
		return store_open(&store, &g->store, e);
	}
	return dashboard_find(g->o->server, g->o->token_file, &g->dashboard, e);
}

static int ingest(struct ingest *g, struct err *e)
{
	int rc = open_place(g, e);

	if (rc == 0 && g->o->is_watching)
		rc = ingest_watch(g, e);
	for (size_t i = 0; rc == 0 && !g->o->is_watching && i < g->o->paths.n; i++)
		rc = ingest_path(g, g->o->paths.v[i], e);
	if (rc == 0)
		rc = ingest_flush(g, e);
	if (rc == 0)
		rc = attach(g, e);
	ingest_bar_clear(g);
	ingest_say_notes(g);
	if (g->o->paths.n && (g->files || (rc == 0 && !g->o->is_watching)))
		ingest_tell_all(g);
	if (g->batch)
		batch_empty(g->batch);
	free(g->batch);
	if (g->store)
		store_close(g->store);
	dashboard_release(&g->dashboard);
	buf_release(&g->line);
	return rc;
}

int cmd_ingest(struct cli *cli, void *values)
{
	struct ingest_opts *o = values;
	struct ingest g = { .o = o, .is_bar = isatty(STDERR_FILENO) };

	cli_catch_signals();
	if (check(o, &cli->err) == 0 && ingest(&g, &cli->err) == 0 && *cli_is_interrupted() &&
	    !o->is_watching)
		err_set(&cli->err, ERR_CANCELLED, "interrupted; the runs listed above are stored");
	return g.files_of[PUT_INVALID] > 0;
}
