/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - see names.h. */
#include "results/index/names.h"

#include "core/schema/schema.h"
#include "results/index/derive.h"

#define KEY_BYTES 160
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* Plain columns that describe a run and are not measured. */
static const char *const run_column[] = {
	"run_id", "suite", "name", "timestamp", "status", "mode", "source", "verdict", "repeat",
	"repeats", "config_hash", "experiment_duration_s", "error_stage", "error_category",
	"error_reason", "warnings", "profiled", "interrupted", "label", "date", "gpus", "gpu_type",
	"ended_s", "left_out", "capacity_limits",
};

struct fact { const char *name, *unit; int better; };

/* Metrics that schema/result.json does not have: results of the offline verbs, and of documents. */
static const struct fact metric[] = {
	{ "avg_latency", "s", -1 },
	{ "std_latency", "s", -1 },
	{ "latency_per_output_token", "s", -1 },
	{ "first_third_latency", "s", 0 },
	{ "last_third_latency", "s", 0 },
	{ "drift_share", "", 0 },
	{ "input_throughput", "tokens/s", 1 },
	{ "counted_token_throughput", "tokens/s", 1 },
	{ "counted_output_throughput", "tokens/s", 1 },
	{ "server_startup_s", "s", -1 },
	{ "kv_cache_tokens", "tokens", 1 },
	{ "kv_cache_concurrency", "requests", 1 },
	{ "total_requests", "requests", 0 },
	{ "total_tokens", "tokens", 0 },
	{ "encoder_calls", "calls", -1 },
	{ "phase_list_version", "", 0 },
	{ "cached_share", "", 1 },
	{ "caching_speedup", "", 1 },
	{ "priorities", "", 0 },
	{ "failed_share", "", -1 },
	{ "usd_per_m_output", "$/M output tokens", -1 },
};

/* Units by the last word of a name; longer endings first. */
static const struct fact ending[] = {
	{ "_per_s_per_w", "/s/W", 1 }, { "_mb_per_s", "MB/s", 0 }, { "_per_s", "/s", 1 },
	{ "_j_per_token", "J/token", -1 }, { "_ms", "ms", -1 }, { "_ns", "ns", 0 },
	{ "_gb", "GB", 0 }, { "_mb", "MB", 0 }, { "_bytes", "bytes", 0 }, { "_mhz", "MHz", 0 },
	{ "_mbit", "Mbit/s", 0 }, { "_goodput", "requests/s", 1 }, { "_throughput", "/s", 1 },
	{ "_latency", "s", -1 }, { "_time", "s", -1 }, { "_j", "J", -1 }, { "_w", "W", 0 },
	{ "_c", "\u00b0C", 0 }, { "_s", "s", 0 }, { "utilization", "%", 0 },
	{ "memory_busy", "%", 0 }, { "_active", "%", 0 }, { "cpus_busy", "CPUs", 0 },
};

static const char *const statistic[] = {
	"min", "mean", "median", "max", "last", "std", "n", "low", "high",
};

/* Groups whose members results have below "profllm", with that path. */
static const struct { const char *group, *path; } measured[] = {
	{ "steady_state", "profllm.steady_state." }, { "system", "profllm.system." },
	{ "trust", "profllm." }, { "client", "profllm." }, { "sessions", "sessions." },
	{ "correctness", "profllm.correctness." }, { "priority", "profllm.priorities[]." },
	{ "prefix_cache", "profllm." }, { "derived", "profllm.derived." },
	{ "settled", "profllm.settled." }, { "attempted", "profllm.attempted." },
};

static bool is_percentile(struct str word)
{
	if (word.n < 2 || word.p[0] != 'p')
		return false;
	for (size_t i = 1; i < word.n; i++)
		if ((word.p[i] < '0' || word.p[i] > '9') && word.p[i] != '.')
			return false;
	return true;
}

static bool is_stat(struct str word)
{
	for (size_t i = 0; i < COUNT(statistic); i++)
		if (str_is(word, statistic[i]))
			return true;
	return is_percentile(word);
}

/* The last part of a dotted name that is not a statistic: "power_w" of "gpu.power_w.mean". */
static struct str quantity(struct str name)
{
	for (;;) {
		const char *dot = memrchr(name.p, '.', name.n);
		size_t before = dot ? (size_t)(dot - name.p) : 0;
		struct str last = { name.p + before + !!dot, name.n - before - !!dot };

		if (!dot || !is_stat(last))
			return last;
		name.n = before;
	}
}

static bool ends(struct str name, const char *with)
{
	struct str tail = str_of(with);

	return str_ends(name, tail) || (*with == '_' && str_is(name, with + 1));
}

/* "p99.9" of "p99.9_itl_ms", whose dot does not end a group. */
static struct str first_word(struct str name)
{
	return str_cut(&name, '_');
}

static void by_ending(struct str name, struct column_name *c)
{
	struct str last = quantity(name);

	for (size_t i = 0; i < COUNT(ending); i++) {
		if (!ends(last, ending[i].name))
			continue;
		c->unit = ending[i].unit;
		c->better = ending[i].better;
		return;
	}
}

static bool by_schema(const char *path, struct str name, struct column_name *c)
{
	const struct schema_field *f;
	char key[KEY_BYTES];
	size_t n = strlen(path);

	if (n + name.n >= sizeof(key) || memchr(name.p, 0, name.n))
		return false;
	memcpy(key, path, n);
	memcpy(key + n, name.p, name.n);
	key[n + name.n] = 0;
	f = schema_field_find(key);
	if (!f || strcmp(f->type, "object") == 0)
		return false;
	if (*f->unit || !strchr(f->key, '<'))
		c->unit = f->unit;
	if (f->better != SCHEMA_NONE)
		c->better = f->better == SCHEMA_HIGHER ? 1 : -1;
	return true;
}

static bool is_time(struct str name)
{
	return str_is(name, "timestamp") || str_is(name, "date") || str_ends(name, STR("_s"));
}

static void plain(struct str name, struct column_name *c)
{
	const struct derived_column *derived = derived_column(name);

	if (derived) {
		c->is_metric = c->is_outcome = derived->better != 0;
		c->group = c->is_metric ? STR("metric") : STR("run");
		c->unit = derived->unit;
		c->better = derived->better;
		return;
	}
	for (size_t i = 0; i < COUNT(run_column); i++)
		if (str_is(name, run_column[i])) {
			c->group = STR("run");
			c->is_outcome = is_time(name);
			if (str_ends(name, STR("_s")))
				c->unit = "s";
			return;
		}
	c->group = STR("metric");
	c->is_metric = c->is_outcome = true;
	for (size_t i = 0; i < COUNT(metric); i++)
		if (str_is(name, metric[i].name)) {
			c->unit = metric[i].unit;
			c->better = metric[i].better;
			return;
		}
	if (!str_ends(name, STR("_ms")) && by_schema("", name, c))
		return;
	by_ending(name, c);
}

struct column_name column_name(struct str name)
{
	struct column_name c = { .unit = "" };
	const char *dot = name.n ? memchr(name.p, '.', name.n) : NULL;
	struct str rest;

	if (!dot || is_percentile(first_word(name))) {
		plain(name, &c);
		return c;
	}
	c.group = (struct str){ name.p, (size_t)(dot - name.p) };
	rest = (struct str){ dot + 1, name.n - c.group.n - 1 };
	for (size_t i = 0; i < COUNT(measured); i++) {
		if (!str_is(c.group, measured[i].group))
			continue;
		c.is_outcome = true;
		if (str_is(c.group, "priority"))
			str_cut(&rest, '.'); /* the class */
		if (str_ends(rest, STR(".n")))
			return c;
		by_ending(rest, &c);
		if (!str_is(c.group, "steady_state") && !str_is(c.group, "system") &&
		    !str_is(c.group, "settled"))
			c.better = 0;
		by_schema(measured[i].path, rest, &c);
		c.is_metric = c.better || (*c.unit && !str_is(c.group, "client"));
		return c;
	}
	if (str_is(c.group, "benchmark"))
		by_schema("", rest, &c);
	else if (str_is(c.group, "hardware") || str_is(c.group, "resources"))
		by_ending(rest, &c);
	c.better = 0;
	return c;
}

const char *column_unit(struct str name)
{
	return column_name(name).unit;
}

int column_better(struct str name)
{
	return column_name(name).better;
}

/* ---- labels ---- */

static const struct { const char *word, *label; } special[] = {
	{ "ttft", "TTFT" }, { "tpot", "TPOT" }, { "itl", "ITL" }, { "e2el", "E2EL" },
	{ "rtfx", "RTFx" }, { "gpu", "GPU" }, { "gpus", "GPUs" }, { "kv", "KV" }, { "id", "ID" },
	{ "avg", "mean" },
};
/* Endings that are units, which are shown next to a label and not in it. */
static const char *const unit_word[] = { "ms", "s", "gb" };

static void add_word(struct buf *out, struct str word)
{
	bool is_first = out->len == 0, is_percentile_word = is_percentile(word);

	if (!is_first)
		buf_add_char(out, ' ');
	for (size_t i = 0; i < COUNT(special); i++)
		if (str_is(word, special[i].word))
			word = str_of(special[i].label);
	if ((is_first || is_percentile_word) && word.p[0] >= 'a' && word.p[0] <= 'z') {
		buf_add_char(out, (char)(word.p[0] - 'a' + 'A'));
		word = (struct str){ word.p + 1, word.n - 1 };
	}
	buf_add_str(out, word);
}

/* "median_ttft_ms" as "Median TTFT", "tokens_per_s" as "Tokens/s". */
static void add_words(struct buf *label, struct str name)
{
	struct str before = STR("");
	size_t from = label->len;

	while (name.n) {
		struct str word = str_cut(&name, '_');
		bool is_unit = false;

		for (size_t i = 0; i < COUNT(unit_word); i++)
			is_unit |= !name.n && label->len > from && str_is(word, unit_word[i]);
		if (is_unit && str_is(word, "s") && str_is(before, "per")) {
			label->len -= strlen(" per");
			buf_add_text(label, "/s");
		} else if (word.n && !is_unit) {
			add_word(label, word);
		}
		before = word;
	}
}

/* Whether a column is the time at which a run began, under any of its names. */
static bool is_moment(struct str name)
{
	return str_is(name, "timestamp");
}

void column_label(struct str name, struct buf *out)
{
	const struct derived_column *derived = derived_column(name);
	struct column_name c = column_name(name);
	struct str prefix = STR("steady_state.");
	struct buf label = { 0 };

	if (derived || is_moment(name)) {
		buf_add_text(out, derived ? derived->label : "Date");
		return;
	}
	if (str_is(name, "max_output_tokens_per_s")) { /* upstream's name; events are counted */
		buf_add_text(out, "Peak output events");
		return;
	}
	if (str_starts(name, prefix) && !memchr(name.p + prefix.n, '.', name.n - prefix.n)) {
		buf_add_text(&label, "Steady state:");
		add_words(&label, (struct str){ name.p + prefix.n, name.n - prefix.n });
	} else if (str_is(c.group, "settled") || str_is(c.group, "attempted")) {
		buf_add_str(&label, name); /* other columns have the rest of it for their name */
	} else if (!str_is(c.group, "run") && !str_is(c.group, "metric")) {
		if (name.n > c.group.n + 1)
			buf_add(&label, name.p + c.group.n + 1, name.n - c.group.n - 1);
	} else {
		add_words(&label, name);
	}
	buf_add_str(out, buf_str(&label));
	buf_release(&label);
}

/* ---- roles ---- */

static const struct role_row {
	const char *head, *tail;
	bool is_pattern; /* anything may be between both */
	enum column_role role;
} role_rows[] = {
#define ROLE(...) { __VA_ARGS__ },
#include "results/index/columns_rows.h"
#undef ROLE
};
static const char *const role_name[] = {
	"hardware", "engine", "version", "precision", "parallel", "argument", "workload", "load",
	"provenance", "harness", "outcome", "metric",
};
/* Which role comes first where only some columns have room. */
static const unsigned preference[] = {
	[ROLE_HARDWARE] = 0, [ROLE_ENGINE] = 1, [ROLE_VERSION] = 2, [ROLE_PRECISION] = 3,
	[ROLE_PARALLEL] = 4, [ROLE_LOAD] = 5, [ROLE_WORKLOAD] = 6, [ROLE_ARGUMENT] = 7,
	[ROLE_PROVENANCE] = 8, [ROLE_HARNESS] = 9, [ROLE_OUTCOME] = 10, [ROLE_METRIC] = 11,
};

static bool fits(const struct role_row *row, struct str name)
{
	struct str head = str_of(row->head), tail = str_of(row->tail);

	if (!row->is_pattern)
		return str_eq(name, head);
	return name.n >= head.n + tail.n && str_starts(name, head) && str_ends(name, tail);
}

static size_t role_row(struct str name)
{
	size_t i = 0;

	while (i < COUNT(role_rows) && !fits(&role_rows[i], name))
		i++;
	return i;
}

/* Groups that are server roles: all that have no other meaning in any file. */
static bool is_server_role(struct str group)
{
	static const char *const other[] = {
		"run", "metric", "benchmark", "hardware", "environment", "provenance", "tags",
		"resources", "failures", "server",
	};

	for (size_t i = 0; i < COUNT(measured); i++)
		if (str_is(group, measured[i].group))
			return false;
	for (size_t i = 0; i < COUNT(other); i++)
		if (str_is(group, other[i]))
			return false;
	return true;
}

static enum column_role role_and_row(struct str name, size_t *row)
{
	struct column_name c = column_name(name);
	char as_server[KEY_BYTES];
	size_t rest;

	*row = role_row(name);
	if (c.is_metric)
		return ROLE_METRIC;
	if (c.is_outcome || str_is(c.group, "failures"))
		return ROLE_OUTCOME;
	if (is_server_role(c.group) && name.n > c.group.n) {
		rest = name.n - c.group.n;
		if (rest + strlen("server") <= sizeof(as_server)) {
			memcpy(as_server, "server", strlen("server"));
			memcpy(as_server + strlen("server"), name.p + c.group.n, rest);
			*row = role_row((struct str){ as_server, strlen("server") + rest });
		}
	}
	return *row < COUNT(role_rows) ? role_rows[*row].role : ROLE_PROVENANCE;
}

enum column_role column_role(struct str name)
{
	size_t row;

	return role_and_row(name, &row);
}

size_t column_rank(struct str name)
{
	size_t row;
	enum column_role role = role_and_row(name, &row);

	return preference[role] * (COUNT(role_rows) + 1) + row;
}

const char *column_role_name(enum column_role role)
{
	return role_name[role];
}

int column_role_order(enum column_role role)
{
	return (int)preference[role];
}

const char *column_short(struct str name)
{
	static const struct { const char *name, *word; } row[] = {
#define SHORT(...) { __VA_ARGS__ },
#include "results/index/columns_rows.h"
#undef SHORT
	};

	for (size_t i = 0; i < COUNT(row); i++)
		if (str_is(name, row[i].name))
			return row[i].word;
	return "";
}
