/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - a verdict with its reasons (metrics/trust.h), for people and for programs. */
#pragma once
#include "client/metrics/trust.h"
#include "core/json/write.h"

/*
 * Adds a reason and updates the verdict. text: a sentence without its capital and its full stop,
 * cut when it is too long; code lives as long as the program.
 */
void verdict_doubt(struct trust *t, enum trust_verdict level, const char *code, struct str text);
/* The members "verdict" and "reasons" of an open object. */
void verdict_put(struct json_writer *w, const struct trust *t);
/* The members "verdicts", one per metric, and "notes"; t must have been judged. */
void verdict_put_metrics(struct json_writer *w, const struct trust *t);
/* A line for each reason and note, and for the metrics that stay VALID when others do not. */
void verdict_show(const struct trust *t, struct buf *out);
