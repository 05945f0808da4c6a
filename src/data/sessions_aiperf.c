/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions_aiperf.c - aiperf's files of sessions: single_turn and multi_turn.
 *
 * single_turn: a request each, with text (texts), images and videos; rows of one session_id follow
 * each other and share no history. multi_turn: "turns" of such objects, with history. Times
 * and delays are milliseconds; a timestamp of a later turn is kept as a gap from the start of
 * the one before.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "data/media.h"
#include "data/rows.h"
#include "data/session_graph.h"
#include "table/table.h"

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

bool session_has(struct json_slice object, const char *key, struct json_slice *v)
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
	struct str name;
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
		while (rc == 0 && json_each(&it, &name, &v) == 1) {
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
static int put_turn(const struct session_reading *r, struct node *n, struct json_slice turn,
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

int session_extra(const struct session_reading *r, struct node *n, struct json_slice turn,
		  struct err *e)
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
static int put_time(struct node *n, struct json_slice turn, double *before, struct err *e)
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

static int fill_turn(const struct session_reading *r, struct node *n, struct json_slice turn,
		     double *before, struct err *e)
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
		struct str id = str_of(arena_printf(&g->arena, "session_%zu", row)), key;
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
		for (; json_each(&it, &key, &turn) == 1; k++) {
			struct node *n = graph_node(g, where, numbered(&g->arena, k), e);

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

/* Rows by session; those without one are sessions of their own. */
struct single {
	size_t row;
	uint32_t session;
	struct str id;
};

static int by_session(const void *a, const void *b)
{
	const struct single *x = a, *y = b;

	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int name_rows(const struct session_reading *r, struct single *s, size_t n, struct err *e)
{
	struct map ids = { 0 };
	uint32_t sessions = 0;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		struct json_slice object;
		uint64_t session = sessions;

		s[i].row = i;
		rc = table_row(r->table, i, &object, e);
		if (rc < 0)
			break;
		rc = session_text(object, "session_id", &r->graph->arena, &s[i].id, e);
		if (rc < 0)
			err_wrap(e, "%s", session_where(r, i));
		if (rc > 0 && !map_get(&ids, s[i].id, &session))
			map_put(&ids, s[i].id, session);
		if (rc == 0)
			s[i].id = str_of(arena_printf(&r->graph->arena, "session_%zu", i));
		sessions += session == sessions;
		s[i].session = (uint32_t)session;
	}
	map_release(&ids);
	return rc < 0 ? -1 : 0;
}

int sessions_read_single_turn(const struct session_reading *r, struct err *e)
{
	size_t n = table_rows(r->table);
	struct single *s = mem_array(n, sizeof(*s));
	struct graph *g = r->graph;
	int rc = name_rows(r, s, n, e);
	double before = NAN;

	if (rc == 0)
		qsort(s, n, sizeof(*s), by_session);
	for (size_t i = 0, k = 0; rc == 0 && i < n; i++, k++) {
		const char *where = session_where(r, s[i].row);
		struct json_slice object;
		struct node *node;

		if (i == 0 || s[i].session != s[i - 1].session) {
			graph_session(g, s[i].id);
			before = NAN;
			k = 0;
		}
		node = graph_node(g, where, numbered(&g->arena, k), e);
		if (node && k)
			graph_wait(g, (uint32_t)g->n - 1, (uint32_t)g->n - 2);
		rc = node ? table_row(r->table, s[i].row, &object, e) : -1;
		if (rc == 0 && fill_turn(r, node, object, &before, e) < 0)
			rc = err_wrap(e, "%s", where);
	}
	free(s);
	return rc;
}
