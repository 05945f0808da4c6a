/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/probe.h - small requests beside the main run (serve spec 2.8): one at a time, past
 * the cap, on a loop and a shard of their own. Private to run/.
 */
#pragma once
#include "run/stage.h"

struct probe;

/* The shards of the record that probes need: 1 with --probe-request-rate, else 0. */
uint32_t probe_shards(const struct serve_opts *o);
/*
 * Rows in the record and the request's bytes. *out is NULL without --probe-request-rate.
 * The stage must outlive the probe.
 */
int probe_new(struct stage *s, struct probe **out, struct err *e);
/* The line upstream prints. */
void probe_say(const struct probe *p);
/* The clock of the main run has started. */
void probe_start(struct probe *p);
/*
 * The main run has ended: lets the one in flight end, unless the run was broken off. As
 * upstream, that one and the pause behind it count into the duration, unless --fix
 * probe-tail. Accepts NULL; frees.
 */
void probe_end(struct probe *p);
