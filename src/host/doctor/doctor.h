/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - this machine as a load generator: what is right, what limits a measurement, and the
 * command that fixes it.
 *
 *   doctor_read     reads files of /proc, /sys and /run                struct doctor_machine
 *   doctor_measure  a third of a second of clocks and wake-ups             "
 *   doctor_visit    a server: name, route, connection, TLS, its answers struct doctor_server
 *   doctor_judge... pure: facts in, rows out
 *
 * A row is about one thing, and its verdict is about measurements: OK spoils nothing, a NOTE limits
 * what can be measured or explains a figure, a PROBLEM makes a number wrong or ends a run. The
 * limits are below; docs/guide/doctor.md explains each. What cannot be read is "not known" (NAN,
 * -1), never a fault. The machine is not changed.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/net/link.h"
#include "core/base/str.h"
#include "host/hardware/hardware.h"

#define DOCTOR_STREAMS_MIN 1000      /* fewer at once: a PROBLEM */
#define DOCTOR_STREAMS_MANY 10000    /* fewer: a NOTE */
#define DOCTOR_STREAMS_MOST 50000
#define DOCTOR_SPARE_FILES 64        /* descriptors in addition to those of streams */
#define DOCTOR_BACKLOG_MIN 1024      /* connections that may arrive at once here; fewer: a NOTE */
#define DOCTOR_CLOCK_NOTE_NS 200     /* to read the clock; above it a system call is needed */
#define DOCTOR_CLOCK_PROBLEM_NS 2000 /* several reads per event use a core at 100,000/s */
#define DOCTOR_LATE_NOTE_US 150      /* p99 of wake-ups; as long as the exact wait polls */
#define DOCTOR_LATE_PROBLEM_US 1000  /* send lag counts from there: TRUST_LAG_FLOOR_MS */
#define DOCTOR_QUEUE_NOTE_US 100     /* a wake-up's mean wait for a CPU */
#define DOCTOR_QUEUE_PROBLEM_US 1000
#define DOCTOR_BUSY_NOTE 0.50        /* of the CPUs that may be used */
#define DOCTOR_BUSY_PROBLEM 0.80
#define DOCTOR_STEAL_NOTE 0.01       /* of all time */
#define DOCTOR_STEAL_PROBLEM 0.05
#define DOCTOR_MEMORY_NOTE (2ull << 30) /* bytes available */
#define DOCTOR_MEMORY_PROBLEM (512ull << 20)
#define DOCTOR_COALESCE_NOTE_US 100  /* an interrupt that waits longer moves every stamp */
#define DOCTOR_NAME_NOTE_MS 1000     /* to resolve a name */
#define DOCTOR_CONNECT_NOTE_MS 1     /* a round trip that every TTFT contains */
#define DOCTOR_CONNECT_PROBLEM_MS 900 /* a lost first packet is sent again after a second */

/* ---- facts ---- */

/* Counters at one moment; NAN: not known. */
struct doctor_counters {
	double busy_s, steal_s, total_s; /* of the CPUs that this process may use */
	double queue_s;                  /* how long this thread waited for a CPU */
	double stopped_s;                /* how long a quota stopped the group */
};

/* NAN, -1, "": not known. */
struct doctor_machine {
	char program[512];                /* path of this program; "": not known */
	int64_t files_soft, files_hard, files_most; /* files_most: what root may raise it to */
	int64_t port_first, port_last;    /* local ports for connections */
	int64_t port_reuse;               /* tcp_tw_reuse */
	int64_t sockets_closing;          /* in TIME_WAIT */
	int64_t backlog;                  /* somaxconn */
	char governor[32];                /* of all CPUs; "mixed" */
	char clock_source[32];
	bool has_tsc;                     /* tsc is available */
	char time_daemon[32];             /* keeps the clock; "": none was seen */
	char hypervisor[HARDWARE_NAME_BYTES];
	const char *container;            /* NULL: none */
	double cpu_quota;                 /* INFINITY: none */
	char cpu_quota_folder[512];
	int64_t cpus_allowed, cpus_online;
	double memory_total, memory_available, memory_limit; /* bytes; the limit of our group */
	bool may_capture;                 /* CAP_NET_RAW is effective */
	int64_t realtime_priority;        /* RLIMIT_RTPRIO, or 99 with CAP_SYS_NICE */
	bool is_stamped;                  /* a receive stamp was seen */
	double clock_ns;                  /* to read CLOCK_REALTIME once */
	double late_us_p50, late_us_p99, late_us_max; /* of wake-ups */
	double measured_s;                /* measuring time; 0: not measured */
	double n_wakeups;
	struct doctor_counters before, after;
	bool is_synchronized;             /* meaningful when has_time_state */
	bool has_time_state;
	double time_offset_ms, time_error_ms; /* being corrected; bound of the error */
};

/* root is put in front of every path ("" the machine itself; tests). */
void doctor_read(const char *root, struct doctor_machine *m);
void doctor_count(const char *root, struct doctor_counters *c);
/* Clocks, wake-ups, stamps: takes `seconds`, fills the members that doctor_read does not. */
void doctor_measure(const char *root, double seconds, struct doctor_machine *m);

#define DOCTOR_LINKS_MAX 8
/* Interfaces with a device, or all but loopback if there are none. Returns how many. */
size_t doctor_links(const char *root, struct link out[DOCTOR_LINKS_MAX]);

struct doctor_visit {
	const char *url;
	bool is_insecure;
	const char *ca_file; /* NULL: the system's store */
	const char *api_key; /* NULL: none */
	const char *proxy;   /* proxy that load would use; NULL: none */
};

enum doctor_step { DOCTOR_NOT_TRIED, DOCTOR_DONE, DOCTOR_FAILED };

/* The duration of a step, or why it failed. Steps after a failed one are not tried. */
struct doctor_stage {
	enum doctor_step is;
	double ms;
	char text[256];      /* why it failed, or what was found */
};

struct doctor_server {
	bool is_unix, is_tls;
	bool has_proxy;      /* the steps then describe a direct connection */
	char host[256], authority[272]; /* "HOST", "HOST:PORT" */
	struct doctor_stage name, connect, tls, models, metrics;
	size_t n_addresses;
	struct link route;   /* name "": not known */
	double connect_max_ms;
	long models_status, metrics_status;
	uint64_t n_series;   /* lines of /metrics that are values */
	char tls_version[16];
};

/* -1 with e: not a URL that load can be sent to. */
int doctor_visit(const struct doctor_visit *v, struct doctor_server *out, struct err *e);

/* ---- conclusions ---- */

enum doctor_verdict { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_PROBLEM };
const char *doctor_name(enum doctor_verdict v); /* "ok", "note", "problem" */

#define DOCTOR_NUMBERS_MAX 6
struct doctor_row {
	const char *name;    /* stable, for programs: "open_files" */
	const char *title;   /* "open files" */
	char about[256];     /* the interface or server that it is about; "": the machine */
	char value[200];
	enum doctor_verdict verdict;
	const char *spoils;  /* the metrics that would be affected */
	char why[400];       /* one or two sentences; "" where all is well */
	char command[600];   /* that fixes it; "": there is none */
	struct { const char *name; double value; } number[DOCTOR_NUMBERS_MAX]; /* units last */
	size_t n_numbers;
};

/* Zeroed: empty. */
struct doctor_rows {
	struct doctor_row *row;
	size_t n, room;
};
void doctor_judge_machine(const struct doctor_machine *m, struct doctor_rows *out);
void doctor_judge_link(const struct link *l, struct doctor_rows *out);
void doctor_judge_server(const char *url, const struct doctor_server *s, struct doctor_rows *out);
size_t doctor_rows_count(const struct doctor_rows *rows, enum doctor_verdict v);
void doctor_rows_release(struct doctor_rows *rows);
