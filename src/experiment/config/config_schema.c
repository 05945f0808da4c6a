/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_schema.c - see config.h: the keys of a configuration as a page of Markdown and as a JSON
 * Schema for editors, both from the rows that read them.
 *
 * The schema is of draft 07, which all editors read, with members of VS Code's language servers
 * (errorMessage, deprecationMessage, doNotSuggest), so that a value is refused with the program's
 * own words. Rules beyond a single value are left to the program.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/serve_opts.h"
#include "core/base/limits.h"
#include "core/json/write.h"
#include "experiment/config/config_internal.h"
#include "host/engine/args.h"

#define NUMBER_OF(limit) NUMBER_OF_(limit)
#define NUMBER_OF_(limit) #limit

/* Schemas shared by several keys. */
#define ANY_TEXT "[\"string\", \"number\", \"boolean\", \"null\"]"
#define TEXT "\"type\": " ANY_TEXT ", \"errorMessage\": \"expected a text\""
#define OBJECT "\"type\": [\"object\", \"null\"], \"errorMessage\": \"expected an object\""
#define FILES "\"type\": [\"string\", \"array\", \"null\"], \"items\": {\"type\": \"string\", "       \
	"\"errorMessage\": \"expected the name of a file\"}, "                                 \
	"\"errorMessage\": \"expected the name of a file\""
#define REF(name) "\"$ref\": \"#/definitions/" name "\""
/* Language servers have their own messages for bounds; through `else` the program's are shown. */
#define WITHIN(bounds, words) "\"errorMessage\": \"" words "\", \"if\": {" bounds "}, \"else\": {"     \
	"\"type\": \"null\", \"errorMessage\": \"" words "\"}"
#define WHOLE(low, high) "\"type\": [\"integer\", \"null\"], " WITHIN("\"minimum\": " #low             \
	", \"maximum\": " NUMBER_OF(high), "expected a whole number from " #low " to "         \
	NUMBER_OF(high))
#define LIST_OF(item, what) "\"type\": [\"array\", \"null\"], \"items\": {" item "}, "               \
	"\"errorMessage\": \"" what "\""
#define AXES "\"type\": \"object\", \"additionalProperties\": {\"type\": [\"array\", \"object\"], "  \
	WITHIN("\"minItems\": 1", "expected a list of at least one value") "}, "              \
	"\"errorMessage\": \"expected an object of lists, or a list of such objects\""

/* json: the schema of the value; is_suites: a key of a suite, which no member has. */
struct key { const char *name, *value, *about, *json; bool is_suites; };

static const struct key top[] = {
	{ "name", "text", "Name in messages, files and tables; default: the file's name", TEXT,
	  false },
	{ "suite", "text", "Project it belongs to, for filtering documents", TEXT, false },
	{ "tags", "object of texts", "Further names and values to find it by",
	  OBJECT ", \"additionalProperties\": {" TEXT "}", false },
	{ "include", "file or list of files",
	  "Base configurations that this one overrides, relative to its folder; in a section: "
	  "files with keys of that section only, such as the one that vllm serve --config "
	  "takes", FILES, false },
	{ "server", "object", "The server under test", REF("server"), false },
	{ "servers", "list of objects", "Several of them, each with the keys of `server`",
	  LIST_OF(REF("server"), "expected a list of servers"), false },
	{ "benchmark", "object", "The load, by the options of a `bench` verb", REF("benchmark"), false },
	{ "resources", "object", "GPUs and ports", REF("resources"), false },
	{ "profiling", "object", "The engine's profiler", REF("profiling"), false },
	{ "telemetry", "object", "What is monitored while load runs", REF("telemetry"), false },
	{ "output", "object", "What is saved, and where", REF("output"), false },
	{ "provenance", "object", "Origin of the engine to write into the document: engine_commit, "
				  "...",
	  OBJECT, false },
	{ "require", "list of texts",
	  "Conditions that the results of each run must meet, such as p99_ttft_ms<=200; one that is not "
	  "met, or cannot be judged, makes the exit status 3",
	  LIST_OF("\"type\": \"string\", \"errorMessage\": \"expected a condition such as "
		  "\\\"p99_ttft_ms<=200\\\"\"", "expected a list of at most 256 conditions such as "
		  "\\\"p99_ttft_ms<=200\\\""), false },
	{ "profile", "throughput, latency, capacity, soak",
	  "Defaults of the benchmark by its purpose; a key in the file takes precedence: all requests "
	  "at once, one at a time, the largest rate within limits, an hour of steady load",
	  "\"enum\": [\"throughput\", \"latency\", \"capacity\", \"soak\", null], \"errorMessage\": "
	  "\"expected one of throughput, latency, capacity, soak\"", false },
	{ "search", "object",
	  "What to search for: the largest load within limits, for each experiment, or the best "
	  "experiment of the suite", REF("search"), false },
	{ "matrix", "object or list of objects",
	  "A suite: dotted key to list of values; every combination is an experiment",
	  "\"type\": [\"object\", \"array\", \"null\"], \"if\": {\"type\": \"object\"}, \"then\": {"
	  AXES "}, \"items\": {" AXES "}, \"errorMessage\": \"expected an object of lists, or a "
	  "list of such objects\"", true },
	{ "matrix_exclude", "list of objects",
	  "Combinations to leave out: those that have all values of one of the objects",
	  LIST_OF("\"type\": \"object\", \"minProperties\": 1, \"errorMessage\": \"expected an "
		  "object of paths and values\"", "expected a list of objects"), true },
	{ "experiments", "list of objects", "A suite: a list of named experiments, each overriding "
					    "the rest of the file",
	  LIST_OF(REF("experiment"), "expected a list of objects"), true },
	{ "import", "text or object", "A suite of vLLM's own benchmark test files",
	  "\"type\": [\"string\", \"array\", \"object\", \"null\"]", true },
	{ "repeat", "integer", "How many times each experiment is run", WHOLE(1, SUITE_MEMBERS_MAX), true },
	{ "shuffle", "true, false or a seed", "Run them in a random order",
	  "\"type\": [\"boolean\", \"integer\", \"null\"], "
	  WITHIN("\"minimum\": 0", "expected true, false or a seed, a whole number from 0"), true },
	{ "restart", "on-repeat, on-change, always, never",
	  "When servers are restarted: when the next experiment needs different ones and for each "
	  "repeat (on-repeat, the default), only for different ones (on-change), for each "
	  "experiment (always), not at all (never)",
	  "\"enum\": [\"on-repeat\", \"on-change\", \"always\", \"never\", null], "
	  "\"errorMessage\": \"expected one of on-repeat, on-change, always, never\"", true },
	{ "jobs", "integer", "How many run at once, as GPUs and ports allow",
	  WHOLE(1, SUITE_JOBS_MAX), true },
	{ "scheduler", "object", "Where the experiments run: this machine, Slurm, hosts reached by ssh",
	  REF("scheduler"), true },
	{ "stop_on_error", "true or false", "End the suite at the first experiment that fails",
	  "\"type\": [\"boolean\", \"null\"], \"errorMessage\": \"expected true or false\"", true },
};
#define N_TOP (sizeof(top) / sizeof(*top))

/* ---- a page ---- */

static void add_cell(const char *text, struct buf *out)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '<')
			buf_add_char(out, '\\');
		buf_add_char(out, *text);
	}
}

static void add_head(const char *title, const char *about, struct buf *out)
{
	buf_printf(out, "\n## %s\n\n%s\n\n| Key | Value | Default | What it is |\n|---|---|---|---|\n",
		   title, about);
}

/* Describes lists and objects by their elements. */
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

/* bench: the mode of a benchmark's rows; NULL: rows of a section. */
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
		const struct json_value *v;
		const char *name;

		if (row->flags & (OPT_HIDDEN | OPT_NO_CONFIG | OPT_POSITIONAL) ||
		    (bench && config_is_elsewhere(*bench, row->name)))
			continue;
		name = config_key(str_of(row->name), &a);
		v = config_get(defaults, name);
		buf_printf(out, "| `%s` | ", name);
		add_kind(row, out);
		buf_add_text(out, " | ");
		if (v && (v->kind != JSON_ARRAY || v->count))
			buf_printf(out, "`%s`", config_scalar(v, &a) ? config_scalar(v, &a) :
				   config_json(v, &a));
		buf_add_text(out, " | ");
		add_cell(row->help, out);
		buf_add_text(out, " |\n");
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
		const char *title = arena_printf(&a, "benchmark, mode %s", experiment_mode_name(mode));

		add_head(title, about[i], out);
		if (i == MODE_SERVE)
			buf_printf(out, "| `mode` | one of %s | `serve` | which verb's options this section has "
				   "|\n", config_modes(&a));
		if (i == MODE_STRUCTURED)
			buf_add_text(out, "| `dataset_name` | | `structured` | |\n"
				     "| `temperature` | | `0` | |\n");
		else
			add_rows(config_bench_set(mode), &mode, out);
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
	for (size_t i = 0; i < N_TOP; i++)
		buf_printf(out, "| `%s` | %s |  | %s |\n", top[i].name, top[i].value, top[i].about);
	add_head("server", "These, and every argument of vLLM's server by its name with underscores "
		 "(`docs/reference/engine-args.md`);\nwith `command: sim` the options of `profllm sim`, "
		 "too.", out);
	add_rows(&config_server_set, NULL, out);
	add_head("resources", "GPUs and ports.", out);
	add_rows(&config_resources_set, NULL, out);
	add_head("profiling", "The engine's profiler.", out);
	add_rows(&config_profiling_set, NULL, out);
	add_head("telemetry", "What is monitored while load runs.", out);
	add_rows(&config_telemetry_set, NULL, out);
	add_head("output", "What is saved, and where.", out);
	add_rows(&config_output_set, NULL, out);
	add_head("search", "What to search for: `find` with `slo`, or `best`.", out);
	add_rows(&config_search_set, NULL, out);
	add_head("scheduler", "Where the experiments of a suite run (`docs/guide/clusters.md`).", out);
	add_rows(&config_scheduler_set, NULL, out);
	add_modes(out);
}

/* ---- a schema ---- */

/* Texts that are read as a number, true or false, and references of any kind. */
#define FILLED "\\$\\{"
#define DIGITS "^\\s*[+-]?[0-9][0-9_]*\\s*$"
#define DECIMAL "^\\s*[+-]?([0-9][0-9_]*\\.?[0-9_]*|\\.[0-9]+)([eE][+-]?[0-9]+)?\\s*$" \
	"|^[+-]?([iI]nf(inity)?|[nN]a[nN])$"
#define PERIOD "^([0-9.]+(ms|s|min|m|h|d))+$"
#define SIZE "^[0-9.]+([kKmMgGtT]|[KMGT]iB|kB|[MGT]B)?$"
#define YES_OR_NO "^([tT]rue|TRUE|[fF]alse|FALSE|[yY]es|[nN]o|[oO]n|[oO]ff|1|0)$"

struct schema {
	struct json_writer w;
	struct arena a;
	const struct opt_set *sim;
	struct buf refused; /* patterns of the names that the object being written refuses */
};

static void put_types(struct schema *s, const char *types)
{
	struct str rest = str_of(types);

	json_member_array(&s->w, "type");
	while (rest.n)
		json_put_str(&s->w, str_cut(&rest, ' '));
	json_put_text(&s->w, "null");
	json_end_array(&s->w);
}

static void put_expected(struct schema *s, const char *expected)
{
	json_member_text(&s->w, "errorMessage", arena_printf(&s->a, "expected %s", expected));
}

/* The accepted range of a number, for its schema and its messages. NAN: no such bound. */
struct range { double min, max; bool is_above, is_below; };

/*
 * A number, or a text that is one. Language servers have their own messages for bounds; through
 * `else` the program's are shown.
 */
static void put_number(struct schema *s, bool is_whole, const char *text, struct range range,
		       const char *expected)
{
	struct json_writer *w = &s->w;

	put_types(s, is_whole ? "integer string" : "number string");
	json_member_text(w, "pattern", text);
	put_expected(s, expected);
	if (!isfinite(range.min) && !isfinite(range.max))
		return;
	json_member_object(w, "if");
	if (isfinite(range.min))
		json_member_f64(w, range.is_above ? "exclusiveMinimum" : "minimum", range.min);
	if (isfinite(range.max))
		json_member_f64(w, range.is_below ? "exclusiveMaximum" : "maximum", range.max);
	json_end_object(w);
	json_member_object(w, "else");
	json_member_text(w, "type", "null");
	put_expected(s, expected);
	json_end_object(w);
}

/*
 * One of the words, or a reference; a word of digits may be a number, too. For alternatives (anyOf)
 * some language servers show only their own messages.
 */
static void put_choices(struct schema *s, const char *const *words, bool is_dashed,
			const char *expected)
{
	struct json_writer *w = &s->w;
	struct buf other = { 0 };
	double number;

	json_member_texts(w, "examples", words); /* what is offered while one types */
	for (size_t i = 0; is_dashed && words[i]; i++)
		buf_printf(&other, "|^%s$", words[i]);
	/* In such words "-" equals "_", and capitals equal small letters. */
	for (size_t i = 0; i < other.len; i++)
		if (other.data[i] == '-' || other.data[i] == '_')
			other.data[i] = '.';
	json_member_object(w, "if");
	json_member_text(w, "type", "string");
	json_member_text(w, "pattern", arena_printf(&s->a, FILLED "%s", other.len ? other.data : ""));
	json_end_object(w);
	json_member_object(w, "else");
	json_member_array(w, "enum");
	for (; *words; words++) {
		json_put_text(w, *words);
		if (str_to_f64(str_of(*words), &number) && isfinite(number))
			json_put_raw(w, str_of(*words));
	}
	json_put_null(w);
	json_end_array(w);
	json_member_text(w, "errorMessage", expected);
	json_end_object(w);
	buf_release(&other);
}

#define READY "\"errorMessage\": \"expected one of health, port, started or {log: TEXT}\""
#define GPUS "expected auto, none, a number of GPUs (at most " NUMBER_OF(EXPERIMENT_GPUS_MAX) ") or a " \
	"list of indices or UUIDs"
/* Values of our own sections that a row alone does not describe. */
static const struct { const char *section, *name, *json; } special[] = {
	{ "server", "command", "\"type\": [\"string\", \"array\", \"null\"], "
	  WITHIN("\"minLength\": 1, \"minItems\": 1", "expected words or a list of them")
	  ", \"examples\": [\"vllm serve\", \"sim\"]" },
	{ "server", "url", "\"type\": [\"string\", \"null\"], \"pattern\": \"^https?://|\\\\$\\\\{\", "
	  "\"errorMessage\": \"expected http://... or https://...\"" },
	{ "server", "env", "\"type\": [\"object\", \"null\"], \"additionalProperties\": {" TEXT "}, "
	  "\"errorMessage\": \"expected an object of NAME: VALUE\"" },
	{ "server", "ready", "\"if\": {\"type\": \"object\"}, \"then\": {\"properties\": {\"log\": "
	  "{\"type\": \"string\", \"minLength\": 1, " READY "}}, \"required\": [\"log\"], "
	  "\"additionalProperties\": false, " READY "}, \"else\": {\"enum\": [\"health\", \"port\", "
	  "\"started\", null], " READY "}" },
	{ "server", "container", OBJECT },
	{ "resources", "gpus", "\"type\": [\"string\", \"integer\", \"array\", \"null\"], "
	  WITHIN("\"minimum\": 0, \"maximum\": " NUMBER_OF(EXPERIMENT_GPUS_MAX)
		 ", \"minItems\": 1", GPUS) ", \"examples\": "
	  "[\"auto\", \"none\", 1]" },
	{ "output", "upload", "\"type\": [\"object\", \"null\"], \"required\": [\"url\"], "
	  "\"properties\": {\"url\": {" TEXT "}, \"token_file\": {" TEXT "}}, \"errorMessage\": "
	  "\"expected {url: URL, token_file: FILE}\"" },
};

static const char *special_of(const char *section, const char *name)
{
	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
		if (strcmp(special[i].section, section) == 0 && strcmp(special[i].name, name) == 0)
			return special[i].json;
	return NULL;
}

static void put_row(struct schema *s, const struct opt *row)
{
	struct buf expected = { 0 };
	bool is_time = row->arg && strcmp(row->arg, "SECONDS") == 0, has_range = row->min || row->max;
	bool is_whole = row->kind == OPT_INT || row->kind == OPT_MAYBE_INT;
	bool is_number = is_whole || row->kind == OPT_REAL || row->kind == OPT_MAYBE_REAL;
	const char *arg = row->arg ? row->arg : "";

	opt_expected(row, &expected);
	switch (row->kind) {
	case OPT_FLAG:
	case OPT_TRI:
		put_types(s, "boolean string");
		json_member_text(&s->w, "pattern", YES_OR_NO "|" FILLED);
		break;
	case OPT_INT:
	case OPT_MAYBE_INT:
	case OPT_REAL:
	case OPT_MAYBE_REAL:
		put_number(s, is_whole, arena_printf(&s->a, "%s|" FILLED "%s%s",
			   is_whole ? DIGITS : DECIMAL, is_time ? "|" PERIOD : "",
			   strcmp(arg, "BYTES") == 0 ? "|" SIZE : ""), (struct range){
				   has_range ? row->min : NAN, has_range ? row->max : NAN,
				   row->flags & OPT_MIN_EXCLUSIVE, false,
			   }, expected.data);
		break;
	case OPT_TEXT:
		if (row->choices)
			put_choices(s, row->choices, row->flags & OPT_DASHED,
				    arena_printf(&s->a, "expected %s", expected.data));
		else
			put_types(s, "string number array");
		break;
	case OPT_LIST:
		put_types(s, strpbrk(arg, "=:") ? "array string number boolean object" :
						  "array string number boolean");
		break;
	case OPT_JSON:
		break;
	}
	if (!row->choices && row->kind != OPT_JSON && !is_number)
		put_expected(s, expected.data);
	buf_release(&expected);
}

/* "name": the row's type, its default and its help. */
static void put_option(struct schema *s, const char *section, const struct opt *row,
		       const struct json_value *initial)
{
	const char *name = config_key(str_of(row->name), &s->a);
	const char *json = special_of(section, name);

	json_member_object(&s->w, name);
	json_member_text(&s->w, "description", row->help);
	if (json)
		json_put_members_raw(&s->w, str_of(json));
	else
		put_row(s, row);
	if (initial && initial->kind != JSON_NULL && !(row->flags & OPT_SECRET))
		json_member_value(&s->w, "default", initial);
	json_end_object(&s->w);
}

/* ---- names ---- */

/* A key with the same schema as the property `name` of a definition. */
static void put_reference(struct schema *s, const char *key, const char *definition,
			  const char *name)
{
	json_member_object(&s->w, key);
	json_member_text(&s->w, "$ref", arena_printf(&s->a, "#/definitions/%s/properties/%s",
						     definition, name));
	json_end_object(&s->w);
}

/* Other ways to write the keys of a definition: with hyphens, dotted keys of JSON. */
static void put_spellings(struct schema *s, const char *definition, const char *name, bool is_json)
{
	char *hyphens = arena_text(&s->a, str_of(name));

	for (char *c = hyphens; *c; c++)
		*c = *c == '_' ? '-' : *c;
	if (strcmp(hyphens, name) != 0)
		put_reference(s, arena_printf(&s->a, "^%s$", hyphens), definition, name);
	if (!is_json)
		return;
	json_key(&s->w, arena_printf(&s->a, "^(%s|%s)\\.", hyphens, name));
	json_put_bool(&s->w, true);
}

/* A pattern of a name with "-" or "_". */
static const char *any_spelling(struct schema *s, const char *name)
{
	const char *out = "";

	for (struct str rest = str_of(name); rest.n;) {
		struct str word = str_cut(&rest, '_');

		out = arena_printf(&s->a, "%s%s%.*s", out, *out ? "[-_]" : "", (int)word.n, word.p);
	}
	return out;
}

/* names: a pattern. They are refused where they are written, not where their values are. */
static void refuse_names(struct schema *s, const char *names, const char *why)
{
	struct json_writer w = json_writer(&s->refused);

	w.is_compact = w.is_raw_utf8 = true;
	if (s->refused.len)
		buf_add_char(&s->refused, ',');
	json_begin_object(&w);
	json_member_text(&w, "pattern", arena_printf(&s->a, "^(?!(%s)$)", names));
	json_member_text(&w, "errorMessage", why);
	json_end_object(&w);
}

/* A name that the section does not have: "it belongs to" another one. */
static void put_elsewhere(struct schema *s, const char *section, const struct opt_set *own)
{
	static const char *const others[] = {
		"server", "benchmark", "resources", "profiling", "telemetry", "output",
	};
	const char *found[CONFIG_SECTIONS_MAX];

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		const struct opt_set *sets[] = {
			&config_server_set, &serve_opt_set, &config_resources_set,
			&config_profiling_set, &config_telemetry_set, &config_output_set,
		};
		struct buf names = { 0 };
		size_t n = sets[i]->n + (i == 0 ? engine_arg_count : 0);

		for (size_t k = 0; strcmp(section, others[i]) != 0 && k < n; k++) {
			const char *name = config_key(str_of(k < sets[i]->n ? sets[i]->row[k].name :
						      engine_args[k - sets[i]->n].name), &s->a);

			if (config_row(own, str_of(name)) ||
			    (strcmp(section, "server") == 0 && config_arg_of(str_of(name))) ||
			    config_sections_of(str_of(name), MODE_SERVE, NULL, found) == 0 ||
			    strcmp(found[strcmp(found[0], section) == 0], others[i]) != 0)
				continue;
			buf_printf(&names, "%s%s", names.len ? "|" : "", any_spelling(s, name));
		}
		if (names.len) {
			json_key(&s->w, arena_printf(&s->a, "^(%s)$", names.data));
			json_put_bool(&s->w, true);
			refuse_names(s, names.data, arena_printf(&s->a, "unknown key; it belongs "
				     "in %s, not in %s", others[i], section));
		}
		buf_release(&names);
	}
}

static bool is_shown(const struct opt *row)
{
	return !(row->flags & (OPT_HIDDEN | OPT_NO_CONFIG | OPT_POSITIONAL | OPT_LATER));
}

static const struct json_value *defaults_of(struct schema *s, const struct opt_set *set)
{
	struct buf json = { 0 };
	const struct json_value *v;

	opt_json(set, set->defaults, &json);
	v = config_tree_of(buf_str(&json), &s->a);
	buf_release(&json);
	return v;
}

/* An object with only these keys; a schema of its own, so that it has its own messages. */
static void begin_definition(struct schema *s, const char *name)
{
	json_member_object(&s->w, name);
	put_types(s, "object");
	put_expected(s, "an object");
	json_member_array(&s->w, "allOf");
	json_begin_object(&s->w);
}

static void end_definition(struct schema *s)
{
	json_end_object(&s->w);
	json_end_array(&s->w);
	json_end_object(&s->w);
}

static void refuse_others(struct schema *s)
{
	if (s->refused.len) {
		json_member_object(&s->w, "propertyNames");
		json_member_raw(&s->w, "allOf", str_of(arena_printf(&s->a, "[%s]", s->refused.data)));
		json_end_object(&s->w);
		buf_reset(&s->refused);
	}
	json_member_bool(&s->w, "additionalProperties", false);
	json_member_text(&s->w, "errorMessage", "unknown key");
}

static void put_include(struct schema *s)
{
	json_member_object(&s->w, "include");
	json_member_text(&s->w, "description", "Files with keys of this section alone; relative to the "
			 "folder of this file");
	json_put_members_raw(&s->w, STR(FILES));
	json_end_object(&s->w);
}

/* ---- sections ---- */

static void put_mode(struct schema *s)
{
	struct json_writer *w = &s->w;
	const char *all = config_modes(&s->a);
	struct str rest = str_of(all);

	json_member_object(w, "mode");
	json_member_text(w, "description", "Which bench verb's options this section has");
	json_member_array(w, "enum");
	while (rest.n)
		json_put_str(w, str_trim(str_cut(&rest, ',')));
	json_put_null(w);
	json_end_array(w);
	json_member_text(w, "default", experiment_mode_name(MODE_SERVE));
	put_expected(s, arena_printf(&s->a, "one of %s", all));
	json_end_object(w);
}

/* An option of the benchmark that is set elsewhere in an experiment. */
static void put_refused(struct schema *s, const char *name, const char *why)
{
	json_member_object(&s->w, name);
	json_member_bool(&s->w, "doNotSuggest", true);
	json_end_object(&s->w);
	refuse_names(s, any_spelling(s, name), arena_printf(&s->a, "cannot be set here; %s", why));
}

/* The rows of up to two sets as a definition; mode NULL: of a section without modes. */
static void put_section(struct schema *s, const char *definition, const char *section,
			const struct opt_set *const set[static 2],
			const enum experiment_mode *mode)
{
	struct json_writer *w = &s->w;

	begin_definition(s, definition);
	json_member_object(w, "properties");
	put_include(s);
	if (mode)
		put_mode(s);
	for (size_t k = 0; k < 2 && set[k]; k++) {
		const struct json_value *initial = defaults_of(s, set[k]);

		for (size_t i = 0; i < set[k]->n; i++) {
			const struct opt *row = &set[k]->row[i];
			const char *name = config_key(str_of(row->name), &s->a);
			const char *why = mode ? config_elsewhere(*mode, name) : NULL;

			if (k && config_row(set[0], str_of(name)))
				continue;
			if (why)
				put_refused(s, name, why);
			else if (is_shown(row) && k)
				put_reference(s, name, "benchmark.serve/allOf/0", name);
			else if (is_shown(row))
				put_option(s, section, row, config_get(initial, name));
		}
	}
	json_end_object(w);
	json_member_object(w, "patternProperties");
	for (size_t k = 0; k < 2 && set[k]; k++)
		for (size_t i = 0; i < set[k]->n; i++)
			if (is_shown(&set[k]->row[i]) &&
			    !(k && config_row(set[0], str_of(set[k]->row[i].name))))
				put_spellings(s, arena_printf(&s->a, "%s/allOf/0", definition),
					      config_key(str_of(set[k]->row[i].name), &s->a),
					      set[k]->row[i].kind == OPT_JSON);
	if (!mode || *mode == MODE_SERVE)
		put_elsewhere(s, section, set[0]);
	json_end_object(w);
	refuse_others(s);
	end_definition(s);
}

/* The mode selects one of the definitions. */
static void put_benchmark(struct schema *s)
{
	struct json_writer *w = &s->w;

	for (unsigned i = 0; i < MODE_COUNT; i++) {
		enum experiment_mode mode = (enum experiment_mode)i;
		const struct opt_set *const sets[2] = {
			config_bench_set(mode), mode == MODE_MULTI_TURN ? &serve_opt_set : NULL,
		};

		if (mode != MODE_STRUCTURED) /* it has those of serve */
			put_section(s, arena_printf(&s->a, "benchmark.%s",
				    experiment_mode_name(mode)), "benchmark", sets, &mode);
	}
	json_member_object(w, "benchmark");
	put_types(s, "object");
	put_expected(s, "an object");
	json_member_object(w, "properties");
	put_mode(s);
	json_end_object(w);
	json_member_array(w, "allOf");
	for (unsigned i = 0; i < MODE_COUNT; i++) {
		const char *name = experiment_mode_name((enum experiment_mode)i);

		json_begin_object(w);
		json_member_raw(w, "if", str_of(arena_printf(&s->a, "{%s\"properties\": {\"mode\": "
				"{\"enum\": [\"%s\"%s]}}}", i == MODE_SERVE ? "" :
				"\"required\": [\"mode\"], ", name, i == MODE_SERVE ? ", null" : "")));
		json_member_object(w, "then");
		json_member_text(w, "$ref", arena_printf(&s->a, "#/definitions/benchmark.%s",
				 i == MODE_STRUCTURED ? "serve" : name));
		json_end_object(w);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/* ---- servers ---- */

static void put_initial(struct schema *s, const struct engine_arg *arg)
{
	const char *text = engine_arg_initial(arg, 0);
	struct json_value *json;
	int64_t whole;
	double real;

	if (!text)
		return;
	if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		json_member_bool(&s->w, "default", strcmp(text, "true") == 0);
	else if ((arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN) &&
		 opt_human_int(str_of(text), &whole))
		json_member_int(&s->w, "default", whole);
	else if (arg->kind == ENGINE_REAL && opt_python_float(str_of(text), &real) &&
		 isfinite(real))
		json_member_f64(&s->w, "default", real);
	else if (arg->kind == ENGINE_JSON && json_parse(&s->a, str_of(text), &json, NULL) == 0)
		json_member_value(&s->w, "default", json);
	else
		json_member_text(&s->w, "default", text);
}

/* The versions that have it, and the default in earlier ones. */
static const char *about_arg(struct schema *s, const struct engine_arg *arg)
{
	struct buf text = { 0 };
	const char *out;
	char version[16];

	buf_add_text(&text, arg->about);
	if (arg->since) {
		engine_version_text(arg->since, version);
		buf_printf(&text, " vLLM %s and later.", version);
	}
	if (arg->until) {
		engine_version_text(arg->until, version);
		buf_printf(&text, " vLLM up to %s.", version);
	}
	for (const struct engine_earlier *e = arg->earlier; e && e->until; e++) {
		engine_version_text(e->until, version);
		buf_printf(&text, " Default up to %s: %s.", version, e->initial ? e->initial : "none");
	}
	out = arena_text(&s->a, buf_str(&text));
	buf_release(&text);
	return out;
}

static void put_words(struct schema *s, const struct engine_arg *arg, const char *expected)
{
	const char **words = arena_alloc(&s->a, (strlen(arg->choices) + 2) * sizeof(*words));
	struct str rest = str_of(arg->choices);
	size_t n = 0;

	while (rest.n)
		words[n++] = arena_text(&s->a, str_cut(&rest, ' '));
	if (arg->kind != ENGINE_LIST)
		put_choices(s, words, arg->flags & ENGINE_DASHED, expected);
}

static void put_arg(struct schema *s, const struct engine_arg *arg)
{
	bool is_whole = arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN;
	struct str known = str_of(arg->known ? arg->known : "");
	struct json_writer *w = &s->w;
	struct buf expected = { 0 };

	json_member_object(w, config_key(str_of(arg->name), &s->a));
	json_member_text(w, "description", about_arg(s, arg));
	engine_arg_expected(arg, &expected);
	if (*arg->choices && arg->kind != ENGINE_LIST) {
		put_words(s, arg, arena_printf(&s->a, "expected %s", expected.data));
	} else if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH) {
		put_types(s, "boolean string");
		json_member_text(w, "pattern", "^(true|false)$|" FILLED);
		put_expected(s, "true or false");
	} else if (is_whole || arg->kind == ENGINE_REAL) {
		put_number(s, is_whole, arena_printf(&s->a, "%s|" FILLED "%s%s%s",
			   is_whole ? DIGITS : DECIMAL, arg->kind == ENGINE_HUMAN ? "|" SIZE : "",
			   arg->flags & ENGINE_AUTO ? "|^[aA][uU][tT][oO]$" : "",
			   arg->flags & ENGINE_NONE ? "|^(None)?$" : ""), (struct range){
				   arg->min, arg->max, arg->flags & ENGINE_ABOVE,
				   arg->flags & ENGINE_BELOW,
			   }, expected.data);
	} else if (arg->kind == ENGINE_LIST) {
		put_types(s, "array string number boolean");
		put_expected(s, "a list");
	} else if (arg->kind == ENGINE_TEXT) {
		put_types(s, "string number");
		put_expected(s, "a text");
	}
	if (known.n && !*arg->choices) {
		json_member_array(w, "examples");
		while (known.n)
			json_put_str(w, str_cut(&known, ' '));
		json_end_array(w);
	}
	put_initial(s, arg);
	if (arg->flags & ENGINE_DEPRECATED || arg->until)
		json_member_text(w, "deprecationMessage", *arg->successor ?
				 arena_printf(&s->a, "deprecated; write %s", arg->successor) :
				 "deprecated");
	json_end_object(w);
	buf_release(&expected);
}

/* "tp" and the like: the names of vLLM's short options. */
static void put_short_names(struct schema *s, const char *definition, const struct engine_arg *arg)
{
	struct str rest = str_of(arg->also);

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (str_starts(word, STR("--")) || !str_starts(word, STR("-")))
			continue;
		put_reference(s, arena_printf(&s->a, "%.*s", (int)word.n - 1, word.p + 1), definition,
			      config_key(str_of(arg->name), &s->a));
	}
}

/* The keys of a server of this kind: its own keys, which "server" describes, and its arguments. */
static void put_arguments(struct schema *s, const char *definition, const struct opt_set *sim)
{
	const struct json_value *initial = sim ? defaults_of(s, sim) : NULL;
	struct json_writer *w = &s->w;

	json_member_object(w, definition);
	json_member_object(w, "properties");
	json_key(w, "include");
	json_put_bool(w, true);
	for (size_t i = 0; i < config_server_set.n; i++) {
		json_key(w, config_key(str_of(config_server_set.row[i].name), &s->a));
		json_put_bool(w, true);
	}
	for (size_t i = 0; sim && i < sim->n; i++) {
		const char *name = config_key(str_of(sim->row[i].name), &s->a);
		const struct engine_arg *arg = engine_arg_find(str_of(name));

		if (is_shown(&sim->row[i]) && !config_row(&config_server_set, str_of(name)) &&
		    !(arg && arg->kind == ENGINE_HUMAN))
			put_option(s, "sim", &sim->row[i], config_get(initial, name));
	}
	for (size_t i = 0; i < engine_arg_count; i++) {
		const char *name = config_key(str_of(engine_args[i].name), &s->a);
		const struct opt *row = config_row(sim, str_of(name));

		if (config_row(&config_server_set, str_of(name)))
			continue;
		if (!row || !is_shown(row) || engine_args[i].kind == ENGINE_HUMAN)
			put_arg(s, &engine_args[i]);
		put_short_names(s, definition, &engine_args[i]);
	}
	json_end_object(w);
	json_member_object(w, "patternProperties");
	for (size_t i = 0; i < engine_arg_count; i++) {
		const char *name = config_key(str_of(engine_args[i].name), &s->a);

		put_spellings(s, definition, name, engine_args[i].kind == ENGINE_JSON);
	}
	for (size_t i = 0; sim && i < sim->n; i++)
		if (is_shown(&sim->row[i]) && !engine_arg_find(str_of(sim->row[i].name)))
			put_spellings(s, definition, config_key(str_of(sim->row[i].name), &s->a),
				      sim->row[i].kind == OPT_JSON);
	for (size_t i = 0; i < config_server_set.n; i++)
		put_spellings(s, "server/allOf/0", config_key(str_of(config_server_set.row[i].name),
							     &s->a), false);
	put_elsewhere(s, "server", sim ? sim : &config_server_set);
	json_end_object(w);
	refuse_others(s);
	json_end_object(w);
}

/* The arguments of a server depend on its command; those of other programs are unknown. */
static void put_server(struct schema *s)
{
	static const char vllm[] =
		"{\"anyOf\": [{\"not\": {\"required\": [\"command\"]}}, {\"properties\": {\"command\": "
		"{\"type\": \"string\", \"pattern\": \"^(\\\\S*/)?vllm serve( |$)\"}}, \"required\": "
		"[\"command\"]}]}";
	static const char sim[] =
		"{\"properties\": {\"command\": {\"type\": \"string\", \"pattern\": "
		"\"^sim$|(^|/)profllm sim( |$)\"}}, \"required\": [\"command\"]}";
	const struct json_value *initial = defaults_of(s, &config_server_set);
	struct json_writer *w = &s->w;

	put_arguments(s, "vllm", NULL);
	put_arguments(s, "sim", s->sim);
	begin_definition(s, "server");
	json_member_object(w, "properties");
	put_include(s);
	for (size_t i = 0; i < config_server_set.n; i++) {
		const struct opt *row = &config_server_set.row[i];

		put_option(s, "server", row, config_get(initial, config_key(str_of(row->name), &s->a)));
	}
	json_end_object(w);
	json_end_object(w);
	for (size_t i = 0; i < 2; i++) {
		json_begin_object(w);
		json_member_raw(w, "if", str_of(i ? sim : vllm));
		json_member_raw(w, "then", i ? STR("{" REF("sim") "}") : STR("{" REF("vllm") "}"));
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/* ---- the file ---- */

static void put_top(struct schema *s, bool is_member)
{
	struct json_writer *w = &s->w;
	struct buf names = { 0 };

	json_member_object(w, "properties");
	for (size_t i = 0; i < N_TOP; i++) {
		if (is_member && top[i].is_suites)
			continue;
		json_member_object(w, top[i].name);
		json_member_text(w, "description", top[i].about);
		json_put_members_raw(w, str_of(top[i].json));
		json_end_object(w);
	}
	json_end_object(w);
	json_member_object(w, "patternProperties");
	if (!is_member) {
		json_key(w, "^x-");
		json_put_bool(w, true);
	}
	for (size_t i = 0; i < serve_opt_set.n; i++) {
		const char *name = config_key(str_of(serve_opt_set.row[i].name), &s->a);

		if (!config_root_nearest(str_of(name)))
			buf_printf(&names, "%s%s", names.len ? "|" : "", any_spelling(s, name));
	}
	json_key(w, arena_printf(&s->a, "^(%s)$", names.data));
	json_put_bool(w, true);
	json_end_object(w);
	refuse_names(s, names.data, "unknown key; it belongs in benchmark");
	refuse_others(s);
	buf_release(&names);
}

void config_schema(const struct opt_set *sim, struct buf *out)
{
	static const struct { const char *name; const struct opt_set *set; } plain[] = {
		{ "resources", &config_resources_set }, { "profiling", &config_profiling_set },
		{ "telemetry", &config_telemetry_set }, { "output", &config_output_set },
		{ "search", &config_search_set }, { "scheduler", &config_scheduler_set },
	};
	struct schema s = { .w = json_writer(out), .sim = sim };
	struct json_writer *w = &s.w;

	w->is_compact = w->is_raw_utf8 = true;
	json_begin_object(w);
	json_member_text(w, "$schema", "http://json-schema.org/draft-07/schema#");
	json_member_text(w, "title", "An experiment of profllm run");
	json_member_text(w, "type", "object");
	json_member_text(w, "errorMessage", "expected sections such as server and benchmark");
	json_member_array(w, "allOf");
	json_begin_object(w);
	put_top(&s, false);
	json_end_object(w);
	json_end_array(w);
	json_member_object(w, "definitions");
	begin_definition(&s, "experiment");
	put_top(&s, true);
	end_definition(&s);
	put_server(&s);
	put_benchmark(&s);
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		const struct opt_set *const sets[2] = { plain[i].set, NULL };

		put_section(&s, plain[i].name, plain[i].name, sets, NULL);
	}
	json_end_object(w);
	json_end_object(w);
	buf_add_char(out, '\n');
	buf_release(&s.refused);
	arena_release(&s.a);
}
