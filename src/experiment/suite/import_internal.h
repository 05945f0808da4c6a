/* SPDX-License-Identifier: Apache-2.0 */
/* import_internal.h - what the files of import share; for no others. */
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

/* Names with "-" and "_" for each other are the same. */
bool import_is_same(struct str name, const char *key);
/* The member of that name by either spelling. */
const struct json_value *import_get(const struct json_value *object, const char *key);

/*
 * Parameters as they stand in a test ("max-model-len": 4096, "enforce_eager": "") as engine arguments
 * in server: names with underscores, what is not in the table in extra_args.
 */
void import_server(struct import_maker *m, const struct json_value *given,
		   struct json_value *server);
/* Likewise as options of the verb; what it does not have goes to server, or stays where it is. */
void import_benchmark(struct import_maker *m, const struct opt_set *set,
		      const struct json_value *given, struct json_value *benchmark,
		      struct json_value *server);
