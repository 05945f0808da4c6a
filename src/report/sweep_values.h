/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/sweep_values.h - the different values of one or more variables, in order: numbers by
 * size, then texts, then what is null or missing. Not for others than sweep_plot.c.
 */
#pragma once
#include "results/frame.h"

struct sweep_values {
	struct frame_keys keys;
	const struct json_value **record; /* one that has the value */
	struct str *text;                 /* NUL-terminated */
	size_t n;                         /* without variables: 1 */
};

/* Texts are "k=v" lines. */
struct sweep_values sweep_values(const struct frame *f, const struct frame_keys *keys,
				 struct arena *a);
/* Texts are values alone. */
struct sweep_values sweep_values_plain(const struct frame *f, const struct frame_keys *keys,
				       struct arena *a);
/* Which of them a record of the frame has. */
size_t sweep_values_find(const struct sweep_values *v, const struct json_value *record);
