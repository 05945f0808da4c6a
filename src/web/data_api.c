/* SPDX-License-Identifier: Apache-2.0 */
/* data_api.c - see data_api.h. */
#include "web/data_api.h"

const char data_api_text[] =
#include "web/api_text.h"
;

int data_api(const struct web_request *r, struct web_answer *a, struct err *e)
{
	(void)r;
	(void)e;
	web_bytes(a, "application/json");
	buf_add_text(&a->body, data_api_text);
	return 0;
}
