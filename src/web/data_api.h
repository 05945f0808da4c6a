/* SPDX-License-Identifier: Apache-2.0 */
/* web/data_api.h - the API in its own words: an OpenAPI 3.1 document, made of schema/api.json. */
#pragma once
#include "web/route.h"

extern const char data_api_text[];
int data_api(const struct web_request *r, struct web_answer *a, struct err *e);
