/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse.h - questions over many runs: pure functions of a view of the index, JSON in and out.
 *
 * Each takes the request's body as json_value, and writes one object's members ("groups": ... )
 * into an open json_writer object; web/ adds data_version and query_ms. ERR_USAGE names the wrong
 * member of the request by JSON pointer and what was expected.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "results/index/index.h"

struct analyse_request {
	const struct index_view *view;
	const struct json_value *body;
	struct arena *arena;
	/* Marks that users set on trends, a JSON array; found by series and position. */
	const struct json_value *marks;
	/*
	 * Dollars per GPU hour and watts per board, objects by gpu_model, for requests without
	 * "prices". NULL: none.
	 */
	const struct json_value *prices, *watts;
};

/*
 * Whether a value means the same as its absence: the default of `bench serve` for a column
 * benchmark.NAME, null, or a flag that is off.
 */
bool analyse_is_default(struct str column, struct value v);

typedef int analyse_fn(const struct analyse_request *r, struct json_writer *w, struct err *e);

analyse_fn analyse_compare, analyse_trends, analyse_regression, analyse_impact, analyse_scaling,
	analyse_capacity, analyse_resources, analyse_pareto, analyse_distribution, analyse_parallel,
	analyse_curves, analyse_overview;
