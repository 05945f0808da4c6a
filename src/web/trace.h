/* SPDX-License-Identifier: Apache-2.0 */
/* web/trace.h - a trace as the JSON of answers. Private to web/. */
#pragma once
#include "web/route.h"

/* run_id of its run is looked up in the request's view. */
void trace_put(const struct web_request *r, struct json_writer *w, const struct trace *t);
