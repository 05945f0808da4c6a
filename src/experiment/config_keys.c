/* SPDX-License-Identifier: Apache-2.0 */
/* config_keys.c - see config.h: keys of a configuration as a page, from the rows that read them. */
#include "experiment/config_parts.h"

struct key { const char *name, *value, *about; };

static const struct key top[] = {
	{ "name", "text", "What messages, files and tables call it; otherwise the file's name" },
	{ "suite", "text", "What it belongs to, for those who filter documents" },
	{ "tags", "object of texts", "Whatever else it should be found by" },
	{ "include", "file or list of files",
	  "Configurations that this one is laid over; relative to its folder" },
	{ "server", "object", "The server under test" },
	{ "servers", "list of objects", "Several of them, each with the keys of `server`" },
	{ "benchmark", "object", "The load, by the options of a `bench` verb" },
	{ "resources", "object", "GPUs and ports" },
	{ "profiling", "object", "The engine's profiler" },
	{ "telemetry", "object", "What is watched while load runs" },
	{ "output", "object", "What is kept, and where it goes" },
	{ "provenance", "object", "What the document says of the engine's origin: engine_commit, ..." },
	{ "require", "list of texts",
	  "Conditions that the results of each run must meet, such as p99_ttft_ms<=200; one that is not "
	  "met, or cannot be judged, makes the exit status 3" },
	{ "matrix", "object or list of objects",
	  "A suite: dotted key to list of values; every combination is an experiment" },
	{ "experiments", "list of objects", "A suite: each laid over the rest; each has a name" },
	{ "import", "text or object", "A suite of vLLM's own benchmark test files" },
	{ "repeat", "integer", "How often each experiment is run" },
	{ "shuffle", "true, false or a seed", "Run them in a random order" },
	{ "restart", "on-repeat, on-change, always, never",
	  "When servers are started again: when the next experiment needs other ones and for each repeat "
	  "(on-repeat, the default), only for other ones, for each experiment, once for all" },
	{ "jobs", "integer", "How many run at once, as GPUs and ports allow" },
	{ "stop_on_error", "true or false", "End the suite with the first one that fails" },
};

static void add_cell(const char *text, struct buf *out)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '<')
			buf_add_char(out, '\\');
		buf_add_char(out, *text);
	}
}

static void add_name(const char *name, struct buf *out)
{
	for (; *name; name++)
		buf_add_char(out, *name == '-' ? '_' : *name);
}

static void add_head(const char *title, const char *about, struct buf *out)
{
	buf_printf(out, "\n## %s\n\n%s\n\n| Key | Value | Default | What it is |\n|---|---|---|---|\n",
		   title, about);
}

/* Lists and objects by what is in them. */
static void add_kind(const struct opt *row, struct buf *out)
{
	const char *arg = row->arg ? row->arg : "";
	struct buf expected = { 0 };

	opt_expected(row, &expected);
	if (strchr(arg, '|') || *arg == '{')
		add_cell(arg, out);
	else if (row->kind == OPT_LIST && *arg)
		buf_printf(out, "a list of %s", arg);
	else
		add_cell(row->kind == OPT_JSON ? "an object" : expected.data, out);
	buf_release(&expected);
}

/* bench: the mode of a benchmark's rows; NULL: they are a section's. */
static void add_rows(const struct opt_set *set, const enum experiment_mode *bench,
		     struct buf *out)
{
	struct arena a = { 0 };
	struct buf json = { 0 };
	const struct json_value *defaults;

	opt_json(set, set->defaults, &json);
	defaults = config_tree_of(buf_str(&json), &a);
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *row = &set->row[i];
		struct buf name = { 0 };
		const struct json_value *v;

		if (row->flags & (OPT_HIDDEN | OPT_NO_CONFIG | OPT_POSITIONAL) ||
		    (bench && config_is_elsewhere(*bench, row->name)))
			continue;
		add_name(row->name, &name);
		v = config_get(defaults, name.data);
		buf_printf(out, "| `%s` | ", name.data);
		add_kind(row, out);
		buf_add_text(out, " | ");
		if (v && (v->kind != JSON_ARRAY || v->count))
			buf_printf(out, "`%s`", config_scalar(v, &a) ? config_scalar(v, &a) :
				   config_json(v, &a));
		buf_add_text(out, " | ");
		add_cell(row->help, out);
		buf_add_text(out, " |\n");
		buf_release(&name);
	}
	buf_release(&json);
	arena_release(&a);
}

static void add_modes(struct buf *out)
{
	static const char *const about[] = {
		[MODE_SERVE] = "The options of `profllm bench serve` that an experiment may set.",
		[MODE_THROUGHPUT] = "`mode: throughput`, by the options of `profllm bench throughput`.",
		[MODE_LATENCY] = "`mode: latency`, by the options of `profllm bench latency`.",
		[MODE_STARTUP] = "`mode: startup`, by the options of `profllm bench startup`.",
		[MODE_PRIORITIZATION] = "`mode: prioritization`, by the options of `profllm bench "
			"prioritization`, in an engine;\nfor a server `mode: serve` with `dataset_name: "
			"prioritization`.",
		[MODE_PREFIX_CACHING] = "`mode: prefix-caching`, by the options of `profllm bench "
			"prefix-caching`.",
		[MODE_LONG_DOCUMENT] = "`mode: long-document-qa`, by the options of `profllm bench "
			"long-document-qa`.",
		[MODE_STRUCTURED] = "`mode: structured-output` has the keys of mode serve, with "
			"`dataset_name: structured` and\n`temperature: 0` unless given.",
		[MODE_MULTI_TURN] = "`mode: multi-turn`, by the options of `profllm bench multi-turn`, and the "
			"keys of mode serve\nthat this command accepts.",
	};

	struct arena a = { 0 };

	for (unsigned i = 0; i < MODE_COUNT; i++) {
		enum experiment_mode mode = (enum experiment_mode)i;
		struct buf title = { 0 };

		buf_printf(&title, "benchmark, mode %s", experiment_mode_name(mode));
		add_head(title.data, about[i], out);
		if (i == MODE_SERVE)
			buf_printf(out, "| `mode` | one of %s | `serve` | which verb's options these are "
				   "|\n", config_modes(&a));
		if (i == MODE_STRUCTURED)
			buf_add_text(out, "| `dataset_name` | | `structured` | |\n"
				     "| `temperature` | | `0` | |\n");
		else
			add_rows(config_bench_set(mode), &mode, out);
		buf_release(&title);
	}
	arena_release(&a);
}

void config_keys_page(struct buf *out)
{
	buf_add_text(out, "<!-- Made by `profllm run --print-keys`. -->\n"
		     "# Keys of an experiment's configuration\n\n"
		     "What `profllm run --config FILE` reads; the guide is `docs/guide/experiments.md`. "
		     "Ranges and choices are\nthose of the options with the same names.\n");
	add_head("The file", "Sections and keys at the top.", out);
	for (size_t i = 0; i < sizeof(top) / sizeof(*top); i++)
		buf_printf(out, "| `%s` | %s |  | %s |\n", top[i].name, top[i].value, top[i].about);
	add_head("server", "These, and every argument of vLLM's server by its name with underscores "
		 "(`docs/reference/engine-args.md`);\nwith `command: sim` the options of `profllm sim`, "
		 "too.", out);
	add_rows(&config_server_set, NULL, out);
	add_head("resources", "GPUs and ports.", out);
	add_rows(&config_resources_set, NULL, out);
	add_head("profiling", "The engine's profiler.", out);
	add_rows(&config_profiling_set, NULL, out);
	add_head("telemetry", "What is watched while load runs.", out);
	add_rows(&config_telemetry_set, NULL, out);
	add_head("output", "What is kept, and where it goes.", out);
	add_rows(&config_output_set, NULL, out);
	add_modes(out);
}
