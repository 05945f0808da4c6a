/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_keys.h - keys of a single request, in addition to those of all requests of a run.
 *
 *	{"prompt": "...", "temperature": 0, "priority": 1, "headers": {"X-Tenant": "a"},
 *	 "extra_body": {"cache_salt": "b"}}
 *
 * Rows of the user's own files have these keys, and so have the sets of a mix, for all of their
 * requests. "extra_body" is members of the body, any. The sampling parameters of vLLM's API and
 * "priority" are members under the same name that are checked here. "max_tokens" is the length
 * that the answer is asked to have, too. A key of null is no key. What comes later in the order
 * built body, --extra-body, set of a mix, row takes the place of a member of the same name.
 *
 * "priority" is the class of the request in reports: the lower, the earlier it is served.
 */
#pragma once
#include <stdbool.h>

#include "client/plan/workload.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/rng/rng.h"

/* Whether a row's key is one of them. */
bool request_keys_know(struct str key);

/*
 * Reads a row's into s (overrides, headers, priority, output_len); texts in a. Sets
 * *has_priority where it has one, else leaves it. ERR_RUN: a value of another type, the same
 * member twice, a header that cannot be sent; without the place, which the caller knows.
 */
int request_keys_read(struct json_slice row, struct arena *a, struct sample *s,
		      bool *has_priority, struct err *e);
/* Merges under into s: under's members apply where s has none. */
void request_keys_lay(struct sample *s, const struct sample *under, struct arena *a);
/* Adds a member to the body, replacing one of that name. */
void request_keys_put(struct sample *s, const char *key, struct str json, struct arena *a);
/* Whether the body's members have that name. */
bool request_keys_has(const struct sample *s, const char *key);
/*
 * Appends the members of the body that are sampling parameters, as an object, for engines that get
 * requests without an API; nothing if there are none. Without lengths and priorities.
 */
void request_keys_sampling(const struct sample *s, struct buf *out);
/*
 * Whether an object of headers can be sent: names and texts, none of which controls the message's
 * framing.
 */
int request_keys_check_headers(struct json_slice headers, struct err *e);

/* Classes that requests are dealt into at random: "0:0.5,1:0.5". */

#define PRIORITY_CLASSES_MAX 32

struct priority_classes {
	struct { int64_t priority; double share; } v[PRIORITY_CLASSES_MAX]; /* shares above 0 */
	size_t n;
};

/* Priority:share pairs with commas between; only the ratios of shares matter. ERR_USAGE. */
int priority_classes_parse(const char *option, const char *text, struct priority_classes *out,
			   struct err *e);
/*
 * Gives every request a priority, in the body too. One random() per request: below the first share
 * (of all) the first class, and so on. ERR_USAGE: requests have priorities already.
 */
int priority_deal(const char *option, const struct priority_classes *classes, struct pyrandom *g,
		  struct workload *w, struct err *e);
