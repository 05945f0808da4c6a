/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - see config_parts.h: rules between values of one experiment, one small function each. */
#include "experiment/config_parts.h"

typedef void rule(struct config_reader *r, const struct json_value *tree);

/* Something must answer the load. */
static void has_server(struct config_reader *r, const struct json_value *tree)
{
	if (r->x->n_servers == 0 && r->x->mode == MODE_SERVE)
		config_complain(r->c, r->f, tree, "server", "missing; expected a server to start, or "
				"server.url of one that runs");
}

static rule *const rules[] = {
	has_server,
};

void config_rules(struct config_reader *r, const struct json_value *tree)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		rules[i](r, tree);
}
