/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - a page of help being written, for the files of opt/. Not for other layers.
 */
#pragma once
#include "core/json/write.h"
#include "core/opt/foreign.h"

struct opt_page {
	const struct opt_set *set;
	struct buf *out;
	unsigned columns;
	struct opt_foreign_rows foreign;
};

/* Case, "_", "-" and blanks do not matter: whether text holds part, or equals it. */
bool opt_page_has(const char *text, const char *part);
bool opt_page_is(const char *a, const char *b);

/* Words of text from column `at` on; later lines start at `indent`. Ends the line. */
void opt_page_wrap(struct opt_page *p, struct str text, unsigned at, unsigned indent);
/* One option: its spellings, then what it does beside or below them. */
void opt_page_item(struct opt_page *p, struct str spellings, struct str text);

/* Of foreign arguments: the list of groups; one group, "": all, false: there is none of the name. */
void opt_page_foreign_groups(struct opt_page *p);
bool opt_page_foreign(struct opt_page *p, const char *group);
/* Those with part in their name; how many. */
size_t opt_page_foreign_named(struct opt_page *p, const char *part);
/* Objects in the array of options. */
void opt_page_foreign_json(const struct opt_page *p, struct json_writer *w);
