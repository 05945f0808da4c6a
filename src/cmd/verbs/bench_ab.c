/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ab.c - `profllm bench ab`: whether server B is better than server A, under the same load in
 * alternation, until that is decided (sweep/ab.h, decide/paired.h).
 */
#include <math.h>
#include <stdio.h>

#include "bench/sweep/ab.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"

#define EXIT_GATE 3
#define EXIT_INTERRUPTED 130
#define MINUTES_DEFAULT 20
#define PAIRS_DEFAULT 1000
#define READY_DEFAULT_S 1800 /* compilation and a large model from a cold disk */
#define GRACE_DEFAULT_S 30

struct bench_ab_opts {
	struct opt_list base_url, serve_cmd, metric;
	double min_effect;            /* per cent */
	double max_minutes, block;
	int64_t max_pairs;
	bool until_decided, allow_unjudged;
	double server_ready_timeout, server_grace;
	const char *server_logs, *fail_if, *output_json;
};

static const char *const gates[] = { "worse", NULL };

#define A(member, flag, ...) OPT(struct bench_ab_opts, member, flag, __VA_ARGS__)
static const struct opt rows[] = {
	A(base_url, "base-url", .flags = OPT_EACH, .arg = "URL",
	  .help = "a server, given twice: first A, the baseline, then B"),
	A(serve_cmd, "serve-cmd", .flags = OPT_EACH, .arg = "COMMAND",
	  .help = "instead of --base-url, given twice: commands that start A and B, such as 'vllm "
		  "serve MODEL --port 8001'; both run at once, on different ports"),
	A(server_ready_timeout, "server-ready-timeout", .arg = "SECONDS", .min = 1, .max = 1e6,
	  .help = "time limit for a started server to become ready"),
	A(server_grace, "server-grace", .arg = "SECONDS", .min = 0, .max = 1e6,
	  .help = "time limit for a server to exit when asked to, before it is killed"),
	A(server_logs, "server-logs", .arg = "DIR",
	  .help = "keep the logs of servers that are started there, as a.log and b.log"),
	A(metric, "metric", .flags = OPT_EACH, .arg = "NAME",
	  .help = "metric that decides, such as mean_tpot_ms, p99_ttft_ms or output_throughput; "
		  "several share the error rate, and all must be decided (default: mean_e2el_ms)"),
	A(min_effect, "min-effect", .flags = OPT_MIN_EXCLUSIVE, .arg = "PERCENT", .max = 100,
	  .help = "changes below this are reported as \"no change\" when that is certain"),
	A(until_decided, "until-decided", .help = "no time limit"),
	A(max_minutes, "max-minutes", .flags = OPT_MIN_EXCLUSIVE, .arg = "MINUTES", .max = 100000,
	  .help = "stop before a pair that would end later than this"),
	A(max_pairs, "max-pairs", .arg = "N", .min = 1, .max = PAIRED_PAIRS_MAX,
	  .help = "stop after this many pairs"),
	A(block, "block-seconds", .arg = "SECONDS", .max = 86400,
	  .help = "length of a block; 0: the longest of 10 s, 10 end-to-end times and the time for "
		  "100 requests"),
	A(fail_if, "fail-if", .arg = "VERDICT", .choices = gates,
	  .help = "exit with 3 when a metric that decides is worse, unless it is certain that the "
		  "change is below the minimum effect, and when that cannot be judged"),
	A(allow_unjudged, "allow-unjudged",
	  .help = "an answer that is undecided or not comparable does not fail --fail-if"),
	A(output_json, "output-json", .arg = "FILE",
	  .help = "write the result and the values of every pair as JSON"),
};

static const struct bench_ab_opts defaults = {
	.min_effect = 100 * PAIRED_EFFECT_MIN, .max_minutes = MINUTES_DEFAULT,
	.max_pairs = PAIRS_DEFAULT, .server_ready_timeout = READY_DEFAULT_S,
	.server_grace = GRACE_DEFAULT_S,
};

static const struct opt_foreign serve_options = {
	.self = &serve_opt_set, .words = opt_foreign_set_words,
};

const struct opt_set cmd_bench_ab_set = {
	.command = "bench ab",
	.summary = "Measures two servers in turn under the same load, and stops when it is certain "
		   "which is better.",
	.usage = "--base-url A --base-url B [options] [options of bench serve]",
	.epilog = "Example:\n"
		  "  profllm bench ab --base-url http://one:8000 --base-url http://two:8000 \\\n"
		  "      --model MODEL --random-input-len 512 --random-output-len 128 --request-rate 10\n"
		  "  profllm bench ab --serve-cmd 'vllm serve MODEL --port 8001' \\\n"
		  "      --serve-cmd 'vllm serve MODEL --port 8002 --max-num-seqs 64' \\\n"
		  "      --random-input-len 512 --random-output-len 128 --request-rate 10 --fail-if worse\n"
		  "The load is described by the options of `profllm bench serve`.",
	OPT_SET_OF(rows, defaults), .foreign = &serve_options,
};

/* Shown next to the deciding metrics; the run does not wait for these. */
static const char *const shown[] = { "mean_e2el_ms", "mean_ttft_ms", "mean_tpot_ms", "p99_ttft_ms",
				     "output_throughput" };
#define SHOWN (sizeof(shown) / sizeof(*shown))

struct talk {
	const struct bench_ab_opts *o;
	struct ab_metric metric[PAIRED_METRICS_MAX];
	struct ab_opts run;
};

/* ---- options ---- */

static int add_metric(struct talk *t, const char *name, bool is_judged, struct err *e)
{
	struct paired_opts *p = &t->run.paired;
	double effect_min = t->o->min_effect / 100;

	for (size_t i = 0; i < p->n_metrics; i++) {
		if (strcmp(t->metric[i].name, name) != 0)
			continue;
		return is_judged ? err_set(e, ERR_USAGE, "--metric %s is given twice", name) : 0;
	}
	if (p->n_metrics == PAIRED_METRICS_MAX - (is_judged ? SHOWN : 0))
		return err_set(e, ERR_USAGE, "--metric: at most %zu metrics can decide",
			       PAIRED_METRICS_MAX - SHOWN);
	if (ab_metric_parse(name, &t->metric[p->n_metrics], e) < 0)
		return -1;
	p->metric[p->n_metrics] = (struct paired_metric){ t->metric[p->n_metrics].better,
							  effect_min, is_judged };
	p->n_metrics++;
	return 0;
}

/* Compares addresses without trailing slashes. */
static bool is_one_server(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	while (n && a[n - 1] == '/')
		n--;
	while (m && b[m - 1] == '/')
		m--;
	return n == m && memcmp(a, b, n) == 0;
}

static const char *const of_ours[] = { "server-ready-timeout", "server-grace", "server-logs" };

static int prepare_servers(struct talk *t, const struct opt_result *words, struct err *e)
{
	const struct bench_ab_opts *o = t->o;
	const struct opt_list *given = o->serve_cmd.n ? &o->serve_cmd : &o->base_url;
	bool is_ours = o->serve_cmd.n > 0;

	if (is_ours && o->base_url.n)
		return err_set(e, ERR_USAGE, "--serve-cmd starts servers and --base-url names running "
			       "ones; give one of the two, twice");
	if (given->n != 2)
		return err_set(e, ERR_USAGE, "%s: expected two servers, got %zu; give the baseline's %s "
			       "first, then %s again with the other one", is_ours ? "--serve-cmd" : "--base-url",
			       given->n, is_ours ? "command" : "URL",
			       is_ours ? "--serve-cmd" : "--base-url");
	if (!is_ours && is_one_server(given->v[0], given->v[1]))
		return err_set(e, ERR_USAGE, "--base-url: both servers are %s; a server cannot be "
			       "compared with itself", given->v[0]);
	for (size_t i = 0; !is_ours && i < sizeof(of_ours) / sizeof(*of_ours); i++)
		if (opt_given(&cmd_bench_ab_set, words, of_ours[i]))
			return err_set(e, ERR_USAGE, "--%s is about servers that are started; give "
				       "--serve-cmd twice, or remove it", of_ours[i]);
	for (unsigned side = 0; side < 2; side++)
		*(is_ours ? &t->run.serve.cmd[side] : &t->run.url[side]) = given->v[side];
	t->run.serve.ready_timeout_s = o->server_ready_timeout;
	t->run.serve.grace_s = o->server_grace;
	t->run.serve.log_dir = o->server_logs;
	return 0;
}

static int prepare(struct talk *t, const struct opt_result *words, struct err *e)
{
	const struct bench_ab_opts *o = t->o;

	if (prepare_servers(t, words, e) < 0)
		return -1;
	if (o->until_decided && opt_given(&cmd_bench_ab_set, words, "max-minutes"))
		return err_set(e, ERR_USAGE, "--until-decided means no time limit, and --max-minutes is "
			       "one; remove one of the two");
	if (o->allow_unjudged && !o->fail_if)
		return err_set(e, ERR_USAGE, "--allow-unjudged says what --fail-if lets pass; give "
			       "--fail-if, too");
	for (size_t i = 0; i < o->metric.n; i++)
		if (add_metric(t, o->metric.v[i], true, e) < 0)
			return -1;
	if (!o->metric.n && add_metric(t, shown[0], true, e) < 0)
		return -1;
	for (size_t i = 0; i < SHOWN; i++)
		if (add_metric(t, shown[i], false, e) < 0)
			return -1;
	t->run.argc = (int)words->rest.n;
	t->run.argv = words->rest.v;
	t->run.metric = t->metric;
	t->run.block_s = o->block;
	t->run.paired.alpha = PAIRED_ALPHA;
	t->run.paired.seconds_max = o->until_decided ? INFINITY : o->max_minutes * 60;
	t->run.paired.pairs_max = (uint32_t)o->max_pairs;
	return o->output_json ? target_check("--output-json", o->output_json, e) : 0;
}

/* ---- while it runs ---- */

#define CHANGE_SHOWN_MAX 10 /* ends of intervals above +1000 % say nothing by their digits */

static void add_range(struct buf *out, const struct paired_result *r)
{
	if (r->low > CHANGE_SHOWN_MAX)
		buf_printf(out, "above +%d %%", 100 * CHANGE_SHOWN_MAX);
	else if (r->high > CHANGE_SHOWN_MAX)
		buf_printf(out, "%+.1f to above +%d %%", 100 * r->low, 100 * CHANGE_SHOWN_MAX);
	else
		buf_printf(out, "%+.1f to %+.1f %%", 100 * r->low, 100 * r->high);
}

static void add_interval(struct buf *out, const struct paired_result *r)
{
	if (isinf(r->low) || isinf(r->high)) {
		buf_add_text(out, "no interval yet");
		return;
	}
	buf_printf(out, "%.0f %% interval ", 100 * r->level);
	add_range(out, r);
}

static void tell_first(const struct ab *ab, struct buf *out)
{
	char e2el[FMT_F64_BYTES];

	buf_printf(out, "Pair 0 warmed the servers up and is not counted (mean end-to-end time %s). "
		   "From here on a block has %u requests in about %.3g s; the first %u are not counted.",
		   fmt_duration(e2el, (int64_t)(ab->e2el_s * 1e9)), ab->requests,
		   ab->block.length_s, ab->skipped);
}

/* One metric: the last pair's values, and the result so far. */
static void add_so_far(const struct ab *ab, size_t i, struct buf *out)
{
	const struct paired_pair *last = &ab->pair[ab->n_pairs - 1].measured;
	struct paired_result r;

	paired_result(&ab->paired, i, &r);
	buf_printf(out, "%s ", ab->opts->metric[i].name);
	if (isnan(last->value[0][i]) || isnan(last->value[1][i])) {
		buf_add_text(out, "has no value");
		return;
	}
	buf_printf(out, "A %.4g, B %.4g, change so far %+.1f %% (", last->value[0][i],
		   last->value[1][i], 100 * r.change);
	add_interval(out, &r);
	if (ab->why == PAIRED_GO_ON && r.verdict == PAIRED_UNDECIDED && r.pairs_needed > r.pairs)
		buf_printf(out, "; about %zu pairs needed", r.pairs_needed);
	buf_add_char(out, ')');
}

static void on_pair(void *self, const struct ab *ab)
{
	const struct paired_opts *o = &ab->opts->paired;
	const char *between = ": ";
	struct buf out = { 0 };

	(void)self;
	if (ab->n_pairs == 1)
		tell_first(ab, &out);
	else
		buf_printf(&out, "Pair %zu (%s first)", ab->n_pairs - 1,
			   ab->pair[ab->n_pairs - 1].first == PAIRED_A ? "A" : "B");
	for (size_t i = 0; i < o->n_metrics && ab->n_pairs > 1; i++) {
		if (!o->metric[i].is_judged)
			continue;
		buf_add_text(&out, between);
		add_so_far(ab, i, &out);
		between = "; ";
	}
	cli_line(out.data);
	fflush(stdout);
	buf_release(&out);
}

static void on_line(void *self, const char *text)
{
	(void)self;
	cli_line(text);
	fflush(stdout);
}

static void on_warn(void *self, const char *text)
{
	(void)self;
	cli_warn(text);
}

/* ---- the answer ---- */

static const char *const verdict_names[] = {
	[PAIRED_UNDECIDED] = "undecided", [PAIRED_BETTER] = "better", [PAIRED_WORSE] = "worse",
	[PAIRED_DIFFERENT] = "different", [PAIRED_NO_CHANGE] = "no change",
	[PAIRED_MOVED] = "moved", [PAIRED_FAILED] = "not comparable",
	[PAIRED_OTHER_WORK] = "not comparable", [PAIRED_NO_VALUES] = "no values",
};

struct ending { const char *name, *because; };

static const struct ending endings[] = {
	[PAIRED_GO_ON] = { "interrupted", "it was interrupted" },
	[PAIRED_STOP_SETTLED] = { "decided", "the question is settled" },
	[PAIRED_STOP_FAILING] = { "failing", "too many requests failed" },
	[PAIRED_STOP_MISSING] = { "no values", "a metric that decides has no value" },
	[PAIRED_STOP_TIME] = { "time limit", "another pair would have passed the time limit "
			       "(--max-minutes)" },
	[PAIRED_STOP_PAIRS] = { "pair limit", "the limit of pairs was reached (--max-pairs)" },
};

static const struct ending *ending_of(const struct ab *ab)
{
	static const struct ending error = { "error", "of an error" };

	return ab->why == PAIRED_GO_ON && !ab->is_interrupted ? &error : &endings[ab->why];
}

static void add_verdict(const struct talk *t, const struct ab *ab, size_t metric,
			const struct paired_result *r, struct buf *out)
{
	const struct paired *p = &ab->paired;
	const char *name = t->metric[metric].name;
	double effect = t->o->min_effect;

	switch (r->verdict) {
	case PAIRED_BETTER:
	case PAIRED_WORSE:
	case PAIRED_DIFFERENT:
		buf_printf(out, "B is %s: %s changes by %+.1f %% (", verdict_names[r->verdict], name,
			   100 * r->change);
		add_interval(out, r);
		buf_printf(out, ")%s.", r->is_below ? ", which is below the minimum effect" : "");
		break;
	case PAIRED_NO_CHANGE:
		buf_printf(out, "No change above %g %%: %s changes by %+.1f %% (", effect, name,
			   100 * r->change);
		add_interval(out, r);
		buf_add_text(out, ").");
		break;
	case PAIRED_MOVED:
		buf_printf(out, "The difference in %s changed during the run, so there is no verdict. "
			   "Check what else ran on the machines, and measure again.", name);
		break;
	case PAIRED_FAILED:
		buf_printf(out, "Not comparable: %llu of %llu requests failed on A, %llu of %llu on B.",
			   (unsigned long long)p->failed[0], (unsigned long long)p->requests[0],
			   (unsigned long long)p->failed[1], (unsigned long long)p->requests[1]);
		break;
	case PAIRED_OTHER_WORK:
		buf_printf(out, "Not comparable: the answers have %.1f tokens on A and %.1f on B. "
			   "--ignore-eos makes them equally long.",
			   (double)p->output_tokens[0] / fmax(1, (double)p->requests[0]),
			   (double)p->output_tokens[1] / fmax(1, (double)p->requests[1]));
		break;
	case PAIRED_NO_VALUES:
		buf_printf(out, "%s has no value. %s", name, ab->doubt[metric].is_invalid ?
			   ab->doubt[metric].why : "No answer has one; TPOT and ITL need answers of "
			   "two tokens or more.");
		break;
	default:
		if (!r->pairs) {
			buf_printf(out, "Undecided: the run ended before the first pair that counts, so "
				   "nothing is known about %s.", name);
			break;
		}
		buf_printf(out, "Undecided: %s changes by %+.1f %% so far (", name, 100 * r->change);
		add_interval(out, r);
		buf_add_text(out, ")");
		if (r->pairs_needed > r->pairs)
			buf_printf(out, "; about %zu pairs would decide it", r->pairs_needed);
		buf_add_text(out, ".");
	}
}

/* The second check assumes less than the verdict, so it needs more pairs and may lag. */
static void add_check(const struct paired_result *r, struct buf *out)
{
	bool differs = r->verdict == PAIRED_BETTER || r->verdict == PAIRED_WORSE ||
		       r->verdict == PAIRED_DIFFERENT;

	if (r->pairs < 2 || r->verdict == PAIRED_FAILED || r->verdict == PAIRED_OTHER_WORK ||
	    r->verdict == PAIRED_NO_VALUES)
		return; /* there is nothing to confirm */
	buf_printf(out, "A second check, which supposes nothing but the random order of the blocks, %s "
		   "(its evidence is %.3g; it needs %.0f).\n",
		   r->is_confirmed ? differs ? "also finds a difference" : "finds a difference" :
		   differs ? "needs more pairs to confirm this" : "has found no difference so far",
		   r->check_e, 1 / (1 - r->level));
}

static void add_doubt(const struct ab *ab, size_t metric, const char *name, struct buf *out)
{
	const struct ab_doubt *d = &ab->doubt[metric];

	if (d->degraded)
		buf_printf(out, "Note: %s is DEGRADED in %u of %u blocks. The last reason: %s\n", name,
			   d->degraded, d->blocks, d->why);
}

static void tell_table(const struct talk *t, const struct ab *ab, struct buf *out)
{
	const struct paired_opts *o = &t->run.paired;

	buf_printf(out, "\n%-20s %9s %22s %12s  %s\n", "Metric", "B vs A", "interval", "sd of a pair",
		   "verdict");
	for (size_t i = 0; i < o->n_metrics; i++) {
		struct paired_result r;
		struct buf range = { 0 };
		char change[24] = "-", sd[24] = "-";

		paired_result(&ab->paired, i, &r);
		if (isfinite(r.low) && isfinite(r.high))
			add_range(&range, &r);
		else
			buf_add_text(&range, "-");
		if (!isnan(r.change))
			snprintf(change, sizeof(change), "%+.1f %%", 100 * r.change);
		if (!isnan(r.sd))
			snprintf(sd, sizeof(sd), "%.1f %%", 100 * r.sd);
		buf_printf(out, "%-20s %9s %22s %12s  %s%s\n", t->metric[i].name,
			   change, range.data, sd, verdict_names[r.verdict],
			   o->metric[i].is_judged ? " (primary)" : "");
		buf_release(&range);
	}
}

static void add_side(const struct talk *t, const struct ab *ab, unsigned side, const char *name,
		     struct buf *out)
{
	const char *command = t->run.serve.cmd[side];
	struct buf room = { 0 };
	struct str what = redact(str_of(command ? command : ab->url[side]), &room);

	buf_printf(out, "%s%s: %.*s\n", side == PAIRED_A ? "\n" : "", name, (int)what.n, what.p);
	buf_release(&room);
}

static void tell(const struct talk *t, const struct ab *ab)
{
	const struct paired_opts *o = &t->run.paired;
	struct buf out = { 0 };
	char time[FMT_F64_BYTES];

	add_side(t, ab, PAIRED_A, "A, the baseline", &out);
	add_side(t, ab, PAIRED_B, "B", &out);
	for (size_t i = 0; i < o->n_metrics; i++) {
		struct paired_result r;

		if (!o->metric[i].is_judged)
			continue;
		paired_result(&ab->paired, i, &r);
		add_verdict(t, ab, i, &r, &out);
		buf_add_char(&out, '\n');
		if (r.joined > 1)
			buf_printf(&out, "Neighbouring pairs of %s resemble each other (correlation "
				   "%.2f); they were joined by %u.\n", t->metric[i].name, r.correlation,
				   r.joined);
		add_check(&r, &out);
		add_doubt(ab, i, t->metric[i].name, &out);
	}
	for (unsigned side = 0; side < 2; side++)
		if (ab->failure[side])
			buf_printf(&out, "The first request that failed on %c: %s\n", "AB"[side],
				   ab->failure[side]);
	buf_printf(&out, "%u pair%s in %s. The run ended because %s.\n", ab->paired.pairs,
		   ab->paired.pairs == 1 ? "" : "s",
		   fmt_rough_time(time, ab->paired.seconds_warm + ab->paired.seconds),
		   ending_of(ab)->because);
	if (ab->paired.pairs)
		tell_table(t, ab, &out);
	cli_out_buf(&out);
}

/* ---- the document ---- */

static void put_metric(struct json_writer *w, const struct talk *t, const struct ab *ab, size_t i)
{
	struct paired_result r;

	paired_result(&ab->paired, i, &r);
	json_begin_object(w);
	json_key(w, "name"), json_put_text(w, t->metric[i].name);
	json_key(w, "decides"), json_put_bool(w, t->run.paired.metric[i].is_judged);
	json_key(w, "verdict"), json_put_text(w, verdict_names[r.verdict]);
	json_key(w, "is_below_min_effect"), json_put_bool(w, r.is_below);
	json_key(w, "change"), json_put_f64(w, r.change);
	json_key(w, "low"), json_put_f64(w, r.low);
	json_key(w, "high"), json_put_f64(w, r.high);
	json_key(w, "level"), json_put_f64(w, r.level);
	json_key(w, "sd"), json_put_f64(w, r.sd);
	json_key(w, "pairs"), json_put_int(w, (int64_t)r.pairs);
	json_key(w, "missing"), json_put_int(w, (int64_t)r.missing);
	json_key(w, "joined"), json_put_int(w, r.joined);
	json_key(w, "correlation"), json_put_f64(w, r.correlation);
	json_key(w, "check_e"), json_put_f64(w, r.check_e);
	json_key(w, "pairs_needed"), json_put_int(w, (int64_t)r.pairs_needed);
	json_member_int(w, "degraded_blocks", ab->doubt[i].degraded);
	json_end_object(w);
}

static void put_pair(struct json_writer *w, const struct talk *t, const struct ab_pair *pair)
{
	json_begin_object(w);
	json_key(w, "first"), json_put_text(w, pair->first == PAIRED_A ? "A" : "B");
	json_key(w, "seconds"), json_put_f64(w, pair->measured.seconds);
	for (unsigned side = 0; side < 2; side++) {
		json_member_object(w, side ? "B" : "A");
		json_key(w, "requests"), json_put_int(w, (int64_t)pair->measured.requests[side]);
		json_key(w, "failed"), json_put_int(w, (int64_t)pair->measured.failed[side]);
		json_member_int(w, "output_tokens", (int64_t)pair->measured.output_tokens[side]);
		for (size_t i = 0; i < t->run.paired.n_metrics; i++)
			json_member_f64(w, t->metric[i].name, pair->measured.value[side][i]);
		json_end_object(w);
	}
	json_end_object(w);
}

/* Without secrets; null when the server was running already. */
static void put_command(struct json_writer *w, const char *key, const char *command)
{
	struct buf room = { 0 };

	json_key(w, key);
	if (command)
		json_put_str(w, redact(str_of(command), &room));
	else
		json_put_text(w, NULL);
	buf_release(&room);
}

static int save(const struct talk *t, const struct ab *ab, struct err *e)
{
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);
	int rc;

	w.indent = 2;
	json_begin_object(&w);
	json_key(&w, "command"), json_put_text(&w, "bench ab");
	json_key(&w, "A"), json_put_text(&w, ab->url[0]);
	json_key(&w, "B"), json_put_text(&w, ab->url[1]);
	for (unsigned side = 0; side < 2; side++)
		put_command(&w, side ? "B_command" : "A_command", t->run.serve.cmd[side]);
	json_key(&w, "seed"), json_put_int(&w, ab->seed);
	json_key(&w, "salt_key"), json_put_text(&w, *ab->salt_key ? ab->salt_key : NULL);
	json_key(&w, "min_effect"), json_put_f64(&w, t->o->min_effect / 100);
	json_key(&w, "block_s"), json_put_f64(&w, ab->block.length_s);
	json_key(&w, "block_requests"), json_put_int(&w, ab->requests);
	json_key(&w, "block_requests_not_counted"), json_put_int(&w, ab->skipped);
	json_key(&w, "ended_by"), json_put_text(&w, ending_of(ab)->name);
	json_member_f64(&w, "seconds", ab->paired.seconds_warm + ab->paired.seconds);
	json_member_array(&w, "metrics");
	for (size_t i = 0; i < t->run.paired.n_metrics; i++)
		put_metric(&w, t, ab, i);
	json_end_array(&w);
	json_key(&w, "pairs"); /* the first one warmed up */
	json_begin_array(&w);
	for (size_t i = 0; i < ab->n_pairs; i++)
		put_pair(&w, t, &ab->pair[i]);
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(&json, '\n');
	rc = file_write_atomic(t->o->output_json, buf_str(&json), e);
	buf_release(&json);
	return rc < 0 ? err_wrap(e, "--output-json") : 0;
}

static bool is_incomparable(enum paired_verdict verdict)
{
	return verdict == PAIRED_FAILED || verdict == PAIRED_OTHER_WORK ||
	       verdict == PAIRED_NO_VALUES;
}

/* --fail-if worse, for one metric; false: it fails. */
static bool gate_passes(const struct talk *t, const char *name, const struct paired_result *r)
{
	struct buf out = { 0 };
	bool passes = true;

	if (r->verdict == PAIRED_WORSE && !r->is_below) {
		passes = false;
		buf_printf(&out, "FAILED: %s is worse by %.1f %%.", name, 100 * fabs(r->change));
	} else if (r->verdict == PAIRED_UNDECIDED || r->verdict == PAIRED_MOVED ||
		   is_incomparable(r->verdict)) {
		passes = t->o->allow_unjudged;
		buf_printf(&out, "%s: whether %s is worse cannot be judged (%s)%s.",
			   passes ? "passed" : "FAILED", name, verdict_names[r->verdict],
			   passes ? ", which --allow-unjudged lets pass" : "");
	} else if (r->verdict == PAIRED_WORSE) {
		buf_printf(&out, "passed: %s is worse by less than the minimum effect of %g %%.", name,
			   t->o->min_effect);
	} else {
		buf_printf(&out, "passed: %s is not worse.", name);
	}
	cli_line(out.data);
	buf_release(&out);
	return passes;
}

/* 1: no answer is possible; with --fail-if, its conditions decide. */
static int status_of(const struct talk *t, const struct ab *ab)
{
	int status = 0;

	if (ab->is_interrupted)
		return EXIT_INTERRUPTED;
	for (size_t i = 0; i < t->run.paired.n_metrics; i++) {
		struct paired_result r;

		if (!t->run.paired.metric[i].is_judged)
			continue;
		paired_result(&ab->paired, i, &r);
		if (t->o->fail_if && !gate_passes(t, t->metric[i].name, &r))
			status = EXIT_GATE;
		else if (status == 0 && is_incomparable(r.verdict) && !t->o->fail_if)
			status = 1;
	}
	return status;
}

int cmd_bench_ab(struct cli *cli, void *values)
{
	struct bench_ab_opts *opts = values;
	struct talk talk = { .o = opts };
	struct ab_hooks hooks = { .self = &talk, .line = on_line, .warn = on_warn,
				  .paired = on_pair, .cancel = cli_is_interrupted() };
	struct err unsaved = { 0 };
	struct ab ab = { 0 };
	int rc, status = 0;

	if (prepare(&talk, &cli->result, &cli->err) < 0)
		return -1;
	cli_catch_signals();
	rc = ab_run(&talk.run, &hooks, &ab, &cli->err);
	if (ab.n_pairs) {
		tell(&talk, &ab);
		status = rc < 0 ? 0 : status_of(&talk, &ab);
		if (opts->output_json && save(&talk, &ab, &unsaved) < 0 && rc == 0)
			cli->err = unsaved;
	} else if (ab.is_interrupted) {
		err_set(&cli->err, ERR_CANCELLED, "interrupted before a pair was measured");
	}
	ab_release(&ab);
	return status;
}
