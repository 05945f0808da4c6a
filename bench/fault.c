/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - whether the verdict finds out what is wrong with a run.
 *
 * Each scene spoils a run of `profllm bench serve` against the simulator, for real where the
 * machine can do it: a busy loop on the client's core, a CPU quota, a link that loses packets, a
 * server that dies and is started again. Its verdict must have the right reason and doubt the right
 * metrics, and only reasons that the scene allows may lower it. The simulator's truth file says how
 * wrong the numbers are: a metric that is wrong by more than LARGE must not be VALID. Then come
 * clean runs, of which none may be INVALID and at most 2 of 100 DEGRADED.
 *
 * --quick takes some of the scenes that need neither root nor much time, and overlooks that a busy
 * machine delays the client; --long makes 100 clean runs in place of 10; --only NAME takes one
 * scene, "scenes" (all of them, no clean runs) or "clean run"; --part 1/3 makes a third of the clean
 * runs. --strict exits with 1 when a scene is not as it should be. A scene runs in a process of its
 * own, whose networks and groups end with it.
 *
 * $FAKE_WORLD is tests/fake/world.c as a library, which replaces a clock that is set and for
 * slow name servers; without it the scenes that need it are left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/metrics/oracle.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/stats/stats.h"
#include "kit/kit.h"
#include "kit/spoil.h"

#define LARGE 0.10             /* of a metric's own size */
#define CLEAN_RUNS 10
#define CLEAN_RUNS_LONG 100
#define CLEAN_DEGRADED_SHARE 0.02
#define RESULT_BYTES_MAX (256u << 20)
#define ARGS_MAX 64
#define HOGS 3
#define CLIENT_SECONDS_MAX 60
#define LOAD_WAIT_NS 20000000000
#define LOAD_SOCKETS 5

/* What a scene does besides its options. */
enum {
	HOG = 1 << 0,          /* busy loops on the client's core */
	QUOTA = 1 << 1,        /* 3 % of a CPU for the client: less than the run needs */
	STOP_CLIENT = 1 << 2,  /* SIGSTOP for 200 ms */
	STOP_SERVER = 1 << 3,  /* the same for the server */
	FEW_FILES = 1 << 4,
	FEW_PORTS = 1 << 5,
	LOSS = 1 << 6,         /* 2 % of the packets, each way */
	CLOCK = 1 << 7,        /* CLOCK_REALTIME is set by 200 ms */
	SLOW_NAMES = 1 << 8,
	RESTART = 1 << 9,      /* the server dies, and is started again after 300 ms */
	TWICE = 1 << 10,       /* the run that counts is the second */
};
#define NEEDS_ROOT (QUOTA | FEW_PORTS | LOSS)

struct scene {
	const char *name, *code;      /* the reason or note that must be there; NULL: none */
	const char *spoils;           /* keys of metrics that must not be VALID, blanks between */
	const char *also;             /* more reasons that may lower the verdict */
	unsigned how;
	const char *sim, *client;     /* options, a blank between two */
	const char *from, *to;        /* words that a relay exchanges */
	bool is_quick;
	unsigned tokens_per_event;    /* 0: one */
};

#define ORACLE "--ttft-ms 40 --itl-ms 10"
#define CLOSED "--request-rate inf "
/* A second and a half of a closed loop whose slots are free again every 20 ms. */
#define ORACLE_SHORT "--ttft-ms 15 --itl-ms 5"
#define CLOSED_SHORT CLOSED "--max-concurrency 20 --num-prompts 1500 --random-output-len 2"
#define LATE "skew send_lag send_stall shared_reads shared_first client_cpu"

#define EVERYTHING "ttft tpot itl e2el output_throughput"

static const struct scene scenes[] = {
	{ .name = "cpu hog on the client's core", .code = "client_wait", .spoils = "", .also = LATE,
	  .how = HOG, .sim = ORACLE, .client = "" },
	{ .name = "the same, user stamps", .code = "client_wait", .spoils = "", .also = LATE,
	  .how = HOG, .sim = ORACLE, .client = "--timestamps user" },
	{ .name = "cpu quota", .code = "client_throttled", .spoils = "ttft e2el", .also = LATE,
	  .how = QUOTA, .sim = ORACLE, .client = "" },
	{ .name = "client stopped for 200 ms", .code = "send_lag", .spoils = "ttft e2el", .also = LATE,
	  .how = STOP_CLIENT, .sim = ORACLE, .client = "", .is_quick = true },
	{ .name = "the same, a stamp per read", .code = "shared_reads", .spoils = "itl", .also = LATE,
	  .how = STOP_CLIENT, .sim = ORACLE, .client = "--timestamps kernel", .is_quick = true },
	{ .name = "cpu hog, a closed loop", .code = "client_wait", .spoils = "", .also = LATE,
	  .how = HOG, .sim = ORACLE_SHORT, .client = CLOSED_SHORT },
	{ .name = "client stopped, a closed loop", .code = "send_lag",
	  .spoils = "ttft e2el output_throughput", .also = LATE, .how = STOP_CLIENT,
	  .sim = ORACLE_SHORT, .client = CLOSED_SHORT },
	{ .name = "few descriptors", .code = "no_descriptor", .spoils = EVERYTHING,
	  .also = "failures", .how = FEW_FILES, .sim = ORACLE, .client = "", .is_quick = true },
	{ .name = "few local ports", .code = "no_local_port", .spoils = EVERYTHING,
	  .also = "failures queue_growing", .how = FEW_PORTS, .sim = ORACLE, .client = "" },
	{ .name = "clock set by 200 ms", .code = "clock_step", .spoils = "ttft tpot itl e2el",
	  .also = LATE " rate_not_carried", .how = CLOCK, .sim = ORACLE, .client = "--timestamps user" },
	{ .name = "lossy link", .code = "packet_loss", .spoils = "ttft tpot itl e2el",
	  .also = "queue_growing shared_reads shared_first rate_not_carried", .how = LOSS,
	  .sim = ORACLE, .client = "" },
	{ .name = "slow name look-up", .code = "slow_dns", .spoils = "", .also = "",
	  .how = SLOW_NAMES, .sim = ORACLE, .client = "" },
	{ .name = "events of four tokens", .code = "usage", .spoils = "itl", .also = "",
	  .sim = ORACLE " --tokens-per-event 4", .client = "", .tokens_per_event = 4 },
	{ .name = "usage that doubles tokens", .code = "answer_length",
	  .spoils = "tpot output_throughput", .also = "usage", .sim = ORACLE, .client = "",
	  .from = "\"completion_tokens\":32", .to = "\"completion_tokens\":64", .is_quick = true },
	{ .name = "warm prefix cache", .code = "prefix_cache", .spoils = "ttft e2el",
	  .also = "queue_growing rate_not_carried", .how = TWICE,
	  .sim = "--enable-prompt-tokens-details",
	  .client = "--random-input-len 256 --request-rate 40 --num-prompts 80" },
	{ .name = "5 % dropped connections", .code = "failures", .spoils = EVERYTHING, .also = "",
	  .sim = ORACLE " --fault reset@3:0.05", .client = "" },
	{ .name = "5 % HTTP errors", .code = "failures", .spoils = EVERYTHING, .also = "",
	  .sim = ORACLE " --fault status=503:0.05", .client = "" },
	{ .name = "server restarted", .code = "server_restarted", .spoils = EVERYTHING,
	  .also = "failures", .how = RESTART, .sim = ORACLE " --die-after 150req", .client = "",
	  .is_quick = true },
	{ .name = "server stalls: its own time", .code = NULL, .spoils = "", .also = "",
	  .how = STOP_SERVER, .sim = ORACLE, .client = "", .is_quick = true },
	{ .name = "slow first requests", .code = "slow_start", .spoils = "ttft e2el", .also = "",
	  .sim = ORACLE " --fault slow-start=2s:id=b?", .client = "", .is_quick = true },
	{ .name = "a role first", .code = "role_event", .spoils = "ttft tpot itl", .also = "",
	  .sim = ORACLE, .client = "--backend openai-chat --endpoint /v1/chat/completions",
	  .from = "\"role\":\"assistant\"" },
	{ .name = "answers of another length", .code = "answer_length",
	  .spoils = "e2el output_throughput", .also = "", .sim = ORACLE, .client = "",
	  .from = "\"max_tokens\": 32", .to = "\"max_tokens\": 16", .is_quick = true },
	{ .name = "rate not carried", .code = "rate_not_carried", .spoils = "ttft e2el", .also = "",
	  .sim = "--max-num-seqs 4", .client = "--request-rate 13 --num-prompts 100" },
	{ .name = "held back in the client", .code = "rate_not_carried", .spoils = "ttft e2el",
	  .also = LATE, .sim = ORACLE_SHORT, .is_quick = true,
	  .client = "--request-rate 1000 --max-concurrency 2 --num-prompts 40 --random-output-len 2" },
	{ .name = "fewer requests than slots", .code = "slots_empty", .spoils = EVERYTHING,
	  .also = LATE, .sim = ORACLE_SHORT, .is_quick = true,
	  .client = CLOSED "--max-concurrency 8 --num-prompts 5" },
	{ .name = "one request more than slots", .code = "slots_empty", .spoils = EVERYTHING,
	  .also = LATE, .sim = ORACLE_SHORT, .is_quick = true,
	  .client = CLOSED "--max-concurrency 8 --num-prompts 9" },
	{ .name = "overload in a short run", .code = "queue_growing", .spoils = "ttft e2el",
	  .also = "", .sim = "--max-num-seqs 4", .client = "--request-rate 20 --num-prompts 80" },
	{ .name = "queue growing", .code = "queue_growing", .spoils = "ttft e2el",
	  .also = "rate_not_carried", .sim = "--max-num-seqs 4",
	  .client = "--request-rate 9.9 --burstiness 100 --num-prompts 150" },
	{ .name = "60 requests for P99", .code = "few_requests", .spoils = "", .also = "",
	  .sim = ORACLE, .client = "--num-prompts 60" },
};

/* What is compared with the truth file, and the metric with the corresponding verdict. */
enum { OF_TTFT, OF_TPOT, OF_ITL, OF_OUTPUT, OF_SLOTS, ERRORS };
static const struct { const char *name, *key; } errors[ERRORS] = {
	{ "TTFT", "ttft" }, { "TPOT", "tpot" }, { "ITL", "itl" }, { "output", "output_throughput" },
	{ "slots", "output_throughput" },
};

struct outcome {
	char given[160];              /* codes of reasons, then of notes in brackets */
	char verdict[12];
	double error[ERRORS];         /* NAN: not known */
	char problem[200];            /* empty: as it should be */
};

/* ---- one run ---- */

struct stage {
	const struct scene *scene;
	const struct bench *bench;
	const char *sim_args;
	const char *client_args;
	struct sim_child sim;
	struct child hog[HOGS], relay;
	struct spoil_quota quota;
	size_t files_idle;             /* of the server, before the client is there */
	char url[80], result[80], port[8];
};

/* Words of text, as arguments; they go into room. */
static unsigned add_words(const char **argv, unsigned n, const char *text, char *room, size_t cap)
{
	char *save = NULL;

	snprintf(room, cap, "%s", text);
	for (char *w = strtok_r(room, " ", &save); w && n < ARGS_MAX - 1;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n] = NULL;
	return n;
}

static int start_server(struct stage *s, struct err *e)
{
	const char *args[ARGS_MAX];
	char room[512];
	unsigned n = add_words(args, 0, s->sim_args, room, sizeof(room));

	if (s->scene->how & LOSS) {
		args[n++] = "--host";
		args[n++] = SPOIL_NEAR;
		args[n] = NULL;
	}
	if (sim_child_start(&s->sim, s->bench, false, args, e) < 0)
		return -1;
	snprintf(s->port, sizeof(s->port), "%s", strrchr(s->sim.url, ':') + 1);
	snprintf(s->url, sizeof(s->url), "http://%s:%s", s->scene->how & LOSS ? SPOIL_FAR :
		 s->scene->how & SLOW_NAMES ? "localhost" : "127.0.0.1", s->port);
	snprintf(s->result, sizeof(s->result), "%s/result.json", s->sim.dir);
	return 0;
}

/* What is there before the run begins. */
static int prepare(struct stage *s, struct err *e)
{
	unsigned how = s->scene->how;
	uint64_t of_server;
	uint16_t port;

	if (how & (FEW_PORTS | LOSS) && spoil_own_network(e) < 0)
		return -1;
	if (how & FEW_PORTS && spoil_few_ports(32, e) < 0)
		return -1;
	if (how & LOSS && spoil_lossy_link(&s->relay, 0.02, e) < 0)
		return -1;
	if (how & QUOTA && spoil_quota_make(&s->quota, 0.03, e) < 0)
		return -1;
	if (start_server(s, e) < 0)
		return -1;
	if (s->scene->from) {
		if (!str_to_u64(str_of(s->port), &of_server) ||
		    spoil_relay(&s->relay, (uint16_t)of_server, s->scene->from, s->scene->to, &port,
				e) < 0)
			return -1;
		snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", (unsigned)port);
	}
	for (int i = 0; how & HOG && i < HOGS; i++)
		if (child_hog(&s->hog[i], e) < 0)
			return -1;
	return 0;
}

/* In the client's process, before it becomes the program. */
static void become_client(const struct stage *s)
{
	unsigned how = s->scene->how;
	struct err e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CLIENT_SECONDS_MAX);
	bench_set_realtime(s->bench->is_realtime && !(how & (HOG | QUOTA)));
	if (how & QUOTA && spoil_quota_enter(&s->quota, &e) < 0)
		_exit(126);
	if (how & FEW_FILES)
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 60, 60 });
	if (how & (CLOCK | SLOW_NAMES)) {
		setenv("LD_PRELOAD", getenv("FAKE_WORLD"), 1);
		setenv(how & CLOCK ? "FAKE_CLOCK_STEP_MS" : "FAKE_RESOLVE_MS",
		       how & CLOCK ? "200" : "900", 1);
		setenv("FAKE_CLOCK_AT_S", "1", 1);
	}
}

/* Options of every run; a scene's own come after them. */
#define BASE_ARGS "PROGRAM bench serve --model sim --tokenizer sim --dataset-name random " \
	"--random-input-len 64 --random-output-len 32 --ignore-eos --request-rate 150 " \
	"--num-prompts 400 --ready-check-timeout-sec 0 --progress none --request-id-prefix b " \
	"--save-result --save-detailed --result-filename result.json"

static pid_t start_client(const struct stage *s, struct err *e)
{
	static char rooms[2][512];
	const char *argv[ARGS_MAX];
	pid_t pid;
	unsigned n = add_words(argv, 0, BASE_ARGS, rooms[0], sizeof(rooms[0]));

	argv[0] = s->bench->binary;
	argv[n++] = "--base-url";
	argv[n++] = s->url;
	argv[n++] = "--result-dir";
	argv[n++] = s->sim.dir;
	add_words(argv, n, s->client_args, rooms[1], sizeof(rooms[1]));
	pid = fork();
	if (pid < 0)
		err_set(e, ERR_RUN, "cannot start %s: %s", argv[0], strerror(errno));
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		become_client(s);
		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

static void nap_ms(int64_t ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static size_t open_files(pid_t pid)
{
	char path[32];
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Until the load has begun, which the server's sockets show, and gone on for a while. */
static void wait_for_load(const struct stage *s)
{
	int64_t until = clock_mono_ns() + LOAD_WAIT_NS;

	while (open_files(s->sim.child.pid) < s->files_idle + LOAD_SOCKETS &&
	       clock_mono_ns() < until)
		nap_ms(10);
	nap_ms(700);
}

static void stop_for(const struct stage *s, pid_t pid, int64_t ms)
{
	wait_for_load(s);
	kill(pid, SIGSTOP);
	nap_ms(ms);
	kill(pid, SIGCONT);
}

/* Another server at the dead one's port. */
static int restart(struct stage *s, struct err *e)
{
	const char *argv[] = { s->bench->binary, "sim", "--port", s->port, "--ttft-ms", "40",
			       "--itl-ms", "10", NULL };

	waitpid(s->sim.child.pid, NULL, 0);
	nap_ms(300);
	return child_exec(&s->sim.child, argv, "/dev/null", e);
}

static int run_client(struct stage *s, struct err *e)
{
	pid_t pid;
	int status;

	s->files_idle = open_files(s->sim.child.pid);
	pid = start_client(s, e);

	if (pid < 0)
		return -1;
	if (s->scene->how & STOP_CLIENT)
		stop_for(s, pid, 200);
	if (s->scene->how & STOP_SERVER)
		stop_for(s, s->sim.child.pid, 300);
	if (s->scene->how & RESTART && restart(s, e) < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, ERR_RUN, "the client ended with status %d",
			       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

/* ---- what came out ---- */

/* Whether a list of words, a blank between two, has this one. */
static bool has_word(const char *list, struct str word)
{
	struct str rest = str_of(list);

	while (rest.n)
		if (str_eq(str_cut(&rest, ' '), word))
			return true;
	return false;
}

static const struct json_value *at(const struct json_value *list, size_t i)
{
	return list && i < list->count ? &list->item[i] : NULL;
}

static struct str text_of(const struct json_value *v)
{
	return v && v->kind == JSON_STRING ? v->text : (struct str){ 0 };
}

static double figure(const struct json_value *result, const char *key)
{
	return json_real(json_get(result, key), 0);
}

/* p99 of |v| over base. */
static double error_of(double *v, size_t n, double base)
{
	stats_sort(v, n);
	return n && base > 0 ? stats_percentile(v, n, 99) / base : NAN;
}

/*
 * Of a closed loop: the share of its slots' time in which the server had no request of theirs, from
 * the first request to the last one. Later ones leave slots empty because there are no more.
 */
static double slots_lost(const struct oracle_truth *truth, double slots)
{
	int64_t first = INT64_MAX, last = 0;
	double busy = 0;

	for (uint32_t i = 0; i < truth->n; i++) {
		const struct oracle_request *t = &truth->row[i];

		first = t->recv_ns && t->recv_ns < first ? t->recv_ns : first;
		last = t->recv_ns > last ? t->recv_ns : last;
	}
	for (uint32_t i = 0; i < truth->n; i++) {
		const struct oracle_request *t = &truth->row[i];
		int64_t end = t->events ? t->send_ns[t->events - 1] : t->recv_ns;

		if (t->recv_ns)
			busy += (double)((end < last ? end : last) - t->recv_ns);
	}
	return slots > 0 && truth->n > slots ? 1 - busy / (slots * (double)(last - first)) : NAN;
}

/*
 * How far each metric is from what the server did: p99 over requests (TTFT) and gaps (ITL), the
 * mean TPOT, and output tokens a second from the first request to the last event.
 */
static void find_errors(struct outcome *o, const struct json_value *result,
			const struct oracle_truth *truth, unsigned tokens_per_event)
{
	const struct json_value *ttfts = json_get(result, "ttfts");
	const struct json_value *itls = json_get(result, "itls");
	double *ttft = mem_array(truth->n + 1, sizeof(double)), *itl, tpot = 0, tokens = 0;
	size_t n_ttft = 0, n_itl = 0, n_tpot = 0, events = 0;
	int64_t first = INT64_MAX, last = 0;

	for (uint32_t i = 0; i < truth->n; i++)
		events += truth->row[i].events;
	itl = mem_array(events + 1, sizeof(double));
	for (uint32_t i = 0; i < truth->n; i++) {
		const struct oracle_request *t = &truth->row[i];
		const struct json_value *gaps = at(itls, i);
		double mine = json_real(at(ttfts, i), 0);

		if (mine <= 0 || t->events < 2 || !t->recv_ns || !gaps ||
		    gaps->count != t->events - 1)
			continue;
		first = t->recv_ns < first ? t->recv_ns : first;
		last = t->send_ns[t->events - 1] > last ? t->send_ns[t->events - 1] : last;
		ttft[n_ttft++] = fabs(mine - (double)(t->send_ns[0] - t->recv_ns) / 1e9);
		for (uint32_t k = 1; k < t->events; k++)
			itl[n_itl++] = fabs(json_real(&gaps->item[k - 1], 0) -
					    (double)(t->send_ns[k] - t->send_ns[k - 1]) / 1e9);
		tpot += (double)(t->send_ns[t->events - 1] - t->send_ns[0]) / 1e9 /
			(t->events * tokens_per_event - 1.0);
		n_tpot++;
		tokens += t->events * (double)tokens_per_event;
	}
	o->error[OF_TTFT] = error_of(ttft, n_ttft, figure(result, "median_ttft_ms") / 1e3);
	o->error[OF_ITL] = error_of(itl, n_itl, figure(result, "mean_itl_ms") / 1e3);
	o->error[OF_SLOTS] = slots_lost(truth, figure(result, "max_concurrency"));
	if (n_tpot) {
		double true_rate = tokens / ((double)(last - first) / 1e9);

		o->error[OF_TPOT] = fabs(figure(result, "mean_tpot_ms") / 1e3 / (tpot / (double)n_tpot) - 1);
		o->error[OF_OUTPUT] = fabs(figure(result, "output_throughput") / true_rate - 1);
	}
	free(ttft);
	free(itl);
}

static void add_codes(struct outcome *o, const struct json_value *list, const char *form)
{
	for (size_t i = 0; list && i < list->count; i++) {
		size_t n = strlen(o->given);
		struct str code = text_of(json_get(&list->item[i], "code"));

		snprintf(o->given + n, sizeof(o->given) - n, form, n ? " " : "", (int)code.n, code.p);
	}
}

static bool has_code(const struct json_value *list, const char *code)
{
	for (size_t i = 0; list && i < list->count; i++)
		if (str_is(text_of(json_get(&list->item[i], "code")), code))
			return true;
	return false;
}

/* The first thing that is not as it should be. */
static void find_problem(struct outcome *o, const struct scene *s, bool is_quick,
			 const struct json_value *own)
{
	const struct json_value *reasons = json_get(own, "reasons");
	const struct json_value *notes = json_get(own, "notes");
	const struct json_value *verdicts = json_get(own, "verdicts");
	struct str rest = str_of(s->spoils);

	if (s->code && !has_code(reasons, s->code) && !has_code(notes, s->code))
		snprintf(o->problem, sizeof(o->problem), "%s is not among the reasons", s->code);
	while (rest.n && !o->problem[0]) {
		struct str key = str_cut(&rest, ' ');
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)key.n, key.p);
		if (str_is(text_of(json_get(verdicts, name)), "VALID"))
			snprintf(o->problem, sizeof(o->problem), "%s is VALID", name);
	}
	for (size_t i = 0; reasons && i < reasons->count && !o->problem[0]; i++) {
		struct str code = text_of(json_get(&reasons->item[i], "code"));

		/* A quick run shares the machine: its client may really have been late. */
		if (is_quick && has_word(LATE, code))
			continue;
		if (!(s->code && str_is(code, s->code)) && !has_word(s->also, code))
			snprintf(o->problem, sizeof(o->problem), "%.*s is a reason", (int)code.n,
				 code.p);
	}
	for (int k = 0; k < ERRORS && !o->problem[0]; k++)
		if (o->error[k] > LARGE &&
		    str_is(text_of(json_get(verdicts, errors[k].key)), "VALID"))
			snprintf(o->problem, sizeof(o->problem), "%s is VALID and %s wrong by %.1f %%",
				 errors[k].key, errors[k].name, 100 * o->error[k]);
}

static int read_outcome(struct outcome *o, const struct stage *s, struct err *e)
{
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct oracle_truth truth = { 0 };
	struct json_value *result = NULL;
	const struct json_value *own;
	struct err ignored;
	struct str verdict;
	int rc = file_read(s->result, RESULT_BYTES_MAX, &text, e);

	if (rc == 0)
		rc = json_parse(&a, buf_str(&text), &result, e);
	if (rc == 0) {
		own = json_get(result, "profllm");
		verdict = text_of(json_get(own, "verdict"));
		snprintf(o->verdict, sizeof(o->verdict), "%.*s", (int)verdict.n, verdict.p);
		add_codes(o, json_get(own, "reasons"), "%s%.*s");
		add_codes(o, json_get(own, "notes"), "%s(%.*s)");
		/* Requests that never came are missing in it; what is there counts. */
		(void)oracle_read(&truth, s->sim.truth, "b",
				  (uint32_t)json_get(result, "ttfts")->count, &ignored);
		if (!(s->scene->how & (RESTART | TWICE)))
			find_errors(o, result, &truth,
				    s->scene->tokens_per_event ? s->scene->tokens_per_event : 1);
		if (s->scene->from) /* what a relay adds is on the way, not the client's error */
			o->error[OF_TTFT] = o->error[OF_ITL] = NAN;
		find_problem(o, s->scene, s->bench->is_quick, own);
	}
	oracle_release(&truth);
	buf_release(&text);
	arena_release(&a);
	return rc;
}

static int play(struct outcome *o, struct stage *s, struct err *e)
{
	int rc = prepare(s, e);

	for (int k = 0; k < ERRORS; k++)
		o->error[k] = NAN;
	if (rc == 0 && s->scene->how & TWICE)
		rc = run_client(s, e);
	if (rc == 0)
		rc = run_client(s, e);
	for (int i = 0; i < HOGS; i++)
		child_stop(&s->hog[i], NULL);
	child_stop(&s->relay, NULL);
	sim_child_stop(&s->sim, NULL);
	if (rc == 0)
		rc = read_outcome(o, s, e);
	unlink(s->result);
	sim_child_release(&s->sim);
	spoil_quota_remove(&s->quota);
	return rc;
}

/* A scene in a process of its own; what went wrong before the verdict is its problem. */
static int play_apart(struct outcome *o, const struct bench *b, const struct scene *scene,
		      const char *sim_args, const char *client_args, struct err *e)
{
	struct stage s = { .scene = scene, .bench = b, .sim_args = sim_args,
			   .client_args = client_args };
	int fd[2];
	pid_t pid;
	ssize_t n;

	*o = (struct outcome){ 0 };
	if (pipe2(fd, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return err_set(e, ERR_RUN, "cannot start a scene: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (play(o, &s, e) < 0)
			snprintf(o->problem, sizeof(o->problem), "%.180s", e->text);
		_exit(write(fd[1], o, sizeof(*o)) != sizeof(*o));
	}
	close(fd[1]);
	n = read(fd[0], o, sizeof(*o));
	close(fd[0]);
	waitpid(pid, NULL, 0);
	return n == sizeof(*o) ? 0 : err_set(e, ERR_RUN, "%s: the scene ended early", scene->name);
}

/* ---- the table ---- */

static void print_error(const char *name, double error)
{
	if (isnan(error))
		printf(" %s -", name);
	else
		printf(" %s %.1f%%", name, 100 * error);
}

static void print_row(const struct bench *b, const struct scene *s, const struct outcome *o)
{
	if (b->is_json) {
		printf("{\"bench\": \"fault\", \"scene\": \"%s\", \"expected\": \"%s\", "
		       "\"given\": \"%s\", \"verdict\": \"%s\"", s->name, s->code ? s->code : "", o->given, o->verdict);
		for (int k = 0; k < ERRORS; k++)
			if (!isnan(o->error[k]))
				printf(", \"error_%s\": %.6g", k == OF_SLOTS ? errors[k].name :
				       errors[k].key, o->error[k]);
		printf(", \"problem\": \"%s\"}\n", o->problem);
	} else {
		printf("  %-29s %-17s %-9s", s->name, s->code ? s->code : "none", o->verdict);
		for (int k = 0; k < ERRORS; k++)
			print_error(errors[k].name, o->error[k]);
		printf("  %s\n    given: %s\n", o->problem[0] ? o->problem : "ok",
		       o->given[0] ? o->given : "none");
	}
	fflush(stdout);
}

static const struct scene clean = { .name = "clean run", .spoils = "", .also = "" };

/* Undisturbed runs of many kinds: no reason may be given. False: too many were doubted. */
static int play_clean(const struct bench *b, bool *is_good, struct err *e)
{
	static const unsigned rates[] = { 20, 60, 150, 400 }, lengths[] = { 4, 16, 48 };
	static const unsigned streams[] = { 1, 10, 50, 100, 250, 500 };
	unsigned n = b->is_quick ? 2 : b->is_long ? CLEAN_RUNS_LONG : CLEAN_RUNS;
	unsigned played = 0, degraded = 0, invalid = 0, wrong = 0;

	for (unsigned i = b->part; i < n; i += b->parts, played++) {
		char sim[128], client[160];
		struct outcome o;
		bool is_closed = i % 2;

		snprintf(sim, sizeof(sim), "--ttft-ms lognormal:%u:0.3 --itl-ms %u",
			 20 + 15 * (i % 4), is_closed && streams[i / 2 % 6] > 100
			 ? 50 : 10 + 5 * (i % 3));
		if (is_closed)
			snprintf(client, sizeof(client), CLOSED "--max-concurrency %u "
				 "--num-prompts %u --random-output-len %u", streams[i / 2 % 6],
				 streams[i / 2 % 6] == 1 ? 10 : 3 * streams[i / 2 % 6],
				 lengths[i / 3 % 3]);
		else
			snprintf(client, sizeof(client), "--request-rate %u --num-prompts %u "
				 "--random-output-len %u", rates[i / 2 % 4], 2 * rates[i / 2 % 4],
				 lengths[i / 3 % 3]);
		if (play_apart(&o, b, &clean, sim, client, e) < 0)
			return -1;
		degraded += strcmp(o.verdict, "DEGRADED") == 0;
		invalid += strcmp(o.verdict, "INVALID") == 0;
		wrong += o.problem[0] && strcmp(o.verdict, "VALID") == 0;
		if (o.problem[0])
			print_row(b, &clean, &o);
	}
	*is_good = !invalid && !wrong && degraded <= fmax(1, CLEAN_DEGRADED_SHARE * played);
	if (b->is_json)
		printf("{\"bench\": \"fault\", \"scene\": \"clean runs\", \"runs\": %u, "
		       "\"invalid\": %u, \"degraded\": %u, \"wrong\": %u}\n", played, invalid,
		       degraded, wrong);
	else
		printf("  %u clean runs: %u INVALID, %u DEGRADED, %u VALID and wrong: %s\n", played,
		       invalid, degraded, wrong, *is_good ? "ok" : "too many");
	return 0;
}

/* --only: one scene by its name, "scenes" or "clean run". */
static bool is_chosen(const struct bench *b, const struct scene *s)
{
	if (b->only && strcmp(b->only, "scenes") != 0)
		return strcmp(b->only, s->name) == 0;
	return b->only || !b->is_quick || s->is_quick;
}

static int play_all(const struct bench *b, unsigned *bad, struct err *e)
{
	bool is_good = true, is_clean = !b->only || strcmp(b->only, clean.name) == 0;
	bool is_known = is_clean;

	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
		const struct scene *s = &scenes[i];
		struct outcome o;

		if (!is_chosen(b, s))
			continue;
		is_known = true;
		if (s->how & NEEDS_ROOT && geteuid() != 0) {
			printf("  %-29s left out: it needs root\n", s->name);
			continue;
		}
		if (s->how & (CLOCK | SLOW_NAMES) && !getenv("FAKE_WORLD")) {
			printf("  %-29s left out: FAKE_WORLD names no libfake-world.so\n", s->name);
			continue;
		}
		if (play_apart(&o, b, s, s->sim, s->client, e) < 0)
			return -1;
		print_row(b, s, &o);
		*bad += o.problem[0] != '\0';
	}
	if (!is_known)
		return err_set(e, ERR_USAGE, "--only %s: there is no such scene", b->only);
	if (is_clean && play_clean(b, &is_good, e) < 0)
		return -1;
	*bad += !is_good;
	return 0;
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	unsigned bad = 0;
	int rc = bench_begin(&b, "fault", argc, argv, &e);

	if (rc == 0)
		rc = play_all(&b, &bad, &e);
	if (rc < 0) {
		fprintf(stderr, "bench/fault: %s\n", e.text);
		return 1;
	}
	if (!b.is_json)
		printf("fault: %u not as it should be\n", bad);
	return b.is_strict && bad;
}
