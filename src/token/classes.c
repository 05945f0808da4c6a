/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c - the sorted list of class changes, laid out as pages of 256.
 *
 * A page inside one class is shared with every other such page of that class; there
 * are few of the others, so no page is looked for by content.
 */
#include "token/classes.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "token/unicode16.h"

static struct classes table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct pages {
	size_t used, at; /* pages; entries of unicode_class_start */
	uint8_t uniform[32]; /* one more than the page that is all this class */
};

static uint32_t start_at(size_t i)
{
	return i < unicode_class_start_count ? unicode_class_start[i] >> 5 : 0x110000;
}

static unsigned class_at(size_t i)
{
	return unicode_class_start[i] & 31;
}

static size_t new_page(struct pages *p)
{
	assert(p->used < CLASS_PAGES_MAX);
	return p->used++;
}

/* The page of 256 code points from first on. p->at is the last change at or before first. */
static size_t make_page(struct pages *p, uint32_t first)
{
	uint32_t end = first + 256;
	size_t page;

	if (start_at(p->at + 1) >= end) {
		uint8_t *known = p->uniform + class_at(p->at);

		if (*known == 0) {
			page = new_page(p);
			memset(table.page[page], (int)class_at(p->at), 256);
			*known = (uint8_t)(page + 1);
		}
		page = *known - 1u;
	} else {
		page = new_page(p);
		for (uint32_t cp = first; cp < end; cp++) {
			if (start_at(p->at + 1) == cp)
				p->at++;
			table.page[page][cp & 0xff] = (uint8_t)class_at(p->at);
		}
	}
	if (start_at(p->at + 1) == end)
		p->at++;
	return page;
}

static void expand(void)
{
	struct pages p = { 0 };

	for (uint32_t first = 0; first < 0x110000; first += 256)
		table.page_of[first >> 8] = (uint8_t)make_page(&p, first);
	for (uint32_t byte = 0; byte < 256; byte++)
		table.byte[byte] = byte < 128 ? (uint8_t)classes_of(&table, byte) : CLASS_LEAD;
}

const struct classes *classes_get(void)
{
	pthread_once(&once, expand);
	return &table;
}
