/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_nsys.c - what vLLM and Nsight Systems are started with for `profiling`. Both are
 * scripts around the simulator.
 *
 * threads: yes
 */
#include "run_rig.h"

static const char vllm[] =
	"#!/bin/sh\n"
	"[ \"$1\" = --version ] && { echo \"INFO 01-01 [__init__.py:1] platform cpu.\"; echo $V; exit 0; }\n"
	"shift\n"
	"printf '%s\\n' \"$@\" >argv\n"
	"env | grep '^VLLM_' | sort >environment\n"
	"exec $PROFLLM sim \"$@\"\n";

static const char nsys[] =
	"#!/bin/sh\n"
	"printf '%s\\n' \"$*\" >>nsys.asked\n"
	"[ $1 = stats ] && { echo ' ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):'; exit 0; }\n"
	"shift\n"
	"while :; do case $1 in -o) out=$2; shift 2;; -*) shift;; *) break;; esac; done\n"
	"echo report >$out.1.nsys-rep\n"
	"exec \"$@\"\n";

static void tools(void **state)
{
	static const struct run_case row[] = {
		{ "absent", "server: {command: sim, model: sim}\n" RUN_LOAD
		  "profiling: {enabled: true, tool: nsys}\n", .status = 1, .env = "PATH=/nowhere" },
		{ "nsys", "server: {command: vllm serve, model: sim}\n" RUN_LOAD
		  "profiling: {enabled: true, tool: nsys}\n", .env = "PATH=$DIR/tools:/usr/bin:/bin V=0.14.0",
		  .files = "nsys.asked argv" },
		{ "old", "server: {command: vllm serve, model: sim}\n" RUN_LOAD
		  "profiling: {enabled: true, stop_timeout_s: 90}\n", .words = "--set benchmark.num_prompts=21",
		  .env = "PATH=$DIR/tools:/usr/bin:/bin V=0.11.2", .files = "environment argv" },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

static void write_tool(const char *path, const char *text)
{
	run_write(path, text);
	chmod(path, 0755);
}

static int setup(void **state)
{
	if (run_setup(state) < 0 || mkdir("tools", 0700) < 0)
		return -1;
	write_tool("tools/vllm", vllm);
	write_tool("tools/nsys", nsys);
	return 0;
}

RUN_MAIN(setup, cmocka_unit_test(tools))
