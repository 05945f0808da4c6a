/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_report.h - what a vLLM server reports about itself: the values of its arguments, and how
 * long the parts of its start took.
 *
 * Many arguments have no fixed default: the server chooses the maximum length of a request, the
 * data type or the batch size when it starts, by the model and the GPU. It prints the result in its
 * log (the lines of every release since 0.11), and repeats some of it in /metrics and /v1/models.
 * Nothing is guessed: an argument that none of them names is unknown.
 *
 * The first source that names an argument counts, so call them in the order of the functions below.
 * Where the server listens (host, port) and secrets are never kept. Lists and JSON arguments are
 * not read, except for "None".
 */
#pragma once
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"

struct engine_report {
	const char **text; /* of engine_args[i], as it would be typed, or "None"; NULL: not reported */
	struct arena *a;   /* of the texts */
};

void engine_report_begin(struct engine_report *r, struct arena *a);
void engine_report_log(struct engine_report *r, struct str log);
/* The labels of vllm:cache_config_info. */
void engine_report_metrics(struct engine_report *r, struct str metrics);
/* The answer of /v1/models, a JSON text. */
void engine_report_models(struct engine_report *r, struct str models);
/* An object: names with underscores, values of the kind of the argument; null: none. */
void engine_report_write(const struct engine_report *r, struct json_writer *w);

/* ---- phases of a start ---- */

#define ENGINE_LOG_PHASES 8

struct engine_phase { const char *name; double s; };

/* Fills phase (names are static) in the order of a start and returns how many the log has. */
size_t engine_log_phases(struct str log, struct engine_phase phase[ENGINE_LOG_PHASES]);
/* Seconds of compilation in the log; NAN: not reported. */
double engine_log_compilation_s(struct str log);
