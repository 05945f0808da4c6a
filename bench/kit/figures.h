/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.h - options of a bench program and its figures; the part of kit.h that is independent of
 * load.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "core/base/err.h"

#define BENCH_REPEATS_MAX 100
#define BENCH_FIGURES_MAX 480
#define BENCH_PARTS_MAX 100

/* One measured quantity: a value per repeat. */
struct figure {
	char name[72];
	const char *unit;
	double value[BENCH_REPEATS_MAX];
	unsigned n;
	bool has_target, is_floor; /* floor: the target is a least value, else a most */
	bool is_each;              /* the target is for every repeat, not for their median */
	double target;
};

struct bench {
	const char *name;
	const char *binary;   /* the program under test: --binary, $PROFLLM, build/profllm */
	const char *against;  /* --against: another build, for programs that compare; or NULL */
	const char *only;     /* --only: one scene, by its name; or NULL */
	unsigned part, parts; /* --part 2/3 is 1, 3: those runs whose number % parts is part */
	bool is_quick;        /* short runs that only show that the bench works */
	bool is_json;         /* one line of JSON per figure instead of a table */
	bool is_strict;       /* --strict: a missed target is exit status 1 */
	bool is_long;         /* --long: what takes minutes too */
	bool has_hog;         /* --hog: a busy loop shares the client's core; implies --shared */
	bool is_realtime;     /* running with real-time priority, so undisturbed by other jobs */
	unsigned repeats;
	struct figure figure[BENCH_FIGURES_MAX];
	unsigned n;
};

/* Reads the options and pins this thread to the client's core. -1: e says what is wrong. */
int bench_begin(struct bench *b, const char *name, int argc, char **argv, struct err *e);
/* Adds this repeat's value; name is printf-style. Returns the figure, to set a target. */
__attribute__((format(printf, 4, 5)))
struct figure *bench_add(struct bench *b, const char *unit, double value, const char *name, ...);
void figure_most(struct figure *f, double target);
/* In every repeat. */
void figure_most_each(struct figure *f, double target);
void figure_least(struct figure *f, double target);
/* Prints; returns the exit status: 1 with e's sentence on stderr when e is set; see is_strict. */
int bench_end(const struct bench *b, const struct err *e);

/*
 * Real-time or the usual priority, for this thread and what it starts. A real-time thread that
 * never sleeps loses 50 ms of every second to the kernel's reserve for other threads.
 */
bool bench_set_realtime(bool is_realtime);
void bench_pin_server(void);
void bench_pin_client(void);
/* Resident memory of this process in bytes. */
int64_t bench_rss(void);
double bench_cpu_s(const struct rusage *use);
