/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - options, figures and this process itself; see figures.h. */
#include <assert.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/stats/stats.h"
#include "kit/figures.h"

static int usage(struct err *e, const char *name)
{
	return err_set(e, ERR_USAGE, "usage: %s [--quick] [--long] [--json] [--strict] "
		       "[--shared] [--hog] [--repeats 1..%d] [--only SCENE] [--part K/N] "
		       "[--binary PATH] [--against PATH]", name, BENCH_REPEATS_MAX);
}

/* "2/3" */
static bool read_part(struct bench *b, struct str text)
{
	struct str first = str_cut(&text, '/');
	uint64_t part, parts;

	if (!str_to_u64(first, &part) || !str_to_u64(text, &parts) || part < 1 || part > parts ||
	    parts > BENCH_PARTS_MAX)
		return false;
	b->part = (unsigned)part - 1;
	b->parts = (unsigned)parts;
	return true;
}

bool bench_set_realtime(bool is_realtime)
{
	return sched_setscheduler(0, is_realtime ? SCHED_FIFO : SCHED_OTHER,
				  &(struct sched_param){ is_realtime ? 10 : 0 }) == 0;
}

int bench_begin(struct bench *b, const char *name, int argc, char **argv, struct err *e)
{
	const char *from_env = getenv("PROFLLM");
	bool is_shared = false;
	int64_t repeats;

	*b = (struct bench){ .name = name, .repeats = 3, .parts = 1,
			     .binary = from_env && *from_env ? from_env : "build/profllm" };
	for (int i = 1; i < argc; i++) {
		struct str arg = str_of(argv[i]);

		if (str_is(arg, "--quick")) {
			b->is_quick = true;
			b->repeats = 1;
		} else if (str_is(arg, "--long")) {
			b->is_long = true;
		} else if (str_is(arg, "--shared")) {
			is_shared = true;
		} else if (str_is(arg, "--hog")) {
			b->has_hog = is_shared = true;
		} else if (str_is(arg, "--json")) {
			b->is_json = true;
		} else if (str_is(arg, "--strict")) {
			b->is_strict = true;
		} else if (str_is(arg, "--binary") && i + 1 < argc) {
			b->binary = argv[++i];
		} else if (str_is(arg, "--against") && i + 1 < argc) {
			b->against = argv[++i];
		} else if (str_is(arg, "--only") && i + 1 < argc) {
			b->only = argv[++i];
		} else if (str_is(arg, "--part") && i + 1 < argc &&
			   read_part(b, str_of(argv[i + 1]))) {
			i++;
		} else if (str_is(arg, "--repeats") && i + 1 < argc &&
			   str_to_i64(str_of(argv[++i]), &repeats) && repeats >= 1 &&
			   repeats <= BENCH_REPEATS_MAX) {
			b->repeats = (unsigned)repeats;
		} else {
			return usage(e, name);
		}
	}
	if (access(b->binary, X_OK) < 0)
		return err_set(e, ERR_RUN, "%s is not there: build it first, or name it with --binary",
			       b->binary);
	if (b->against && access(b->against, X_OK) < 0)
		return err_set(e, ERR_RUN, "--against: %s is not a program", b->against);
	bench_pin_client();
	b->is_realtime = !is_shared && bench_set_realtime(true);
	return 0;
}

struct figure *bench_add(struct bench *b, const char *unit, double value, const char *name, ...)
{
	struct figure *f = NULL;
	char text[sizeof(f->name)];
	va_list args;

	va_start(args, name);
	vsnprintf(text, sizeof(text), name, args);
	va_end(args);
	for (unsigned i = 0; i < b->n && !f; i++)
		if (strcmp(b->figure[i].name, text) == 0)
			f = &b->figure[i];
	if (!f) {
		assert(b->n < BENCH_FIGURES_MAX);
		f = &b->figure[b->n++];
		memcpy(f->name, text, sizeof(text));
		f->unit = unit;
	}
	assert(f->n < BENCH_REPEATS_MAX);
	f->value[f->n++] = value;
	return f;
}

void figure_most(struct figure *f, double target)
{
	f->has_target = true;
	f->target = target;
}

void figure_least(struct figure *f, double target)
{
	figure_most(f, target);
	f->is_floor = true;
}

void figure_most_each(struct figure *f, double target)
{
	figure_most(f, target);
	f->is_each = true;
}

static bool is_met(const struct figure *f, double median, double most)
{
	double value = f->is_each ? most : median;

	return f->is_floor ? value >= f->target : value <= f->target;
}

/* false: the figure missed its target. */
static bool print_figure(const struct bench *b, const struct figure *f)
{
	double sorted[BENCH_REPEATS_MAX];
	double median;
	bool met;

	memcpy(sorted, f->value, f->n * sizeof(*sorted));
	stats_sort(sorted, f->n);
	median = stats_median(sorted, f->n);
	met = !f->has_target || is_met(f, median, sorted[f->n - 1]);
	if (b->is_json) {
		printf("{\"bench\": \"%s\", \"figure\": \"%s\", \"unit\": \"%s\", \"median\": %.9g, "
		       "\"least\": %.9g, \"most\": %.9g, \"repeats\": %u", b->name, f->name, f->unit,
		       median, sorted[0], sorted[f->n - 1], f->n);
		if (f->has_target)
			printf(", \"target\": %.9g, \"is_met\": %s", f->target, met ? "true" : "false");
		puts("}");
		return met;
	}
	printf("  %-44s %12.6g  %12.6g %12.6g  %-10s", f->name, median, sorted[0], sorted[f->n - 1],
	       f->unit);
	if (f->has_target)
		printf(" target %s %g%s: %s", f->is_floor ? ">=" : "<=", f->target,
		       f->is_each ? " in each" : "", met ? "met" : "MISSED");
	putchar('\n');
	return met;
}

int bench_end(const struct bench *b, const struct err *e)
{
	bool is_all_met = true;

	if (e->code) {
		fprintf(stderr, "bench/%s: %s\n", b->name ? b->name : "?", e->text);
		return 1;
	}
	if (b->only && b->n == 0) {
		fprintf(stderr, "bench/%s: --only %s: there is no such scene\n", b->name, b->only);
		return 1;
	}
	if (!b->is_json) {
		printf("%s: %u repeat%s, %s priority%s\n  %-44s %12s  %12s %12s  %s\n", b->name,
		       b->repeats, b->repeats == 1 ? "" : "s",
		       b->is_realtime ? "real-time" : "usual",
		       b->is_quick ? ", quick: not a measurement" : "",
		       "figure", "median", "least", "most", "unit");
		if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
			puts("  (one core: client and server disturb each other)");
	}
	for (unsigned i = 0; i < b->n; i++)
		is_all_met = print_figure(b, &b->figure[i]) && is_all_met;
	return b->is_strict && !is_all_met;
}

/* ---- this process ---- */

/* Every core this process may use, as it was at the start. */
static const cpu_set_t *allowed(void)
{
	static cpu_set_t set;
	static bool is_known;

	if (!is_known && sched_getaffinity(0, sizeof(set), &set) < 0)
		CPU_ZERO(&set);
	is_known = true;
	return &set;
}

static void pin(bool is_last)
{
	const cpu_set_t *may = allowed();
	cpu_set_t one;
	size_t chosen = CPU_SETSIZE;

	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, may) && (chosen == CPU_SETSIZE || is_last))
			chosen = i;
	if (chosen == CPU_SETSIZE)
		return;
	CPU_ZERO(&one);
	CPU_SET(chosen, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

void bench_pin_server(void) { pin(false); }
void bench_pin_client(void) { pin(true); }

int64_t bench_rss(void)
{
	long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*s %lld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

double bench_cpu_s(const struct rusage *use)
{
	return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
	       (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1e6;
}
