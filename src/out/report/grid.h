/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.h - a table of texts, written for a terminal, as Markdown, HTML or CSV.
 *
 * Cells are added row by row and borrowed; the grid's own memory is in the arena. A column whose
 * non-empty cells are all numbers is aligned to its right edge, in Markdown by decimal points, as
 * Python's tabulate does with its "pipe" format.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/mem.h"
#include "core/base/str.h"

enum grid_tone { GRID_PLAIN, GRID_GOOD, GRID_BAD, GRID_FAIR, GRID_FAINT, GRID_MARK };

struct grid {
	struct arena *a;
	const char **cell;       /* the headings, then the rows */
	unsigned char *tone;     /* enum grid_tone of each */
	size_t cols, n, cap;     /* n cells, including headings */
};

const char *grid_tone_name(enum grid_tone tone); /* "good", "bad" ...; "" for GRID_PLAIN */

void grid_begin(struct grid *g, struct arena *a);
/* Headings first; grid_end_heads ends them. */
void grid_add(struct grid *g, const char *text);
void grid_add_toned(struct grid *g, const char *text, enum grid_tone tone);
void grid_end_heads(struct grid *g);
/* Several texts, ended by NULL: a row, or the headings (then call grid_end_heads). */
void grid_add_all(struct grid *g, const char *text, ...) __attribute__((sentinel));
size_t grid_rows(const struct grid *g);

/* Transposes the table. */
void grid_turn(const struct grid *g, struct grid *out);

/* Two blanks between columns; tones as terminal colours if asked. */
void grid_text(const struct grid *g, bool is_coloured, struct buf *out);
void grid_markdown(const struct grid *g, struct buf *out);
/* <table>; tones are classes good, bad, fair, faint, mark. Every text is escaped. */
void grid_html(const struct grid *g, struct buf *out);
/* Quotes cells with a comma, a quote or a line end; lines end with \n. */
void grid_csv(const struct grid *g, struct buf *out);

/* Appends text with the special characters of HTML escaped. */
void html_escape(struct buf *out, const char *text);
/* How many terminal columns a UTF-8 text takes, one per character. */
size_t grid_width(const char *text);
