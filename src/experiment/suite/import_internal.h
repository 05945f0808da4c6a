/* SPDX-License-Identifier: Apache-2.0 */
/* import_internal.h - shared by the files of import only. */
#pragma once
#include "experiment/suite/import.h"

/* Builds objects whose values keep their marks. */
struct import_maker {
	const struct config *c;
	struct arena *a;
	struct config_findings *f;
	bool is_simulated;        /* the server is this program's own simulator */
};
struct json_value *import_object(struct import_maker *m);
struct json_value *import_list_value(struct import_maker *m);
void import_put(struct import_maker *m, struct json_value *object, const char *key,
		const struct json_value *v);
void import_put_text(struct import_maker *m, struct json_value *object, const char *key,
		     const char *text);
void import_put_int(struct import_maker *m, struct json_value *object, const char *key, int64_t n);
void import_append(struct import_maker *m, struct json_value *list, const struct json_value *v);
void import_append_text(struct import_maker *m, struct json_value *list, const char *text);

/* The member of that name by either spelling. */
const struct json_value *import_get(const struct json_value *object, const char *key);

/*
 * Adds parameters as written in a test ("max-model-len": 4096, "enforce_eager": "") to server as
 * engine arguments: names with underscores, unknown ones in extra_args.
 */
void import_server(struct import_maker *m, const struct json_value *given,
		   struct json_value *server);
/* Adds them as options of the verb; what it does not have goes to server, or stays in place. */
void import_benchmark(struct import_maker *m, const struct opt_set *set,
		      const struct json_value *given, struct json_value *benchmark,
		      struct json_value *server);
