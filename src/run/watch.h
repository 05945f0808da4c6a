/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/watch.h - the servers' /metrics beside the main run: which URLs are read, with
 * which headers and how often (--metrics-url, --metrics-interval).
 */
#pragma once
#include "run/stage.h"
#include "telemetry/telemetry.h"

struct watch_servers;

/* Reads them once, and goes on in a thread of its own. NULL when no server may be asked. */
struct watch_servers *watch_begin(struct stage *s);
/* What they said last; NULL: NANs. */
void watch_now(const struct watch_servers *w, struct telemetry_now *out);
/* Reads them once more; series and notes go to the record. Accepts NULL. */
void watch_end(struct watch_servers *w, struct record *into);
