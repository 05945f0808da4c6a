/* SPDX-License-Identifier: Apache-2.0 */
/*
 * newest.c - which version of the engine a median is of. Runs of one configuration with several
 * versions are not repeats: only those of the newest version that counts are used, and a note says
 * how many runs of others are left out.
 *
 * A version is the values of all columns that describe the code under test, so two commits of one
 * release are two versions. The newest is that of the run with the latest time. Where a series
 * needs several places, such as loads, a version that was measured at one of them answers nothing,
 * and is only used if all are so.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "results/analyse/analyse_internal.h"

#define NAMED_MAX 4 /* versions in a note */

static const struct str release = { "environment.server.version", 26 };
static const struct str commit = { "provenance.engine_commit", 24 };
static const struct str timestamp = { "timestamp", 9 };

/* ---- columns ---- */

size_t newest_columns(const struct analyse_request *r, struct str *out)
{
	size_t count, n = 0;
	const struct column_info *info = index_columns(r->view, &count);

	out[n++] = timestamp;
	out[n++] = release;
	out[n++] = commit;
	for (size_t i = 0; i < count && n < NEWEST_COLUMNS_MAX; i++) {
		struct str name = info[i].name;

		if (setups_role(name) == ROLE_VERSION && !str_eq(name, release) &&
		    !str_eq(name, commit) && (info[i].distinct > 1))
			out[n++] = name;
	}
	return n;
}

void newest_read(struct arena *a, const struct rows *rows, size_t first, size_t n,
		 struct newest *out)
{
	uint32_t *version = arena_alloc(a, (rows->n + 1) * sizeof(*version)), codes, releases = 0;
	uint32_t n_versions = 0;

	assert(n >= 3);
	*out = (struct newest){ .at = rows->value + first * rows->n, .version = version,
				.arena = a };
	out->release = out->at + rows->n;
	out->commit = out->release + rows->n;
	out->other = out->commit + rows->n;
	out->n_other = n - 3;
	out->n_rows = rows->n;
	for (size_t c = 1; c < n; c++) {
		const uint32_t *code = setups_codes(a, out->at + c * rows->n, rows->n, &codes);

		n_versions = setups_refine(version, code, rows->n);
		releases = c == 1 ? codes : releases;
	}
	out->has_commits = n_versions > releases;
	out->reach = arena_alloc(a, ((size_t)n_versions + 1) * sizeof(*out->reach));
}

/* ---- rows ---- */

static double time_of(const struct newest *v, size_t row)
{
	return v->at[row].kind == VALUE_NUMBER ? v->at[row].number : -INFINITY;
}

/* Which versions of these rows were measured at several places. */
static void find_wide(const struct newest *v, const size_t *member, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v->reach[v->version[member[i]]] = (struct reach){ 0 };
	for (size_t i = 0; i < n; i++) {
		uint32_t place = v->place[member[i]];
		struct reach *at = &v->reach[v->version[member[i]]];

		at->is_wide |= place == NEWEST_EVERYWHERE || (at->is_seen && at->place != place);
		at->is_seen = true;
		at->place = place;
	}
}

/* The row whose version is the one to show; SIZE_MAX: n is 0. */
static size_t newest_row(const struct newest *v, const size_t *member, size_t n)
{
	size_t newest = SIZE_MAX;
	unsigned best = 0;

	if (v->place)
		find_wide(v, member, n);
	for (size_t i = 0; i < n; i++) {
		size_t row = member[i];
		unsigned rank = 2u * (!v->counts || v->counts[row]) +
				(v->place && v->reach[v->version[row]].is_wide);

		if (newest != SIZE_MAX && (rank != best ? rank < best :
					   time_of(v, row) < time_of(v, newest)))
			continue;
		newest = row;
		best = rank;
	}
	return newest;
}

size_t newest_keep(const struct newest *v, size_t *member, size_t n, bool has_newer)
{
	size_t kept = 0, newest = newest_row(v, member, n);

	for (int pass = 0; pass < (has_newer ? 2 : 1); pass++)
		for (size_t i = kept; i < n; i++) {
			size_t row = member[i];

			if (pass ? v->counts[row] || time_of(v, row) <= time_of(v, newest) :
				   v->version[row] != v->version[newest])
				continue;
			member[i] = member[kept];
			member[kept++] = row;
		}
	return kept;
}

/* ---- series ---- */

const char *newest_text(const struct newest *v, size_t row)
{
	struct value at = v->release[row], of = v->commit[row];
	const char *word = value_is_missing(of) ? "" : "commit ";

	for (size_t k = 0; k < v->n_other && value_is_missing(of); k++)
		of = v->other[k * v->n_rows + row];
	if (value_is_missing(at))
		return value_is_missing(of) ? NULL :
		       arena_printf(v->arena, "%s%s", word, parts_cell_text(v->arena, of));
	if (!v->has_commits || value_is_missing(of))
		return parts_cell_text(v->arena, at);
	return arena_printf(v->arena, "%s %s%s", parts_cell_text(v->arena, at), word,
			    parts_cell_text(v->arena, of));
}

/* Different versions for a note, the first of them by name. */
struct named { struct map seen; struct buf text; };

static void name_version(struct named *out, const struct newest *v, size_t row)
{
	const char *text = newest_text(v, row);

	text = text ? text : "unknown";
	if (map_get(&out->seen, str_of(text), NULL))
		return;
	map_put(&out->seen, str_of(text), 1);
	if (out->seen.count <= NAMED_MAX)
		buf_printf(&out->text, "%s%s", out->text.len ? ", " : "", text);
	else if (out->seen.count == NAMED_MAX + 1)
		buf_add_text(&out->text, ", ...");
}

void newest_narrow(const struct newest *v, struct series_list *l, const char *what,
		   const char *place, struct notes *notes)
{
	struct named used = { 0 }, others = { 0 };
	size_t left_out = 0, passed_over = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct series *s = &l->series[i];
		size_t all = s->n;
		double newest_s = -INFINITY;
		bool is_newer = false;

		s->n = newest_keep(v, s->member, all, false);
		s->row = s->member[0];
		for (size_t k = 0; k < s->n; k++)
			newest_s = fmax(newest_s, time_of(v, s->member[k]));
		for (size_t k = s->n; k < all; k++) {
			is_newer |= time_of(v, s->member[k]) > newest_s;
			name_version(&others, v, s->member[k]);
		}
		if (s->n < all)
			name_version(&used, v, s->row);
		left_out += all - s->n;
		passed_over += is_newer;
	}
	if (left_out)
		parts_note(notes, "%s use their newest version (%s); %s run%s of other versions (%s) "
			   "%s left out: filter by a version to see another one", what, used.text.data,
			   arena_count(notes->arena, left_out), left_out == 1 ? "" : "s",
			   others.text.data, left_out == 1 ? "is" : "are");
	if (passed_over)
		parts_note(notes, "%s of %s %s %s a newer version that is not used: it was measured at "
			   "one %s only, or its runs failed", arena_count(notes->arena, passed_over),
			   arena_count(notes->arena, l->n), what, passed_over == 1 ? "has" : "have", place);
	map_release(&used.seen);
	map_release(&others.seen);
	buf_release(&used.text);
	buf_release(&others.text);
}
