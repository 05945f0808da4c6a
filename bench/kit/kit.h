/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kit.h - what the programs of bench/ share: options and figures, child processes, a fast server of
 * canned answers, and the client as a function call. client/metrics/oracle.h compares the client's
 * measurements with the simulator's truth file.
 *
 * A bench program measures everything it compares in one run, several times, and gives medians, as
 * the machine's speed changes from minute to minute. Exit status: 0 when it measured, with any
 * result (with --strict: and met its targets), 1 with a sentence when it could not.
 *
 * Servers run in a child process on the first core this process may use, the client on the last
 * one. With a single core both share it; the output says so. Where it is allowed (root), both run
 * with real-time priority, so that other jobs of the machine do not end up in the figures; --shared
 * turns that off.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "client/load/load.h"
#include "client/plan/plan.h"
#include "client/plan/workload.h"
#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/str.h"
#include "kit/figures.h"

/* ---- children ---- */

struct child { pid_t pid; };

/* A process that only computes, on the client's core. */
int child_hog(struct child *c, struct err *e);
/* Writes cert.pem and key.pem, good for an hour, into a directory. */
int cert_make(const char *dir, struct err *e);
/* Starts argv (NULL-terminated) on the server's core; its output goes to the file out. */
int child_exec(struct child *c, const char *const *argv, const char *out, struct err *e);
/* Ends it (SIGTERM, or SIGKILL after 5 s) and gives what it used. Accepts a zeroed struct. */
void child_stop(struct child *c, struct rusage *use);

/*
 * `profllm sim` with extra arguments (NULL-terminated) on a free port; url gets
 * its base URL once it listens. is_tls: with a certificate that signs itself.
 */
struct sim_child {
	struct child child;
	char dir[40];  /* scratch directory, removed by sim_child_release */
	char truth[64];
	char url[64];
	uint16_t port;
};
int sim_child_start(struct sim_child *s, const struct bench *b, bool is_tls,
		    const char *const *extra, struct err *e);
/* Ends the simulator, after which its truth file is complete. Keeps the directory. */
void sim_child_stop(struct sim_child *s, struct rusage *use);
/*
 * What a stopped simulator printed last: CPU time per event in microseconds, and how late events
 * were sent (50th and 99th percentile, greatest) in nanoseconds.
 */
struct sim_said { double cpu_us, late_p50_ns, late_p99_ns, late_max_ns; };
int sim_child_said(const struct sim_child *s, struct sim_said *out, struct err *e);
void sim_child_release(struct sim_child *s);

/* ---- the server of canned answers ---- */

/*
 * One thread, prebuilt bytes, no understanding: each complete request gets a
 * head, `events` events of 261 bytes as vLLM sends them (one HTTP chunk each),
 * then usage, [DONE] and the end. Streams take turns.
 */
struct canned_spec {
	uint32_t events;       /* per answer */
	uint32_t per_send;     /* events in one send; the whole answer in one send when 0 */
	uint32_t wait_for;     /* no data flows until this many answers are open */
	int64_t interval_ns;   /* between two sends over all streams; 0: as fast as possible */
	int64_t round_ns;      /* between two rounds over all streams; 0: no wait */
};

struct canned {
	struct child child;
	uint16_t port;
	char url[64];
	int64_t *busy_ns; /* shared with the child; see canned_busy_ns */
};
int canned_start(struct canned *c, const struct canned_spec *spec, struct err *e);
/* CPU time from the first event to the latest round, less waiting for intervals and rounds. */
int64_t canned_busy_ns(const struct canned *c);
void canned_stop(struct canned *c, struct rusage *use);
size_t canned_event_bytes(void);
/* Bytes of a whole answer of n events, head to last chunk. */
size_t canned_answer_bytes(uint32_t events);

/* ---- the raw reader ---- */

/*
 * The least that every client must do: send, wait, receive, without reading the bytes.
 * is_like_ours: with the same calls as the client under test, which takes stamps and sends head and
 * body from two places, each body in its own memory; what the client costs beyond that is its own
 * code.
 */
struct raw_spec {
	uint16_t port;
	uint32_t connections;
	uint32_t requests;     /* at least one per connection */
	size_t body_bytes;
	uint64_t answer_bytes; /* of each */
	uint32_t tokens;       /* not 0: asks a real server for as many, every request with another
				* prompt, and reads to the last chunk; answer_bytes is not used */
	bool is_like_ours;
};
struct raw_result { int64_t cpu_ns, wall_ns; uint64_t reads; };
int raw_run(const struct raw_spec *spec, struct raw_result *out, struct err *e);

/* ---- the client under test ---- */

struct client_spec {
	const char *base_url;
	uint32_t requests;
	uint32_t output_len;
	size_t prompt_bytes;
	double rate;          /* requests/s, Poisson; INFINITY: all at once */
	uint32_t cap;         /* most in flight; 0: no cap */
	unsigned warm;        /* connections opened before the clock starts */
	bool is_insecure;
	bool is_tapped;       /* a stamp for every segment; an error where it is not allowed */
	void (*tick)(void *self);
	void *tick_self;
};

/* What `profllm bench serve` holds while it measures, made without its options. */
struct client {
	struct load_opts load;
	struct workload workload;
	struct plan plan;
	struct prepared prepared;
	struct record record;
	struct load_progress *progress;
	struct load_stats stats;
	const char *base_url, *no_proxy;
};

/* Everything before the clock starts, the record's pages touched. Request i has the id "b<i>". */
int client_prepare(struct client *c, const struct client_spec *spec, struct err *e);
/* Whether this machine allows is_tapped. */
bool client_may_tap(void);
/* Sends; -1 too when any request failed, with the first failure's text. */
int client_send(struct client *c, struct err *e);
void client_release(struct client *c);
