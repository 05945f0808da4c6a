/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/rules.h - rules between values of one experiment: what the files rules*.c share.
 *
 * A rule is one small function that looks at an experiment whose values are each right by
 * themselves, and says what does not go together, at the value that would most likely be changed.
 * An error is what cannot work; what may be meant is a note.
 */
#pragma once
#include "experiment/config_parts.h"

struct rules {
	struct config_reader *r;
	const struct json_value *tree;
};

typedef void rule(const struct rules *q);
/* Of every server that we start, and is no simulator when the row says so. */
typedef void server_rule(const struct rules *q, size_t i);

/* The value of a server's key where it was written; NULL: not given. */
const struct json_value *rules_given(const struct rules *q, size_t i, const char *key);
/* "server.key" or "servers.1.key". */
const char *rules_path(const struct rules *q, size_t i, const char *key);
/* In effect, defaults included; NAN: none, or no number. */
double rules_number(const struct rules *q, size_t i, const char *key);
bool rules_is_on(const struct rules *q, size_t i, const char *key);
/* The benchmark's value as it was written; NULL: not given. */
const struct json_value *rules_bench(const struct rules *q, const char *key);

__attribute__((format(printf, 4, 5)))
void rules_refuse(const struct rules *q, size_t i, const char *key, const char *fmt, ...);
__attribute__((format(printf, 4, 5)))
void rules_note(const struct rules *q, size_t i, const char *key, const char *fmt, ...);
__attribute__((format(printf, 3, 4)))
void rules_refuse_bench(const struct rules *q, const char *key, const char *fmt, ...);
__attribute__((format(printf, 3, 4)))
void rules_note_bench(const struct rules *q, const char *key, const char *fmt, ...);

/* rules_server.c, rules_bench.c: tables ended by NULL. */
extern server_rule *const rules_of_servers[], *const rules_of_engines[];
extern rule *const rules_of_benchmark[];
