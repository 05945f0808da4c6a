/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - see json/scan.h.
 *
 * The paths form a tree of places. A walk goes down only into containers that
 * have a place below them, so its recursion is bounded by JSON_PATH_STEPS_MAX;
 * everything else is passed over by the shared grammar.
 */
#include "core/json/scan.h"

#include <assert.h>
#include <endian.h>

#include "core/base/limits.h"
#include "core/json/lex.h"

_Static_assert(JSON_PATH_NODES_MAX <= 64, "one bit per place in a uint64_t");
_Static_assert(JSON_PATH_STEPS_MAX < JSON_DEPTH_MAX, "walks stay within the depth limit");

/*
 * The first 8 bytes of a name as one number, so that most comparisons of keys
 * are one instruction. Reads 8 bytes where the text has them.
 */
static inline uint64_t head_of(struct str name, const char *end)
{
	uint64_t x = 0;

	if (end - name.p < 8) {
		memcpy(&x, name.p, name.n < 8 ? name.n : 8);
		return le64toh(x);
	}
	memcpy(&x, name.p, 8);
	x = le64toh(x);
	return name.n >= 8 ? x : x & ((1ull << 8 * name.n) - 1);
}

static inline uint32_t length_bit(size_t n)
{
	return 1u << (n < 31 ? n : 31);
}

/* ---- compiling ---- */

static struct json_path_node *add_child(struct json_paths *paths, struct json_path_node *parent,
					struct json_path_node step)
{
	uint8_t *link = &parent->child;

	while (*link) {
		struct json_path_node *c = &paths->node[*link];

		if (!c->name.p == !step.name.p && c->index == step.index &&
		    str_eq(c->name, step.name))
			return c;
		link = &c->next;
	}
	assert(paths->nodes < JSON_PATH_NODES_MAX);
	*link = (uint8_t)paths->nodes;
	step.path = -1;
	if (step.name.p) {
		step.head = head_of(step.name, step.name.p + step.name.n);
		parent->lengths |= length_bit(step.name.n);
	}
	paths->node[paths->nodes] = step;
	return &paths->node[paths->nodes++];
}

/* Cuts the first step of a path, "name" or "[12]" with what separates it. */
static struct json_path_node cut_step(const char **path)
{
	struct json_path_node step = { 0 };
	const char *p = *path;

	if (*p == '[') {
		assert(p[1] >= '0' && p[1] <= '9');
		for (p++; *p >= '0' && *p <= '9'; p++)
			step.index = step.index * 10 + (uint32_t)(*p - '0');
		assert(*p == ']');
		p++;
	} else {
		step.name = (struct str){ p, strcspn(p, ".[") };
		assert(step.name.n > 0);
		p += step.name.n;
	}
	if (*p == '.')
		p++;
	*path = p;
	return step;
}

void json_scan_paths_init(struct json_paths *paths, const char *const *path, size_t n)
{
	assert(n <= JSON_PATHS_MAX);
	*paths = (struct json_paths){ .count = n, .nodes = 1 };
	paths->node[0].path = -1;
	for (size_t i = 0; i < n; i++) {
		struct json_path_node *at = &paths->node[0];
		const char *rest = path[i];
		size_t steps = 0;

		at->wanted |= 1u << i;
		do {
			at = add_child(paths, at, cut_step(&rest));
			at->wanted |= 1u << i;
			steps++;
			assert(steps <= JSON_PATH_STEPS_MAX);
		} while (*rest);
		assert(at->path < 0);
		at->path = (int8_t)i;
	}
}

/* ---- running ---- */

struct path_walk {
	struct lex lex;
	const struct json_path_node *node;
	struct json_slice *out;
	struct json_slice unwanted;
	uint64_t seen; /* one bit per place passed already */
};

static const char *walk_value(struct path_walk *w, const char *p, const struct json_path_node *at,
			      unsigned depth);

static const struct json_path_node *find_escaped(const struct path_walk *w, uint8_t child,
						 struct str key)
{
	for (; child; child = w->node[child].next) {
		const struct json_path_node *c = &w->node[child];

		if (c->name.p && lex_key_is_escaped(key, c->name.p, c->name.n))
			return c;
	}
	return NULL;
}

static inline const struct json_path_node *find_name(const struct path_walk *w,
						     const struct json_path_node *at,
						     struct str key)
{
	uint64_t head;

	if (!(at->lengths & length_bit(key.n)))
		return NULL;
	head = head_of(key, w->lex.end);
	for (uint8_t child = at->child; child; child = w->node[child].next) {
		const struct json_path_node *c = &w->node[child];

		if (c->head != head || c->name.n != key.n || !c->name.p)
			continue;
		if (key.n <= 8 || memcmp(c->name.p + 8, key.p + 8, key.n - 8) == 0)
			return c;
	}
	return NULL;
}

static const struct json_path_node *find_index(const struct path_walk *w, uint8_t child,
					       uint32_t index)
{
	for (; child; child = w->node[child].next)
		if (!w->node[child].name.p && w->node[child].index == index)
			return &w->node[child];
	return NULL;
}

/* p is at { or [; depth counts the containers around it. */
static const char *walk_container(struct path_walk *w, const char *p,
				  const struct json_path_node *at, unsigned depth)
{
	const struct json_path_node *child;
	bool is_object = *p == '{', is_first = true;
	struct json_slice skipped;
	struct str key = { 0 };
	bool is_escaped = false;
	uint32_t index = 0;

	assert(depth < JSON_DEPTH_MAX);
	for (p++;; is_first = false) {
		p = lex_blank(&w->lex, p);
		if (p < w->lex.end && *p == LEX_CLOSE(is_object))
			return p + 1;
		p = lex_next_item(&w->lex, p, is_object, is_first, &key, &is_escaped);
		if (!p)
			return NULL;
		if (!is_object)
			child = find_index(w, at->child, index++);
		else if (is_escaped)
			child = find_escaped(w, at->child, key);
		else
			child = find_name(w, at, key);
		if (child)
			p = walk_value(w, p, child, depth + 1);
		else
			p = lex_value(&w->lex, p, depth + 1, &skipped);
		if (!p)
			return NULL;
	}
}

/* The last of equal keys is used: drop what an earlier one found below it. */
static void forget(struct path_walk *w, uint32_t paths)
{
	for (size_t i = 0; paths; i++, paths >>= 1)
		if (paths & 1)
			w->out[i] = (struct json_slice){ 0 };
}

static const char *walk_value(struct path_walk *w, const char *p, const struct json_path_node *at,
			      unsigned depth)
{
	struct json_slice *v = &w->unwanted;
	const char *from = p;
	uint64_t bit = 1ull << (at - w->node);

	if (w->seen & bit)
		forget(w, at->wanted);
	w->seen |= bit;
	if (at->path >= 0)
		v = &w->out[at->path];
	if (at->child && (*p == '{' || *p == '[')) {
		v->kind = *p == '{' ? JSON_OBJECT : JSON_ARRAY;
		p = walk_container(w, p, at, depth);
		v->raw.p = from;
		v->raw.n = p ? (size_t)(p - from) : 0;
		return p;
	}
	return lex_value(&w->lex, p, depth, v);
}

int json_scan_run(const struct json_paths *paths, struct str text, struct json_slice *out)
{
	struct path_walk w = { .node = paths->node, .out = out };
	const char *p;

	assert(paths->nodes > 0);
	if (text.n == 0)
		return -1;
	for (size_t i = 0; i < paths->count; i++)
		out[i] = (struct json_slice){ 0 };
	w.lex.end = text.p + text.n;
	p = lex_blank(&w.lex, text.p);
	if (p == w.lex.end)
		return -1;
	p = walk_value(&w, p, &paths->node[0], 0);
	return p && lex_blank(&w.lex, p) == w.lex.end ? 0 : -1;
}
