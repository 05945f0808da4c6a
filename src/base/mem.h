/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - heap memory that is always there.
 *
 * Out of memory is not an error a benchmark can report usefully half way, so
 * these stop the program with one sentence instead of returning NULL. Sizes
 * taken from input must be bounded by a named limit (limits.h) before they get
 * here.
 */
#pragma once
#include <stddef.h>

void *mem_alloc(size_t n);             /* zeroed; n = 0 gives a unique pointer */
void *mem_array(size_t count, size_t size); /* zeroed; stops on overflow */
void *mem_grow(void *p, size_t count, size_t size); /* realloc; the new part is not zeroed */
char *mem_text(const char *text);      /* a copy; NULL gives NULL */
char *mem_copy(const char *p, size_t n); /* n bytes and a final NUL */
