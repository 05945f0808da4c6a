/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.c - `profllm init`: a commented configuration for `profllm run`, from three answers: which
 * server, which model, what for. Answers not given by options are asked for on a terminal.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/json/write.h"
#include "core/json/yaml.h"
#include "experiment/suite/suite.h"

#define FILE_DEFAULT "experiment.yaml"
#define SIM "sim"
#define SIM_MODEL "meta-llama/Llama-3.1-8B-Instruct"
#define SCHEMA_FILE "experiment-config.schema.json"
#define ASKED_MAX 3 /* times that one question is asked */

struct init_opts { const char *file, *server, *model, *goal; bool force; };

static const char *const goal_names[] = { "run", "curve", "capacity", "compare", "nightly", NULL };

#define ROW(member, name, ...) OPT(struct init_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	ROW(file, "FILE", .flags = OPT_POSITIONAL,
	    .help = "the file to write, " FILE_DEFAULT " unless given; - writes to stdout"),
	ROW(server, "server", .arg = "WORDS|URL", .words = "command url base-url -s",
	    .help = "command that starts the server, such as 'vllm serve', or the URL of a running "
		    "server; sim is the simulated server, which needs no GPU"),
	ROW(model, "model", .arg = "NAME", .words = "-m",
	    .help = "the model of the server; for a URL it may be empty: what the server reports"),
	ROW(goal, "goal", .arg = "GOAL", .choices = goal_names, .words = "for profile -g",
	    .help = "run: one run; curve: latency at rising loads; capacity: the highest load within "
		    "limits; compare: two settings of the server; nightly: a run for cron or CI with "
		    "limits"),
	ROW(force, "force", .words = "overwrite -f", .help = "replace the file if it exists"),
};
static const struct init_opts defaults = { .file = FILE_DEFAULT };

const struct opt_set cmd_init_set = {
	.command = "init",
	.summary = "Writes the commented configuration of an experiment, ready for profllm run. What no "
		   "option says is asked for on a terminal.",
	.usage = "[FILE] [options]",
	.epilog = "Examples:\n"
		  "  profllm init\n"
		  "  profllm init first.yaml --server sim --model " SIM_MODEL " --goal run\n"
		  "  profllm init --server http://127.0.0.1:8000 --model '' --goal capacity",
	OPT_SET_OF(rows, defaults),
};

/* ---- what a file is made of ---- */

/*
 * load: keys of the benchmark. suite: what follows it. next: the words after "profllm run --config
 * FILE". needs_start: the question is about settings that only a server started here can change.
 */
struct goal {
	const char *title, *about, *load, *suite, *next;
	bool needs_start;
};

#define LENGTHS                                                                              \
	"  dataset_name: random         # made here; sharegpt, custom and others need a file\n" \
	"  random_input_len: 512        # tokens of each prompt\n"                             \
	"  random_output_len: 64        # tokens of each answer\n"                             \
	"  ignore_eos: true             # every answer has all of its tokens\n"

/* In the order of goal_names. */
static const struct goal goals[] = {
	{ "One run", "How fast is the server under a steady load?",
	  LENGTHS
	  "  num_prompts: 100\n"
	  "  request_rate: 10             # requests per second at random times; inf: all at once\n",
	  "",
	  " --output results.json", false },
	{ "A load curve", "How do latency and throughput change as more requests run at once?",
	  LENGTHS
	  "  duration: 10s                # of each load\n",
	  "\n# One run for each value, on one server.\n"
	  "matrix:\n"
	  "  benchmark.max_concurrency: [1, 2, 4, 8, 16, 32]\n",
	  " --output results.json && profllm bench plot results.json", false },
	{ "Capacity", "How many requests per second does the server carry within these limits?",
	  LENGTHS
	  "  duration: 15s                # of each load\n"
	  "  goodput: {ttft: 500, tpot: 50} # the limits in ms: first token, time per further token\n",
	  "\n# One run for each rate, on one server. The capacity is between the last rate that keeps the\n"
	  "# limits and the first that does not: the dashboard reads it off (Plan, Capacity). Add higher\n"
	  "# rates if all keep the limits, and rates between the two for a closer answer.\n"
	  "matrix:\n"
	  "  benchmark.request_rate: [5, 10, 20, 40, 80, 160]\n"
	  "\n# For one number with its interval, on the terminal: this in place of matrix, duration and\n"
	  "# goodput.\n"
	  "# search: {find: rate, slo: \"p99_ttft_ms<500,p99_tpot_ms<50\", budget: 10m}\n",
	  " --output results.json && profllm ingest results.json && profllm dashboard", false },
	{ "Compare two settings", "Is the server better with one setting than with the other?",
	  LENGTHS
	  "  num_prompts: 200\n"
	  "  max_concurrency: 64\n",
	  "\n# The two settings; any key of the server will do: max_num_seqs, tp, quantization.\n"
	  "matrix:\n"
	  "  server.max_num_batched_tokens: [1024, 8192]\n"
	  "\n# Each is measured three times, every time on a server of its own: only then does the\n"
	  "# comparison know how much runs differ by themselves. Five are better.\n"
	  "repeat: 3\n",
	  " --output results.json && profllm bench compare results.json --by "
	  "max_num_batched_tokens", true },
	{ "Nightly", "Does the server keep its limits today, and has it become slower?",
	  LENGTHS
	  "  seed: 0                      # the same prompts every night\n"
	  "  num_prompts: 200\n"
	  "  request_rate: 10\n",
	  "\nsuite: nightly\n"
	  "repeat: 3                      # trends and comparisons need more than one run\n"
	  "\n# A run that does not meet these makes the exit status 3, for cron and CI.\n"
	  "require:\n"
	  "  - p99_ttft_ms<=1000\n"
	  "  - p99_tpot_ms<=100\n"
	  "  - failed<=0\n"
	  "\nprovenance:                    # what the build is known by in trends\n"
	  "  engine_commit: ${ENGINE_COMMIT:-unknown}\n",
	  " --output \"$(date +%F).json\"; kept=$?; profllm ingest \"$(date +%F).json\" && profllm trends"
	  " --metric p99_ttft_ms --metric median_tpot_ms --allow-unjudged && test $kept = 0", false },
};
_Static_assert(sizeof(goals) / sizeof(*goals) + 1 == sizeof(goal_names) / sizeof(*goal_names),
	       "a goal for each name");

static size_t goal_place(const char *name)
{
	size_t i = 0;

	while (strcmp(goal_names[i], name) != 0)
		i++;
	return i;
}

static bool is_url(const char *server)
{
	return strstr(server, "://") != NULL;
}

/* Whether YAML reads the unquoted text as itself, also before a comment. */
static bool is_plain(const char *text, struct err *e)
{
	struct arena a = { 0 };
	struct json_value *v;
	bool is_same = !strpbrk(text, "#$\n") && yaml_parse(&a, str_of(text), &v, e) == 0 &&
		       v->kind == JSON_STRING && str_is(v->text, text);

	arena_release(&a);
	return is_same;
}

/* Appends a text as YAML, with ${ escaped. */
static void add_value(const char *text, struct buf *out)
{
	struct buf plain = { 0 };
	struct err e = { 0 };

	for (const char *c = text; *c; c++) {
		if (*c == '$' && (c[1] == '{' || c[1] == '$'))
			buf_add_char(&plain, '$');
		buf_add_char(&plain, *c);
	}
	if (is_plain(text, &e))
		buf_add_str(out, buf_str(&plain));
	else
		json_quote(out, buf_str(&plain), true);
	buf_release(&plain);
}

/* " key: VALUE", and a comment in a common column. */
static void add_line(const char *key, const char *value, const char *comment, struct buf *out)
{
	size_t before = out->len;

	buf_printf(out, "  %s: ", key);
	add_value(value, out);
	do
		buf_add_char(out, ' ');
	while (out->len - before < 31);
	buf_printf(out, "# %s\n", comment);
}

static void add_server(const struct init_opts *o, struct buf *out)
{
	bool is_sim = strcmp(o->server, SIM) == 0;

	buf_add_text(out, "\nserver:\n");
	if (is_url(o->server))
		add_line("url", o->server, "a server that runs; it is neither started nor ended", out);
	else
		add_line("command", o->server, is_sim ? "the simulated server; vllm serve starts a real "
			 "one" : "what starts it; its arguments are keys here, as tp below", out);
	if (*o->model)
		add_line("model", o->model, "its name, as --model has it", out);
	else
		buf_add_text(out, "  # model: NAME               # if the server has several\n");
	if (!is_sim && !is_url(o->server))
		buf_add_text(out, "  # tp: 2                      # GPUs of the server; free ones are found and "
			     "held\n");
}

/* The editor's schema, installed or in the build folder; NULL: neither. */
static const char *schema_path(struct arena *a)
{
	static const char *const places[] = { "../share/profllm/" SCHEMA_FILE, SCHEMA_FILE };
	char program[PATH_MAX], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n < 0)
		return NULL;
	program[n] = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *path = file_beside(program, places[i]);
		bool is_there = realpath(path, real) != NULL;

		free(path);
		if (is_there)
			return arena_text(a, str_of(real));
	}
	return NULL;
}

static const char *tokenizer_of(const struct init_opts *o)
{
	return strcmp(o->server, SIM) == 0 ?
	       "  tokenizer: sim               # the simulated server's; leave this out for a real model\n" :
	       "  # tokenizer: PATH            # if the model's own is not found: a folder or a model's name\n";
}

static void add_file(const struct init_opts *o, const char *shown, struct arena *a, struct buf *out)
{
	const struct goal *goal = &goals[goal_place(o->goal)];
	const char *schema = schema_path(a);

	if (schema)
		buf_printf(out, "# yaml-language-server: $schema=%s\n", schema);
	buf_printf(out, "# %s: %s\n#\n#   profllm run --config %s --dry-run\n#   profllm run --config "
		   "%s%s\n#\n# All keys: profllm run --print-keys. A value for one run: --set "
		   "benchmark.num_prompts=20\nname: %s\n", goal->title, goal->about, shown, shown,
		   goal->next, o->goal);
	add_server(o, out);
	buf_printf(out, "\nbenchmark:\n%s%s%s", tokenizer_of(o), goal->load, goal->suite);
}

/* ---- questions ---- */

static bool is_in_path(const char *program)
{
	struct str rest = str_of(getenv("PATH") ? getenv("PATH") : "");
	bool is_there = false;

	while (rest.n && !is_there) {
		struct buf path = { 0 };

		buf_add_str(&path, str_cut(&rest, ':'));
		buf_printf(&path, "/%s", program);
		is_there = access(path.data, X_OK) == 0;
		buf_release(&path);
	}
	return is_there;
}

/* The typed line, or otherwise if it is empty. NULL: there is no more input. */
static const char *ask(const char *question, const char *otherwise, struct arena *a)
{
	char *line = NULL;
	size_t cap = 0;
	struct str typed;

	printf("%s [%s]: ", question, otherwise);
	fflush(stdout);
	if (getline(&line, &cap, stdin) < 0) {
		free(line);
		putchar('\n');
		return NULL;
	}
	typed = str_trim(str_of(line));
	otherwise = typed.n ? arena_text(a, typed) : otherwise;
	free(line);
	return otherwise;
}

/* A goal by its name or its number. */
static const char *goal_meant(const char *typed)
{
	size_t n = sizeof(goals) / sizeof(*goals);

	for (size_t i = 0; i < n; i++)
		if (strcmp(typed, goal_names[i]) == 0 ||
		    (typed[0] == (char)('1' + i) && !typed[1]))
			return goal_names[i];
	return NULL;
}

static const char *ask_goal(struct arena *a)
{
	printf("Goals:\n");
	for (size_t i = 0; i < sizeof(goals) / sizeof(*goals); i++)
		printf("  %zu %-9s %s\n", i + 1, goal_names[i], goals[i].about);
	for (unsigned i = 0; i < ASKED_MAX; i++) {
		const char *typed = ask("Goal", goal_names[0], a);

		if (!typed || goal_meant(typed))
			return typed ? goal_meant(typed) : NULL;
		printf("'%s' is not a goal; type a number from 1 to %zu or a name.\n", typed,
		       sizeof(goals) / sizeof(*goals));
	}
	return NULL;
}

/* The options that still need an answer, with example values; empty: none. */
static const char *missing_in(const struct init_opts *o, struct arena *a)
{
	bool has_model = o->model || !o->server || is_url(o->server) ||
			 strcmp(o->server, SIM) == 0;

	return arena_printf(a, "%s%s%s", o->server ? "" : " --server " SIM,
			    has_model ? "" : " --model " SIM_MODEL, o->goal ? "" : " --goal run");
}

static int answer(struct init_opts *o, struct arena *a, struct err *e)
{
	const char *missing = missing_in(o, a), *model;

	if (*missing && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return err_set(e, ERR_USAGE, "no terminal is available to ask for what is missing; add it, "
			       "such as%s", missing);
	if (!o->server)
		o->server = ask("Server: a command that starts it, or the URL of one that runs (sim: "
				"simulated, needs no GPU)", is_in_path("vllm") ? "vllm serve" : SIM, a);
	if (!o->server)
		return err_set(e, ERR_USAGE, "--server: no answer; nothing was written");
	model = is_url(o->server) ? "" : SIM_MODEL;
	if (!o->model)
		o->model = !*missing ? model : ask(is_url(o->server) ?
			   "Model (empty: what the server reports)" : "Model", model, a);
	if (!o->model)
		return err_set(e, ERR_USAGE, "--model: no answer; nothing was written");
	if (!o->goal)
		o->goal = ask_goal(a);
	return o->goal ? 0 : err_set(e, ERR_USAGE, "--goal: no answer; nothing was written");
}

/* ---- what cannot be ---- */

/* "localhost:8000" */
static bool is_address(const char *server)
{
	const char *colon = strrchr(server, ':');

	return colon && colon[1] && strspn(colon + 1, "0123456789/") == strlen(colon + 1) &&
	       !strpbrk(server, " \t");
}

static int check_file(const struct init_opts *o, struct err *e)
{
	struct str file = str_of(o->file);

	for (size_t i = 0; i <= file.n; i++)
		if (!file.n || (i < file.n && (unsigned char)file.p[i] < ' '))
			return err_set(e, ERR_USAGE, "FILE: expected a name without control characters, "
				       "got %s", file.n ? "one with them" : "an empty text");
	if (str_ends(file, STR(".json")))
		return err_set(e, ERR_USAGE, "%s: expected a name that ends in .yaml, since JSON has no "
			       "comments", o->file);
	if (file_is_dir(o->file))
		return err_set(e, ERR_USAGE, "%s: is a folder; name a file in it", o->file);
	if (strcmp(o->file, "-") != 0 && !o->force && file_exists(o->file))
		return err_set(e, ERR_USAGE, "%s exists already; --force replaces it, or name another "
			       "file", o->file);
	return 0;
}

static int check_answers(const struct init_opts *o, struct arena *a, struct err *e)
{
	char **words;

	if (!*o->server)
		return err_set(e, ERR_USAGE, "--server: expected a command or a URL, got an empty text");
	if (is_address(o->server) && !is_url(o->server))
		return err_set(e, ERR_USAGE, "--server %s: expected a URL such as http://%s, or a command",
			       o->server, o->server);
	if (!is_url(o->server) && words_split(str_of(o->server), a, &words, NULL, e) < 0)
		return err_wrap(e, "--server %s", o->server);
	if (!*o->model && !is_url(o->server))
		return err_set(e, ERR_USAGE, "--model: expected the model that the server is to load, "
			       "got an empty text");
	if (goals[goal_place(o->goal)].needs_start && is_url(o->server))
		return err_set(e, ERR_USAGE, "--goal %s: it changes settings of the server, which must be "
			       "started for that; give --server a command, or compare two servers "
			       "that run with profllm bench ab", o->goal);
	return 0;
}

/* The content of the file is checked like `profllm run` will check it. */
static int check_text(struct str text, const char *name, struct arena *a, struct err *e)
{
	const struct config_know know = { .sim = cmd_sim_options() };
	const struct suite_opts opts = { .output = "results.json" };
	struct config_findings f = { 0 };
	struct suite suite = { 0 };
	struct config c;

	if (config_parse(text, name, NULL, 0, a, &c, e) < 0)
		return -1;
	if (suite_expand(&c, &know, &opts, &suite, &f) < 0)
		err_set(e, ERR_USAGE, "%.*s; nothing was written", (int)f.errors.len - 1,
			f.errors.data);
	if (suite.n)
		suite_release(&suite);
	config_findings_release(&f);
	return e->code ? -1 : 0;
}

/* As a shell reads it. */
static const char *shell_word(const char *text, struct arena *a)
{
	struct buf out = { 0 };
	const char *word;

	words_quote(&out, str_of(text));
	word = arena_text(a, buf_str(&out));
	buf_release(&out);
	return word;
}

int cmd_init(struct cli *cli, void *values)
{
	struct init_opts *o = values;
	struct arena *a = &cli->arena;
	const char *shown = shell_word(o->file, a);
	struct buf text = { 0 };
	int rc = -1;

	if (check_file(o, &cli->err) < 0 || answer(o, a, &cli->err) < 0 ||
	    check_answers(o, a, &cli->err) < 0)
		return -1;
	add_file(o, strcmp(o->file, "-") == 0 ? FILE_DEFAULT : shown, a, &text);
	if (check_text(buf_str(&text), o->file, a, &cli->err) < 0)
		goto done;
	if (strcmp(o->file, "-") == 0) {
		cli_out(buf_str(&text));
		rc = 0;
		goto done;
	}
	rc = file_write_atomic(o->file, buf_str(&text), &cli->err);
	if (rc < 0)
		goto done;
	buf_reset(&text);
	buf_printf(&text, "Wrote %s.\nPlan: profllm run --config %s --dry-run\nNext: profllm run --config "
		   "%s%s\n", o->file, shown, shown, goals[goal_place(o->goal)].next);
	cli_out(buf_str(&text));
done:
	buf_release(&text);
	return rc;
}
