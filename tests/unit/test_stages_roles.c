/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stages_roles.c - the options of an experiment's servers: about each other, their profiler,
 * and as containers. Words in, words out; nothing is started.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/json/yaml.h"
#include "experiment/config/container.h"
#include "experiment/stages/run.h"
#include "host/engine/args.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })

/* Words apart by a bar. */
static const char *joined(struct arena *a, char *const *words)
{
	struct buf out = { 0 };
	const char *text;

	for (; words && *words; words++)
		buf_printf(&out, "%s%s", out.len ? "|" : "", *words);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

static struct experiment_server server_of(const char *name, enum server_role role)
{
	return (struct experiment_server){ .name = name, .role = role, .host = "127.0.0.1",
					   .command = WORDS("vllm", "serve") };
}

/* ---- roles ---- */

static void test_references(void **state)
{
	struct experiment_server servers[] = { server_of("one", ROLE_SERVE),
					       server_of("two.b", ROLE_SERVE) };
	const struct experiment x = { .server = servers, .n_servers = 2 };
	const struct role_at at[] = { { "127.0.0.1", 8100, NULL }, { "::1", 8200, NULL } };
	static const struct { const char *text, *out; } rows[] = {
		{ "plain", "plain" },
		{ "$(one.url)", "http://127.0.0.1:8100" },
		{ "a$(one.port)b$(two.b.port)c", "a8100b8200c" },
		{ "$(two.b.url)/v1", "http://[::1]:8200/v1" },
		{ "$(two.b.host)", "::1" },
		{ "{\"kv_port\": $(one.port)}", "{\"kv_port\": 8100}" },
		{ "$", "$" }, { "$(", "$(" }, { "$()", "$()" }, { "$(date)", "$(date)" },
		{ "$(one.size)", "$(one.size)" }, { "$$(one.port)", "$8100" },
	};
	struct arena a = { 0 };
	struct err e = { 0 };
	char *out;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(role_text(&x, at, rows[i].text, &a, &out, &e), 0);
		assert_string_equal(out, rows[i].out);
	}
	assert_int_equal(role_text(&x, at, "$(three.port)", &a, &out, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.text, "$(three.port): this experiment has no server three");
	arena_release(&a);
}

static void test_sim_words(void **state)
{
	struct experiment_server split[] = {
		server_of("p", ROLE_PREFILL), server_of("d1", ROLE_DECODE),
		server_of("d2", ROLE_DECODE), server_of("front", ROLE_PROXY),
	};
	struct experiment_server shared[] = {
		server_of("a", ROLE_SERVE), server_of("b", ROLE_SERVE), server_of("c", ROLE_CACHE),
		server_of("front", ROLE_PROXY),
	};
	const struct role_at at[] = { { "h", 1, NULL }, { "h", 2, NULL }, { "h", 3, NULL },
				      { "h", 4, NULL } };
	static char *const sim[] = { "profllm", "sim", NULL };
	static char *const vllm[] = { "vllm", "serve", "m", NULL };
	static char *const told[] = { "profllm", "sim", "--kv-transfer-config", "{}",
				      "--decode-url=x", NULL };
	const struct {
		struct experiment_server *of;
		size_t i;
		char *const *given;
		const char *out;
	} rows[] = {
		{ split, 0, sim, "profllm|sim|--role|prefill" },
		{ split, 1, sim, "profllm|sim|--role|decode" },
		{ split, 3, sim, "profllm|sim|--role|proxy|--prefill-url|http://h:1|--decode-url|"
				 "http://h:2|http://h:3" },
		{ split, 0, told, "profllm|sim|--kv-transfer-config|{}|--decode-url=x" },
		{ split, 3, told, "profllm|sim|--kv-transfer-config|{}|--decode-url=x|--prefill-url|"
				  "http://h:1" },
		{ split, 0, vllm, "vllm|serve|m" },
		{ split, 3, vllm, "vllm|serve|m" },
		{ shared, 0, sim, "profllm|sim|--kv-cache-url|http://h:3" },
		{ shared, 2, sim, "profllm|sim|--role|cache" },
		{ shared, 3, sim, "profllm|sim|--role|proxy|--backend-url|http://h:1|http://h:2" },
	};
	struct arena a = { 0 };
	char **out;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct experiment x = { .server = rows[i].of, .n_servers = 4 };

		assert_int_equal(role_words(&x, rows[i].i, at, rows[i].given, &a, &out, NULL), 0);
		assert_string_equal(joined(&a, out), rows[i].out);
	}
	arena_release(&a);
}

/* ---- profiling ---- */

static void test_profiling_words(void **state)
{
	static char *const vllm[] = { "vllm", "serve", "m", NULL };
	static char *const own[] = { "vllm", "serve", "m", "--profiler-config.profiler", "cuda",
				     NULL };
	static char *const module[] = { "python", "-m", "sglang.launch_server", NULL };
	static char *const other[] = { "text-server", NULL };
	static char *const mine[] = { "VLLM_TORCH_PROFILER_DIR=/else", "VLLM_RPC_TIMEOUT=1", NULL };
	static const char config[] = "|--profiler-config|"
		"{\"profiler\": \"torch\", \"torch_profiler_dir\": \"/tmp\"}";
	const struct {
		const char *version;
		char *const *given, *const *env;
		const char *more, *lines; /* after the words that were given */
	} rows[] = {
		{ "0.11.0", vllm, NULL, "", "VLLM_TORCH_PROFILER_DIR=/tmp|VLLM_RPC_TIMEOUT=60000" },
		{ "0.12.3", vllm, NULL, "", "VLLM_TORCH_PROFILER_DIR=/tmp|VLLM_RPC_TIMEOUT=60000" },
		{ "0.13.0", vllm, NULL, config, "VLLM_RPC_TIMEOUT=60000" },
		{ "", vllm, NULL, config, "VLLM_RPC_TIMEOUT=60000" },
		{ "0.13.0", own, NULL, "", "VLLM_RPC_TIMEOUT=60000" },
		{ "0.13.0", vllm, mine, "", "VLLM_TORCH_PROFILER_DIR=/else|VLLM_RPC_TIMEOUT=1" },
		{ "", module, NULL, "", "SGLANG_TORCH_PROFILER_DIR=/tmp" },
		{ "", other, NULL, "", "" },
	};
	struct experiment_server s = server_of("s", ROLE_SERVE);
	const struct experiment x = {
		.server = &s, .n_servers = 1,
		.profiling = { .is_enabled = true, .tool = "torch", .stop_timeout_s = 60 },
	};
	struct profiling_words out;
	struct arena a = { 0 };
	struct buf notes = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *given = joined(&a, rows[i].given);

		buf_reset(&notes);
		assert_int_equal(profiling_words(&x, &s, "/tmp", engine_version(rows[i].version),
						 rows[i].given, rows[i].env, &a, &out, &notes,
						 NULL), 0);
		assert_string_equal(joined(&a, out.argv),
				    arena_printf(&a, "%s%s", given, rows[i].more));
		assert_string_equal(joined(&a, out.env), rows[i].lines);
		assert_int_equal(notes.len > 0, rows[i].given == other);
	}
	s.role = ROLE_PROXY;
	assert_int_equal(profiling_words(&x, &s, "/tmp", 0, vllm, NULL, &a, &out, &notes, NULL), 0);
	assert_string_equal(joined(&a, out.argv), "vllm|serve|m");
	buf_release(&notes);
	arena_release(&a);
}

static void test_profiling_serve(void **state)
{
	struct experiment_server servers[] = { server_of("p", ROLE_PREFILL),
					       server_of("d", ROLE_DECODE),
					       server_of("front", ROLE_PROXY) };
	struct experiment x = {
		.server = servers, .n_servers = 3, .serving = 2,
		.profiling = { .is_enabled = true, .tool = "torch", .delay_s = 2, .duration_s = 3,
			       .stop_timeout_s = 60 },
	};
	const struct role_at at[] = { { "h", 1, NULL }, { "h", 2, NULL }, { "h", 3, NULL } };
	struct serve_opts o = { .num_prompts = 1000 };
	struct arena a = { 0 };
	struct buf notes = { 0 };

	(void)state;
	profiling_serve(&x, at, &o, &a, &notes);
	assert_true(o.profile);
	assert_true(o.profile_from_s == 2 && o.profile_for_s == 3);
	assert_true(o.profile_stop_timeout_s == 60);
	assert_int_equal(o.profile_urls.n, 2);
	assert_string_equal(o.profile_urls.v[0], "http://h:1");
	assert_string_equal(o.profile_urls.v[1], "http://h:2");
	assert_int_equal(notes.len, 0);

	x.profiling.duration_s = 0;
	x.serving = 0;
	profiling_serve(&x, at, &o, &a, &notes);
	assert_int_equal(o.profile_urls.n, 0);
	assert_non_null(strstr(notes.data, "1000 prompts make a trace that is hard to open"));

	buf_reset(&notes);
	o = (struct serve_opts){ .num_prompts = 1000 };
	x.profiling.is_enabled = false;
	profiling_serve(&x, at, &o, &a, &notes);
	assert_false(o.profile);
	assert_int_equal(notes.len, 0);
	buf_release(&notes);
	arena_release(&a);
}

static void test_profiling_offline(void **state)
{
	static char *const given[] = { "--model", "m", NULL };
	struct experiment x = { .mode = MODE_LATENCY, .profiling = { .is_enabled = true,
								     .tool = "torch" } };
	char *const *out;
	struct arena a = { 0 };
	struct buf notes = { 0 };

	(void)state;
	assert_int_equal(profiling_offline(&x, "/tmp", 0, given, &a, &out, &notes, NULL), 0);
	assert_string_equal(joined(&a, out), "--model|m|--profile|--profiler-config|"
			    "{\"profiler\": \"torch\", \"torch_profiler_dir\": \"/tmp\"}");
	assert_int_equal(notes.len, 0);
	x.profiling.tool = "nsys";
	assert_int_equal(profiling_offline(&x, "/tmp", 0, given, &a, &out, &notes, NULL), 0);
	assert_string_equal(joined(&a, out), "--model|m|--profile|--nsight|/tmp/latency|"
			    "--profiler-config|{\"profiler\": \"cuda\"}");
	x.mode = MODE_STARTUP;
	assert_int_equal(profiling_offline(&x, "/tmp", 0, given, &a, &out, &notes, NULL), 0);
	assert_string_equal(joined(&a, out), "--model|m");
	assert_true(notes.len > 0);
	buf_release(&notes);
	arena_release(&a);
}

/* ---- containers ---- */

static const struct json_value *yaml(struct arena *a, const char *text)
{
	struct json_value *v = NULL;
	struct err e = { 0 };

	if (yaml_parse(a, str_of(text), &v, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return v;
}

static void test_container_check(void **state)
{
	static const struct { const char *text, *error; } rows[] = {
		{ "{image: a}", NULL },
		{ "{image: a, runtime: podman, network: bridge, gpus: all, mounts: ['/a:/b:ro'], "
		  "env: {A: 1, B: x}, args: ['--privileged']}", NULL },
		{ "[a]", "server.container: expected an object with an image" },
		{ "{runtime: docker}", "server.container.image is missing: expected an image's name, "
				       "such as vllm/vllm-openai:v0.11.0" },
		{ "{image: a, runtime: lxc}", "server.container.runtime: expected docker or podman" },
		{ "{image: '--privileged'}", "server.container.image: expected an image's name" },
		{ "{image: a, network: none}", "server.container.network: expected host or bridge" },
		{ "{image: a, gpus: 2}", "server.container.gpus: expected all or none; without it "
					 "those of the experiment" },
		{ "{image: a, mounts: ['/a']}", "server.container.mounts: expected a list of texts, "
						"each SOURCE:TARGET or SOURCE:TARGET:ro" },
		{ "{image: a, env: [A]}", "server.container.env: expected an object of names and "
					  "texts" },
		{ "{image: a, args: -v}", "server.container.args: expected a list of texts" },
		{ "{image: a, args: [3]}", "server.container.args: expected a list of texts" },
		{ "{image: a, args: ['']}", "server.container.args: expected a list of texts" },
		{ "{image: a, mounts: /a:/b}", "server.container.mounts: expected a list of texts, "
						"each SOURCE:TARGET or SOURCE:TARGET:ro" },
		{ "{image: a, env: {A: [1]}}", "server.container.env: expected an object of names and "
						"texts" },
		{ "{image: a, env: {A: {}}}", "server.container.env: expected an object of names and "
						"texts" },
		{ "{image: a, env: {A=B: 1}}", "server.container.env: expected an object of names and "
						"texts" },
		{ "{image: a, env: {'': 1}}", "server.container.env: expected an object of names and "
						"texts" },
		{ "{image: a, imag: b}", "server.container.imag: unknown key; there are runtime, "
					 "image, network, gpus, mounts, env, args" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		int rc = container_check(yaml(&a, rows[i].text), &e);

		assert_int_equal(rc, rows[i].error ? -1 : 0);
		assert_string_equal(e.text, rows[i].error ? rows[i].error : "");
	}
	arena_release(&a);
}

static void test_container_words(void **state)
{
	static const char *const gpus[] = { "0", "GPU-1", NULL };
	static char *const env[] = { "HF_TOKEN=hush", "A=b c", NULL };
	static char *const vllm[] = { "vllm", "serve", "m", "--host", "127.0.0.1", "--port", "20001",
				      NULL };
	static char *const sim[] = { "/opt/bin/profllm", "sim", "--port", "20001", NULL };
	const struct {
		const char *container;
		char *const *words;
		bool is_amd;
		const char *out; /* after --label profllm.run=R */
	} rows[] = {
		{ "{image: v/o:1}", vllm, false,
		  "--network|host|--ipc|host|--gpus|\"device=0,GPU-1\"|-v|/t:/t|-e|HF_TOKEN|-e|A=b c|"
		  "--entrypoint|vllm|v/o:1|serve|m|--host|127.0.0.1|--port|20001" },
		{ "{image: i, runtime: podman, network: bridge, args: [--shm-size=1g]}",
		  vllm, false,
		  "-p|127.0.0.1:20001:20001|--device|nvidia.com/gpu=0|--device|nvidia.com/gpu=GPU-1|"
		  "-v|/t:/t|-e|HF_TOKEN|-e|A=b c|--shm-size=1g|--entrypoint|vllm|i|serve|m|--host|"
		  "0.0.0.0|--port|20001" },
		{ "{image: i, gpus: none, mounts: ['/m:/m:ro'], env: {X: 1, T_KEY: k}}", sim, false,
		  "--network|host|--ipc|host|-v|/m:/m:ro|-v|/t:/t|-e|HF_TOKEN|-e|A=b c|-e|X=1|-e|T_KEY|"
		  "--entrypoint|/opt/bin/profllm|i|sim|--port|20001" },
		{ "{image: i, gpus: all}", WORDS("my", "server", "--port", "1"), false,
		  "--network|host|--ipc|host|--gpus|all|-v|/t:/t|-e|HF_TOKEN|-e|A=b c|--entrypoint|my|i|"
		  "server|--port|1" },
		{ "{image: i}", vllm, true,
		  "--network|host|--ipc|host|--device|/dev/kfd|--device|/dev/dri|--group-add|video|-e|"
		  "ROCR_VISIBLE_DEVICES=0,GPU-1|-v|/t:/t|-e|HF_TOKEN|-e|A=b c|--entrypoint|vllm|i|serve|m|--host|"
		  "127.0.0.1|--port|20001" },
		{ "{image: i, runtime: podman, gpus: all, args: [--ipc=private], "
		  "env: {Y: true, N: false, F: 1.5}}", sim, false,
		  "--network|host|--device|nvidia.com/gpu=all|-v|/t:/t|-e|HF_TOKEN|-e|A=b c|-e|Y=1|-e|N=0|-e|"
		  "F=1.5|--ipc=private|--entrypoint|/opt/bin/profllm|i|sim|--port|20001" },
		{ "{image: i, runtime: podman, gpus: all}", sim, true,
		  "--network|host|--ipc|host|--device|/dev/kfd|--device|/dev/dri|--group-add|video|-v|/t:/t|"
		  "-e|HF_TOKEN|-e|A=b c|--entrypoint|/opt/bin/profllm|i|sim|--port|20001" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct experiment_server s = server_of("a server", ROLE_SERVE);
		const struct container_how how = {
			.run_id = "R", .port = 20001, .words = rows[i].words, .env = env, .gpu = gpus,
			.is_amd = rows[i].is_amd, .folder = "/t",
		};
		struct container out;
		struct err e = { 0 };
		const char *text, *at;

		s.container = yaml(&a, rows[i].container);
		assert_int_equal(container_words(&s, &how, &a, &out, &e), 0);
		text = joined(&a, out.argv);
		assert_non_null(strstr(text, "|run|--rm|--name|profllm-R-a-server|--label|profllm.owner="));
		at = strstr(text, "|profllm.run=R|");
		assert_non_null(at);
		assert_string_equal(at + strlen("|profllm.run=R|"), rows[i].out);
		assert_string_equal(out.env[0], "HF_TOKEN=hush");
		assert_null(strstr(text, "hush"));
	}
	{
		struct experiment_server s = server_of("a", ROLE_SERVE);
		struct container out;
		struct err e = { 0 };

		s.container = yaml(&a, "{image: i, gpus: 3}");
		assert_int_equal(container_words(&s, &(struct container_how){ .run_id = "R", .words = sim }, &a, &out,
						 &e), -1);
	}
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_sim_words),
		cmocka_unit_test(test_profiling_words),
		cmocka_unit_test(test_profiling_serve),
		cmocka_unit_test(test_profiling_offline),
		cmocka_unit_test(test_container_check),
		cmocka_unit_test(test_container_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
