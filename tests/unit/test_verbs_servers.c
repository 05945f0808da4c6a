/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_servers.c - servers of `profllm run` in containers, and next to a proxy. */
/* threads: yes */
#include "run_rig.h"

/* A runtime of containers that starts the words after the image, and knows no container. */
static const char runtime[] =
	"#!/bin/sh\n"
	"[ \"$1\" = run ] || exit 0\n"
	"while [ \"$1\" != img ]; do shift; done\n"
	"shift; exec $PROFLLM \"$@\"\n";

static void contained(void **state)
{
	static const struct run_case row = {
		"boxed", "server: {command: [profllm, sim], model: sim, ttft_ms: 2, itl_ms: 1, "
		"container: {runtime: docker, image: img}}\n" RUN_LOAD,
		.how = RUN_NO_FILES | RUN_NO_DOCUMENT, .env = "PATH=$DIR/box:/usr/bin:/bin",
	};

	(void)state;
	mkdir("box", 0755);
	run_write("box/docker", runtime);
	chmod("box/docker", 0755);
	run_check(&row);
}

/* A server of this machine is asked for its version without the proxy that the load uses. */
static void proxied(void **state)
{
	static const struct run_case row = {
		"proxied", "server: {command: sim, model: sim, host: localhost}\n"
		RUN_BENCH ", ready_check_timeout_sec: 0}\n" RUN_QUIET, .status = 1,
		.how = RUN_NO_OUTPUT | RUN_NO_DOCUMENT | RUN_NO_FILES,
		.env = "http_proxy=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9",
	};
	struct buf text = { 0 };
	struct err e;

	(void)state;
	run_check(&row);
	assert_int_equal(file_read("proxied.json", 1 << 24, &text, &e), 0);
	assert_non_null(strstr(text.data, "\"profllm-sim\""));
	buf_release(&text);
}

RUN_MAIN(run_setup, cmocka_unit_test(contained), cmocka_unit_test(proxied))
