/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_bounds.c - what the configuration of an experiment may read and start where a
 * dashboard limits it (--bounded), one configuration after the other.
 */
#include "run_rig.h"

#define BENCH "benchmark: {tokenizer: sim, num_prompts: 1}\n"
#define SERVER(more) "server: {model: m, " more "}\nresources: {gpus: none}\n" BENCH

/* Each is judged by its exit status and all that is printed of it. */
static void check(const char *words, const char *const *config, size_t n)
{
	static unsigned number;

	for (size_t i = 0; i < n; i++) {
		struct buf line = { 0 }, got = { 0 }, title = { 0 };
		int status;

		run_write("c.yaml", config[i]);
		buf_printf(&line, "run --config c.yaml --output r.json --dry-run --bounded %s", words);
		status = verb_end(run_begin(line.data, "CHOSEN=chosen HIDDEN=hidden"));
		buf_printf(&got, "status %d\n", status);
		if (status != 0)
			run_add_text(&got, "stderr", ".err", RUN_EXACT);
		buf_printf(&title, "%u %.*s", ++number, (int)strcspn(config[i], "\n"), config[i]);
		verb_answer(title.data, &got);
		buf_release(&title);
		buf_release(&line);
	}
}
#define CHECK(words, config) check(words, config, sizeof(config) / sizeof(*(config)))

static void any_command(void **state)
{
	static const char *const config[] = {
		"server: {command: sim, model: m}\n" BENCH, "server: {command: [sh, -c, id], model: m}\n" BENCH,
		"include: base.yaml\n", "include: [deep/far.yaml]\n", "include: ../c.yaml\n",
		"include: /etc/passwd\n", "include: link.yaml\n", "include: $DIR/opened/base.yaml\n",
		"include: none.yaml\n", "import: tests.json\nserver: {command: sim, model: m}\n",
		"include: bad.yaml\n", "include: broken.yaml\n", "include: twice.yaml\n",
		"name: ${CHOSEN}\nserver: {command: sim, model: m}\n" BENCH,
		"name: ${HIDDEN}\nserver: {command: sim, model: m}\n" BENCH,
		"name: ${HIDDEN:-other}\nserver: {command: sim, model: m}\n" BENCH,
		"name: $${HIDDEN}\nserver: {command: sim, model: m}\n" BENCH,
	};

	static const char *const rooted[] = { "include: $DIR/opened/base.yaml\n" };

	(void)state;
	CHECK("--include-dir opened --may-read CHOSEN", config);
	check("", config + 2, 1);
	/* below the folder of all folders, and below one whose name begins as another's does */
	CHECK("--include-dir / --may-read CHOSEN", rooted);
	CHECK("--include-dir open", rooted);
}

static void some_commands(void **state)
{
	static const char *const config[] = {
		"server: {command: sim, model: m}\n" BENCH,
		"server: {model: a/b, tensor_parallel_size: 1, max_model_len: 32k, dtype: bfloat16, enforce_eager: "
		"true, limit_mm_per_prompt: {image: 2}, served_model_name: [a, b], env: {CHOSEN: x}}\n"
		"resources: {gpus: none}\n" BENCH,
		"server: {command: sh, model: m}\n" BENCH, "server: {command: [sh, -c, id], model: m}\n" BENCH,
		"server: {command: vllm, model: m}\n" BENCH, "server: {command: [vllm serve], model: m}\n" BENCH,
		"server: {command: vllm serve --trust-remote-code, model: m}\n" BENCH,
		"server: {command: /tmp/vllm serve, model: m}\n" BENCH,
			"server: {command: sim --truth /tmp/x, model: m}\n" BENCH,
		SERVER("container: {image: x}"), SERVER("env: {LD_PRELOAD: /tmp/x.so}"), SERVER("extra_args: [--a, b]"),
		SERVER("host: '--middleware=os.system'"), SERVER("trust_remote_code: true"),
			SERVER("middleware: [a.b]"),
		SERVER("served_model_name: [a, --middleware]"), SERVER("tool_parser_plugin: /tmp/x.py"),
		SERVER("worker_cls: a.b"), SERVER("config: /tmp/x"),
			SERVER("download_dir: /tmp/x"), SERVER("uds: /tmp/x"),
		SERVER("load_format: x"), SERVER("hf_overrides: {architectures: [x]}"),
			SERVER("additional_config: {x: y}"),
		SERVER("compilation_config: {backend: a.b}"), SERVER("compilation_config.cache_dir: /tmp/x"),
		SERVER("speculative_config: {model: x}"), SERVER("chat_template: /tmp/x"), SERVER("dtype: half"),
		"server: {model: '--config=/tmp/x'}\nresources: {gpus: none}\n" BENCH,
		"server: {command: sim, model: m, truth: /tmp/x}\n" BENCH,
			"server: {command: sim, model: m, ttft_ms: 2}\n" BENCH,
		"servers: [{command: sim, model: m}, {command: [sh, -c, id], model: m, role: cache}]\n" BENCH,
		"server: {command: sim, model: m}\n" BENCH "output: {folder: /tmp/x}\n",
		"server: {command: sim, model: m}\n" BENCH "output: {path: /tmp/x}\n",
		"server: {command: sim, model: m}\n" BENCH "output: {upload: {url: 'http://h', token_file: /tmp/x}}\n",
		"server: {command: sim, model: m}\n" BENCH "profiling: {enabled: true, dir: /tmp/x}\n",
		"server: {command: sim, model: m}\n" BENCH "profiling: {enabled: true, tool: nsys}\n",
		"server: {command: sim, model: m}\nbenchmark: {tokenizer: sim, record: /tmp/x}\n",
		"server: {command: sim, model: m}\nbenchmark: {tokenizer: sim, dump_workload: /tmp/x}\n",
		"server: {model: m}\nresources: {gpus: none}\nbenchmark: {mode: throughput, "
		  "num_prompts: 1, backend: vllm}\n",
		"server: {model: m}\nresources: {gpus: none}\nbenchmark: {mode: throughput, "
		  "num_prompts: 1, backend: vllm, "
		"python: /tmp/python}\n",
		"server: {model: m}\nresources: {gpus: none}\nbenchmark: {mode: latency, worker_cmd: sh -c id}\n",
		"matrix: {server.command: [sim, sh]}\nserver: {model: m}\n" BENCH,
		"experiments: [{name: a, server: {command: sh}}]\nserver: {model: m}\n" BENCH,
		"server: {url: 'http://127.0.0.1:9'}\n" BENCH,
		"server: {command: sim, model: m, env: {OTHER: x}}\n" BENCH,
		"scheduler: {type: slurm}\nserver: {command: sim, model: m}\n" BENCH,
	};

	(void)state;
	CHECK("--may-start sim --may-start 'vllm serve' --may-start worker --may-read CHOSEN", config);
}

static int setup(void **state)
{
	if (run_setup(state) < 0)
		return -1;
	mkdir("opened", 0755);
	mkdir("opened/deep", 0755);
	mkdir("open", 0755);
	run_write("outside.yaml", "tags: {outside: secret}\n");
	run_write("opened/base.yaml", "server: {command: sim, model: from-base}\n" BENCH);
	run_write("opened/deep/far.yaml", "include: ../base.yaml\ntags: {far: yes}\n");
	run_write("opened/bad.yaml", "server: {command: sim, secret_of_bad: x, port: secret-port}\n");
	run_write("opened/broken.yaml", "a: [\nsecret-of-broken: }\n");
	run_write("opened/twice.yaml", "secret-twice: 1\nsecret-twice: 2\n");
	run_write("opened/tests.json", "[{\"test_name\": \"serving_secret\", \"server_parameters\": secretly");
	return symlink("../outside.yaml", "opened/link.yaml");
}

RUN_MAIN(setup, cmocka_unit_test(any_command), cmocka_unit_test(some_commands))
