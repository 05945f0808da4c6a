/* SPDX-License-Identifier: Apache-2.0 */
/* hash_bench.c - see hash_bench.h. */
#include "bench/offline/hash_bench.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/offline/offline.h"
#include "bench/offline/offline_internal.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/rng/rng.h"
#include "core/stats/stats.h"
#include "host/worker/worker.h"
#include "out/report/report.h"
#include "version.h"

#define WIDE "============================================================" /* 60 */
#define BUILTIN "built-in hash()"
#define TOKENS_MAX (1 << 26)

#define RUN "Run"
#define H(member, name, ...) OPT(struct hash_opts, member, name, __VA_ARGS__)
#define SHARED_ROWS                                                                        \
	H(common.output_json, "output-json", .arg = "FILE", .group = RUN, .flags = OPT_OURS,         \
	  .words = "json output out -o", .help = "write the times as JSON"),                 \
	H(common.python, "python", .group = OFFLINE_GROUP, .arg = "FILE", .flags = OPT_OURS,   \
	  .help = "the interpreter that has vLLM; otherwise $PROFLLM_PYTHON, that of "        \
		  "$VIRTUAL_ENV, that of vllm in PATH, python3"),                             \
	H(common.worker_cmd, "worker-cmd", .group = OFFLINE_GROUP, .arg = "COMMAND",           \
	  .flags = OPT_OURS, .help = "a program that times the functions, instead of the built-in one"), \
	H(common.worker_log, "worker-log", .group = OFFLINE_GROUP, .arg = "FILE",              \
	  .flags = OPT_OURS, .help = "file to which the program's output is appended"),        \
	H(common.show_log, "show-log", .group = OFFLINE_GROUP, .flags = OPT_OURS,              \
	  .help = "copy the program's output to stderr as it arrives"), \
	H(common.load_timeout, "load-timeout", .group = OFFLINE_GROUP, .arg = "SECONDS",       \
	  .flags = OPT_OURS | OPT_MIN_EXCLUSIVE | OPT_WHOLE, .min = 0, .max = 1e6,             \
	  .help = "time limit for importing vLLM"),                                     \
	H(common.worker_timeout, "worker-timeout", .group = OFFLINE_GROUP, .arg = "SECONDS",   \
	  .flags = OPT_OURS | OPT_MIN_EXCLUSIVE | OPT_WHOLE, .min = 0, .max = 1e6,             \
	  .help = "time limit without any sign of progress while functions are timed")

static const char *const groups[] = { RUN, OFFLINE_GROUP, NULL };
static const char *const algorithms[] = {
	"sha256", "sha256_cbor", "sha256_msgpack", "xxhash", "xxhash_cbor", "xxhash_msgpack", NULL,
};

static const struct opt hash_rows[] = {
	H(iterations, "iterations", .arg = "N", .group = RUN, .min = 1, .max = 1e8,
	  .help = "timed calls of each function, after 200 that are not"),
	H(seed, "seed", .arg = "N", .group = RUN, .min = 0, .max = UINT32_MAX,
	  .help = "seed of the value that is hashed"),
	SHARED_ROWS,
};
static const struct opt block_rows[] = {
	H(num_blocks, "num-blocks", .arg = "N", .group = RUN, .min = 1, .max = TOKENS_MAX,
	  .help = "length of the chain of blocks"),
	H(block_size, "block-size", .arg = "TOKENS", .group = RUN, .min = 1, .max = TOKENS_MAX,
	  .help = "tokens of a block"),
	H(vocab_size, "vocab-size", .arg = "N", .group = RUN, .min = 1, .max = UINT32_MAX,
	  .help = "token ids are drawn from 0 to N - 1"),
	H(seed, "seed", .arg = "N", .group = RUN, .min = 0, .max = UINT32_MAX,
	  .help = "seed of the token ids"),
	H(trials, "trials", .arg = "N", .group = RUN, .min = 1, .max = 1e6,
	  .help = "how often the chain is hashed with each algorithm"),
	H(algorithms, "algorithms", .arg = "NAME", .group = RUN, .flags = OPT_MANY,
	  .choices = algorithms, .help = "algorithms to time; all unless given"),
	SHARED_ROWS,
};

#define COMMON { OFFLINE_DEFAULTS }
static const struct hash_opts hash_defaults = {
	.common = COMMON, .iterations = 10000, .seed = 42,
};
static const struct hash_opts block_defaults = {
	.common = COMMON, .num_blocks = 10000, .block_size = 32, .vocab_size = 32000, .trials = 5,
};

const struct opt_set hash_opt_set = {
	.command = "bench hash",
	.summary = "Times the hash functions of an installed vLLM on one value. Options and lines are "
		   "those of vLLM's benchmark_hash.py.",
	.usage = "[options]",
	.epilog = "Examples:\n"
		  "  profllm bench hash --iterations 20000\n"
		  "  profllm bench hash --python /opt/vllm/bin/python3",
	.row = hash_rows, .n = sizeof(hash_rows) / sizeof(*hash_rows),
	.defaults = &hash_defaults, .bytes = sizeof(hash_defaults), .groups = groups,
	.takes_prefixes = true,
};
const struct opt_set block_hash_opt_set = {
	.command = "bench prefix-block-hash",
	.summary = "Times how an installed vLLM hashes the blocks of a prompt for its prefix cache. "
		   "Options and lines are those of vLLM's benchmark_prefix_block_hash.py.",
	.usage = "[options]",
	.epilog = "Examples:\n"
		  "  profllm bench prefix-block-hash --num-blocks 20000 --block-size 32\n"
		  "  profllm bench prefix-block-hash --algorithms sha256 xxhash",
	.row = block_rows, .n = sizeof(block_rows) / sizeof(*block_rows),
	.defaults = &block_defaults, .bytes = sizeof(block_defaults), .groups = groups,
	.takes_prefixes = true,
};

/* ---- draws and lines ---- */

void hash_draw(int64_t seed, struct hash_payload *out)
{
	struct pyrandom g;

	pyrandom_seed(&g, seed);
	for (size_t i = 0; i < HASH_PAYLOAD; i++)
		out->bytes[i] = (uint8_t)pyrandom_bits(&g, 8);
	for (size_t i = 0; i < HASH_PAYLOAD; i++)
		out->ints[i] = pyrandom_int(&g, 1, 1000000);
}

void hash_draw_ids(int64_t seed, int64_t vocab, size_t n, uint32_t *out)
{
	struct pyrandom g;

	assert(vocab >= 1);
	pyrandom_seed(&g, seed);
	for (size_t i = 0; i < n; i++)
		out[i] = (uint32_t)pyrandom_below(&g, (uint64_t)vocab);
}

void hash_lines(const struct hash_time *t, size_t n, struct buf *out)
{
	const struct hash_time *builtin = NULL;

	buf_add_text(out, "\nResults:\n");
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "  %-16s: %8.2f ± %6.2f μs\n", t[i].name, t[i].mean_s * 1e6,
			   t[i].std_s * 1e6);
		if (strcmp(t[i].name, BUILTIN) == 0)
			builtin = &t[i];
	}
	if (!builtin) {
		buf_add_text(out, "\nBuilt-in hash() result missing; cannot compute speed ratios.\n");
		return;
	}
	buf_add_text(out, "\n" WIDE "\nSUMMARY (relative to built-in hash())\n" WIDE "\n");
	for (size_t i = 0; i < n; i++)
		if (&t[i] != builtin)
			buf_printf(out, "• %s is %.1fx slower than built-in hash()\n", t[i].name,
				   t[i].mean_s / builtin->mean_s);
}

void block_hash_line(const char *name, const double *times_s, size_t n, double tokens,
		     struct buf *out)
{
	double best = times_s[0];

	for (size_t i = 1; i < n; i++)
		best = fmin(best, times_s[i]);
	buf_printf(out, "%-14s avg: %.6fs  best: %.6fs  throughput: %.2fM tokens/s\n", name,
		   stats_mean(times_s, n), best, tokens / best / 1e6);
}

/* ---- the program with vLLM ---- */

struct hash_run {
	const struct hash_opts *o;
	const struct offline_hooks *hooks;
	struct engine_worker *worker;
	struct arena arena;
	struct buf ours;          /* --output-json */
	struct json_writer w;
	size_t timed;
};

static void on_text(void *self, const char *text)
{
	const struct hash_run *t = self;

	if (t->hooks->warn)
		t->hooks->warn(t->hooks->self, text);
}

static void on_progress(void *self, uint64_t done, uint64_t total)
{
	const struct hash_run *t = self;

	if (t->hooks->progress)
		t->hooks->progress(t->hooks->self, "Timed calls", done, total);
}

static int begin(struct hash_run *t, struct err *e)
{
	const struct offline_opts *o = &t->o->common;
	const struct offline_start how = { .opts = o, .backend = "hash" };
	struct offline_program program;
	struct worker_failure why;
	struct worker_opts opts = {
		.name = "the program that times vLLM's hashes", .log_path = o->worker_log,
		.show_fd = o->show_log ? STDERR_FILENO : -1, .load_s = o->load_timeout,
		.silence_s = o->worker_timeout, .grace_s = o->server_grace,
		.hooks = { t, on_text, on_text, on_progress, t->hooks->cancel },
	};

	if (offline_find(&how, &t->arena, &program, e) < 0)
		return -1;
	opts.argv = program.argv;
	if (worker_start(&opts, &t->worker, &why, e) < 0) {
		if (why.fault != WORKER_FAULT_PACKAGE)
			return -1;
		return err_set(e, ERR_RUN, "vLLM's hash functions cannot be timed: %s has no vllm.utils."
			       "hashing (%s); install vLLM there, or name another interpreter with "
			       "--python", program.python ? program.python : "the program", why.reason);
	}
	t->w = json_writer(&t->ours);
	t->w.indent = 4;
	json_begin_object(&t->w);
	json_member_text(&t->w, "version", PROFLLM_VERSION);
	json_member_text(&t->w, "vllm_version", worker_hello(t->worker)->version);
	json_member_int(&t->w, "seed", t->o->seed);
	return 0;
}

static int end(struct hash_run *t, int rc, struct err *e)
{
	struct err ignored = { 0 };

	if (rc == 0 && t->timed == 0)
		rc = err_set(e, ERR_RUN, "none of the hash functions could be timed; the lines above say why");
	if (worker_stop(t->worker, rc < 0 ? &ignored : e) < 0)
		rc = -1;
	if (rc == 0 && t->o->common.output_json &&
	    report_save(t->o->common.output_json, buf_str(&t->ours), false, e) < 0)
		rc = err_wrap(e, "--output-json");
	buf_release(&t->ours);
	arena_release(&t->arena);
	return rc;
}

static struct json_writer question(struct buf *members)
{
	struct json_writer w;

	buf_reset(members);
	members->limit = WORKER_FRAME_BYTES_MAX;
	w = json_writer(members);
	w.is_compact = w.is_raw_utf8 = true;
	json_begin_object(&w);
	return w;
}

/* members: a whole object, without the outer braces, which the channel adds. */
static int ask(struct hash_run *t, const char *type, const struct buf *members,
	       struct worker_reply *r, struct err *e)
{
	const struct buf inner = { .data = members->data + 1, .len = members->len - 2 };

	return worker_call(t->worker, type, &inner, r, NULL, e);
}

/* Whether the answer says why there is no time; *why in the arena. */
static bool is_skipped(struct hash_run *t, const struct worker_reply *r, const char **why)
{
	struct json_slice v;
	struct buf text = { 0 };

	if (!json_member(r->body, "skipped", &v) || v.kind != JSON_STRING)
		return false;
	json_unescape(&text, v.raw);
	*why = arena_text(&t->arena, buf_str(&text));
	buf_release(&text);
	return true;
}

static int get_seconds(struct hash_run *t, struct json_slice v, const char *what, double *out,
		       struct err *e)
{
	if (json_to_f64(v, out) && isfinite(*out) && *out >= 0)
		return 0;
	return worker_distrust(t->worker, e, "%s is not a time in seconds", what);
}

/* ---- bench hash ---- */

static int time_one(struct hash_run *t, const char *function, const struct hash_payload *p,
		    struct hash_time *out, const char **skipped, struct err *e)
{
	struct buf members = { 0 }, hex = { 0 };
	struct json_writer w = question(&members);
	struct worker_reply r;
	struct json_slice v, s;
	int rc;

	for (size_t i = 0; i < HASH_PAYLOAD; i++)
		buf_printf(&hex, "%02x", p->bytes[i]);
	json_member_text(&w, "function", function);
	json_member_text(&w, "bytes", hex.data);
	json_member_array(&w, "ints");
	for (size_t i = 0; i < HASH_PAYLOAD; i++)
		json_put_int(&w, p->ints[i]);
	json_end_array(&w);
	json_member_int(&w, "iterations", t->o->iterations);
	json_end_object(&w);
	rc = ask(t, "hash", &members, &r, e);
	buf_release(&members);
	buf_release(&hex);
	if (rc < 0 || is_skipped(t, &r, skipped))
		return rc;
	if (!json_member(r.body, "mean_s", &v) || !json_member(r.body, "std_s", &s))
		return worker_distrust(t->worker, e, "mean_s or std_s is missing");
	return get_seconds(t, v, "mean_s", &out->mean_s, e) < 0 ? -1 :
	       get_seconds(t, s, "std_s", &out->std_s, e);
}

static void thousands(struct buf *out, int64_t v)
{
	if (v >= 1000) {
		thousands(out, v / 1000);
		buf_printf(out, ",%03d", (int)(v % 1000));
	} else {
		buf_printf(out, "%d", (int)v);
	}
}

static int time_all(struct hash_run *t, struct err *e)
{
	static const struct { const char *name, *function; } all[] = {
		{ "SHA256 (pickle)", "sha256" }, { "xxHash (pickle)", "xxhash" }, { BUILTIN, "hash" },
	};
	struct hash_time times[sizeof(all) / sizeof(*all)];
	struct hash_payload payload;
	struct buf text = { 0 };

	hash_draw(t->o->seed, &payload);
	buf_add_text(&text, WIDE "\nHASH FUNCTION MICRO BENCHMARK\n" WIDE "\n"
		     "Test data: (32-byte bytes object, 32-int tuple)\nIterations: ");
	thousands(&text, t->o->iterations);
	buf_add_text(&text, "\n" WIDE "\n");
	offline_say(t->hooks, &text);
	json_member_int(&t->w, "iterations", t->o->iterations);
	json_member_array(&t->w, "results");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct hash_time *now = &times[t->timed];
		const char *skipped = NULL;

		now->name = all[i].name;
		if (time_one(t, all[i].function, &payload, now, &skipped, e) < 0) {
			buf_release(&text);
			return -1;
		}
		json_begin_object(&t->w);
		json_member_text(&t->w, "name", all[i].name);
		if (skipped) {
			offline_line(t->hooks, "Skipping %s: %s", all[i].name, skipped);
			json_member_text(&t->w, "skipped", skipped);
		} else {
			t->timed++;
			json_member_f64(&t->w, "mean_s", now->mean_s);
			json_member_f64(&t->w, "std_s", now->std_s);
		}
		json_end_object(&t->w);
	}
	json_end_array(&t->w);
	json_end_object(&t->w);
	hash_lines(times, t->timed, &text);
	offline_say(t->hooks, &text);
	buf_release(&text);
	return 0;
}

int hash_run(const struct hash_opts *o, const struct offline_hooks *hooks, struct err *e)
{
	struct hash_run t = { .o = o, .hooks = hooks };
	int rc = begin(&t, e);

	return end(&t, rc == 0 ? time_all(&t, e) : rc, e);
}

/* ---- bench prefix-block-hash ---- */

static int hand_over(struct hash_run *t, const uint32_t *id, size_t n, struct err *e)
{
	struct buf members = { 0 };
	size_t at = 0;
	int rc = 0;

	do {
		struct json_writer w = question(&members);
		struct worker_reply r;
		struct json_slice v;
		int64_t held;

		json_member_bool(&w, "is_first", at == 0);
		json_member_array(&w, "ids");
		while (at < n && members.len < WORKER_PUT_BYTES)
			json_put_int(&w, id[at++]);
		json_end_array(&w);
		json_end_object(&w);
		rc = ask(t, "blocks", &members, &r, e);
		if (rc == 0 && (!json_member(r.body, "n", &v) || !json_to_i64(v, &held) ||
				held != (int64_t)at))
			rc = worker_distrust(t->worker, e, "it does not hold the %zu ids it was given", at);
	} while (rc == 0 && at < n);
	buf_release(&members);
	return rc;
}

static int read_times(struct hash_run *t, const struct worker_reply *r, double *times,
		      struct err *e)
{
	struct json_slice list, v;
	struct json_iter it;
	struct str key;
	int64_t n = 0;

	if (!json_member(r->body, "times_s", &list) || list.kind != JSON_ARRAY)
		return worker_distrust(t->worker, e, "times_s is not a list");
	for (it = json_iter(list); json_each(&it, &key, &v) == 1; n++)
		if (n < t->o->trials && get_seconds(t, v, "an entry of times_s", &times[n], e) < 0)
			return -1;
	return n == t->o->trials ? 0 : worker_distrust(t->worker, e, "times_s has %lld entries for "
						       "%lld trials", (long long)n,
						       (long long)t->o->trials);
}

static int time_chain(struct hash_run *t, const char *name, double *times, struct err *e)
{
	const size_t trials = (size_t)t->o->trials;
	struct buf members = { 0 }, text = { 0 };
	struct json_writer w = question(&members);
	const char *skipped = NULL;
	struct worker_reply r;
	int rc;

	json_member_text(&w, "algorithm", name);
	json_member_int(&w, "block_size", t->o->block_size);
	json_member_int(&w, "trials", t->o->trials);
	json_end_object(&w);
	rc = ask(t, "block_hash", &members, &r, e);
	buf_release(&members);
	if (rc < 0)
		return -1;
	json_begin_object(&t->w);
	json_member_text(&t->w, "algorithm", name);
	if (is_skipped(t, &r, &skipped)) {
		on_text(t, arena_printf(&t->arena, "Skipping %s: %s", name, skipped));
		json_member_text(&t->w, "skipped", skipped);
	} else if (read_times(t, &r, times, e) < 0) {
		return -1;
	} else {
		t->timed++;
		block_hash_line(name, times, trials,
				(double)t->o->num_blocks * (double)t->o->block_size, &text);
		offline_say(t->hooks, &text);
		json_member_f64s(&t->w, "times_s", times, trials);
	}
	json_end_object(&t->w);
	buf_release(&text);
	return 0;
}

static int time_chains(struct hash_run *t, struct err *e)
{
	const struct hash_opts *o = t->o;
	const char *const *names = o->algorithms.n ? o->algorithms.v : algorithms;
	const size_t count = o->algorithms.n ? o->algorithms.n :
			     sizeof(algorithms) / sizeof(*algorithms) - 1;
	const size_t n = (size_t)(o->num_blocks * o->block_size);
	uint32_t *id = mem_array(n, sizeof(*id));
	double *times = mem_array((size_t)o->trials, sizeof(*times));
	int rc;

	hash_draw_ids(o->seed, o->vocab_size, n, id);
	offline_line(t->hooks, "Benchmarking %zu algorithms on %" PRId64 " blocks (block size=%" PRId64
		     ").", count, o->num_blocks, o->block_size);
	rc = hand_over(t, id, n, e);
	free(id);
	json_member_int(&t->w, "num_blocks", o->num_blocks);
	json_member_int(&t->w, "block_size", o->block_size);
	json_member_array(&t->w, "results");
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = time_chain(t, names[i], times, e);
	if (rc == 0) {
		json_end_array(&t->w);
		json_end_object(&t->w);
	}
	free(times);
	return rc;
}

int block_hash_run(const struct hash_opts *o, const struct offline_hooks *hooks, struct err *e)
{
	struct hash_run t = { .o = o, .hooks = hooks };
	int rc;

	if (o->num_blocks > TOKENS_MAX / o->block_size)
		return err_set(e, ERR_USAGE, "--num-blocks %" PRId64 " x --block-size %" PRId64 ": at most %d "
			       "tokens", o->num_blocks, o->block_size, TOKENS_MAX);
	rc = begin(&t, e);
	return end(&t, rc == 0 ? time_chains(&t, e) : rc, e);
}
