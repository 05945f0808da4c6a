/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/engine_log.h - what vLLM's log says of how long the parts of its start took.
 *
 * Lines of every release since 0.11. One part may be told by several processes at once (one a
 * rank): the longest counts. A log of another engine has none of them.
 */
#pragma once
#include "base/str.h"
#include "run/offline.h"

#define ENGINE_LOG_PHASES 8

/* Fills phase (names are static) in the order of a start and returns how many the log tells. */
size_t engine_log_phases(struct str log, struct offline_phase phase[ENGINE_LOG_PHASES]);
/* Seconds of compiling that it tells; NAN: not told. */
double engine_log_compilation_s(struct str log);
