/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/verbs/ingest_tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/console/cli.h"
#include "core/base/mem.h"
#include "core/json/write.h"

#define NOTES_MAX 1000 /* different sentences about files that are counted before they are said */

static const char *outcome_name(int outcome)
{
	return outcome == INGEST_SKIPPED ? "skipped" : put_outcome_name((enum put_outcome)outcome);
}

static int worst_of(const bool has[INGEST_OUTCOMES])
{
	static const int worst_first[] = {
		PUT_INVALID, PUT_CONFLICT, PUT_NEW, PUT_DUPLICATE, INGEST_SKIPPED,
	};

	for (size_t k = 0; k < sizeof(worst_first) / sizeof(*worst_first); k++)
		if (has[worst_first[k]])
			return worst_first[k];
	return INGEST_SKIPPED;
}

/* A file's outcome is the worst of its runs' outcomes. */
static int outcome_of(const struct ingest_run *run, size_t n)
{
	bool has[INGEST_OUTCOMES] = { false };

	for (size_t i = 0; i < n; i++)
		has[run[i].outcome] = true;
	return worst_of(has);
}

static void put_json(struct buf *out, const char *path, const char *part,
		     const struct ingest_run *run, size_t n, const struct str *note,
		     size_t n_notes)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_text(&w, "file", path);
	if (*part)
		json_member_text(&w, "part", part);
	json_member_text(&w, "outcome", outcome_name(outcome_of(run, n)));
	json_member_array(&w, "runs");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&w);
		json_member_text(&w, "outcome", outcome_name(run[i].outcome));
		json_key(&w, "id");
		if (run[i].id)
			json_put_int(&w, run[i].id);
		else
			json_put_null(&w);
		json_key(&w, "run_id");
		if (run[i].run_id.n)
			json_put_str(&w, run[i].run_id);
		else
			json_put_null(&w);
		json_member_int(&w, "traces", (int64_t)run[i].traces);
		if (run[i].reason.n)
			json_member_str(&w, "reason", run[i].reason);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_member_array(&w, "notes");
	for (size_t i = 0; i < n_notes; i++)
		json_put_str(&w, note[i]);
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

static void put_line(struct buf *out, const char *path, const char *part,
		     const struct ingest_run *run, size_t n)
{
	size_t of[INGEST_OUTCOMES] = { 0 }, traces = 0;
	const char *between = ": ";
	int outcome = outcome_of(run, n);

	buf_printf(out, "%-9s  %s%s%s", outcome_name(outcome), path, *part ? ", " : "", part);
	for (size_t i = 0; i < n; i++) {
		of[run[i].outcome]++;
		traces += run[i].traces;
	}
	if (n == 1 && run->reason.n)
		buf_printf(out, ": %.*s", (int)run->reason.n, run->reason.p);
	else if (n == 1 && run->run_id.n)
		buf_printf(out, ": %.*s", (int)run->run_id.n, run->run_id.p);
	for (int k = 0; n > 1 && k < INGEST_OUTCOMES; k++)
		if (of[k]) {
			buf_printf(out, "%s%zu %s", between, of[k], outcome_name(k));
			between = ", ";
		}
	if (traces)
		buf_printf(out, " with %zu trace%s", traces, traces == 1 ? "" : "s");
	buf_add_char(out, '\n');
	for (size_t i = 0; n > 1 && i < n; i++)
		if (run[i].reason.n)
			buf_printf(out, "           run %zu: %.*s\n", i + 1, (int)run[i].reason.n,
				   run[i].reason.p);
}

void ingest_bar_clear(struct ingest *g)
{
	if (g->is_bar)
		fputs("\r\033[K", stderr);
}

/* "A sentence. (3 runs)": returns the number and cuts it from the sentence. */
static size_t cut_runs(struct str *note)
{
	const char *open = note->n ? memrchr(note->p, '(', note->n) : NULL;
	struct str count = open ? (struct str){ open + 1, (size_t)(note->p + note->n - open) - 1 } :
				  STR("");
	uint64_t n;

	if (!str_ends(count, STR(" runs)")) || open == note->p ||
	    !str_to_u64((struct str){ count.p, count.n - strlen(" runs)") }, &n))
		return 1;
	note->n = (size_t)(open - note->p) - 1;
	return (size_t)n;
}

static void say_note(const struct ingest_note *note)
{
	struct buf line = { 0 };

	if (note->files > 1)
		buf_printf(&line, "%zu files, the first is %s: %s", note->files, note->path, note->text);
	else
		buf_printf(&line, "%s: %s", note->path, note->text);
	if (note->runs > note->files)
		buf_printf(&line, " (%zu runs)", note->runs);
	cli_warn(line.data);
	buf_release(&line);
}

void ingest_say_notes(struct ingest *g)
{
	for (size_t i = 0; i < g->n_notes; i++) {
		if (!g->o->is_watching || g->note[i].files > 1)
			say_note(&g->note[i]);
		free(g->note[i].text);
		free(g->note[i].path);
	}
	free(g->note);
	g->note = NULL;
	g->n_notes = 0;
}

static void add_note(struct ingest *g, const char *path, struct str text)
{
	size_t runs = cut_runs(&text), i = 0;
	struct ingest_note one = { .files = 1, .runs = runs };

	while (i < g->n_notes && !str_is(text, g->note[i].text))
		i++;
	if (i < g->n_notes) {
		g->note[i].files++;
		g->note[i].runs += runs;
		return;
	}
	one.text = mem_copy(text.p, text.n);
	one.path = mem_text(path);
	g->note = mem_grow(g->note, i + 1, sizeof(*g->note));
	g->note[g->n_notes++] = one;
	/* While watching there is no end at which to print it. */
	if (g->o->is_watching)
		say_note(&one);
	if (g->n_notes == NOTES_MAX)
		ingest_say_notes(g);
}

static void count(struct ingest *g, int outcome)
{
	g->files++;
	g->files_of[outcome]++;
}

void ingest_tell_parts(struct ingest *g)
{
	count(g, worst_of(g->has_part));
	memset(g->has_part, 0, sizeof(g->has_part));
	*g->part = 0;
}

void ingest_tell(struct ingest *g, const char *path, const struct ingest_run *run, size_t n,
		 const struct str *note, size_t n_notes)
{
	if (*g->part)
		g->has_part[outcome_of(run, n)] = true;
	else
		count(g, outcome_of(run, n));
	for (size_t i = 0; i < n; i++) {
		g->runs += run[i].outcome <= PUT_CONFLICT;
		if (run[i].id)
			g->last_id = run[i].id;
	}
	ingest_bar_clear(g);
	buf_reset(&g->line);
	if (g->o->is_json)
		put_json(&g->line, path, g->part, run, n, note, n_notes);
	else
		put_line(&g->line, path, g->part, run, n);
	cli_out(buf_str(&g->line));
	for (size_t i = 0; !g->o->is_json && i < n_notes; i++)
		add_note(g, path, note[i]);
}

void ingest_tell_wrong(struct ingest *g, const char *path, bool is_found, const struct err *why)
{
	struct ingest_run run = { .reason = str_of(why->text), .outcome = PUT_INVALID };

	if (is_found && why->code == ERR_RUN)
		run.outcome = INGEST_SKIPPED;
	ingest_tell(g, path, &run, 1, NULL, 0);
}

void ingest_tell_all(struct ingest *g)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	const char *between = ": ";

	ingest_bar_clear(g);
	if (g->o->is_json) {
		json_begin_object(&w);
		json_member_int(&w, "files", (int64_t)g->files);
		for (int k = 0; k < INGEST_OUTCOMES; k++)
			json_member_int(&w, outcome_name(k), (int64_t)g->files_of[k]);
		json_end_object(&w);
	} else {
		buf_printf(&text, "%zu %s%s", g->files, g->files == 1 ? "file" : "files", g->files ? "" :
			   ": in folders, results are looked for in files named *.json, *.jsonl and *.ndjson, "
			   "also *.gz and *.zst of these");
		for (int k = 0; k < INGEST_OUTCOMES; k++)
			if (g->files_of[k]) {
				buf_printf(&text, "%s%zu %s", between, g->files_of[k], outcome_name(k));
				between = ", ";
			}
	}
	buf_add_char(&text, '\n');
	cli_out_buf(&text);
}
