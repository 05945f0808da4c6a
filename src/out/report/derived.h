/* SPDX-License-Identifier: Apache-2.0 */
/*
 * derived.h - throughput per GPU, per user, per kilowatt and per money, from a result and the known
 * facts about its GPUs. A value whose inputs are missing is absent, never 0.
 *
 * gpu_count, gpu_price_per_hour                 as given; the price is of one GPU
 * output_throughput_per_gpu,
 * total_token_throughput_per_gpu                throughput / gpu_count
 * output_throughput_per_user                    1000 / median_tpot_ms: the speed one user sees
 * output_tokens_per_s_per_kw                    1000 * tokens_per_s_per_w
 * cost_per_million_output_tokens,
 * cost_per_million_tokens                       gpu_count * price / 3600 / throughput * 1e6
 */
#pragma once
#include "core/base/mem.h"
#include "core/json/read.h"
#include "out/report/report.h"

/* NAN, 0 and less are unknown. */
struct derived_gpus { double count, price_per_hour; };

/* The member "derived" of an open object; nothing if no value can be derived. */
void derived_put(const struct report *r, struct json_writer *w);
/* Lines of the terminal report; nothing if the GPUs are unknown. */
void derived_rows(const struct report *r, struct buf *out);

/*
 * A record (of a result, or read/document.h's) with the member "derived": the record's own values,
 * recomputed where the given GPUs are better known. If the record does not give their number,
 * num_gpus or gpu_count is used, then its parallel sizes.
 */
const struct json_value *derived_record(const struct json_value *record,
					const struct derived_gpus *told, struct arena *a);
