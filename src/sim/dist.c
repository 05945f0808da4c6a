/* SPDX-License-Identifier: Apache-2.0 */
/* dist.c - see dist.h. Normal deviates by Box and Muller; the second one is not kept. */
#include "sim/dist.h"

#include <assert.h>
#include <math.h>

static const struct dist_form {
	const char *name;
	enum dist_kind kind;
	int numbers;
} forms[] = {
	{ "uniform", DIST_UNIFORM, 2 },
	{ "normal", DIST_NORMAL, 2 },
	{ "exp", DIST_EXP, 1 },
	{ "lognormal", DIST_LOGNORMAL, 2 },
};

static int dist_bad(const char *option, const char *text, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s: '%s' is neither a number >= 0 nor one of "
		       "uniform:LOW:HIGH, normal:MEAN:SD, exp:MEAN, lognormal:MEDIAN:SIGMA",
		       option, text);
}

static bool amount(struct str text, double *out)
{
	return str_to_f64(text, out) && isfinite(*out) && *out >= 0;
}

int dist_parse(struct dist *d, const char *option, const char *text, struct err *e)
{
	struct str rest = str_of(text);
	struct str name = str_cut(&rest, ':');
	struct str first;

	*d = (struct dist){ 0 };
	if (strchr(text, ':') == NULL)
		return amount(str_of(text), &d->a) ? 0 : dist_bad(option, text, e);
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (!str_is(name, forms[i].name))
			continue;
		d->kind = forms[i].kind;
		first = forms[i].numbers == 2 ? str_cut(&rest, ':') : rest;
		if (!amount(first, &d->a) || (forms[i].numbers == 2 && !amount(rest, &d->b)))
			return dist_bad(option, text, e);
		if (d->kind == DIST_UNIFORM && d->b < d->a)
			return err_set(e, ERR_USAGE, "%s: '%s' has its high end below its low end",
				       option, text);
		return 0;
	}
	return dist_bad(option, text, e);
}

static double normal(struct pcg64 *g)
{
	double radius = sqrt(-2 * log(1 - pcg64_double(g)));

	return radius * cos(2 * M_PI * pcg64_double(g));
}

double dist_draw(const struct dist *d, struct pcg64 *g)
{
	switch (d->kind) {
	case DIST_CONSTANT:
		return d->a;
	case DIST_UNIFORM:
		return d->a + (d->b - d->a) * pcg64_double(g);
	case DIST_NORMAL:
		return fmax(0, d->a + d->b * normal(g));
	case DIST_EXP:
		return -d->a * log(1 - pcg64_double(g));
	case DIST_LOGNORMAL:
		return d->a * exp(d->b * normal(g));
	}
	assert(!"a distribution of unknown kind");
	return 0;
}
