/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/watch.h - what is watched beside the main run: the servers' /metrics (which URLs, with which
 * headers and how often: --metrics-url, --metrics-interval) and the machine (--system-metrics).
 */
#pragma once
#include "run/stage.h"
#include "telemetry/system.h"
#include "telemetry/telemetry.h"

struct watch_servers;

/* Reads them once, and goes on in a thread of its own. NULL when no server may be asked. */
struct watch_servers *watch_begin(struct stage *s);
/* What they said last; NULL: NANs. */
void watch_now(const struct watch_servers *w, struct telemetry_now *out);
/* Reads them once more; series and notes go to the record. Accepts NULL. */
void watch_end(struct watch_servers *w, struct record *into);

/*
 * The machine; NULL: not asked for. Where no process is named, the server's are looked for at the
 * ports of base URLs on loopback addresses. Ended by system_end.
 */
struct system_watch *watch_system(const struct stage *s);
