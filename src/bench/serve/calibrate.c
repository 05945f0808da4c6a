/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - see calibrate.h. */
#include "bench/serve/calibrate.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/serve/point_internal.h"
#include "client/metrics/oracle.h"
#include "client/net/tls.h"
#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "host/proc/keeper.h"
#include "host/proc/tool.h"
#include "version.h"

/* ---- the simulator ---- */

#define SIM_START_NS 10000000000
#define SIM_GRACE_S 20 /* to write the rest of its truth file */
#define SIM_LOOK_MS 5
#define SIM_LOG_BYTES 4096

struct oracle_server {
	char dir[64];        /* of its files; empty: not made */
	struct keeper *keeper;
	char url[64];
};

static char *path_in(const struct oracle_server *s, const char *name)
{
	return file_join(s->dir, name);
}

/* The last line that it wrote before it ended. */
static int say_ended(const struct oracle_server *s, struct err *e)
{
	struct buf log = { 0 };
	char *path = path_in(s, "log");
	struct str rest, line = STR("");

	if (file_read(path, SIM_LOG_BYTES, &log, NULL) == 0) {
		rest = str_trim(buf_str(&log));
		while (rest.n)
			line = str_cut(&rest, '\n');
	}
	err_set(e, ERR_RUN, "the simulator did not start%s%.*s", line.n ? ": " : "", (int)line.n,
		line.p);
	buf_release(&log);
	free(path);
	return -1;
}

static int wait_for_port(struct oracle_server *s, bool is_tls, const atomic_bool *cancel,
			 struct err *e)
{
	int64_t deadline = clock_mono_ns() + SIM_START_NS;
	char *path = path_in(s, "port");
	struct buf text = { 0 };
	uint64_t port = 0;
	int rc = 0;

	while (rc == 0 && port == 0) {
		if (cancel && atomic_load(cancel))
			rc = err_set(e, ERR_CANCELLED, "interrupted");
		else if (keeper_has_ended(s->keeper, SIM_LOOK_MS, NULL) ||
			 clock_mono_ns() > deadline)
			rc = say_ended(s, e);
		buf_reset(&text);
		if (rc == 0 && file_read(path, 64, &text, NULL) == 0 &&
		    str_ends(buf_str(&text), STR("\n")) &&
		    !str_to_u64(str_trim(buf_str(&text)), &port))
			port = 0;
	}
	snprintf(s->url, sizeof(s->url), "http%s://127.0.0.1:%u", is_tls ? "s" : "",
		 (unsigned)port);
	buf_release(&text);
	free(path);
	return rc;
}

static int make_folder(struct oracle_server *s, struct err *e)
{
	const char *folder = getenv("TMPDIR");

	if (!folder || !*folder || strlen(folder) > sizeof(s->dir) - 32)
		folder = "/tmp";
	snprintf(s->dir, sizeof(s->dir), "%s/profllm-calibrate-XXXXXX", folder);
	if (mkdtemp(s->dir))
		return 0;
	s->dir[0] = 0;
	return err_set(e, ERR_IO, "cannot make a folder in %s: %s", folder, strerror(errno));
}

/*
 * Starts it on processors that this thread may not use, if there are any (taskset); else the kernel
 * distributes both over those that they share, of which there must be two.
 */
static int start_elsewhere(const struct keeper_opts *o, struct keeper **out, struct err *e)
{
	cpu_set_t mine, others;
	bool is_moved;
	int rc;

	if (sched_getaffinity(0, sizeof(mine), &mine) < 0)
		return keeper_start(o, out, NULL, e);
	CPU_ZERO(&others);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (!CPU_ISSET(i, &mine))
			CPU_SET(i, &others);
	is_moved = sched_setaffinity(0, sizeof(others), &others) == 0;
	if (!is_moved && CPU_COUNT(&mine) < 2)
		return err_set(e, ERR_RUN, "the simulator needs a processor of its own, and there is "
			       "only one");
	rc = keeper_start(o, out, NULL, e);
	if (is_moved)
		(void)sched_setaffinity(0, sizeof(mine), &mine);
	return rc;
}

static int server_begin(struct oracle_server *s, const struct calibration *c, double itl_ms,
			struct err *e)
{
	char itl[32], ttft[32];
	char *port, *truth, *cert, *key, *log;
	int log_fd, rc;

	if (make_folder(s, e) < 0)
		return -1;
	port = path_in(s, "port");
	truth = path_in(s, "truth.jsonl");
	cert = path_in(s, "cert.pem");
	key = path_in(s, "key.pem");
	log = path_in(s, "log");
	snprintf(itl, sizeof(itl), "%.9g", itl_ms);
	snprintf(ttft, sizeof(ttft), "%d", BUDGET_TTFT_MS);
	const char *argv[] = { c->program ? c->program : PROGRAM_WORD, "sim", "--port", "0",
			       "--port-file", port, "--truth", truth, "--ttft-ms", ttft, "--itl-ms",
			       itl, c->level.is_tls ? "--ssl-certfile" : NULL, cert,
			       "--ssl-keyfile", key, NULL };

	log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	rc = c->level.is_tls ? tls_make_certificate(cert, key, e) : 0;
	if (rc == 0)
		rc = start_elsewhere(&(struct keeper_opts){
			.argv = (char *const *)(uintptr_t)argv, .out_fd = -1, .err_fd = log_fd,
			.follow_fd = -1, .grace_s = SIM_GRACE_S, .program = c->program,
		}, &s->keeper, e);
	if (log_fd >= 0)
		close(log_fd);
	if (rc == 0)
		rc = wait_for_port(s, c->level.is_tls, c->cancel, e);
	free(port);
	free(truth);
	free(cert);
	free(key);
	free(log);
	return rc;
}

/* After this its truth file is complete. */
static int server_end(struct oracle_server *s, const atomic_bool *hurry, struct err *e)
{
	struct keeper *k = s->keeper;

	s->keeper = NULL;
	return k ? keeper_stop(k, hurry, e) : 0;
}

static void server_release(struct oracle_server *s, const atomic_bool *hurry)
{
	static const char *const files[] = { "port", "truth.jsonl", "cert.pem", "key.pem", "log" };

	server_end(s, hurry, NULL);
	for (size_t i = 0; s->dir[0] && i < sizeof(files) / sizeof(*files); i++) {
		char *path = path_in(s, files[i]);

		unlink(path);
		free(path);
	}
	if (s->dir[0])
		rmdir(s->dir);
}

/* ---- the rounds ---- */

#define PROMPT "The quick brown fox jumps over the lazy dog and waits for the next sentence."
#define ID_PREFIX "calibrate-"
#define CONNECT_NS 30000000000
#define REQUEST_NS 60000000000
#define CLOSE_NS 40000.0 /* for each connection */

/* All rounds are in one record, in order: rows of round i begin at i * shape.requests. */
struct rounds {
	const struct calibration *c;
	struct budget_shape shape;
	const char *url, *no_proxy;
	struct load_opts load;
	struct workload workload;
	struct record record;
	struct load_progress *progress;
};

static void rounds_release(struct rounds *r)
{
	record_release(&r->record);
	workload_release(&r->workload);
	free(r->progress);
}

static int rounds_init(struct rounds *r, struct err *e)
{
	const struct load_opts *run = r->c->load;
	const uint32_t n = r->shape.requests * (BUDGET_ROUNDS + 1);
	const struct str prompt = STR(PROMPT);
	uint32_t warm = run->net.warm_connections;

	r->load = (struct load_opts){
		.transport = run->transport, .endpoint = endpoint_find("vllm"),
		.net = { .base_url = &r->url, .n_endpoints = 1, .proxy = &r->no_proxy,
			 .is_insecure = true, .is_stamped = true, .connect_timeout_ns = CONNECT_NS,
			 .request_timeout_ns = REQUEST_NS,
			 .warm_connections = warm < r->shape.requests ? warm : r->shape.requests },
		.threads = run->threads, .max_concurrency = r->shape.cap, .phase = PHASE_MAIN,
		.is_user_stamps = run->is_user_stamps,
		.tap = r->c->level.stamps == BUDGET_TAP ? LOAD_TAP_NEEDED : LOAD_TAP_OFF,
	};
	r->progress = mem_alloc(sizeof(*r->progress));
	for (uint32_t i = 0; i < n; i++) {
		struct sample *s = workload_add(&r->workload);

		s->prompt = prompt;
		s->kind = PROMPT_TEXT;
		s->output_len = r->shape.events;
		s->request_id = str_of(arena_printf(&r->workload.arena, ID_PREFIX "%u", i));
	}
	if (record_init(&r->record, n, run->threads, (uint64_t)n * r->shape.events, true, false,
			e) < 0)
		return -1;
	record_add_rows(&r->record, n);
	return 0;
}

/* Round i is that many requests from the i-th share of the workload on. */
static int make_plan(const struct rounds *r, uint32_t round, struct plan *plan, struct err *e)
{
	const struct plan_opts arrivals = { .request_rate = r->shape.rate, .burstiness = 1 };
	struct compat_rng rng;

	compat_rng_seed(&rng, round);
	if (plan_arrivals(plan, r->shape.requests, &arrivals, &rng, e) < 0)
		return -1;
	for (uint32_t i = 0; i < plan->n; i++)
		plan->entry[i].sample += round * r->shape.requests;
	return 0;
}

static int check_rows(const struct rounds *r, uint32_t first, struct err *e)
{
	struct buf why = { 0 };
	const struct request_row *row = &r->record.row[first];

	for (uint32_t i = 0; i < r->shape.requests; i++, row++) {
		if (row->state == REQ_DONE)
			continue;
		record_error_of(&r->record, row, &why);
		err_set(e, ERR_RUN, "a request to the simulator failed: %s",
			why.len ? why.data : fail_name(row->fail));
		buf_release(&why);
		return -1;
	}
	return 0;
}

static int run_round(struct rounds *r, uint32_t round, struct err *e)
{
	const struct prepare_opts how = {
		.endpoint = r->load.endpoint,
		.encode = { .model = STR("sim"), .is_ignore_eos = true },
		.base_url = &r->url, .path = "/v1/completions", .proxy = &r->no_proxy,
		.n_urls = 1, .version = PROFLLM_VERSION,
	};
	const uint32_t first = round * r->shape.requests;
	struct prepared prepared = { 0 };
	struct plan plan = { 0 };
	struct load_stats stats;
	int rc = -1;

	if (make_plan(r, round, &plan, e) == 0 &&
	    prepare(&how, &plan, &r->workload, &prepared, e) == 0)
		rc = load_run(&r->load, &plan, &prepared, &r->record, first, r->progress, &stats,
			      r->c->cancel, e);
	prepared_release(&prepared);
	plan_release(&plan);
	if (rc == 0 && r->c->cancel && atomic_load(r->c->cancel))
		rc = err_set(e, ERR_CANCELLED, "interrupted");
	return rc < 0 ? -1 : check_rows(r, first, e);
}

/* Events a second of one stream, as the simulator sent them. */
static double rate_reached(const struct oracle_truth *t)
{
	double events = 0, took_s = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct oracle_request *row = &t->row[i];

		events += row->events - 1;
		took_s += (double)(row->send_ns[row->events - 1] - row->send_ns[0]) / 1e9;
	}
	return took_s > 0 ? events / took_s : 0;
}

#define RATE_SHARE (1 / BUDGET_BAND) /* of the planned event rate, that the simulator must reach */

static int sum_up(struct rounds *r, const struct oracle_truth *t, struct budget *out,
		  struct err *e)
{
	const struct budget_level *level = &r->c->level;
	const double first_share = r->shape.cap < level->requests
				 ? (double)r->shape.cap / level->requests : 1;
	struct budget_round round[BUDGET_ROUNDS];
	struct oracle_errors errors;
	double reached;
	int rc = 0;

	oracle_errors_init(&errors, r->shape.requests, r->shape.events);
	for (uint32_t i = 0; rc == 0 && i < BUDGET_ROUNDS; i++) {
		uint32_t first = (i + 1) * r->shape.requests;

		oracle_errors_reset(&errors);
		rc = oracle_join(&errors, &r->record, first, t, first, r->shape.requests,
				 r->shape.events, e);
		if (rc == 0)
			round[i] = budget_round(&errors, &r->record, first, r->shape.cap);
	}
	oracle_errors_release(&errors);
	if (rc < 0)
		return -1;
	reached = rate_reached(t);
	if (reached < RATE_SHARE * level->events_per_s)
		return err_set(e, ERR_RUN, "the simulator reached only %.0f of %.0f events/s for each "
			       "of %u streams on this machine", reached, level->events_per_s,
			       level->streams);
	*out = (struct budget){ .level = *level, .at_ns = clock_real_ns() };
	out->level.requests = r->shape.requests;
	out->level.events = r->shape.events;
	budget_of_rounds(out, round, BUDGET_ROUNDS, r->shape.cap ? first_share : 1);
	return 0;
}

int calibrate(const struct calibration *c, struct budget *out, struct err *e)
{
	struct rounds r = { .c = c, .shape = budget_shape(&c->level) };
	struct oracle_server server = { 0 };
	struct oracle_truth truth = { 0 };
	struct timespec pause = { 0 };
	char *path = NULL;
	int rc = -1;

	*out = (struct budget){ 0 };
	if (server_begin(&server, c, r.shape.itl_ms, e) < 0)
		goto done;
	r.url = server.url;
	if (rounds_init(&r, e) < 0)
		goto done;
	for (uint32_t i = 0; i <= BUDGET_ROUNDS; i++) {
		if (run_round(&r, i, e) < 0)
			goto done;
		/* The simulator closes this round's connections before the next one begins. */
		pause.tv_nsec = (long)fmin(r.shape.requests * CLOSE_NS, 9e8);
		nanosleep(&pause, NULL);
	}
	path = path_in(&server, "truth.jsonl");
	if (server_end(&server, c->cancel, e) < 0 ||
	    oracle_read(&truth, path, ID_PREFIX, r.record.n_rows, e) < 0)
		goto done;
	rc = sum_up(&r, &truth, out, e);
done:
	oracle_release(&truth);
	server_release(&server, c->cancel);
	rounds_release(&r);
	free(path);
	return rc;
}

/* ---- kept budgets ---- */

#define KEPT_BYTES_MAX 65536
#define BUILD PROFLLM_VERSION

static bool kept_folder(struct buf *out)
{
	const char *dir = getenv("PROFLLM_CACHE_DIR");

	if (dir && !*dir)
		return false;
	if (dir)
		buf_printf(out, "%s/budgets", dir);
	else if ((dir = getenv("XDG_CACHE_HOME")) && *dir)
		buf_printf(out, "%s/profllm/budgets", dir);
	else if ((dir = getenv("HOME")) && *dir)
		buf_printf(out, "%s/.cache/profllm/budgets", dir);
	return out->len > 0;
}

/* A digest that identifies this machine and its kernel among others that share the folder. */
static void name_machine(char out[DIGEST_HEX])
{
	struct utsname u = { 0 };
	struct buf text = { 0 };

	uname(&u);
	buf_printf(&text, "%s\n%s\n%s\n%s\n%ld", u.nodename, u.release, u.version, u.machine,
		   sysconf(_SC_NPROCESSORS_ONLN));
	digest_hex(DIGEST_SHA256, buf_str(&text), out);
	buf_release(&text);
}

/* One file for each band of levels, a factor of two wide, so that a newer one replaces it. */
static void name_kept(const struct budget_level *l, const char *machine, struct buf *out)
{
	buf_printf(out, "%.12s-%s%s%s-t%u-s%ld-e%ld.json", machine, budget_stamps_name(l->stamps),
		   l->is_burst ? "-burst" : "", l->is_tls ? "-tls" : "", l->threads,
		   lround(log2(l->streams)), lround(log2(l->events_per_s)));
}

/* Stores a budget for later runs; -1 with the reason. */
static int calibrate_keep(const struct budget *b, struct err *e)
{
	char machine[DIGEST_HEX];
	struct buf folder = { 0 }, name = { 0 }, text = { 0 };
	char *path = NULL;
	int rc = 0;

	assert(b->rounds && !b->is_kept);
	if (!kept_folder(&folder))
		goto done;
	name_machine(machine);
	name_kept(&b->level, machine, &name);
	path = file_join(folder.data, name.data);
	budget_write(b, machine, BUILD, &text);
	buf_add_char(&text, '\n');
	rc = file_mkdirs(folder.data, e) < 0 || file_write_atomic(path, buf_str(&text), e) < 0 ? -1
											       : 0;
done:
	buf_release(&folder);
	buf_release(&name);
	buf_release(&text);
	free(path);
	return rc;
}

/* Ratios of streams and event rates as one distance; 0 is the same level. */
static double distance(const struct budget_level *a, const struct budget_level *b)
{
	return fabs(log((double)a->streams / b->streams)) +
	       fabs(log(a->events_per_s / b->events_per_s));
}

static int try_kept(const char *path, const char *machine, const struct budget_level *run,
		    struct budget *best, struct err *e)
{
	struct buf text = { 0 };
	struct budget b;
	enum budget_kept kept;

	if (file_read(path, KEPT_BYTES_MAX, &text, e) < 0)
		return -1;
	kept = budget_read(&b, buf_str(&text), machine, BUILD, clock_real_ns());
	buf_release(&text);
	if (kept == BUDGET_DAMAGED)
		return err_set(e, ERR_PARSE, "%s is not an error budget", path);
	if (kept == BUDGET_USABLE && budget_fits(&b, run) &&
	    (!best->rounds || distance(&b.level, run) < distance(&best->level, run)))
		*best = b;
	return 0;
}

/*
 * The nearest budget stored by this build on this machine that fits; out->rounds is 0 without one.
 * -1: a file is damaged, e names it; its content is not used.
 */
static int calibrate_find(const struct budget_level *run, struct budget *out, struct err *e)
{
	char machine[DIGEST_HEX];
	struct buf folder = { 0 };
	DIR *d = NULL;
	struct dirent *entry;
	int rc = 0;

	*out = (struct budget){ 0 };
	if (kept_folder(&folder))
		d = opendir(folder.data);
	name_machine(machine);
	while (d && rc == 0 && (entry = readdir(d))) {
		char *path;

		if (strncmp(entry->d_name, machine, 12) != 0 ||
		    !str_ends(str_of(entry->d_name), STR(".json")))
			continue;
		path = file_join(folder.data, entry->d_name);
		rc = try_kept(path, machine, run, out, e);
		free(path);
	}
	if (d)
		closedir(d);
	buf_release(&folder);
	return rc;
}

/* ---- of a run ---- */

/* Parts of the level that the run's record does not have. */
static struct budget_level level_asked(const struct stage *s)
{
	const struct serve_opts *o = s->opts;
	const struct load_stats *l = &s->point->load;
	const bool is_tapped = l->is_tapped && l->tap.segments;

	return (struct budget_level){
		.threads = s->derived->load.threads,
		.stamps = s->derived->load.is_user_stamps ? BUDGET_USER
			  : is_tapped ? BUDGET_TAP : BUDGET_KERNEL,
		.is_burst = isinf(o->request_rate) && s->derived->ramp_up == RAMP_NONE &&
			    !point_is_self_timed(o, s->point),
		.is_tls = s->derived->url[0].is_tls,
	};
}

static int check_run(const struct stage *s, struct budget_level *level, struct err *e)
{
	if (s->hooks->transport)
		return err_set(e, ERR_RUN, "nothing was sent over the network");
	if (s->point->load.net.http2)
		return err_set(e, ERR_RUN, "the simulator does not speak HTTP/2");
	if (s->point->is_interrupted)
		return err_set(e, ERR_CANCELLED, "the run was interrupted");
	*level = level_asked(s);
	return budget_level_of(&s->point->record, level, e);
}

static int calibrate_run(const struct stage *s, const struct budget_level *level, struct err *e)
{
	struct budget_shape shape = budget_shape(level);
	struct load_opts load = s->derived->load;
	struct calibration c = { .level = *level, .load = &load, .cancel = s->hooks->cancel };
	struct err kept = { 0 };

	if (s->derived->warm_connections != SERVE_WARM_AUTO)
		load.net.warm_connections = s->derived->warm_connections;
	load.transport = s->point->transport;
	stage_say(s, "Calibrating for about %.0f s: %d rounds of %u requests to the simulator, %u at "
		  "once, %.4g events/s each...", ceil(shape.seconds), BUDGET_ROUNDS + 1, shape.requests,
		  level->streams < shape.requests ? level->streams : shape.requests,
		  level->events_per_s);
	if (calibrate(&c, &s->point->budget, e) < 0)
		return -1;
	if (calibrate_keep(&s->point->budget, &kept) < 0)
		stage_warn(s, "the error budget could not be saved for later runs: %s", kept.text);
	return 0;
}

void stage_budget(struct stage *s)
{
	struct point *p = s->point;
	struct budget_level level = { 0 };
	struct budget_signs signs;
	struct err e = { 0 };

	p->budget = (struct budget){ 0 };
	if (check_run(s, &level, &e) == 0) {
		/* Of several runs of one plan, the first one's calibration counts for all. */
		if (s->opts->calibrate_itl.is_set)
			level.events_per_s = 1000 / s->opts->calibrate_itl.v;
		if (s->opts->calibrate && s->run == 0 ? calibrate_run(s, &level, &e) == 0
				       : calibrate_find(&level, &p->budget, &e) == 0) {
			signs = budget_signs(&p->record, 0, p->record.n_rows);
			if (p->budget.rounds)
				budget_add_signs(&p->budget, &signs);
			return;
		}
	} else if (!s->opts->calibrate) {
		return;
	}
	stage_warn(s, s->opts->calibrate ? "--calibrate: the result has no error budget: %s"
					 : "A saved error budget was ignored: %s", e.text);
}
