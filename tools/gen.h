/* SPDX-License-Identifier: Apache-2.0 */
/* gen.h - what the parts of the generator share; see gen.c. */
#pragma once
#include "json/write.h"

/* A member's text; "" when it is none. */
const char *gen_member(const struct json_value *v, const char *name);
/* Whether an object of the list has this text as its "name". */
bool gen_is_one_of(const char *text, const struct json_value *list);
void gen_add_literal(struct buf *out, const char *text); /* a C string */
void gen_add_cell(struct buf *out, const char *text);    /* text within a table of Markdown */

/* gen_args.c: schema/engine_args.json. */
int gen_args_check(const struct json_value *schema, struct err *e);
void gen_args_rows(const struct json_value *schema, struct buf *out);
void gen_args_page(const struct json_value *schema, struct buf *out);

/* gen_experiment.c, gen_types.c: an object of "experiment", "result" and "engine_args". */
int gen_experiment_check(const struct json_value *all, struct err *e);
void gen_experiment_schema(const struct json_value *all, struct buf *out);
void gen_experiment_literal(const struct json_value *all, struct buf *out);
void gen_experiment_types(const struct json_value *all, struct buf *out);
void gen_experiment_page(const struct json_value *all, struct buf *out);

/* gen_api.c, gen_api_types.c: schema/api.json. */
int gen_api_check(const struct json_value *api, struct err *e);
void gen_api_openapi(const struct json_value *api, struct buf *out);
void gen_api_literal(const struct json_value *api, struct buf *out);
void gen_api_types(const struct json_value *api, struct buf *out);
void gen_api_page(const struct json_value *api, struct buf *out);

/* gen_columns.c: an object of those three and "columns". */
int gen_columns_check(const struct json_value *all, struct err *e);
void gen_columns_rows(const struct json_value *all, struct buf *out);
