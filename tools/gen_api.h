/* SPDX-License-Identifier: Apache-2.0 */
/* gen_api.h - how schema/api.json writes its types; see gen_api.c. */
#pragma once
#include "gen.h"

struct api_note { struct str type, about; };
struct api_basic { const char *name, *json, *typescript; };

/* "type - about" */
struct api_note api_note_of(const struct json_value *v);
/* Takes the first alternative of a type off *rest. */
struct str api_alternative(struct str *rest);
/* What a list, an object with free keys or a quoted word holds. */
struct str api_inside(struct str one);
/* NULL: not one of those that are built in. */
const struct api_basic *api_basic_of(struct str name);
/* "name?" may be absent. */
struct str api_member(struct str key, bool *is_optional);
/* "text/csv" and the like. */
bool api_is_media(struct str type);
bool api_is_answer(size_t list);

/* Which members of the file hold shapes. */
#define API_LISTS 3
extern const char *const api_lists[API_LISTS];
