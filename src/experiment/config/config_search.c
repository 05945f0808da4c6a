/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_search.c - see config_internal.h: `search`, which looks for an experiment's largest load,
 * and `profile`, a set of defaults for a purpose. `profile` is at the top and not in benchmark,
 * where vLLM's option of that name is the engine's profiler.
 *
 * A profile is a small configuration that the file is merged over, so a key of the file takes
 * precedence and --print-config shows the result.
 */
#include <math.h>
#include <string.h>

#include "bench/sweep/slo.h"
#include "core/schema/schema.h"
#include "experiment/config/config_internal.h"
#include "out/compare/compare.h"
#include "results/decide/halving.h"

static const char *const loads[] = { "rate", "concurrency", NULL };

#define S(member, name, ...) OPT(struct experiment_search, member, name, __VA_ARGS__)
static const struct opt search_rows[] = {
	S(find, "find", .arg = "LOAD", .choices = loads,
	  .help = "the largest request rate, or number of requests at once, at which slo is kept, of "
		  "each experiment"),
	S(slo, "slo", .arg = "LIMITS",
	  .help = "limits of find, as bench serve --slo has them: p99_ttft_ms<200,p99_tpot_ms<30"),
	S(precision, "precision", .arg = "PERCENT", .flags = OPT_MIN_EXCLUSIVE, .max = 99,
	  .help = "half width of the 95 % interval at which find ends"),
	S(level_s, "level_seconds", .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE,
	  .max = 86400,
	  .help = "shortest measuring time of a level of find"),
	S(best, "best", .arg = "METRIC",
	  .help = "the experiment of the suite with the best value of this metric, by successive "
		  "halving: output_throughput; highest or lowest after it says what is better"),
	S(first, "first", .arg = "PROMPTS|SECONDS", .flags = OPT_MIN_EXCLUSIVE, .max = 1e9,
	  .help = "length of the first round of best, in prompts, or in seconds where "
		  "benchmark.duration is given; otherwise a share of the benchmark's length"),
	S(eta, "eta", .arg = "N", .flags = OPT_MIN_EXCLUSIVE, .min = 1, .max = 100,
	  .help = "factor between the rounds of best: each is about this many times as long as the "
		  "one before and has about this many times fewer experiments"),
	S(share, "share", .arg = "PERCENT", .flags = OPT_MIN_EXCLUSIVE, .max = 100,
	  .help = "load that best may use, as a share of all experiments at full length; more if a "
		  "few experiments need it"),
	S(budget_s, "budget", .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE, .max = 1e7,
	  .help = "time limit: find has 1200 for each experiment, best has what share allows; a "
		  "search that reaches it gives the best answer so far"),
};
static const struct experiment_search search_defaults = {
	.precision = 3, .level_s = CAPACITY_LEVEL_S, .eta = HALVING_ETA,
	.share = 100 * HALVING_SHARE,
};
const struct opt_set config_search_set = {
	.command = "search", .row = search_rows, .bytes = sizeof(struct experiment_search),
	.n = sizeof(search_rows) / sizeof(*search_rows), .defaults = &search_defaults,
};

/* ---- what is given and does not fit ---- */

/* Refuses keys that belong to the other kind of search. */
static void refuse_others(struct config_reader *r, const struct json_value *search)
{
	static const char *const of_find[] = { "slo", "precision", "level_seconds" };
	static const char *const of_best[] = { "first", "eta", "share" };
	bool is_find = config_get(search, "find") != NULL;
	const char *const *key = is_find ? of_best : of_find;

	for (size_t i = 0; i < 3; i++)
		if (config_get(search, key[i]))
			config_complain_key(r->c, r->f, config_get(search, key[i]),
					    arena_printf(r->a, "search.%s", key[i]),
					    "it belongs to a search with %s",
					    is_find ? "best" : "find");
}

/*
 * The option that find varies must not be given; bench/sweep/find.h refuses others without meaning.
 */
static void check_load(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *bench = config_get(tree, "benchmark");
	bool is_rate = strcmp(r->x->search.find, "rate") == 0;
	const struct { const char *key, *why; } no[] = {
		{ is_rate ? "request_rate" : "max_concurrency", "it is what search.find looks for" },
		{ is_rate ? "max_concurrency" : "request_rate", is_rate ?
		  "it makes requests wait in the client, where no limit counts their waiting; "
		  "search: {find: concurrency} finds the largest value" : "it limits the load that search.find "
		  "looks for" },
		{ "duration", "a search measures as long as it needs; search.budget limits it" },
		{ "num_prompts", "a search sends as many prompts as it needs; search.budget limits it" },
	};

	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
		const struct json_value *v = config_get(bench, no[i].key);
		bool is_free = i == 1 && v && isinf(r->x->serve.request_rate) && !is_rate;
		const char *path = arena_printf(r->a, "benchmark.%s", no[i].key);

		if (v && i < 3 && !is_free)
			config_complain_key(r->c, r->f, v, path, "%s", no[i].why);
		else if (v && i == 3)
			config_note(r->c, r->f, v, path, "no effect; %s", no[i].why);
	}
}

static void check_find(struct config_reader *r, const struct json_value *tree,
		       const struct json_value *search)
{
	struct err e = { 0 };
	struct slo slo;

	if (r->x->mode != MODE_SERVE)
		config_complain(r->c, r->f, config_get(search, "find"), "search.find",
				"it needs benchmark.mode serve, whose requests are single ones");
	else if (!r->x->search.slo)
		config_complain(r->c, r->f, config_get(search, "find"), "search.find",
				"slo, the limits to keep, is missing; such as slo: "
				"p99_ttft_ms<200,p99_tpot_ms<30");
	else if (slo_parse("slo", r->x->search.slo, r->a, &slo, &e) < 0)
		config_complain(r->c, r->f, config_get(search, "slo"), "search.slo", "%s",
				strncmp(e.text, "slo: ", 5) == 0 ? e.text + 5 : e.text);
	else
		check_load(r, tree);
	if (config_get(tree, "require"))
		config_complain_key(r->c, r->f, config_get(tree, "require"), "require",
				    "a search for the largest load has search.slo as its limits");
}

void config_search(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *search = config_object(r, tree, "search");
	struct experiment_search *out = &r->x->search;
	size_t before = r->f->n_errors;

	config_section(r, search, "search", &config_search_set, out, NULL, NULL);
	if (!search || r->f->n_errors > before)
		return;
	if (!out->find == !out->best)
		config_complain(r->c, r->f, search, "search", "expected one of find (the largest load "
				"within limits) and best (the best experiment of the suite)%s",
				out->find ? ", not both" : "");
	else
		refuse_others(r, search);
	if (r->f->n_errors == before && out->find)
		check_find(r, tree, search);
	else if (r->f->n_errors == before)
		config_complain(r->c, r->f, config_get(search, "best"), "search.best", "it needs a "
				"suite to search in: add matrix or experiments");
}

void config_suite_search(const struct config *c, struct arena *a, struct experiment_search *out,
			 struct config_findings *f)
{
	struct experiment x = { .name = "" };
	struct config_reader r = { .c = c, .a = a, .f = f, .x = &x };
	const struct json_value *search = config_get(c->tree, "search");
	const struct json_value *best = config_get(search, "best");
	size_t before = f->n_errors;
	struct err e = { 0 };
	const char *key;
	bool is_highest;

	*out = (struct experiment_search){ 0 };
	if (!best)
		return;
	config_section(&r, search, "search", &config_search_set, out, NULL, NULL);
	if (config_get(search, "find"))
		config_complain(c, f, search, "search", "expected one of find (the largest load within "
				"limits) and best (the best experiment of the suite), not both");
	else
		refuse_others(&r, search);
	if (f->n_errors == before && config_best_metric(out->best, a, &key, &is_highest, &e) < 0)
		config_complain(c, f, best, "search.best", "%s", e.text);
}

/* ---- the metric of best ---- */

int config_best_metric(const char *text, struct arena *a, const char **key, bool *is_highest,
		       struct err *e)
{
	struct str rest = str_of(text), name = str_trim(str_cut(&rest, ' '));
	struct str word = str_trim(rest);
	const struct schema_field *field;
	bool is_high = str_is(word, "highest"), is_low = str_is(word, "lowest");

	*key = arena_text(a, name);
	if (gate_check_key(*key, e) < 0)
		return -1;
	if (word.n && !is_high && !is_low)
		return err_set(e, ERR_USAGE, "'%.80s': expected highest or lowest after the metric, got "
			       "'%.*s'", text, (int)(word.n < 40 ? word.n : 40), word.p);
	field = schema_field_find(*key);
	if (!word.n && (!field || field->better == SCHEMA_NONE))
		return err_set(e, ERR_USAGE, "'%.80s': say what is better: \"%s highest\" or \"%s "
			       "lowest\"", text, *key, *key);
	*is_highest = word.n ? is_high : field->better == SCHEMA_HIGHER;
	return 0;
}

/* ---- profiles ---- */

static const struct { const char *name, *about, *config; } profiles[] = {
	{ "throughput", "all requests are there at once", "{\"benchmark\": {\"num_prompts\": 1000, "
	  "\"request_rate\": \"inf\", \"num_warmups\": 4}}" },
	{ "latency", "one request at a time", "{\"benchmark\": {\"num_prompts\": 100, "
	  "\"max_concurrency\": 1, \"num_warmups\": 4}}" },
	{ "capacity", "the largest rate within limits", "{\"search\": {\"find\": \"rate\", \"slo\": "
	  "\"p99_ttft_ms<1000,p99_tpot_ms<50\"}}" },
	{ "soak", "a steady load for an hour", "{\"benchmark\": {\"duration\": 3600, "
	  "\"max_concurrency\": 16, \"num_warmups\": 4}, \"telemetry\": {\"interval_s\": 5}}" },
};
#define N_PROFILES (sizeof(profiles) / sizeof(*profiles))

/* The profile without keys that contradict the file's. */
static const struct json_value *without_rivals(struct config_reader *r,
					       const struct json_value *profile,
					       const struct json_value *tree)
{
	static const char *const rivals[][2] = {
		{ "duration", "num_prompts" }, { "num_prompts", "duration" },
		{ "request_rate", "max_concurrency" },
	};
	const struct json_value *own = config_get(tree, "benchmark");
	const struct json_value *bench = json_get(profile, "benchmark");
	struct err e;

	for (size_t i = 0; bench && i < sizeof(rivals) / sizeof(*rivals); i++)
		if (config_get(own, rivals[i][0]))
			bench = config_without(r->c, bench, rivals[i][1]);
	if (config_get(config_get(tree, "search"), "best"))
		profile = config_without(r->c, profile, "search");
	return bench ? config_put(r->c, profile, "benchmark", bench, &e) : profile;
}

const struct json_value *config_profiled(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *v = config_get(tree, "profile");
	const struct json_value *mode = config_get(config_get(tree, "benchmark"), "mode");
	const char *all = "";

	for (size_t i = 0; v && i < N_PROFILES; i++) {
		all = arena_printf(r->a, "%s%s%s", all, i ? ", " : "", profiles[i].name);
		if (v->kind != JSON_STRING || !str_is(v->text, profiles[i].name))
			continue;
		if (mode && !str_is(json_text(mode, STR("")), "serve")) {
			config_complain(r->c, r->f, v, "profile", "profiles are for benchmark.mode "
					"serve; remove one of the two");
			return tree;
		}
		return config_merge(r->c, without_rivals(r, config_tree_of(
				    str_of(profiles[i].config), r->a), tree), tree);
	}
	if (v)
		config_complain(r->c, r->f, v, "profile", "expected one of %s, got %s%s", all,
				config_got(v, r->a),
				v->kind == JSON_TRUE || v->kind == JSON_OBJECT ?
				"; the engine's profiler is `profiling`" : "");
	return tree;
}
