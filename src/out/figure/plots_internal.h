/* SPDX-License-Identifier: Apache-2.0 */
/* plots_internal.h - shared by plots.c and pareto.c: values of variables, runs of one point. */
#pragma once
#include "out/figure/plots.h"

#define LOOKS 3 /* variables shown by colour, dash and width; more become one */

/*
 * The different values of one or more variables, in order: numbers by size, then texts, then null
 * or missing.
 */
struct sweep_values {
	struct frame_keys keys;
	const struct json_value **record; /* one that has the value */
	struct str *text;                 /* NUL-terminated */
	size_t n;                         /* without variables: 1 */
};

/* Texts are "k=v" lines; plain ones the values alone. */
struct sweep_values sweep_values(const struct frame *f, const struct frame_keys *keys,
				 bool is_plain, struct arena *a);
size_t sweep_values_find(const struct sweep_values *v, const struct json_value *record);

/* A sweep writes its parameters after run_number. *i: 0 first; false: no further one. */
bool plots_next_parameter(const struct json_value *record, size_t *i);
/* request_rate, max_concurrency and the like. */
bool plots_is_load_key(struct str key);
/* Appends what identifies runs of one point. Without run_number each record is a separate point. */
void plots_add_identity(const struct json_value *record, size_t number, struct buf *id);
/* The index of a text among those seen so far. */
size_t plots_index_of(struct map *seen, size_t *n, const struct buf *text, struct arena *a);

/* "gpu, max_num_seqs"; NULL: no keys, or curves are named by key=value. */
const char *plots_legend_title(const struct frame_keys *keys, struct arena *a);
