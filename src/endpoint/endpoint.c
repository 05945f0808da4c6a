/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c - the table of APIs; a new one is a file and a row. */
#include "endpoint/endpoint.h"

extern const struct endpoint endpoint_vllm, endpoint_openai, endpoint_chat, endpoint_null;

static const struct endpoint *const table[] = {
	&endpoint_vllm, &endpoint_openai, &endpoint_chat, &endpoint_null,
};

const struct endpoint *endpoint_find(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	return NULL;
}

int endpoint_check_url(const struct endpoint *ep, const char *url, struct err *e)
{
	if (str_ends(str_of(url), str_of(ep->suffix)))
		return 0;
	return err_set(e, ERR_RUN, "%s URL must end with one of: {'%s'}.", ep->api_name,
		       ep->suffix);
}
