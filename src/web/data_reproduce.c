/* SPDX-License-Identifier: Apache-2.0 */
/* data_reproduce.c - see data_run.h: a run's parameters as command lines. */
#include "base/words.h"
#include "engine/args.h"
#include "web/data_put.h"
#include "web/data_run.h"

#define OPTION_BYTES_MAX 128

/* ---- a shell's words ---- */

static void add_word(struct buf *line, struct str word)
{
	if (line->len)
		buf_add_char(line, ' ');
	words_quote(line, word);
}

static void add_words(struct buf *line, const char *words)
{
	struct str rest = str_of(words);

	while (rest.n)
		add_word(line, str_cut(&rest, ' '));
}

/* ---- options ---- */

/* "tensor_parallel_size" as "--tensor-parallel-size"; what follows a dot is a key and stays. */
static void add_option(struct buf *line, const char *dashes, struct str name)
{
	char option[OPTION_BYTES_MAX + 8];
	bool is_key = false;
	size_t n = (size_t)snprintf(option, sizeof(option), "%s", dashes);

	for (size_t i = 0; i < name.n && i < OPTION_BYTES_MAX; i++) {
		is_key |= name.p[i] == '.';
		option[n++] = name.p[i] == '_' && !is_key ? '-' : name.p[i];
	}
	add_word(line, (struct str){ option, n });
}

/* A text as it is, a list as a word for each element, anything else as its JSON. */
static void add_json(struct buf *line, const struct json_value *v)
{
	struct buf word = { 0 };
	struct json_writer w = json_writer(&word);

	if (v->kind == JSON_ARRAY) {
		for (size_t i = 0; i < v->count; i++)
			add_json(line, &v->item[i]);
		return;
	}
	w.is_raw_utf8 = true;
	if (v->kind == JSON_STRING)
		buf_add_str(&word, v->text);
	else
		json_put_value(&w, v);
	add_word(line, buf_str(&word));
	buf_release(&word);
}

/* The words of a list that was kept as its JSON; false: it is none. */
static bool add_list(struct buf *line, struct str text, struct arena *a)
{
	struct json_value *v;

	if (!str_starts(text, STR("[")) || json_parse(a, text, &v, NULL) < 0)
		return false;
	add_json(line, v);
	return true;
}

static void add_value(struct buf *line, struct value v, struct arena *a)
{
	struct buf text = { 0 };

	if (v.kind == VALUE_TEXT && add_list(line, v.text, a))
		return;
	data_add_value(&text, v);
	add_word(line, buf_str(&text));
	buf_release(&text);
}

/* ---- an engine's arguments ---- */

static const struct engine_arg *engine_arg_of(struct str name)
{
	char plain[OPTION_BYTES_MAX];
	struct str first = str_cut(&name, '.');

	if (!first.n || first.n >= sizeof(plain))
		return NULL;
	for (size_t i = 0; i < first.n; i++)
		plain[i] = first.p[i] == '_' ? '-' : first.p[i];
	return engine_arg_find((struct str){ plain, first.n });
}

static bool is_initial(const struct engine_arg *arg, struct value v)
{
	struct buf text = { 0 };
	bool is_same;

	data_add_value(&text, v);
	is_same = arg->initial && (str_is(buf_str(&text), arg->initial) ||
				   str_eq_nocase(buf_str(&text), str_of(arg->initial)));
	buf_release(&text);
	return is_same;
}

static void add_engine_args(struct buf *line, const struct row *r, struct arena *a)
{
	struct str prefix = STR("server.");

	for (size_t i = 0; i < r->n; i++) {
		struct str name = r->cell[i].column;
		struct value v = r->cell[i].value;
		const struct engine_arg *arg;

		if (!str_starts(name, prefix))
			continue;
		name = (struct str){ name.p + prefix.n, name.n - prefix.n };
		arg = engine_arg_of(name);
		if (!arg || str_is(name, "model") || v.kind == VALUE_NULL)
			continue;
		if (!memchr(name.p, '.', name.n) && is_initial(arg, v))
			continue;
		if (v.kind != VALUE_BOOL) {
			add_option(line, "--", name);
			add_value(line, v, a);
		} else if (v.is_true || arg->kind == ENGINE_SWITCH) {
			add_option(line, v.is_true ? "--" : "--no-", name);
		}
	}
}

/* ---- a benchmark's options ---- */

/* Options of one dataset, which others leave at their defaults; longer beginnings first. */
static const struct { const char *start, *dataset; } families[] = {
	{ "random_mm_", "random-mm" }, { "random_batch_", "random-rerank" },
	{ "random_", "random" }, { "sonnet_", "sonnet" }, { "spec_bench_", "spec_bench" },
	{ "speed_bench_", "speed_bench" }, { "timed_trace_", "timed_trace" }, { "trace_", "trace" },
	{ "prefix_repetition_", "prefix_repetition" }, { "blazedit_", "hf" }, { "asr_", "hf" },
	{ "hf_", "hf" }, { "custom_", "custom" }, { "sharegpt_", "sharegpt" },
};

static bool is_of_other_dataset(struct str name, struct str dataset)
{
	for (size_t i = 0; dataset.n && i < sizeof(families) / sizeof(*families); i++)
		if (str_starts(name, str_of(families[i].start)))
			return !str_starts(dataset, str_of(families[i].dataset));
	return false;
}

/*
 * Options of `bench` that are on without being asked for: false is --no-NAME. Of all others it is
 * the default. tests/cli/api-reproduce.t holds this against --help=json.
 */
static bool has_no_form(struct str name)
{
	return str_is(name, "self_timed");
}

static void add_switch(struct buf *line, struct str name, bool is_on)
{
	if (is_on || has_no_form(name))
		add_option(line, is_on ? "--" : "--no-", name);
}

/* Every option as our own results have them. */
static void add_given_options(struct buf *line, const struct json_value *options)
{
	struct str dataset = json_text(json_get(options, "dataset_name"), STR(""));

	for (size_t i = 0; i < options->count; i++) {
		const struct json_value *v = &options->item[i];
		struct str name = options->key[i];

		if (v->kind == JSON_NULL || str_is(name, "model") ||
		    is_of_other_dataset(name, dataset))
			continue;
		if (v->kind == JSON_TRUE || v->kind == JSON_FALSE) {
			add_switch(line, name, v->kind == JSON_TRUE);
			continue;
		}
		add_option(line, "--", name);
		add_json(line, v);
	}
}

static void add_load_options(struct buf *line, const struct row *r, struct arena *a)
{
	struct value dataset = run_cell(r, "benchmark.dataset_name");
	bool is_trace = dataset.kind == VALUE_TEXT && str_is(dataset.text, "timed_trace");
	struct str prefix = STR("benchmark.");

	for (size_t i = 0; i < r->n; i++) {
		struct str name = r->cell[i].column;
		struct value v = r->cell[i].value;

		if (!str_starts(name, prefix) || v.kind == VALUE_NULL)
			continue;
		name = (struct str){ name.p + prefix.n, name.n - prefix.n };
		/* vLLM's records say self_timed of every dataset; only of one has it a meaning. */
		if (str_is(name, "model") || (str_is(name, "self_timed") && !is_trace))
			continue;
		if (v.kind == VALUE_BOOL) {
			add_switch(line, name, v.is_true);
			continue;
		}
		add_option(line, "--", name);
		add_value(line, v, a);
	}
}

static void put_line(struct json_writer *w, struct buf *line)
{
	json_put_str(w, buf_str(line));
	buf_reset(line);
}

static void put_from_cells(struct json_writer *w, const struct row *r,
			   const struct json_value *document, struct arena *a)
{
	const struct json_value *options = json_get(json_get(document, "profllm"), "options");
	struct value model = run_cell(r, "server.model"), mode = run_cell(r, "mode");
	bool is_serve = mode.kind != VALUE_TEXT || str_is(mode.text, "serve");
	struct buf line = { 0 };

	if (is_serve && model.kind == VALUE_TEXT) {
		add_words(&line, "vllm serve");
		add_word(&line, model.text);
		add_engine_args(&line, r, a);
		put_line(w, &line);
	}
	add_words(&line, "profllm bench");
	add_word(&line, is_serve ? STR("serve") : mode.text);
	if (model.kind == VALUE_TEXT) {
		add_words(&line, "--model");
		add_word(&line, model.text);
	}
	if (!is_serve)
		add_engine_args(&line, r, a);
	if (options && options->kind == JSON_OBJECT)
		add_given_options(&line, options);
	else
		add_load_options(&line, r, a);
	put_line(w, &line);
	buf_release(&line);
}

/* ---- a configuration ---- */

static void put_given(struct json_writer *w, const struct json_value *given)
{
	struct buf line = { 0 };
	struct json_writer config = json_writer(&line);

	buf_add_text(&line, "profllm run --config - --output results.json <<'EOF'\n");
	config.indent = 2;
	config.is_raw_utf8 = true;
	json_put_value(&config, given);
	buf_add_text(&line, "\nEOF");
	put_line(w, &line);
	buf_release(&line);
}

void run_put_reproduce(struct json_writer *w, const struct row *r,
		       const struct json_value *document, struct arena *a)
{
	const struct json_value *given = json_get(json_get(document, "config"), "given");

	json_begin_array(w);
	if (given && given->kind == JSON_OBJECT && given->count)
		put_given(w, given);
	else
		put_from_cells(w, r, document, a);
	json_end_array(w);
}
