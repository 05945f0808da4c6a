/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions_aiperf.c - aiperf's files of sessions: single_turn and multi_turn.
 *
 * single_turn: a request each, with text (texts), images and videos; rows of one session_id follow
 * each other and share no history. multi_turn: "turns" of such objects, with history. Times
 * and delays are milliseconds; a timestamp of a later turn is kept as a gap from the start of
 * the one before.
 */
#include "input/trace/sessions.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/data/build.h"
#include "input/data/media.h"
#include "input/table/table.h"

/* ---- single_turn and multi_turn ---- */

int session_keys(struct json_slice object, const char *const *known, struct err *e)
{
	struct json_iter it = json_iter(object);
	struct json_slice v;
	struct str key;

	if (object.kind != JSON_OBJECT)
		return err_set(e, ERR_RUN, "expected an object");
	while (json_each(&it, &key, &v) == 1) {
		const char *const *k = known;

		while (*k && !str_is(key, *k))
			k++;
		if (!*k)
			return err_set(e, ERR_RUN, "unknown key \"%.*s\"", (int)(key.n < 60 ? key.n : 60),
				       key.p);
	}
	return 0;
}

/* A member that is not what Python calls false: null, "", 0, [] and {} count as missing. */
static bool session_has(struct json_slice object, const char *key, struct json_slice *v)
{
	return json_member(object, key, v) && v->kind != JSON_NULL && json_truthy(*v);
}

/* ---- single_turn and multi_turn ---- */

static const char *const turn_keys[] = {
	"type", "text", "texts", "image", "images", "video", "videos", "timestamp", "delay", "role",
	"session_id", "output_length", "extra", NULL,
};

/* Texts of key or of the list at its plural, each handed to put. */
static int each_text(struct json_slice turn, const char *key, const char *plural,
		     void (*put)(struct json_writer *w, struct str text), struct json_writer *w,
		     struct buf *all, struct err *e)
{
	struct json_slice one, list, v;
	struct buf text = { 0 };
	struct json_iter it;
	int rc = 0;

	if (session_has(turn, key, &one) && session_has(turn, plural, &list))
		return err_set(e, ERR_RUN, "\"%s\" and \"%s\" cannot be used together", key, plural);
	if (session_has(turn, key, &one) && one.kind == JSON_STRING) {
		json_unescape(&text, one.raw);
		put(w, buf_str(&text));
		buf_add_str(all, buf_str(&text));
	} else if (session_has(turn, key, &one)) {
		rc = err_set(e, ERR_RUN, "\"%s\" must be a text", key);
	} else if (session_has(turn, plural, &list)) {
		if (list.kind != JSON_ARRAY)
			rc = err_set(e, ERR_RUN, "\"%s\" must be a list of texts", plural);
		it = json_iter(list);
		while (rc == 0 && json_each(&it, NULL, &v) == 1) {
			buf_reset(&text);
			if (v.kind != JSON_STRING)
				rc = err_set(e, ERR_RUN, "\"%s\" must be a list of texts", plural);
			json_unescape(&text, v.raw);
			put(w, buf_str(&text));
			buf_add_str(all, buf_str(&text));
		}
	}
	buf_release(&text);
	return rc;
}

static void put_image(struct json_writer *w, struct str ref)
{
	struct buf url = { 0 };

	media_image_url(ref, &url);
	media_put_url(w, "image_url", buf_str(&url));
	buf_release(&url);
}

static void put_video(struct json_writer *w, struct str ref)
{
	struct buf url = { 0 };

	media_video_url(ref, &url);
	media_put_url(w, "video_url", buf_str(&url));
	buf_release(&url);
}

/* The turn's one message: a text where it is nothing else, or a list of parts. */
static int put_turn(const struct session_reading *r, struct session_node *n, struct json_slice turn,
		    struct err *e)
{
	struct buf parts = { 0 }, text = { 0 }, media = { 0 };
	struct json_writer w = json_writer(&parts);
	struct str role = STR("user");
	struct json_slice v;
	int rc;

	json_begin_array(&w);
	rc = session_text(turn, "role", &r->graph->arena, &role, e) < 0 ||
	     each_text(turn, "text", "texts", media_put_text, &w, &text, e) < 0 ||
	     each_text(turn, "image", "images", put_image, &w, &media, e) < 0 ||
	     each_text(turn, "video", "videos", put_video, &w, &media, e) < 0 ? -1 : 0;
	json_end_array(&w);
	if (rc == 0 && parts.len <= 2)
		rc = err_set(e, ERR_RUN, "a turn needs a \"text\", an image or a video");
	if (rc == 0 && !media.len && session_has(turn, "text", &v)) {
		graph_message(r->graph, n, role, buf_str(&text));
	} else if (rc == 0) {
		n->messages = str_of(arena_printf(&r->graph->arena, "[{\"role\": \"%.*s\", \"content\": "
						  "%.*s}]", (int)role.n, role.p, (int)parts.len,
						  parts.data));
		n->text = arena_str(&r->graph->arena, buf_str(&text));
	}
	for (size_t i = 0; i < role.n; i++)
		if (role.p[i] == '"' || role.p[i] == '\\')
			rc = err_set(e, ERR_RUN, "\"role\" has a quote");
	buf_release(&parts);
	buf_release(&text);
	buf_release(&media);
	return rc;
}

/* "extra", "model" and "tools" of an object, in the form of body members. */
static int session_extra(const struct session_reading *r, struct session_node *n,
			 struct json_slice turn, struct err *e)
{
	static const char *const key[] = { "model", "tools" };
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	struct arena scratch = { 0 };
	struct json_value *tree = NULL;
	struct json_slice v;
	int rc = 0;

	json_begin_object(&w);
	if (session_has(turn, "extra", &v)) {
		if (v.kind != JSON_OBJECT || json_parse(&scratch, v.raw, &tree, e) < 0)
			rc = err_set(e, ERR_RUN, "\"extra\" must be an object");
		for (size_t i = 0; rc == 0 && i < tree->count; i++) {
			json_key_str(&w, tree->key[i]);
			json_put_value(&w, &tree->item[i]);
		}
	}
	for (size_t i = 0; rc == 0 && i < sizeof(key) / sizeof(*key); i++) {
		if (!session_has(turn, key[i], &v) || json_get(tree, key[i]))
			continue;
		if (v.kind != (i ? JSON_ARRAY : JSON_STRING))
			rc = err_set(e, ERR_RUN, "\"%s\" must be a %s", key[i], i ? "list" : "text");
		json_member_raw(&w, key[i], i ? v.raw : (struct str){ v.raw.p - 1, v.raw.n + 2 });
	}
	json_end_object(&w);
	if (rc == 0 && out.len > 2)
		n->overrides = arena_str(&r->graph->arena, buf_str(&out));
	arena_release(&scratch);
	buf_release(&out);
	return rc;
}

/* Time of a turn: before is the time of the turn before it in its session, NAN for none. */
static int put_time(struct session_node *n, struct json_slice turn, double *before, struct err *e)
{
	double delay = 0, at = 0;
	int has_delay = session_ms(turn, "delay", &delay, e);
	int has_time = has_delay < 0 ? -1 : session_ms(turn, "timestamp", &at, e);

	if (has_time < 0)
		return -1;
	if (has_delay && has_time && delay > 0 && at > 0)
		return err_set(e, ERR_RUN, "\"timestamp\" and \"delay\" cannot be used together");
	if (n->n_waits == 0 && has_time)
		n->timestamp_s = at;
	if (n->n_waits && has_time) {
		if (isnan(*before))
			return err_set(e, ERR_RUN, "a turn has a \"timestamp\", and the one before it has "
				       "none");
		if (at < *before)
			return err_set(e, ERR_RUN, "\"timestamp\" %g is before that of the turn before "
				       "it, %g", at * 1e3, *before * 1e3);
		n->gap_s = at - *before;
		n->is_gap_from_start = true;
	}
	if (has_delay)
		n->gap_s = delay;
	*before = has_time ? at : NAN;
	return 0;
}

static int fill_turn(const struct session_reading *r, struct session_node *n,
		     struct json_slice turn, double *before, struct err *e)
{
	n->output_len = session_output_len(r);
	if (session_keys(turn, turn_keys, e) < 0 || put_turn(r, n, turn, e) < 0 ||
	    session_count(turn, "output_length", &n->output_len, e) < 0 ||
	    session_extra(r, n, turn, e) < 0)
		return -1;
	return put_time(n, turn, before, e);
}

static struct str numbered(struct arena *a, size_t k)
{
	return str_of(arena_printf(a, "%zu", k));
}

int sessions_read_multi_turn(const struct session_reading *r, struct err *e)
{
	static const char *const known[] = { "type", "session_id", "turns", NULL };
	struct graph *g = r->graph;

	for (size_t row = 0; row < table_rows(r->table); row++) {
		const char *where = session_where(r, row);
		struct json_slice object, turns, turn;
		struct str id = str_of(arena_printf(&g->arena, "session_%zu", row));
		struct json_iter it;
		double before = NAN;
		size_t k = 0;

		if (table_row(r->table, row, &object, e) < 0)
			return -1;
		if (session_keys(object, known, e) < 0 ||
		    session_text(object, "session_id", &g->arena, &id, e) < 0)
			return err_wrap(e, "%s", where);
		if (!json_member(object, "turns", &turns) || turns.kind != JSON_ARRAY)
			return err_set(e, ERR_RUN, "%s: \"turns\" must be a list", where);
		graph_session(g, id);
		it = json_iter(turns);
		for (; json_each(&it, NULL, &turn) == 1; k++) {
			struct session_node *n = graph_node(g, where, numbered(&g->arena, k), e);

			if (!n)
				return -1;
			if (k) {
				n->history = (uint32_t)g->n - 2;
				graph_wait(g, (uint32_t)g->n - 1, n->history);
			}
			if (fill_turn(r, n, turn, &before, e) < 0)
				return err_wrap(e, "%s: turns[%zu]", where, k);
		}
		if (!k)
			return err_set(e, ERR_RUN, "%s: \"turns\" is empty", where);
	}
	return 0;
}

/* Rows without a session are sessions of their own. */
int sessions_read_single_turn(const struct session_reading *r, struct err *e)
{
	size_t n = table_rows(r->table);
	struct session_row *s = session_rows(r, "session_id", e);
	struct graph *g = r->graph;
	int rc = s ? 0 : -1;
	double before = NAN;

	for (size_t i = 0, k = 0; rc == 0 && i < n; i++, k++) {
		const char *where = session_where(r, s[i].number);
		struct json_slice object;
		struct session_node *node;

		if (i == 0 || s[i].session != s[i - 1].session) {
			graph_session(g, s[i].id.p ? s[i].id : str_of(arena_printf(
				&g->arena, "session_%zu", s[i].number)));
			before = NAN;
			k = 0;
		}
		node = graph_node(g, where, numbered(&g->arena, k), e);
		if (node && k)
			graph_wait(g, (uint32_t)g->n - 1, (uint32_t)g->n - 2);
		rc = node ? table_row(r->table, s[i].number, &object, e) : -1;
		if (rc == 0 && fill_turn(r, node, object, &before, e) < 0)
			rc = err_wrap(e, "%s", where);
	}
	free(s);
	return rc;
}

/* ---- dag_jsonl ---- */

/*
 * Aiperf's trees of conversations, dag_jsonl: a conversation a line.
 *
 * forks name conversations that continue the history and the
 * answer of the turn; spawns begin with none, and a later turn can wait for them (join_at, or
 * the next turn for a plain name). A conversation that none names is a root and becomes a
 * session with all that hangs on it. An orchestrator sends nothing itself: it spawns conversations,
 * in rounds that wait for each other where it has them, with think time between.
 */

#define DEPTH_MAX 256 /* conversations that hang on conversations */

static const char *const dag_keys[] = {
	"session_id", "turns", "pre_session_spawns", "context_mode", "orchestrator", "spawns",
	"rounds", "think_time_ms", "think_time_sigma", "think_time_min_ms", "think_time_max_ms", NULL,
};
static const char *const dag_turn_keys[] = {
	"messages", "model", "max_tokens", "tools", "extra", "forks", "spawns", "delay", NULL,
};

struct aiperf_talk {
	const char *where;
	struct str id;
	struct json_slice object; /* in the arena */
	bool is_named, is_forked, is_spawned_early; /* by others */
	bool is_open, is_used;
};

struct dag {
	const struct session_reading *r;
	struct aiperf_talk *talk;
	size_t n;
	struct map ids;
	struct legacy np;    /* think times */
	unsigned depth, expanded; /* conversations of a root: open, and in all */
};

/* The beginning of a conversation. */
struct aiperf_start {
	const uint32_t *waits;
	size_t n_waits;
	uint32_t history;
	double gap_s;
};

/* Turns of one conversation that wait for others' last turns. */
struct aiperf_join {
	size_t at;      /* turn */
	uint32_t node;
};
struct joins {
	struct aiperf_join *v;
	size_t n, cap;
};

static int expand(struct dag *d, struct aiperf_talk *t, const struct aiperf_start *s,
		  uint32_t *last, struct err *e);

static void add_join(struct joins *j, size_t at, uint32_t node)
{
	j->v = mem_room(j->v, j->n, &j->cap, sizeof(*j->v));
	j->v[j->n++] = (struct aiperf_join){ at, node };
}

static struct aiperf_talk *find(struct dag *d, struct json_slice name, const char *key,
				struct err *e)
{
	struct buf text = { 0 };
	uint64_t i = 0;
	bool is;

	if (name.kind == JSON_STRING)
		json_unescape(&text, name.raw);
	is = name.kind == JSON_STRING && map_get(&d->ids, buf_str(&text), &i);
	if (!is)
		err_set(e, ERR_RUN, "\"%s\" names session %.*s, which the file does not have", key,
			(int)(name.raw.n < 100 ? name.raw.n : 100), name.raw.p);
	buf_release(&text);
	return is ? &d->talk[i] : NULL;
}

/* A list of names, or of objects with one name or a list of them, each handed to each. */
typedef int name_fn(struct dag *d, struct aiperf_talk *named, struct json_slice entry, void *self,
		    struct err *e);
static int each_name(struct dag *d, struct json_slice list, const char *key, name_fn *each,
		     void *self, struct err *e)
{
	struct json_iter it, inner;
	struct json_slice entry, v, name;
	struct aiperf_talk *named;

	if (list.kind != JSON_ARRAY)
		return err_set(e, ERR_RUN, "\"%s\" must be a list of sessions", key);
	it = json_iter(list);
	while (json_each(&it, NULL, &entry) == 1) {
		v = entry;
		if (entry.kind == JSON_OBJECT && !json_member(entry, "children", &v) &&
		    !json_member(entry, "child", &v))
			return err_set(e, ERR_RUN, "\"%s\" has an entry that names no session", key);
		if (v.kind != JSON_ARRAY) {
			named = find(d, v, key, e);
			if (!named || each(d, named, entry, self, e) < 0)
				return -1;
			continue;
		}
		inner = json_iter(v);
		while (json_each(&inner, NULL, &name) == 1) {
			named = find(d, name, key, e);
			if (!named || each(d, named, entry, self, e) < 0)
				return -1;
		}
	}
	return 0;
}

/* ---- references between conversations ---- */

static int mark_fork(struct dag *d, struct aiperf_talk *named, struct json_slice entry, void *self,
		     struct err *e)
{
	(void)d;
	(void)entry;
	(void)self;
	if (named->is_forked || named->is_spawned_early)
		return err_set(e, ERR_RUN, "session '%.*s' %s; a fork continues one history",
			       (int)(named->id.n < 100 ? named->id.n : 100), named->id.p,
			       named->is_forked ? "is forked by two turns" :
						  "is also in pre_session_spawns");
	named->is_named = named->is_forked = true;
	return 0;
}

static int mark_spawn(struct dag *d, struct aiperf_talk *named, struct json_slice entry, void *self,
		      struct err *e)
{
	const bool *is_early = self;

	(void)d;
	(void)entry;
	if (*is_early && named->is_forked)
		return err_set(e, ERR_RUN, "session '%.*s' is forked by a turn; pre_session_spawns have no "
			       "history", (int)(named->id.n < 100 ? named->id.n : 100), named->id.p);
	named->is_named = true;
	named->is_spawned_early |= *is_early;
	return 0;
}

static int mark_turn(struct dag *d, struct json_slice turn, bool is_last, struct err *e)
{
	bool is_early = false;
	struct json_slice list, entry, v;
	struct json_iter it;

	if (session_keys(turn, dag_turn_keys, e) < 0)
		return -1;
	if (session_has(turn, "spawns", &list) &&
	    each_name(d, list, "spawns", mark_spawn, &is_early, e) < 0)
		return -1;
	if (!session_has(turn, "forks", &list))
		return 0;
	if (each_name(d, list, "forks", mark_fork, NULL, e) < 0)
		return -1;
	it = json_iter(list);
	while (json_each(&it, NULL, &entry) == 1)
		if (!is_last && (!json_member(entry, "background", &v) || v.kind != JSON_TRUE))
			return err_set(e, ERR_RUN, "\"forks\" ends the session, and it has further "
				       "turns; with {\"child\": ..., \"background\": true} it "
				       "continues");
	return 0;
}

static int mark_rounds(struct dag *d, struct json_slice rounds, struct err *e)
{
	bool is_early = false;
	struct json_slice round, list;
	struct json_iter it = json_iter(rounds);

	while (json_each(&it, NULL, &round) == 1) {
		if (!json_member(round, "spawns", &list))
			return err_set(e, ERR_RUN, "\"rounds\" has an element without \"spawns\"");
		if (each_name(d, list, "spawns", mark_spawn, &is_early, e) < 0)
			return -1;
	}
	return 0;
}

static int mark_talk(struct dag *d, struct aiperf_talk *t, struct err *e)
{
	struct json_slice list, turns, turn;
	bool is_early = false;
	size_t n = 0, k = 0;
	struct json_iter it;

	if (session_keys(t->object, dag_keys, e) < 0)
		return -1;
	if (session_has(t->object, "spawns", &list) &&
	    each_name(d, list, "spawns", mark_spawn, &is_early, e) < 0)
		return -1;
	if (session_has(t->object, "rounds", &list) && list.kind == JSON_ARRAY &&
	    mark_rounds(d, list, e) < 0)
		return -1;
	is_early = true;
	if (session_has(t->object, "pre_session_spawns", &list) &&
	    each_name(d, list, "pre_session_spawns", mark_spawn, &is_early, e) < 0)
		return -1;
	if (session_has(t->object, "orchestrator", &list))
		return session_has(t->object, "turns", &turns) ?
		       err_set(e, ERR_RUN, "an orchestrator has no \"turns\"") : 0;
	if (!json_member(t->object, "turns", &turns) || turns.kind != JSON_ARRAY ||
	    !json_truthy(turns))
		return err_set(e, ERR_RUN, "\"turns\" must be a list that is not empty");
	it = json_iter(turns);
	while (json_each(&it, NULL, &turn) == 1)
		n++;
	it = json_iter(turns);
	for (; json_each(&it, NULL, &turn) == 1; k++)
		if (mark_turn(d, turn, k + 1 == n, e) < 0)
			return err_wrap(e, "turns[%zu]", k);
	return 0;
}

static int read_talks(struct dag *d, struct err *e)
{
	struct arena *a = &d->r->graph->arena;

	d->n = table_rows(d->r->table);
	d->talk = mem_array(d->n, sizeof(*d->talk));
	for (size_t i = 0; i < d->n; i++) {
		struct aiperf_talk *t = &d->talk[i];
		int rc;

		t->where = session_where(d->r, i);
		if (table_row(d->r->table, i, &t->object, e) < 0)
			return -1;
		t->object.raw = arena_str(a, t->object.raw);
		rc = session_text(t->object, "session_id", a, &t->id, e);
		if (rc < 0)
			return err_wrap(e, "%s", t->where);
		if (rc == 0)
			return err_set(e, ERR_RUN, "%s: \"session_id\" is missing", t->where);
		if (map_get(&d->ids, t->id, NULL))
			return err_set(e, ERR_RUN, "%s: session_id '%.*s' is also that of an earlier line",
				       t->where, (int)(t->id.n < 100 ? t->id.n : 100), t->id.p);
		map_put(&d->ids, t->id, i);
	}
	for (size_t i = 0; i < d->n; i++)
		if (mark_talk(d, &d->talk[i], e) < 0)
			return err_wrap(e, "%s", d->talk[i].where);
	return 0;
}

/* ---- expanding ---- */

/* The conversations that a turn starts. */
struct branching {
	uint32_t node;
	size_t turn, n_turns;
	struct joins *joins;
};

static int fork_one(struct dag *d, struct aiperf_talk *named, struct json_slice entry, void *self,
		    struct err *e)
{
	const struct branching *b = self;
	const struct aiperf_start s = { &b->node, 1, b->node, 0 };
	uint32_t last;

	(void)entry;
	return expand(d, named, &s, &last, e);
}

static int spawn_one(struct dag *d, struct aiperf_talk *named, struct json_slice entry, void *self,
		     struct err *e)
{
	const struct branching *b = self;
	const struct aiperf_start s = { &b->node, 1, TURN_NONE, 0 };
	int64_t at = (int64_t)b->turn + 1;
	struct json_slice v;
	uint32_t last;

	if (json_member(entry, "join_at", &v) &&
	    (v.kind != JSON_INT || !json_to_i64(v, &at) || at <= (int64_t)b->turn ||
	     at >= (int64_t)b->n_turns))
		return err_set(e, ERR_RUN, "\"join_at\" %.*s must name a later turn, below %zu",
			       (int)(v.raw.n < 40 ? v.raw.n : 40), v.raw.p, b->n_turns);
	if (expand(d, named, &s, &last, e) < 0)
		return -1;
	if (last != TURN_NONE)
		add_join(b->joins, (size_t)at, last);
	return 0;
}

/* Spawned at once; later turns do not wait. */
static int spawn_early(struct dag *d, struct aiperf_talk *named, struct json_slice entry,
		       void *self, struct err *e)
{
	uint32_t last;

	(void)entry;
	return expand(d, named, self, &last, e);
}

static int fill_dag_turn(struct dag *d, struct session_node *n, struct json_slice turn,
			 struct err *e)
{
	double delay = 0;
	struct json_slice v;

	n->output_len = session_output_len(d->r);
	if (!json_member(turn, "messages", &v))
		return err_set(e, ERR_RUN, "\"messages\" is missing");
	if (graph_messages(d->r->graph, n, v, e) < 0 ||
	    session_count(turn, "max_tokens", &n->output_len, e) < 0 ||
	    session_ms(turn, "delay", &delay, e) < 0 || session_extra(d->r, n, turn, e) < 0)
		return -1;
	n->gap_s += delay;
	return 0;
}

/* One turn with the conversations it starts; before: the previous turn, or TURN_NONE. */
static int expand_turn(struct dag *d, struct aiperf_talk *t, struct json_slice turn,
		       struct branching *b, const struct aiperf_start *s, uint32_t before,
		       struct err *e)
{
	struct graph *g = d->r->graph;
	struct json_slice v;
	struct str name = str_of(arena_printf(&g->arena, "%.*s:%zu", (int)t->id.n, t->id.p,
					      b->turn));
	struct session_node *n = graph_node(g, t->where, name, e);

	if (!n)
		return -1;
	b->node = (uint32_t)g->n - 1;
	n->history = before == TURN_NONE ? s->history : before;
	n->gap_s = before == TURN_NONE ? s->gap_s : 0;
	if (session_has(t->object, "context_mode", &v) &&
	    str_is(v.raw, "message_array_with_responses"))
		n->history = TURN_NONE;
	for (size_t k = 0; before == TURN_NONE && k < s->n_waits; k++)
		graph_wait(g, b->node, s->waits[k]);
	if (before != TURN_NONE)
		graph_wait(g, b->node, before);
	for (size_t k = 0; k < b->joins->n; k++)
		if (b->joins->v[k].at == b->turn)
			graph_wait(g, b->node, b->joins->v[k].node);
	if (fill_dag_turn(d, n, turn, e) < 0)
		return -1;
	if (session_has(turn, "forks", &v) && each_name(d, v, "forks", fork_one, b, e) < 0)
		return -1;
	return session_has(turn, "spawns", &v) ? each_name(d, v, "spawns", spawn_one, b, e) : 0;
}

static int expand_turns(struct dag *d, struct aiperf_talk *t, const struct aiperf_start *s,
			uint32_t *last, struct err *e)
{
	struct joins joins = { 0 };
	struct branching b = { .joins = &joins };
	struct json_slice turns, turn;
	struct json_iter it;
	int rc = 0;

	json_member(t->object, "turns", &turns);
	it = json_iter(turns);
	while (json_each(&it, NULL, &turn) == 1)
		b.n_turns++;
	it = json_iter(turns);
	*last = TURN_NONE;
	for (; rc == 0 && json_each(&it, NULL, &turn) == 1; b.turn++) {
		struct err why = { 0 };

		rc = expand_turn(d, t, turn, &b, s, *last, &why);
		if (rc < 0 && !str_starts(str_of(why.text), str_of(t->where)))
			*e = why, err_wrap(e, "%s: turns[%zu]", t->where, b.turn);
		else if (rc < 0)
			*e = why;
		*last = b.node;
	}
	free(joins.v);
	return rc;
}

/* ---- orchestrators ---- */

static double think_time(struct dag *d, struct json_slice round, struct json_slice all)
{
	double median = 0, sigma = 0, least = 0, most = INFINITY;
	struct json_slice v;

	if (json_member(round, "think_time_ms", &v) || json_member(all, "think_time_ms", &v))
		json_to_f64(v, &median);
	if (json_member(round, "think_time_sigma", &v) || json_member(all, "think_time_sigma", &v))
		json_to_f64(v, &sigma);
	if (json_member(all, "think_time_min_ms", &v))
		json_to_f64(v, &least);
	if (json_member(all, "think_time_max_ms", &v))
		json_to_f64(v, &most);
	if (median > 0 && sigma > 0)
		median = legacy_lognormal(&d->np, log(median), sigma);
	median = fmin(fmax(median, least), most);
	return median > 0 && median <= 1e3 * DUE_S_MAX ? median / 1e3 : 0;
}

struct round {
	struct aiperf_start start; /* the last turns of the round before */
	struct joins ended;  /* those of this one */
};

static int spawn_in_round(struct dag *d, struct aiperf_talk *named, struct json_slice entry,
			  void *self, struct err *e)
{
	struct round *r = self;
	uint32_t last;

	(void)entry;
	if (expand(d, named, &r->start, &last, e) < 0)
		return -1;
	if (last != TURN_NONE)
		add_join(&r->ended, 0, last);
	return 0;
}

static int run_round(struct dag *d, struct aiperf_talk *t, struct json_slice round, struct round *r,
		     uint32_t **waits, struct err *e)
{
	struct json_slice list;

	if (!json_member(round, "spawns", &list) && !json_member(t->object, "spawns", &list))
		return err_set(e, ERR_RUN, "%s: an orchestrator needs \"spawns\"", t->where);
	r->start.gap_s = think_time(d, round, t->object);
	r->ended.n = 0;
	if (each_name(d, list, "spawns", spawn_in_round, r, e) < 0)
		return -1;
	free(*waits);
	*waits = mem_array(r->ended.n + 1, sizeof(**waits));
	for (size_t k = 0; k < r->ended.n; k++)
		(*waits)[k] = r->ended.v[k].node;
	r->start.waits = *waits;
	r->start.n_waits = r->ended.n;
	return 0;
}

static int orchestrate(struct dag *d, struct aiperf_talk *t, const struct aiperf_start *s,
		       uint32_t *last, struct err *e)
{
	struct round r = { .start = *s };
	struct json_slice rounds = { 0 }, one;
	uint32_t *waits = NULL;
	struct json_iter it;
	int64_t n = 1;
	int rc = 0;

	if (session_has(t->object, "rounds", &rounds) && rounds.kind != JSON_ARRAY &&
	    (!json_to_i64(rounds, &n) || n < 1 || n > SESSION_TURNS_MAX))
		return err_set(e, ERR_RUN, "%s: \"rounds\" must be a number above 0 or a list", t->where);
	if (rounds.kind == JSON_ARRAY) {
		it = json_iter(rounds);
		while (rc == 0 && json_each(&it, NULL, &one) == 1)
			rc = run_round(d, t, one, &r, &waits, e);
	} else {
		for (int64_t k = 0; rc == 0 && k < n; k++)
			rc = run_round(d, t, t->object, &r, &waits, e);
	}
	*last = r.ended.n ? r.ended.v[r.ended.n - 1].node : TURN_NONE;
	free(waits);
	free(r.ended.v);
	return rc;
}

static int expand(struct dag *d, struct aiperf_talk *t, const struct aiperf_start *s,
		  uint32_t *last, struct err *e)
{
	struct aiperf_start early = *s;
	struct json_slice v;
	int rc = 0;

	early.history = TURN_NONE;
	if (t->is_open)
		return err_set(e, ERR_RUN, "%s: session '%.*s' is part of a cycle: it depends on "
			       "itself, directly or through others", t->where,
			       (int)(t->id.n < 100 ? t->id.n : 100), t->id.p);
	if (d->depth == DEPTH_MAX || d->expanded++ == SESSION_TURNS_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %d sessions depend on each other, or "
			       "more than %d on one", t->where, DEPTH_MAX, SESSION_TURNS_MAX);
	t->is_open = t->is_used = true;
	d->depth++;
	if (session_has(t->object, "pre_session_spawns", &v))
		rc = each_name(d, v, "pre_session_spawns", spawn_early, &early, e);
	if (rc == 0)
		rc = session_has(t->object, "orchestrator", &v) ? orchestrate(d, t, s, last, e) :
							       expand_turns(d, t, s, last, e);
	d->depth--;
	t->is_open = false;
	return rc;
}

int sessions_read_dag(const struct session_reading *r, struct err *e)
{
	static const struct aiperf_start root = { .history = TURN_NONE };
	struct dag d = { .r = r };
	uint32_t last;
	int rc = read_talks(&d, e);

	legacy_seed(&d.np, (uint32_t)(r->env->seed + 1));
	for (size_t i = 0; rc == 0 && i < d.n; i++) {
		if (d.talk[i].is_named)
			continue;
		graph_session(r->graph, d.talk[i].id);
		d.expanded = 0;
		rc = expand(&d, &d.talk[i], &root, &last, e);
	}
	for (size_t i = 0; rc == 0 && i < d.n; i++) {
		const struct aiperf_talk *t = &d.talk[i];

		if (!t->is_used)
			rc = err_set(e, ERR_RUN, "%s: session '%.*s' is part of a cycle: no "
				     "starting session leads to it", t->where, (int)(t->id.n < 100 ? t->id.n : 100),
				     t->id.p);
	}
	map_release(&d.ids);
	free(d.talk);
	return rc;
}
