/* SPDX-License-Identifier: Apache-2.0 */
/* people.c - what users add: notes, exclusions, saved views and boards, marks on a trend. */
#include <math.h>

#include "core/base/mem.h"
#include "results/store/store_internal.h"

static int is_words(struct str text, const char *what, struct err *e)
{
	if (!text.n)
		return err_set(e, ERR_USAGE, "%s is empty", what);
	return store_fits(text, STORE_WORDS_BYTES_MAX, what, e);
}

static int is_name(struct str text, const char *what, struct err *e)
{
	return store_fits(text, STORE_NAME_BYTES_MAX, what, e);
}

/* Deletes a row: $1 of sql is its number, $2 may be what. ERR_USAGE if there is none. */
static int drop(struct store *s, const char *sql, size_t values, int64_t id, const char *what,
		struct err *e)
{
	struct store_write w;
	struct db_value v[2] = { db_int(id), db_text(str_of(what)) };
	int64_t gone = 0;
	int rc;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	rc = db_integer(w.db, sql, v, values, 0, &gone, e);
	if (!rc && !gone)
		rc = store_has_none(what, id, e);
	return store_write_end(s, &w, rc, e);
}

/* ---- annotations ---- */

int store_annotate(struct store *s, int64_t run, struct str text, struct str who, int64_t *id,
		   struct err *e)
{
	struct store_write w;
	int rc;

	if (is_words(text, "the note", e) < 0 || is_name(who, "the author's name", e) < 0 ||
	    store_write_begin(s, &w, e) < 0)
		return -1;
	rc = store_is_run(&w, run, e);
	if (!rc)
		rc = store_number(&w, "annotation", 1, id, e);
	if (!rc) {
		struct db_value v[] = { db_int(*id), db_int(run), db_text(text), db_text(who),
					db_real(store_now_s()) };

		rc = db_do(w.db, "INSERT INTO annotations (id, run, text, who, at)"
				  " VALUES ($1, $2, $3, $4, $5)", v, 5, e);
	}
	return store_write_end(s, &w, rc, e);
}

int store_annotation_drop(struct store *s, int64_t id, struct err *e)
{
	return drop(s, "DELETE FROM annotations WHERE id = $1 RETURNING id", 1, id, "note", e);
}

static int take_annotation(void *self, const struct db_got *got)
{
	struct store_list *l = self;

	*(struct annotation *)store_list_add(l) = (struct annotation){
		.id = db_as_int(got->v[0]),
		.run = db_as_int(got->v[1]),
		.text = db_keep(l->a, got->v[2]),
		.who = db_keep(l->a, got->v[3]),
		.at_s = db_as_real(got->v[4]),
	};
	return 0;
}

int store_annotations(struct store *s, int64_t run, struct arena *a, struct annotation **out,
		      size_t *n, struct err *e)
{
	struct store_list l = { .a = a, .size = sizeof(**out) };
	struct db_value v = db_int(run);
	int rc = store_ask(s, "SELECT id, run, text, who, at FROM annotations WHERE run = $1"
			      " ORDER BY id", &v, 1, take_annotation, &l, e);

	*out = (struct annotation *)(void *)l.item;
	*n = l.n;
	return rc;
}

/* ---- exclusions ---- */

static int set_excluded(struct store_write *w, int64_t run, bool is_excluded, struct err *e)
{
	struct db_value v = db_int(run);
	int64_t flags;

	if (db_integer(w->db, "SELECT flags FROM documents WHERE id = $1", &v, 1, 0, &flags, e) < 0)
		return -1;
	flags = is_excluded ? flags | INDEX_EXCLUDED : flags & ~(int64_t)INDEX_EXCLUDED;
	return store_set_flags(w, run, flags, e);
}

static int add_exclusion(struct store_write *w, int64_t run, struct str reason, struct str who,
			 struct err *e)
{
	int64_t id;
	struct db_value v[5];

	if (store_number(w, "exclusion", 1, &id, e) < 0)
		return -1;
	v[0] = db_int(id);
	v[1] = db_int(run);
	v[2] = db_text(reason);
	v[3] = db_text(who);
	v[4] = db_real(store_now_s());
	return db_do(w->db, "INSERT INTO exclusions (id, run, reason, who, at)"
			     " VALUES ($1, $2, $3, $4, $5)", v, 5, e);
}

int store_exclude_one(struct store_write *w, int64_t run, struct str reason, struct str who,
		      struct err *e)
{
	struct db_value v[2] = { db_real(store_now_s()), db_int(run) };

	/* Ends the current one, which becomes history, whether or not another follows. */
	if (db_do(w->db, "UPDATE exclusions SET ended = $1 WHERE run = $2 AND ended IS NULL", v, 2,
		  e) < 0 ||
	    (reason.n && add_exclusion(w, run, reason, who, e) < 0))
		return -1;
	return set_excluded(w, run, reason.n > 0, e);
}

int store_exclude(struct store *s, int64_t run, struct str reason, struct str who, struct err *e)
{
	struct store_write w;
	int rc;

	if (store_fits(reason, STORE_WORDS_BYTES_MAX, "the reason", e) < 0 ||
	    is_name(who, "the author's name", e) < 0 || store_write_begin(s, &w, e) < 0)
		return -1;
	rc = store_is_run(&w, run, e);
	if (!rc)
		rc = store_exclude_one(&w, run, reason, who, e);
	return store_write_end(s, &w, rc, e);
}

static int take_exclusion(void *self, const struct db_got *got)
{
	struct store_list *l = self;

	*(struct exclusion *)store_list_add(l) = (struct exclusion){
		.reason = db_keep(l->a, got->v[0]),
		.who = db_keep(l->a, got->v[1]),
		.at_s = db_as_real(got->v[2]),
		.is_over = got->v[3].kind != DB_NULL,
	};
	return 0;
}

int store_exclusions(struct store *s, int64_t run, struct arena *a, struct exclusion **out,
		     size_t *n, struct err *e)
{
	struct store_list l = { .a = a, .size = sizeof(**out) };
	struct db_value v = db_int(run);
	int rc = store_ask(s, "SELECT reason, who, at, ended FROM exclusions WHERE run = $1"
			      " ORDER BY id", &v, 1, take_exclusion, &l, e);

	*out = (struct exclusion *)(void *)l.item;
	*n = l.n;
	return rc;
}

/* ---- tags ---- */

static int take_tag(void *self, const struct db_got *got)
{
	struct store_list *l = self;

	*(struct run_tag *)store_list_add(l) = (struct run_tag){
		.run = db_as_int(got->v[0]),
		.tag = db_keep(l->a, got->v[1]),
		.who = db_keep(l->a, got->v[2]),
		.at_s = db_as_real(got->v[3]),
	};
	return 0;
}

int store_tags(struct store *s, int64_t run, struct arena *a, struct run_tag **out, size_t *n,
	       struct err *e)
{
	struct store_list l = { .a = a, .size = sizeof(**out) };
	struct db_value v = db_int(run);
	int rc = store_ask(s, run ? "SELECT run, tag, who, at FROM tags WHERE run = $1 ORDER BY tag" :
				    "SELECT run, tag, who, at FROM tags ORDER BY tag, run",
			   &v, run ? 1 : 0, take_tag, &l, e);

	*out = (struct run_tag *)(void *)l.item;
	*n = l.n;
	return rc;
}

static int take_text(void *self, const struct db_got *got)
{
	struct store_list *l = self;

	*(struct str *)store_list_add(l) = db_keep(l->a, got->v[0]);
	return 0;
}

int store_tagged(struct store *s, struct str tag, struct arena *a, struct str **out, size_t *n,
		 struct err *e)
{
	struct store_list l = { .a = a, .size = sizeof(**out) };
	struct db_value v = db_text(tag);
	int rc = store_ask(s, "SELECT DISTINCT d.run_id FROM tags t JOIN documents d ON d.id = t.run"
			      " WHERE t.tag = $1 ORDER BY d.run_id", &v, 1, take_text, &l, e);

	*out = (struct str *)(void *)l.item;
	*n = l.n;
	return rc;
}

int store_tag_check(struct str tag, struct err *e)
{
	struct str trimmed = str_trim(tag);

	if (is_words(trimmed, "the tag", e) < 0)
		return -1;
	if (trimmed.n != tag.n)
		return err_set(e, ERR_USAGE, "the tag begins or ends with a space");
	return store_fits(tag, STORE_TAG_BYTES_MAX, "the tag", e);
}

static int has_room(struct store_write *w, struct str tag, struct err *e)
{
	struct db_value v = db_text(tag);
	int64_t known, n;

	if (db_integer(w->db, "SELECT id FROM tags WHERE tag = $1 LIMIT 1", &v, 1, 0, &known, e) < 0 ||
	    db_integer(w->db, "SELECT count(DISTINCT tag) FROM tags", NULL, 0, 0, &n, e) < 0)
		return -1;
	return known || n < STORE_TAGS_MAX ? 0 :
	       err_set(e, ERR_USAGE, "there are %d tags already (STORE_TAGS_MAX); remove one, or use "
		       "a tag that exists", STORE_TAGS_MAX);
}

int store_tag_one(struct store_write *w, int64_t run, struct str tag, struct str who, bool is_on,
		  bool *is_same, struct err *e)
{
	struct db_value v[5] = { db_int(run), db_text(tag), db_text(who), db_real(store_now_s()) };
	int64_t old, id;

	if (db_integer(w->db, "SELECT id FROM tags WHERE run = $1 AND tag = $2", v, 2, 0, &old, e) < 0)
		return -1;
	*is_same = is_on == (old != 0);
	if (*is_same)
		return 0;
	if (!is_on)
		return db_do(w->db, "DELETE FROM tags WHERE run = $1 AND tag = $2", v, 2, e);
	if (has_room(w, tag, e) < 0 || store_number(w, "tag", 1, &id, e) < 0)
		return -1;
	v[4] = db_int(id);
	return db_do(w->db, "INSERT INTO tags (run, tag, who, at, id) VALUES ($1, $2, $3, $4, $5)", v,
		     5, e);
}

/* ---- presets ---- */

/* When a preset was saved, to a double. */
static int take_at(void *self, const struct db_got *got)
{
	*(double *)self = db_as_real(got->v[0]);
	return 0;
}

static int put_preset(struct store_write *w, const char *kind, struct preset *p, double was_s,
		      struct err *e)
{
	struct str name = p->name;
	double at_s = store_now_s(), last_s = (double)NAN;
	struct db_value v[5] = { db_text(name), db_text(p->body), db_real(at_s), db_int(p->id),
				 db_text(str_of(kind)) };
	struct db_value same[3] = { db_text(name), db_int(p->id), v[4] };
	int64_t other, *out = &p->id;
	const char *word = strcmp(kind, "preset") ? kind : "view"; /* as the pages call it */

	if (db_integer(w->db, "SELECT id FROM presets WHERE name = $1 AND id <> $2 AND kind = $3",
		       same, 3, 0, &other, e) < 0)
		return -1;
	if (other)
		return err_set(e, ERR_USAGE, "there is already a %s with the name %.*s", word,
			       (int)name.n, name.p);
	if (p->id) {
		if (db_run(w->db, "SELECT at FROM presets WHERE id = $1 AND kind = $2", &v[3], 2, take_at,
			   &last_s, e) < 0)
			return -1;
		if (isnan(last_s))
			return err_set(e, ERR_USAGE, "there is no %s with the number %lld", word,
				       (long long)p->id);
		if (last_s > was_s || last_s < was_s) { /* not "later": clocks differ */
			p->at_s = last_s;
			return err_set(e, ERR_USAGE, "this %s was changed in another window after it was "
				       "shown here, so this change was not saved", word);
		}
		p->at_s = at_s;
		return db_do(w->db, "UPDATE presets SET name = COALESCE(NULLIF($1, ''), name),"
				    " body = COALESCE(NULLIF($2, ''), body), at = $3"
				    " WHERE id = $4 AND kind = $5", v, 5, e);
	}
	if (store_number(w, "preset", 1, out, e) < 0)
		return -1;
	p->at_s = at_s;
	v[3] = db_int(*out);
	return db_do(w->db, "INSERT INTO presets (name, body, at, id, kind)"
			    " VALUES ($1, $2, $3, $4, $5)", v, 5, e);
}

int store_preset_put(struct store *s, const char *kind, struct preset *p, double was_s,
		     struct err *e)
{
	struct store_write w;
	int rc;

	if ((!p->id && is_words(p->name, "the name", e) < 0) ||
	    is_name(p->name, "the name", e) < 0 ||
	    store_fits(p->body, PRESET_BYTES_MAX, "what is saved", e) < 0 ||
	    store_write_begin(s, &w, e) < 0)
		return -1;
	rc = put_preset(&w, kind, p, was_s, e);
	return store_write_end(s, &w, rc, e);
}

int store_preset_drop(struct store *s, const char *kind, int64_t id, struct err *e)
{
	return drop(s, "DELETE FROM presets WHERE id = $1 AND kind = $2 RETURNING id", 2, id, kind, e);
}

static int take_preset(void *self, const struct db_got *got)
{
	struct store_list *l = self;

	*(struct preset *)store_list_add(l) = (struct preset){
		.id = db_as_int(got->v[0]),
		.name = db_keep(l->a, got->v[1]),
		.body = db_keep(l->a, got->v[2]),
		.at_s = db_as_real(got->v[3]),
	};
	return 0;
}

int store_presets(struct store *s, const char *kind, struct arena *a, struct preset **out,
		  size_t *n, struct err *e)
{
	struct store_list l = { .a = a, .size = sizeof(**out) };
	struct db_value v = db_text(str_of(kind));
	int rc = store_ask(s, "SELECT id, name, body, at FROM presets WHERE kind = $1 ORDER BY id", &v,
			   1, take_preset, &l, e);

	*out = (struct preset *)(void *)l.item;
	*n = l.n;
	return rc;
}

/* ---- marks ---- */

int store_mark_put(struct store *s, const struct change_mark *m, int64_t *id, struct err *e)
{
	struct store_write w;
	int rc;

	if (store_fits(m->series, STORE_WORDS_BYTES_MAX, "the series", e) < 0 ||
	    is_name(m->metric, "the metric of the mark", e) < 0 ||
	    is_name(m->at, "the place of the mark", e) < 0 ||
	    is_name(m->kind, "the kind of the mark", e) < 0 ||
	    store_fits(m->text, STORE_WORDS_BYTES_MAX, "the text of the mark", e) < 0 ||
	    is_name(m->who, "the author's name", e) < 0 || store_write_begin(s, &w, e) < 0)
		return -1;
	rc = store_number(&w, "mark", 1, id, e);
	if (!rc) {
		struct db_value v[] = { db_int(*id), db_text(m->series), db_text(m->metric),
					db_text(m->at), db_text(m->kind), db_text(m->text),
					db_text(m->who), db_real(store_now_s()) };

		rc = db_do(w.db, "INSERT INTO marks (id, series, metric, place, kind, text, who, at)"
				  " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", v, 8, e);
	}
	return store_write_end(s, &w, rc, e);
}

int store_mark_drop(struct store *s, int64_t id, struct err *e)
{
	return drop(s, "DELETE FROM marks WHERE id = $1 RETURNING id", 1, id, "mark", e);
}

static int take_mark(void *self, const struct db_got *got)
{
	struct store_list *l = self;

	*(struct change_mark *)store_list_add(l) = (struct change_mark){
		.id = db_as_int(got->v[0]),
		.series = db_keep(l->a, got->v[1]),
		.metric = db_keep(l->a, got->v[2]),
		.at = db_keep(l->a, got->v[3]),
		.kind = db_keep(l->a, got->v[4]),
		.text = db_keep(l->a, got->v[5]),
		.who = db_keep(l->a, got->v[6]),
		.at_s = db_as_real(got->v[7]),
	};
	return 0;
}

int store_marks(struct store *s, struct arena *a, struct change_mark **out, size_t *n,
		struct err *e)
{
	struct store_list l = { .a = a, .size = sizeof(**out) };
	int rc = store_ask(s, "SELECT id, series, metric, place, kind, text, who, at FROM marks"
			      " ORDER BY id", NULL, 0, take_mark, &l, e);

	*out = (struct change_mark *)(void *)l.item;
	*n = l.n;
	return rc;
}
