/* SPDX-License-Identifier: Apache-2.0 */
/* engine_log.c - see engine_log.h. */
#include "run/engine_log.h"

#include <math.h>

/* A line's words before and behind a number of seconds; what is between may differ. */
static const struct pattern {
	const char *name, *begin, *before, *unit; /* before: directly in front of the number */
} patterns[] = {
	{ "load weights", "Loading weights took", " ", " sec" },
	{ "load model", "Model loading took", " and ", " sec" },
	{ "trace the model", "Dynamo bytecode transform time:", " ", " s" },
	{ "compile", "torch.compile took", " ", " s in total" },
	{ "compile", "torch.compile takes", " ", " s in total" },
	{ "first run", "Initial profiling/warmup run took", " ", " s" },
	{ "capture graphs", " Graph capturing finished in", " ", " sec" },
	{ "profile, KV cache, warm-up", "init engine (", " took ", " s" },
};
#define PATTERNS (sizeof(patterns) / sizeof(*patterns))

/* The first place of a text in another; NULL: none. */
static const char *find(struct str in, const char *what)
{
	return memmem(in.p, in.n, what, strlen(what));
}

static struct str behind(struct str in, const char *at, const char *what)
{
	const char *p = at + strlen(what);

	return (struct str){ p, in.n - (size_t)(p - in.p) };
}

/* The seconds that a line tells of a pattern; NAN: it is about something else. */
static double seconds_of(struct str line, const struct pattern *p)
{
	const char *at = find(line, p->begin);
	struct str rest;
	double s;
	size_t n = 0;

	if (!at)
		return NAN;
	rest = behind(line, at, p->begin);
	for (;;) {
		at = find(rest, p->before);
		if (!at)
			return NAN;
		rest = behind(rest, at, p->before);
		n = 0;
		while (n < rest.n && ((rest.p[n] >= '0' && rest.p[n] <= '9') || rest.p[n] == '.'))
			n++;
		if (n && str_to_f64((struct str){ rest.p, n }, &s) && isfinite(s) &&
		    str_starts((struct str){ rest.p + n, rest.n - n }, str_of(p->unit)))
			return s;
	}
}

static double longest(struct str log, const char *name)
{
	double most = NAN;

	while (log.n) {
		struct str line = str_cut(&log, '\n');

		for (size_t i = 0; i < PATTERNS; i++) {
			double s = strcmp(patterns[i].name, name) == 0 ?
				   seconds_of(line, &patterns[i]) : NAN;

			if (!isnan(s) && (isnan(most) || s > most))
				most = s;
		}
	}
	return most;
}

size_t engine_log_phases(struct str log, struct offline_phase phase[ENGINE_LOG_PHASES])
{
	size_t n = 0;

	_Static_assert(PATTERNS <= ENGINE_LOG_PHASES, "one phase for each pattern at most");
	for (size_t i = 0; i < PATTERNS; i++) {
		double s;

		if (i && strcmp(patterns[i].name, patterns[i - 1].name) == 0)
			continue;
		s = longest(log, patterns[i].name);
		if (!isnan(s))
			phase[n++] = (struct offline_phase){ patterns[i].name, s };
	}
	return n;
}

double engine_log_compilation_s(struct str log)
{
	return longest(log, "compile");
}
