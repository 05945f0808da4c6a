/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/hold.h - whether a server holds the load of one measured run within limits: the share of slow
 * requests against what each limit allows (decide/holds.h). Yes, no, or how many requests lack.
 */
#pragma once
#include "base/buf.h"
#include "run/score.h"
#include "run/slo.h"

/*
 * Lines with a newline each go to out. HOLDS_OPEN also when the run's own verdict spoils what a
 * limit is on, and when TTFT still grows although no limit is broken yet.
 */
enum holds hold_tell(const struct slo *slo, const struct serve_opts *o, const struct point *p,
		     const struct scored *scored, struct buf *out);
