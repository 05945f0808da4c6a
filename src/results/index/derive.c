/* SPDX-License-Identifier: Apache-2.0 */
/* derive.c - see derive.h; names, labels and units are generated from schema/columns.json. */
#include "results/index/derive.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NAME_BYTES_MAX 64
#define ROLES_MAX 16       /* server roles of one run; more are not counted */
#define WORKLOAD_BYTES 512

const struct derived_column derived_columns[] = {
#define DERIVED(...) { __VA_ARGS__ },
#include "results/index/columns_rows.h"
#undef DERIVED
};
const size_t derived_column_count = COUNT(derived_columns);

const struct derived_column *derived_column(struct str name)
{
	for (size_t i = 0; i < COUNT(derived_columns); i++)
		if (str_is(name, derived_columns[i].name))
			return &derived_columns[i];
	return NULL;
}

/* ---- what the formulas look at ---- */

#define INPUTS(X) \
	X(GPUS, "gpus") X(GPU_COUNT, "derived.gpu_count") X(NUM_GPUS_TAG, "tags.num_gpus") \
	X(GPU_COUNT_TAG, "tags.gpu_count") X(MACHINE_GPUS, "hardware.gpus") \
	X(TP_TAG, "tags.tp") X(PP_TAG, "tags.pp") X(DP_TAG, "tags.dp") \
	X(SIM_GPU, "server.gpu") X(GPU, "hardware.gpu") X(GPU_TYPE, "gpu_type") \
	X(GPU_TAG, "tags.gpu") X(GPU_MODEL_TAG, "tags.gpu_model") X(GPU_TYPE_TAG, "tags.gpu_type") \
	X(OUTPUT, "output_throughput") X(TOTAL, "total_token_throughput") \
	X(TPOT, "median_tpot_ms") X(P99_TPOT, "p99_tpot_ms") X(E2EL, "median_e2el_ms") \
	X(TTFT, "median_ttft_ms") X(OUTPUT_TOKENS, "total_output_tokens") \
	X(INPUT_TOKENS, "total_input_tokens") X(COMPLETED, "completed") \
	X(POWER, "system.power_mean_w") X(CONCURRENCY, "benchmark.max_concurrency") \
	X(RATE, "benchmark.request_rate") X(BATCH, "benchmark.batch_size") \
	X(MODEL, "server.model") X(CLIENT_MODEL, "benchmark.model") X(MODE, "mode") \
	X(DATASET, "benchmark.dataset_name") X(OTHER_DATASET, "benchmark.dataset") \
	X(DATASET_PATH, "benchmark.dataset_path") X(HF_NAME, "benchmark.hf_name") \
	X(INPUT_LEN, "benchmark.input_len") X(OUTPUT_LEN, "benchmark.output_len") \
	X(ISL_TAG, "tags.isl") X(OSL_TAG, "tags.osl") \
	X(INPUT_DIST, "benchmark.random_input_len_dist") \
	X(OUTPUT_DIST, "benchmark.random_output_len_dist") \
	X(RANGE, "benchmark.random_range_ratio") X(PREFIX, "benchmark.random_prefix_len") \
	X(CACHE_RATIO, "benchmark.random_cache_ratio") \
	X(CACHE_HITS, "benchmark.random_cache_hit_fraction") \
	X(REPEATED_LEN, "benchmark.prefix_repetition_prefix_len") \
	X(SUFFIX_LEN, "benchmark.prefix_repetition_suffix_len") \
	X(PREFIXES, "benchmark.prefix_repetition_num_prefixes") \
	X(MULTI_TURN, "benchmark.multi_turn") X(TURNS, "benchmark.multi_turn_num_turns") \
	X(TURNS_DIST, "benchmark.multi_turn_turns_dist") X(SPEEDUP, "benchmark.speedup") \
	X(CONFIG_HASH, "config_hash") X(STATUS, "status") X(VERDICT, "verdict") X(FAILED, "failed") \
	X(COMMIT, "provenance.engine_commit") X(BUILD, "provenance.build") \
	X(COMMIT_TAG, "tags.commit") X(ENGINE_COMMIT_TAG, "tags.engine_commit") \
	X(ENGINE, "environment.server.kind") X(ENGINE_VERSION, "environment.server.version") \
	X(VERSION, "server.version") X(VERSION_TAG, "tags.version") \
	X(ENGINE_VERSION_TAG, "tags.engine_version") X(DRIVER, "environment.driver") \
	X(CPU, "hardware.cpu.model") X(CPU_THREADS, "hardware.cpu.threads") \
	X(MEMORY, "hardware.memory.total_bytes")

enum input {
#define X(id, name) IN_##id,
	INPUTS(X)
#undef X
	IN_COUNT,
};
static const char *const input_name[IN_COUNT] = {
#define X(id, name) name,
	INPUTS(X)
#undef X
};

/* Inputs by the length of their name: the first one, and the next one of the same length. */
static uint8_t first_of[NAME_BYTES_MAX], next_of[IN_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void sort_inputs(void)
{
	memset(first_of, IN_COUNT, sizeof(first_of));
	for (size_t i = 0; i < IN_COUNT; i++) {
		size_t n = strlen(input_name[i]);

		assert(n < NAME_BYTES_MAX);
		next_of[i] = first_of[n];
		first_of[n] = (uint8_t)i;
	}
}

/* Servers of one role: "server", "prefill", "decode". A size that is unknown is 0. */
struct role_of_servers { struct str group; double servers, tp, pp, dp; };

struct inputs {
	struct value v[IN_COUNT];
	struct role_of_servers role[ROLES_MAX];
	size_t n_roles;
	const struct row *row;
};

static struct role_of_servers *role_of(struct inputs *in, struct str group)
{
	for (size_t i = 0; i < in->n_roles; i++)
		if (str_eq(in->role[i].group, group))
			return &in->role[i];
	if (in->n_roles == ROLES_MAX)
		return NULL;
	in->role[in->n_roles] = (struct role_of_servers){ .group = group };
	return &in->role[in->n_roles++];
}

/* --metadata keeps its values as texts, so that a text may be a number, too. */
static double positive(struct value v)
{
	if (v.kind == VALUE_TEXT && str_to_f64(v.text, &v.number))
		v.kind = VALUE_NUMBER;
	return v.kind == VALUE_NUMBER && isfinite(v.number) && v.number > 0 ? v.number : 0;
}

/* ROLE.servers and ROLE.*_parallel_size; of benchmark and tags they mean something else. */
static void take_size(struct inputs *in, const struct cell *c)
{
	static const char *const size[] = {
		"servers", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
	};
	struct str rest = c->column, group = str_cut(&rest, '.');
	struct role_of_servers *role;
	double *to[4];

	if (str_is(group, "benchmark") || str_is(group, "tags") || str_is(group, "system"))
		return;
	for (size_t i = 0; i < COUNT(size); i++) {
		if (!str_is(rest, size[i]))
			continue;
		role = role_of(in, group);
		if (!role)
			return;
		to[0] = &role->servers;
		to[1] = &role->tp;
		to[2] = &role->pp;
		to[3] = &role->dp;
		*to[i] = positive(c->value);
	}
}

static void take(struct inputs *in, const struct row *r)
{
	pthread_once(&once, sort_inputs);
	in->row = r;
	for (size_t i = 0; i < r->n; i++) {
		const struct cell *c = &r->cell[i];
		struct str name = c->column;

		if (!name.n || name.n >= NAME_BYTES_MAX)
			continue;
		for (size_t k = first_of[name.n]; k < IN_COUNT; k = next_of[k])
			if (memcmp(input_name[k], name.p, name.n) == 0 && !in->v[k].kind)
				in->v[k] = c->value;
		if ((name.p[name.n - 1] == 's' && str_ends(name, STR(".servers"))) ||
		    (name.p[name.n - 1] == 'e' && str_ends(name, STR("_parallel_size"))))
			take_size(in, c);
	}
}

static double number(const struct inputs *in, enum input at)
{
	return positive(in->v[at]);
}

static struct str text(const struct inputs *in, enum input at)
{
	return in->v[at].kind == VALUE_TEXT ? in->v[at].text : STR("");
}

/* A number and the rule that gave it. */
struct ruled { double v; const char *from; };

static struct ruled first_above_0(const struct ruled *rule, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rule[i].v > 0)
			return rule[i];
	return (struct ruled){ 0 };
}

/* ---- GPUs ---- */

static bool is_vendor(struct str word)
{
	static const char *const vendor[] = {
		"nvidia", "amd", "intel", "instinct", "tesla", "geforce", "corporation",
	};

	for (size_t i = 0; i < COUNT(vendor); i++)
		if (str_eq_nocase(word, str_of(vendor[i])))
			return true;
	return false;
}

/* "NVIDIA H100 80GB HBM3" as "h100-80gb-hbm3". */
static struct str gpu_model(const struct inputs *in, struct arena *a)
{
	static const enum input from[] = { IN_SIM_GPU, IN_GPU, IN_GPU_TYPE, IN_GPU_TAG,
					   IN_GPU_MODEL_TAG, IN_GPU_TYPE_TAG };

	for (size_t i = 0; i < COUNT(from); i++) {
		struct str all = text(in, from[i]);
		char *out = arena_alloc(a, all.n + 1);
		size_t n = 0, end;

		for (size_t at = 0; at < all.n; at = end + 1) {
			for (end = at; end < all.n && !strchr(" _-", all.p[end]); end++)
				;
			if (end == at || is_vendor((struct str){ all.p + at, end - at }))
				continue;
			if (n)
				out[n++] = '-';
			for (size_t k = at; k < end; k++)
				out[n++] = all.p[k] >= 'A' && all.p[k] <= 'Z' ?
					(char)(all.p[k] + 'a' - 'A') : all.p[k];
		}
		if (n)
			return (struct str){ out, n };
	}
	return STR("");
}

static double sizes(const struct role_of_servers *r)
{
	return (r->tp > 0 ? r->tp : 1) * (r->pp > 0 ? r->pp : 1) * (r->dp > 0 ? r->dp : 1);
}

static bool has_size(const struct role_of_servers *r)
{
	return r->tp > 0 || r->pp > 0 || r->dp > 0;
}

/* Servers that pass on or keep and do not compute. */
static bool is_without_gpu(struct str group)
{
	return str_is(group, "proxy") || str_is(group, "cache") || str_is(group, "router");
}

/* Over all roles whose servers were started; 0: their sizes are unknown. */
static double gpus_of_servers(const struct inputs *in)
{
	bool is_known = false;
	double sum = 0;

	for (size_t i = 0; i < in->n_roles; i++) {
		const struct role_of_servers *r = &in->role[i];

		if (has_size(r) || !is_without_gpu(r->group))
			sum += r->servers * sizes(r);
		is_known |= r->servers > 0 && has_size(r);
	}
	return is_known ? sum : 0;
}

static double gpus_of_sizes(const struct inputs *in)
{
	const struct role_of_servers tags = {
		.tp = number(in, IN_TP_TAG), .pp = number(in, IN_PP_TAG),
		.dp = number(in, IN_DP_TAG),
	};
	double sum = 0;

	for (size_t i = 0; i < in->n_roles; i++)
		if (has_size(&in->role[i]))
			sum += sizes(&in->role[i]);
	return sum > 0 ? sum : has_size(&tags) ? sizes(&tags) : 0;
}

static double first_of_both(const struct inputs *in, enum input a, enum input b)
{
	return number(in, a) > 0 ? number(in, a) : number(in, b);
}

static struct ruled gpus_used(const struct inputs *in)
{
	const struct ruled rule[] = {
		{ first_of_both(in, IN_GPUS, IN_GPU_COUNT), GPUS_FROM_GIVEN },
		{ gpus_of_servers(in), GPUS_FROM_SERVERS },
		{ first_of_both(in, IN_NUM_GPUS_TAG, IN_GPU_COUNT_TAG), GPUS_FROM_METADATA },
		{ gpus_of_sizes(in), GPUS_FROM_PARALLEL },
		{ number(in, IN_MACHINE_GPUS), GPUS_FROM_MACHINE },
	};

	return first_above_0(rule, COUNT(rule));
}

/* ---- speed and load ---- */

/* a / b, or 0 if that is not finite. */
static double quotient(double a, double b)
{
	return b > 0 && isfinite(a / b) ? a / b : 0;
}

static double tokens_of_request(const struct inputs *in)
{
	return quotient(number(in, IN_OUTPUT_TOKENS), number(in, IN_COMPLETED));
}

static struct ruled speed(const struct inputs *in)
{
	double n = tokens_of_request(in), e2el = number(in, IN_E2EL), ttft = number(in, IN_TTFT);
	const struct ruled rule[] = {
		{ quotient(1000, number(in, IN_TPOT)), SPEED_FROM_TPOT },
		{ n > 1 && ttft > 0 ? quotient(1000 * (n - 1), e2el - ttft) : 0, SPEED_FROM_E2EL },
		{ quotient(number(in, IN_OUTPUT), number(in, IN_CONCURRENCY)),
		  SPEED_FROM_THROUGHPUT },
	};

	return first_above_0(rule, COUNT(rule));
}

static struct ruled load(const struct inputs *in)
{
	const struct ruled rule[] = {
		{ number(in, IN_CONCURRENCY), LOAD_CONCURRENCY },
		{ number(in, IN_RATE), LOAD_RATE }, { number(in, IN_BATCH), LOAD_BATCH },
	};

	return first_above_0(rule, COUNT(rule));
}

/* ---- workload ---- */

struct words { char text[WORKLOAD_BYTES]; size_t n; };

__attribute__((format(printf, 2, 3)))
static void add(struct words *w, const char *fmt, ...)
{
	size_t room = sizeof(w->text) - w->n;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->n, room, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < room)
		w->n += (size_t)n;
	w->text[w->n] = 0; /* a part that does not fit is left out completely */
}

/* What follows the last slash; for a file in a hub's cache the name of the model. */
static struct str short_name(struct str path)
{
	static const char mark[] = "models--";
	const char *cached = path.n ? memmem(path.p, path.n, mark, strlen(mark)) : NULL;
	const char *slash;

	if (cached) {
		struct str rest = { cached, path.n - (size_t)(cached - path.p) };
		struct str dir = str_cut(&rest, '/'), last = dir;

		while (last.n && (last = str_after(dir, "--")).n)
			dir = last;
		return dir;
	}
	while (path.n && path.p[path.n - 1] == '/')
		path.n--;
	slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
	return slash ? (struct str){ slash + 1, path.n - (size_t)(slash + 1 - path.p) } : path;
}

/* benchmark.DATASET_KIND_len, with _ for - in the dataset's name. */
static double own_length(const struct inputs *in, struct str dataset, const char *kind)
{
	char name[NAME_BYTES_MAX];
	int n = snprintf(name, sizeof(name), "benchmark.%.*s_%s_len", (int)dataset.n, dataset.p, kind);

	if (n <= 0 || n >= NAME_BYTES_MAX)
		return 0;
	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : *p;
	return positive(row_value(in->row, str_of(name)));
}

static double length(const struct inputs *in, struct str dataset, const char *kind,
		     enum input given, enum input tag)
{
	bool is_random = !dataset.n || str_starts(dataset, STR("random"));
	double n = number(in, given);

	if (!(n > 0) && dataset.n)
		n = own_length(in, dataset, kind);
	if (!(n > 0) && is_random)
		n = own_length(in, STR("random"), kind);
	return n > 0 ? n : number(in, tag);
}

/* Measured lengths are rounded, so that only clearly different ones distinguish workloads. */
static double rounded(double tokens)
{
	return tokens > 0 ? exp2(round(log2(tokens))) : 0;
}

/* A number, or a distribution such as "lognormal:200,0.5"; what: "in". */
static bool add_amount(struct words *w, const char *before, double n, struct str dist,
		       const char *what)
{
	if (dist.n)
		add(w, "%s%.*s %s", before, (int)dist.n, dist.p, what);
	else if (n > 0)
		add(w, "%s%.10g %s", before, n, what);
	return dist.n || n > 0;
}

/* "about 512 in, 128 out", of a run that does not say its dataset and lengths, such as vLLM's. */
static struct str measured_lengths(const struct inputs *in, struct str dataset, struct arena *a)
{
	double n = number(in, IN_COMPLETED);
	double input = rounded(quotient(number(in, IN_INPUT_TOKENS), n));
	double output = rounded(quotient(number(in, IN_OUTPUT_TOKENS), n));
	struct words w = { .n = 0 };

	if (dataset.n || length(in, dataset, "input", IN_INPUT_LEN, IN_ISL_TAG) > 0 ||
	    length(in, dataset, "output", IN_OUTPUT_LEN, IN_OSL_TAG) > 0 ||
	    !(input > 0 || output > 0))
		return STR("");
	add(&w, "about ");
	add_amount(&w, add_amount(&w, "", input, STR(""), "in") ? ", " : "", output, STR(""), "out");
	return arena_str(a, (struct str){ w.text, w.n });
}

static void add_lengths(struct words *w, const struct inputs *in, struct str dataset)
{
	static const struct {
		const char *dataset;
		enum input at;
		const char *what;
		double usual;
	} of[] = {
		{ "random", IN_PREFIX, "prefix", 0 }, { "random", IN_RANGE, "range", 0 },
		{ "random", IN_CACHE_RATIO, "cache ratio", 0 },
		{ "random", IN_CACHE_HITS, "cache hits", 0 },
		{ "prefix_repetition", IN_PREFIXES, "prefixes", 0 },
		{ "prefix_repetition", IN_REPEATED_LEN, "prefix", 0 },
		{ "prefix_repetition", IN_SUFFIX_LEN, "suffix", 0 },
		{ "trace", IN_SPEEDUP, "speedup", 1 }, { "timed_trace", IN_SPEEDUP, "speedup", 1 },
	};
	double input = length(in, dataset, "input", IN_INPUT_LEN, IN_ISL_TAG);
	double output = length(in, dataset, "output", IN_OUTPUT_LEN, IN_OSL_TAG);
	bool is_random = str_starts(dataset, STR("random"));
	struct str input_dist = is_random ? text(in, IN_INPUT_DIST) : STR("");
	struct str output_dist = is_random ? text(in, IN_OUTPUT_DIST) : STR("");
	const char *before = !w->n ? "" : dataset.n ? " " : " \u00b7 ";

	if (add_amount(w, before, input, input_dist, "in"))
		before = ", ";
	add_amount(w, before, output, output_dist, "out");
	for (size_t i = 0; i < COUNT(of); i++)
		if (str_starts(dataset, str_of(of[i].dataset)) && number(in, of[i].at) > 0 &&
		    number(in, of[i].at) != of[i].usual)
			add(w, ", %s %.10g", of[i].what, number(in, of[i].at));
	if (in->v[IN_MULTI_TURN].kind == VALUE_BOOL && in->v[IN_MULTI_TURN].is_true &&
	    !add_amount(w, ", ", number(in, IN_TURNS), text(in, IN_TURNS_DIST), "turns"))
		add(w, ", several turns");
}

/* "Llama-3.1-8B-Instruct · random 256 in, 12 out"; empty: nothing of it is known. */
static struct str workload(const struct inputs *in, struct str dataset, struct str lengths,
			   struct arena *a)
{
	struct str model = text(in, IN_MODEL);
	struct str path = text(in, IN_HF_NAME), mode = text(in, IN_MODE);
	struct words w = { .n = 0 };

	model = short_name(model.n ? model : text(in, IN_CLIENT_MODEL));
	path = short_name(path.n ? path : text(in, IN_DATASET_PATH));
	if (model.n)
		add(&w, "%.*s", (int)model.n, model.p);
	if (dataset.n)
		add(&w, "%s%.*s", w.n ? " \u00b7 " : "", (int)dataset.n, dataset.p);
	if (dataset.n && path.n && !str_starts(dataset, STR("random")))
		add(&w, " %.*s", (int)path.n, path.p);
	if (lengths.n)
		add(&w, "%s%.*s", w.n ? " \u00b7 " : "", (int)lengths.n, lengths.p);
	else
		add_lengths(&w, in, dataset);
	if (w.n && (str_is(mode, "throughput") || str_is(mode, "latency")))
		add(&w, " \u00b7 %.*s", (int)mode.n, mode.p);
	return arena_str(a, (struct str){ w.text, w.n });
}

/* ---- verdict ---- */

/* Shares of failed requests, as bench serve has them (trust.h). */
#define FAILED_DEGRADED 0.01
#define FAILED_INVALID 0.50
#define VERDICT_CELLS 2 /* verdict, trust.reasons */

/* A result without a verdict, such as that of vLLM's client, is judged by its failed requests. */
static struct str verdict_by_failures(const struct inputs *in)
{
	double failed = number(in, IN_FAILED);
	double share = quotient(failed, failed + number(in, IN_COMPLETED));

	if (in->v[IN_VERDICT].kind != VALUE_ABSENT || value_is_text(in->v[IN_STATUS], "failed") ||
	    in->v[IN_COMPLETED].kind != VALUE_NUMBER)
		return STR("");
	return share > FAILED_INVALID ? STR("INVALID") :
	       share > FAILED_DEGRADED ? STR("DEGRADED") : STR("");
}

/* ---- configuration ---- */

#define CONFIGURATION_BITS 52 /* whole numbers of so many bits are doubles */

static uint64_t mixed(uint64_t hash, struct value v)
{
	uint64_t bits = 0;

	if (v.kind == VALUE_TEXT)
		bits = map_hash(v.text);
	else if (v.kind == VALUE_NUMBER)
		memcpy(&bits, &v.number, sizeof(bits));
	else if (v.kind == VALUE_BOOL)
		bits = 1 + v.is_true;
	bits = (hash ^ bits ^ (uint64_t)v.kind << 56) * 0x9e3779b97f4a7c15u;
	return bits ^ bits >> 32;
}

/*
 * A number that repeats of one configuration share and others do not: the configuration's hash, the
 * engine's commit and version, and the machine. Failed and INVALID runs have no repeats.
 */
static double configuration(const struct inputs *in)
{
	static const enum input part[] = {
		IN_CONFIG_HASH, IN_COMMIT, IN_BUILD, IN_COMMIT_TAG, IN_ENGINE_COMMIT_TAG, IN_ENGINE,
		IN_ENGINE_VERSION, IN_VERSION, IN_VERSION_TAG, IN_ENGINE_VERSION_TAG, IN_DRIVER,
		IN_CPU, IN_CPU_THREADS, IN_MEMORY, IN_GPU, IN_SIM_GPU, IN_MACHINE_GPUS,
	};
	uint64_t hash = 2u * value_is_text(in->v[IN_STATUS], "failed") +
		value_is_text(in->v[IN_VERDICT], "INVALID");

	if (in->v[IN_CONFIG_HASH].kind != VALUE_TEXT)
		return 0;
	for (size_t i = 0; i < COUNT(part); i++) {
		struct value v = in->v[part[i]];

		if (value_is_missing(v))
			v = (struct value){ 0 };
		hash = mixed(hash, v);
	}
	return (double)((hash >> (64 - CONFIGURATION_BITS)) + 1);
}

/* ---- all ---- */

static void put_number(struct row *r, const char *column, double v)
{
	if (v > 0 && isfinite(v))
		r->cell[r->n++] = (struct cell){ str_of(column),
						 { .kind = VALUE_NUMBER, .number = v } };
}

static void put_text(struct row *r, const char *column, struct str v)
{
	if (v.n)
		r->cell[r->n++] = (struct cell){ str_of(column),
						 { .kind = VALUE_TEXT, .text = v } };
}

static void put_ruled(struct row *r, const char *column, struct ruled v,
		      const char *from_column)
{
	put_number(r, column, v.v);
	if (v.v > 0)
		put_text(r, from_column, str_of(v.from));
}

struct row derive(const struct row *r, struct arena *a)
{
	struct row out = { .id = r->id, .n = r->n };
	struct inputs in = { .row = NULL };
	struct str dataset, lengths, verdict;
	struct ruled gpus;
	double output, power;

	out.cell = arena_alloc(a, (r->n + COUNT(derived_columns) + VERDICT_CELLS) *
				  sizeof(*out.cell));
	if (r->n)
		memcpy(out.cell, r->cell, r->n * sizeof(*out.cell));
	take(&in, r);
	verdict = verdict_by_failures(&in);
	if (verdict.n)
		in.v[IN_VERDICT] = (struct value){ .kind = VALUE_TEXT, .text = verdict };
	put_text(&out, "verdict", verdict);
	put_text(&out, "trust.reasons", verdict.n ? STR("failures") : verdict);
	output = number(&in, IN_OUTPUT);
	power = number(&in, IN_POWER);
	put_text(&out, "gpu_model", gpu_model(&in, a));
	gpus = gpus_used(&in);
	put_ruled(&out, "gpus_used", gpus, "gpus_from");
	put_number(&out, "tokens_per_s_per_gpu", quotient(output, gpus.v));
	put_number(&out, "total_tokens_per_s_per_gpu", quotient(number(&in, IN_TOTAL), gpus.v));
	put_ruled(&out, "tokens_per_s_per_user", speed(&in), "speed_from");
	put_number(&out, "p99_tokens_per_s_per_user", quotient(1000, number(&in, IN_P99_TPOT)));
	put_number(&out, "request_tokens_per_s",
		   quotient(1000 * tokens_of_request(&in), number(&in, IN_E2EL)));
	put_number(&out, "output_tokens_per_s_per_slot",
		   quotient(output, number(&in, IN_CONCURRENCY)));
	put_number(&out, "power_w", power);
	put_number(&out, "tokens_per_s_per_kw", quotient(1000 * output, power));
	put_number(&out, "j_per_output_token", quotient(power, output));
	put_ruled(&out, "load", load(&in), "load_kind");
	dataset = text(&in, text(&in, IN_DATASET).n ? IN_DATASET : IN_OTHER_DATASET);
	lengths = measured_lengths(&in, dataset, a);
	put_text(&out, "measured_lengths", lengths);
	put_text(&out, "workload", workload(&in, dataset, lengths, a));
	put_number(&out, "configuration", configuration(&in));
	assert(out.n <= r->n + COUNT(derived_columns) + VERDICT_CELLS);
	return out;
}
