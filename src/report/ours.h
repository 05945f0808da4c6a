/* SPDX-License-Identifier: Apache-2.0 */
/* report/ours.h - parts of the object under the result's key "profllm". Private to report/. */
#pragma once
#include "json/write.h"
#include "report/lines.h"

/* Key and value; nothing when the run has nothing of it. */
void ours_server(struct json_writer *w, const struct metrics *m);
void ours_bounds(struct json_writer *w, const struct metrics *m);
void ours_steady(struct json_writer *w, const struct metrics *m);
