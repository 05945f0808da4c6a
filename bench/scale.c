/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale.c - what very many streams, and very many requests, cost one `profllm bench serve`.
 *
 * streams: 50,000 open at once, each of which brings a token every 10 s. They begin over 20 s, or
 * STREAMS_RATE of the environment a second and with tokens as much slower, and none has ended when
 * the last one begins, which the result's number of concurrent requests shows. They come from
 * several addresses of the loopback network, since one address has some 28,000 local ports for a
 * server. Where the limit of open files cannot be raised there are fewer.
 *
 * requests: 10 million answers of one token from the canned server, with --record. The memory is
 * read when a tenth was sent and when all were; then the record is scored by another process,
 * whose statistics have to be the same.
 *
 * gather: what rank 0 does with the records of 1,000 ranks (bench/serve/dealt.c) once it has them:
 * each is read and put in its places in the plan. What the network takes is not in it.
 *
 * Memory is what the kernel counts as resident, read five times a second from outside.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/record/file.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/json/read.h"
#include "kit/kit.h"

#define STREAMS 50000
#define STREAMS_QUICK 500
#define STREAMS_RATE 2500          /* begun a second */
#define STREAMS_RATE_QUICK 500
#define SPARE_FILES 200
#define RATE "37000"               /* requests/s, below what the client's core carries with a record */
#define RATE_QUICK "4000"
#define SECONDS "272"
#define SECONDS_QUICK "2"
#define SHARE_EARLY 0.1            /* of the load, when the memory is read first */
#define GROWTH_MB_MAX 16           /* from there to the end */
#define LOOK_NS 200000000
#define LOOKS_MAX 8192
#define RESULT_BYTES_MAX (256u << 20)

struct look { int64_t at_ns; double mb; };
struct watched {
	struct look look[LOOKS_MAX];
	unsigned n;
	double mb_most;
	unsigned files_most;
	struct rusage use;
};

/* Runs without output on the client's core. */
static pid_t start(const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench_set_realtime(false); /* its threads share a core */
		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

static double resident_mb(pid_t pid)
{
	long long pages = 0;
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*s %lld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static unsigned open_files(pid_t pid)
{
	unsigned n = 0;
	char path[32];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 2 ? n - 2 : 0;
}

/* Runs argv (NULL-terminated) to its end. */
static int run(const char *const *argv, struct watched *w, struct err *e)
{
	pid_t pid = start(argv);
	int status = 0;

	if (pid < 0)
		return err_set(e, ERR_RUN, "cannot start %s: %s", argv[0], strerror(errno));
	*w = (struct watched){ .n = 0 };
	while (wait4(pid, &status, WNOHANG, &w->use) == 0) {
		struct look now = { clock_real_ns(), resident_mb(pid) };
		unsigned files = open_files(pid);

		w->mb_most = fmax(w->mb_most, now.mb);
		w->files_most = files > w->files_most ? files : w->files_most;
		if (w->n < LOOKS_MAX)
			w->look[w->n++] = now;
		nanosleep(&(struct timespec){ 0, LOOK_NS }, NULL);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, ERR_RUN, "%s ended with status %d", argv[0],
			       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

static int read_result(const char *path, struct arena *a, struct json_value **out, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(path, RESULT_BYTES_MAX, &text, e);

	if (rc == 0)
		rc = json_parse(a, arena_str(a, buf_str(&text)), out, e);
	buf_release(&text);
	return rc;
}

static double number(const struct json_value *v, const char *key)
{
	return json_real(json_get(v, key), NAN);
}

/* ---- streams ---- */

/*
 * Returns this many streams, or as many as the limit of open files allows; with CAP_SYS_RESOURCE
 * the limit is raised.
 */
static unsigned allow_streams(unsigned streams)
{
	struct rlimit limit = { streams + SPARE_FILES, streams + SPARE_FILES };

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < streams + SPARE_FILES) {
		rlim_t hard = limit.rlim_max;

		limit.rlim_cur = limit.rlim_max = streams + SPARE_FILES;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			return hard > SPARE_FILES ? (unsigned)(hard - SPARE_FILES) : 0;
	}
	return streams;
}

static int add_streams(struct bench *b, const struct watched *w, const char *path, unsigned streams,
		       struct err *e)
{
	struct arena a = { 0 };
	struct json_value *result, *own, *lag;
	int rc = read_result(path, &a, &result, e);

	if (rc == 0) {
		own = json_get(result, "profllm");
		lag = json_get(own, "send_lag_ms");
		figure_least(bench_add(b, "", number(result, "max_concurrent_requests"),
				       "streams: open at once"),
			     b->is_quick ? STREAMS_QUICK : STREAMS);
		figure_least(bench_add(b, "", number(result, "completed"), "streams: completed"), streams);
		figure_most(bench_add(b, "MB", w->mb_most, "streams: memory of the client"), 400);
		bench_add(b, "", w->files_most, "streams: files that it had open");
		bench_add(b, "ms", number(lag, "p50"), "streams: send lag, p50");
		bench_add(b, "ms", number(lag, "p99"), "streams: send lag, p99");
		bench_add(b, "ms", number(lag, "max"), "streams: send lag, max");
		bench_add(b, "s", bench_cpu_s(&w->use), "streams: processor time of the client");
		bench_add(b, "", str_is(json_text(json_get(own, "verdict"), STR("")), "VALID"),
			  "streams: verdict is VALID");
	}
	arena_release(&a);
	return rc;
}

static unsigned streams_rate(const struct bench *b)
{
	const char *asked = getenv("STREAMS_RATE");
	unsigned rate = asked ? (unsigned)strtoul(asked, NULL, 10) : 0;

	return rate ? rate : b->is_quick ? STREAMS_RATE_QUICK : STREAMS_RATE;
}

static int run_streams(struct bench *b, struct err *e)
{
	static struct watched w;
	unsigned streams = allow_streams(b->is_quick ? STREAMS_QUICK : STREAMS);
	unsigned per_s = streams_rate(b);
	unsigned begin_ms = 1000 * (streams / per_s + 1);
	char n[16], path[80], rate[16], ttft[16], itl[16];
	const char *const sim_args[] = { "--ttft-ms", ttft, "--itl-ms", itl, NULL };
	struct sim_child sim = { 0 };
	const char *const argv[] = {
		b->binary, "bench", "serve", "--base-url", sim.url, "--model", "sim", "--tokenizer", "sim",
		"--dataset-name", "random", "--random-input-len", "16", "--random-output-len", "3",
		"--num-prompts", n, "--request-rate", rate, "--burstiness", "inf",
		"--source-addresses", "127.0.0.2", "127.0.0.3", "127.0.0.4", "--warm-connections", "0",
		"--ready-check-timeout-sec", "0", "--progress", "none", "--save-result", "--result-dir",
		sim.dir, "--result-filename", "result.json", NULL,
	};
	int rc;

	snprintf(n, sizeof(n), "%u", streams);
	snprintf(rate, sizeof(rate), "%u", per_s);
	snprintf(ttft, sizeof(ttft), "%u", begin_ms + begin_ms / 2); /* the last one begins before */
	snprintf(itl, sizeof(itl), "%u", begin_ms / 2);
	rc = sim_child_start(&sim, b, false, sim_args, e);
	snprintf(path, sizeof(path), "%s/result.json", sim.dir);
	if (rc == 0)
		rc = run(argv, &w, e);
	if (rc == 0)
		rc = add_streams(b, &w, path, streams, e);
	unlink(path);
	sim_child_release(&sim);
	return rc;
}

/* ---- requests ---- */

/* The largest memory from one share of the load to another. */
static double memory_between(const struct watched *w, const struct json_value *own, double from,
			     double to)
{
	double start = number(own, "start_ns"), whole = number(own, "stop_ns") - start, most = 0;

	for (unsigned i = 0; i < w->n; i++) {
		double at = ((double)w->look[i].at_ns - start) / whole;

		if (at >= from && at <= to)
			most = fmax(most, w->look[i].mb);
	}
	return most;
}

static void add_requests(struct bench *b, const struct watched *w, const struct json_value *result)
{
	const struct json_value *own = json_get(result, "profllm");
	double n = number(result, "completed");
	double early = memory_between(w, own, SHARE_EARLY - 0.02, SHARE_EARLY + 0.02);
	double late = memory_between(w, own, 0.96, 1);

	bench_add(b, "", n, "requests: completed");
	bench_add(b, "requests/s", number(result, "request_throughput"), "requests: rate");
	bench_add(b, "MB", early, "requests: memory when a tenth was sent");
	bench_add(b, "MB", late, "requests: memory when all were sent");
	figure_most(bench_add(b, "MB", late - early, "requests: growth from there"), GROWTH_MB_MAX);
	bench_add(b, "MB", w->mb_most, "requests: memory, scoring included");
	bench_add(b, "us", bench_cpu_s(&w->use) / n * 1e6, "requests: all CPU per request");
}

/* Statistics that two results do not have alike. */
static unsigned count_unlike(const struct json_value *a, const struct json_value *b)
{
	static const char *const keys[] = { "completed", "duration", "request_throughput",
		"total_output_tokens", "mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms", "std_ttft_ms" };
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		double x = number(a, keys[i]), y = number(b, keys[i]);

		n += !(x <= y && x >= y);
	}
	return n;
}

static int score(struct bench *b, const char *dir, const char *record,
		 const struct json_value *result, struct err *e)
{
	static struct watched w;
	const char *const argv[] = { b->binary, "bench", "score", record, "--save-result",
				     "--result-dir", dir, "--result-filename", "again.json", NULL };
	int64_t began_ns = clock_mono_ns();
	struct arena a = { 0 };
	struct json_value *again;
	struct stat st;
	char path[200];
	int rc = run(argv, &w, e);

	snprintf(path, sizeof(path), "%s/again.json", dir);
	if (rc == 0)
		rc = read_result(path, &a, &again, e);
	if (rc == 0 && stat(record, &st) == 0) {
		bench_add(b, "bytes", (double)st.st_size / number(result, "completed"),
			  "requests: record, per request");
		bench_add(b, "s", (double)(clock_mono_ns() - began_ns) / 1e9, "bench score: duration");
		bench_add(b, "MB", w.mb_most, "bench score: memory");
		figure_most(bench_add(b, "", count_unlike(result, again),
				      "bench score: statistics that differ"), 0);
	}
	unlink(path);
	arena_release(&a);
	return rc;
}

static int run_requests(struct bench *b, struct err *e)
{
	static struct watched w;
	struct canned_spec one = { .events = 1 };
	struct canned server = { 0 };
	struct arena a = { 0 };
	struct json_value *result;
	const char *in = getenv("TMPDIR");
	char dir[160], record[200], path[200];
	const char *const argv[] = {
		b->binary, "bench", "serve", "--base-url", server.url, "--model", "sim", "--tokenizer",
		"sim", "--dataset-name", "random", "--random-input-len", "16", "--random-output-len", "1",
		"--request-rate", b->is_quick ? RATE_QUICK : RATE, "--duration",
		b->is_quick ? SECONDS_QUICK : SECONDS, "--max-concurrency", "512", "--timestamps",
		"kernel", "--ready-check-timeout-sec", "0", "--progress", "none", "--metrics-interval", "0",
		"--save-result", "--result-dir", dir, "--result-filename", "result.json", "--record",
		record, NULL,
	};
	int rc;

	snprintf(dir, sizeof(dir), "%s/profllm-bench-XXXXXX", in && *in ? in : "/tmp");
	if (!mkdtemp(dir))
		return err_set(e, ERR_RUN, "cannot make a directory: %s", strerror(errno));
	snprintf(record, sizeof(record), "%s/record", dir);
	snprintf(path, sizeof(path), "%s/result.json", dir);
	rc = canned_start(&server, &one, e);
	if (rc == 0)
		rc = run(argv, &w, e);
	canned_stop(&server, NULL);
	if (rc == 0)
		rc = read_result(path, &a, &result, e);
	if (rc == 0) {
		add_requests(b, &w, result);
		rc = score(b, dir, record, result, e);
	}
	arena_release(&a);
	unlink(record);
	unlink(path);
	rmdir(dir);
	return rc;
}

/* ---- gather ---- */

#define EVENTS_OF_ROW 32

/* The record of a rank: its rows of the plan, all others unsent. */
static int save_part(const char *path, unsigned rank, unsigned ranks, uint32_t rows, struct err *e)
{
	struct record r;
	uint32_t n = rows * ranks;

	if (record_init(&r, n, 1, (uint64_t)rows * EVENTS_OF_ROW, true, false, e) < 0)
		return -1;
	record_add_rows(&r, n);
	r.start_ns = r.stop_ns = 1;
	for (uint32_t i = 0; i < n; i++) {
		if (i % ranks == rank)
			for (unsigned k = 0; k < EVENTS_OF_ROW; k++)
				record_event(&r.shard[0], &r.row[i], 10000000, 1000);
		record_finish(&r.row[i], i % ranks == rank ? REQ_DONE : REQ_UNSENT);
	}
	if (record_file_save(&r, NULL, path, e) < 0) {
		record_release(&r);
		return -1;
	}
	record_release(&r);
	return 0;
}

static int join_part(struct record *all, struct record_info *info, const char *path, struct err *e)
{
	struct record_info part_info;
	struct record part;

	if (record_file_load(&part, &part_info, path, e) < 0)
		return -1;
	if (record_rejoin(all, info, &part, &part_info, e) == 0)
		return 0;
	record_release(&part);
	record_info_release(&part_info);
	return -1;
}

static int run_gather(struct bench *b, struct err *e)
{
	unsigned ranks = b->is_quick ? 50 : 1000;
	uint32_t rows = 100;
	char path[] = "/tmp/profllm-bench-gather-XXXXXX";
	struct record_info info = { .is_complete = true };
	struct record all;
	int64_t used_ns = 0, before = bench_rss();
	int fd = mkstemp(path), rc = 0;
	double n = (double)ranks * rows * EVENTS_OF_ROW;

	if (fd < 0)
		return err_set(e, ERR_RUN, "cannot make a file in /tmp: %s", strerror(errno));
	close(fd);
	record_empty(&all, rows * ranks, 1);
	for (unsigned k = 0; rc == 0 && k < ranks; k++) {
		int64_t from_ns;

		rc = save_part(path, k, ranks, rows, e);
		from_ns = clock_mono_ns();
		if (rc == 0)
			rc = join_part(&all, &info, path, e);
		used_ns += clock_mono_ns() - from_ns;
	}
	if (rc == 0) {
		bench_add(b, "ms", (double)used_ns / 1e6 / ranks, "gather: a rank of %u events",
			  rows * EVENTS_OF_ROW);
		bench_add(b, "s", (double)used_ns / 1e9, "gather: %u ranks", ranks);
		bench_add(b, "bytes", (double)(bench_rss() - before) / n, "gather: memory per event");
	}
	record_release(&all);
	record_info_release(&info);
	unlink(path);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct bench *b, struct err *e);
	} scenes[] = {
		{ "streams", run_streams }, { "requests", run_requests }, { "gather", run_gather },
	};
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "scale", argc, argv, &e);

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
		for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++)
			if (!b.only || strcmp(b.only, scenes[i].name) == 0)
				rc = scenes[i].run(&b, &e);
	return bench_end(&b, &e);
}
