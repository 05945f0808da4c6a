/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_roles.c - `profllm run` with servers that depend on each other. */
/* threads: yes */
#include "run_rig.h"

static void roles(void **state)
{
	static const struct run_case row[] = {
		{ "split", "servers:\n- {name: front, role: proxy, command: sim, after: [before, behind]}\n"
		  "- {name: behind, role: decode, command: sim, after: [before]}\n"
		  "- {name: before, role: prefill, command: sim}\n" RUN_BENCH ", model: sim}\n"
		    RUN_QUIET, .words = NULL },
		{ "shared", "servers:\n- {name: store, role: cache, command: sim}\n"
		  "- {name: one, command: sim, after: [store], kv_transfer_config: {kv_connector: "
		  "LMCacheConnectorV1, kv_role: kv_both}, env: {LMCACHE_REMOTE_URL: "
		  "'lm://$(store.host):$(store.port)'}}\n"
		  "- {name: front, role: proxy, command: sim, after: [one]}\n" RUN_BENCH ", model: sim}\n" RUN_QUIET,
		  .words = NULL },
		{ "nosuch", "servers:\n- {name: a, command: sim, extra_args: [--requests, '$(b.port)']}\n" RUN_LOAD,
		  .status = 2 },
		{ "fallen", "servers:\n- {name: before, role: prefill, command: sim}\n"
		  "- {name: behind, role: decode, command: sim, fail_start: oom, after: [before]}\n"
		  "- {name: front, role: proxy, command: sim, after: [before, behind]}\n"
		  RUN_BENCH ", model: sim}\n" RUN_QUIET, .status = 1 },
		{ "circle", "servers:\n- {name: a, command: sim, after: [b]}\n"
		  "- {name: b, command: sim, after: [a]}\n" RUN_LOAD, .status = 2 },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(roles))
