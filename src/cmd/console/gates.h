/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates.h - what verbs with --fail-if do around compare/gate.h: options before anything is
 * measured; lines on stderr, --junit, --summary and the exit status at the end.
 */
#pragma once
#include "out/compare/gate.h"

struct gates {
	const struct gate_opts *o;
	struct gate *gate;
	size_t n;
	struct gate_log log;
};

/* Reads --fail-if and sees that the files can be written. Everything lives in the arena. */
int gates_begin(struct gates *g, const struct gate_opts *o, struct arena *a, struct err *e);
/* Of conditions that were read already; n 0: ERR_USAGE with needs where a file is asked for. */
int gates_begin_with(struct gates *g, const struct gate_opts *o, struct gate *gate, size_t n,
		     const char *needs, struct arena *a, struct err *e);
/* A result as JSON is judged, a case for each condition. where: see struct gate_case. */
int gates_judge_json(struct gates *g, struct str json, const char *where, struct err *e);
/*
 * Prints what came of them on stderr and writes the files. 0 or GATE_EXIT; -1 with e when a file
 * could not be written. Without conditions: 0, and nothing is done.
 */
int gates_end(struct gates *g, const char *title, struct err *e);
