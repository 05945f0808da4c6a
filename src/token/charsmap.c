/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charsmap.c - see charsmap.h.
 *
 * All bounds are checked once: a node's children lie in one block of 256 units,
 * so a trie whose blocks all exist needs no check during a walk.
 */
#include "token/charsmap.h"

#include "base/mem.h"
#include "base/str.h"

#define BLOCK 256
#define VALUE_BIT (1u << 31)

struct charsmap {
	uint32_t *unit; /* whole blocks */
	size_t units;
	char *pool; /* ends with a NUL */
	size_t pool_bytes;
	/* An ASCII byte that ends a key, or goes on with an ASCII byte. */
	bool is_active[128];
};

static bool ends_key(uint32_t unit)
{
	return unit >> 8 & 1;
}

static uint32_t children(uint32_t unit)
{
	return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* One step of a walk; at is where the children of the node begin. False: no such child. */
static inline bool step(const struct charsmap *c, uint32_t *at, uint8_t byte, uint32_t *unit)
{
	uint32_t to = *at ^ byte;

	*unit = c->unit[to];
	*at = to ^ children(*unit);
	return (*unit & (VALUE_BIT | 0xff)) == byte;
}

/* Every unit that a walk can reach leads to whole blocks, and to replacements. */
static int check(const struct charsmap *c, struct err *e)
{
	for (size_t i = 0; i < c->units; i++) {
		uint32_t unit = c->unit[i];
		size_t base = i ^ children(unit);

		if (unit & VALUE_BIT && i > 0)
			continue; /* no walk steps onto a value, but each begins with unit 0 */
		if (base >= c->units)
			return err_set(e, ERR_PARSE, "character map: unit %zu of its trie leads to "
				"unit %zu; there are %zu", i, base, c->units);
		if (!ends_key(unit))
			continue;
		base = c->unit[base] & ~VALUE_BIT;
		if (base >= c->pool_bytes || (c->pool[base] & 0xc0) == 0x80)
			return err_set(e, ERR_PARSE, "character map: no replacement begins at "
				"byte %zu of %zu", base, c->pool_bytes);
	}
	return 0;
}

static void find_active(struct charsmap *c)
{
	uint32_t root = children(c->unit[0]), unit;

	for (uint32_t byte = 0; byte < 128; byte++) {
		uint32_t at = root, next;

		if (!step(c, &at, (uint8_t)byte, &unit))
			continue;
		c->is_active[byte] = ends_key(unit);
		for (uint32_t second = 0; second < 128; second++) {
			next = at;
			if (step(c, &next, (uint8_t)second, &unit))
				c->is_active[byte] = true;
		}
	}
}

struct charsmap *charsmap_new(struct str bytes, struct err *e)
{
	const uint8_t *p = (const uint8_t *)bytes.p;
	uint32_t trie_bytes = 0;
	struct charsmap *c;
	struct str pool;

	for (size_t i = 0; i < 4 && i < bytes.n; i++)
		trie_bytes |= (uint32_t)p[i] << 8 * i;
	if (bytes.n < 4 || trie_bytes < 4 || trie_bytes % 4 || trie_bytes > bytes.n - 4) {
		err_set(e, ERR_PARSE, "character map of %zu bytes has no trie of %u bytes",
			bytes.n, trie_bytes);
		return NULL;
	}
	pool = (struct str){ bytes.p + 4 + trie_bytes, bytes.n - 4 - trie_bytes };
	if (!utf8_is_valid(pool)) {
		err_set(e, ERR_PARSE, "character map's replacements are not valid UTF-8");
		return NULL;
	}
	c = mem_alloc(sizeof *c);
	c->units = (trie_bytes / 4 + BLOCK - 1) / BLOCK * BLOCK;
	c->unit = mem_array(c->units, sizeof *c->unit);
	for (size_t i = 0; i < trie_bytes; i++)
		c->unit[i / 4] |= (uint32_t)p[4 + i] << 8 * (i % 4);
	c->pool_bytes = pool.n;
	c->pool = mem_copy(pool.p, pool.n);
	if (check(c, e)) {
		charsmap_free(c);
		return NULL;
	}
	find_active(c);
	return c;
}

void charsmap_free(struct charsmap *c)
{
	if (!c)
		return;
	free(c->unit);
	free(c->pool);
	free(c);
}

static inline size_t look_up(const struct charsmap *c, struct str text, struct str *to,
	bool is_longest)
{
	uint32_t at = children(c->unit[0]), found = 0, unit;
	size_t length = 0;

	text.n = text.n < CHARSMAP_KEY_BYTES_MAX ? text.n : CHARSMAP_KEY_BYTES_MAX;
	for (size_t i = 0; i < text.n && step(c, &at, (uint8_t)text.p[i], &unit); i++) {
		if (!ends_key(unit))
			continue;
		found = at;
		length = i + 1;
		if (!is_longest)
			break;
	}
	if (length > 0)
		*to = str_of(c->pool + (c->unit[found] & ~VALUE_BIT));
	return length;
}

size_t charsmap_longest(const struct charsmap *c, struct str text, struct str *to)
{
	return look_up(c, text, to, true);
}

size_t charsmap_shortest(const struct charsmap *c, struct str text, struct str *to)
{
	return look_up(c, text, to, false);
}

size_t charsmap_skip(const struct charsmap *c, struct str text, size_t at)
{
	for (; at < text.n; at++) {
		uint8_t byte = (uint8_t)text.p[at];

		if (byte >= 0x80 || c->is_active[byte] ||
			(at + 1 < text.n && (uint8_t)text.p[at + 1] >= 0x80))
			break;
	}
	return at;
}
