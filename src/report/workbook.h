/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/workbook.h - sheets of numbers and texts as a spreadsheet file (Office Open XML, .xlsx).
 *
 * No styles, no formulas. Cells are written from left to right, rows from top to bottom; rows and
 * columns count from 0. A number that is not finite is an empty cell.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define WORKBOOK_ROWS_MAX 1048576 /* of a sheet, by the format */

struct sheet {
	const char *name;    /* at most 31 characters; borrowed */
	struct buf xml;      /* private */
	uint32_t row, col;   /* private: where the next cell may stand at the earliest */
	bool has_row;
};

void sheet_text(struct sheet *s, uint32_t row, uint32_t col, struct str text);
void sheet_number(struct sheet *s, uint32_t row, uint32_t col, double v);
void sheet_release(struct sheet *s);

/* The whole file into out. ERR_LIMIT: it is too large. No cell may be added afterwards. */
int workbook_write(struct sheet *sheet, size_t n, struct buf *out, struct err *e);
