/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figure_labels.c - where texts beside points go; see figure_parts.h.
 *
 * Greedy: a label takes the first of some places around its point that covers neither an earlier
 * label nor a point, or the one that covers least.
 */
#include <math.h>

#include "base/mem.h"
#include "report/figure_parts.h"

#define OFF 0.08    /* inches between a point and its text */
#define BESIDE 0.6
#define FAR 0.15

struct box { double x0, y0, x1, y1, weight; };

#define WEIGHT_LABEL 20 /* two texts on one place cannot be read */
#define WEIGHT_LINE 4   /* of what is labelled; context weighs 1 */

static double shared(const struct box *a, const struct box *b)
{
	double w = fmin(a->x1, b->x1) - fmax(a->x0, b->x0);
	double h = fmin(a->y1, b->y1) - fmax(a->y0, b->y0);

	return w > 0 && h > 0 ? w * h : 0;
}

static double inches(enum figure_scale scale, struct figure_range r, double length, double v)
{
	double low = figure_place(scale, r.low), high = figure_place(scale, r.high);

	return (figure_place(scale, v) - low) / (high - low) * length;
}

static double at_inches(enum figure_scale scale, struct figure_range r, double length, double in)
{
	double low = figure_place(scale, r.low), high = figure_place(scale, r.high);

	return figure_unplace(scale, low + (high - low) * in / length);
}

/* Places nearest first: above and below, right and left, then farther away. */
static const struct { bool is_left; double up; } around[] = {
	{ false, 1 }, { false, 0 }, { true, -1 }, { false, -1 }, { true, 0 }, { true, 1 },
	{ false, 2 }, { true, -2 }, { false, 3 }, { false, 4 }, { false, 5 }, { true, -3 },
	{ false, -2 }, { true, 2 }, { false, 6 },
};
#define PLACES (sizeof(around) / sizeof(*around))

static struct box place(size_t i, double x, double y, double w, double h, struct figure_spot *spot)
{
	double middle = around[i].up * (OFF / 2 + h / 2);

	spot->is_left = around[i].is_left;
	spot->dx = spot->is_left ? -OFF : OFF;
	spot->dy = middle;
	return (struct box){ x + spot->dx - (spot->is_left ? w : 0), y + middle - h / 2,
			     x + spot->dx + (spot->is_left ? 0 : w), y + middle + h / 2, 0 };
}

static double covered(const struct box *b, const struct box *taken, size_t n,
		      const struct figure_layout *l)
{
	/* Room to the right of the only panel is as good as within it. */
	double beside = l->is_single ? BESIDE : 0;
	struct box inside = { 0, 0, l->panel_width + beside, l->panel_height, 0 };
	double sum = ((b->x1 - b->x0) * (b->y1 - b->y0) - shared(b, &inside)) * 4;

	for (size_t i = 0; i < n; i++)
		sum += shared(b, &taken[i]) * taken[i].weight;
	return sum;
}

static bool is_shown(const struct figure *f, const struct figure_curve *c, size_t i)
{
	return figure_fits(f->x_scale, c->x[i]) && figure_fits(f->y_scale, c->y[i]);
}

static bool is_within(const struct figure_range *r, double v)
{
	return v >= r->low && v <= r->high;
}

/* What a panel's points, lines and labels take, in a list that grows. */
struct taken { struct box *box; size_t n, cap; };

static void take(struct taken *t, struct box b)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 256;
		t->box = mem_grow(t->box, t->cap, sizeof(*t->box));
	}
	t->box[t->n++] = b;
}

static void take_dot(struct taken *t, double x, double y, double weight)
{
	const double half = 0.04; /* inches */

	take(t, (struct box){ x - half, y - half, x + half, y + half, weight });
}

/* Dots all along the way. */
static void take_line(struct taken *t, double x0, double y0, double x1, double y1)
{
	double length = hypot(x1 - x0, y1 - y0);
	size_t steps = length > 0.1 ? (size_t)(length / 0.1) : 0;

	for (size_t i = 1; i < steps; i++) {
		double part = (double)i / (double)steps;

		take_dot(t, x0 + (x1 - x0) * part, y0 + (y1 - y0) * part, WEIGHT_LINE);
	}
}

static void take_curve(struct taken *t, const struct figure *f, const struct figure_layout *l,
		       const struct figure_curve *c)
{
	double before_x = NAN, before_y = NAN;

	for (size_t i = 0; i < c->n; i++) {
		double x, y;

		if (!is_shown(f, c, i))
			continue;
		x = inches(f->x_scale, l->x, l->panel_width, c->x[i]);
		y = inches(f->y_scale, l->y, l->panel_height, c->y[i]);
		take_dot(t, x, y, c->look.is_muted ? 1 : WEIGHT_LINE);
		if (c->style != FIGURE_POINTS && !isnan(before_x))
			take_line(t, before_x, before_y, x, y);
		before_x = x;
		before_y = y;
	}
}

static void choose(struct figure_spot *s, const struct figure *f, const struct figure_layout *l,
		   struct taken *t)
{
	const char *text = s->curve->label[s->point];
	double w = (double)figure_columns(text) * FIGURE_LETTER_IN(FIGURE_LABEL_PT);
	double h = (double)figure_lines(text) * FIGURE_LINE_IN(FIGURE_LABEL_PT);
	double x = inches(f->x_scale, l->x, l->panel_width, s->curve->x[s->point]);
	double y = inches(f->y_scale, l->y, l->panel_height, s->curve->y[s->point]);
	double least = INFINITY;
	struct box best = { 0 };
	struct figure_spot best_spot = *s;

	for (size_t i = 0; i < PLACES && least > 0; i++) {
		struct figure_spot spot = *s;
		struct box b = place(i, x, y, w, h, &spot);
		double c = covered(&b, t->box, t->n, l);

		if (c < least) {
			least = c;
			best = b;
			best_spot = spot;
		}
	}
	best_spot.is_far = fabs(best_spot.dy) - h / 2 > FAR;
	best_spot.to_x = at_inches(f->x_scale, l->x, l->panel_width, x + best_spot.dx);
	best_spot.to_y = at_inches(f->y_scale, l->y, l->panel_height,
				   y + best_spot.dy - copysign(h / 2, best_spot.dy));
	*s = best_spot;
	best.weight = WEIGHT_LABEL;
	take(t, best);
}

size_t figure_labels(const struct figure_panel *p, const struct figure *f,
		     const struct figure_layout *l, struct figure_spot **out)
{
	struct taken t = { 0 };
	struct figure_spot *spot = NULL;
	size_t n = 0, cap = 0;

	for (size_t k = 0; k < p->n_curves; k++)
		for (size_t i = 0; p->curve[k].label && i < p->curve[k].n; i++) {
			if (!p->curve[k].label[i] || !is_shown(f, &p->curve[k], i) ||
			    !is_within(&l->x, p->curve[k].x[i]) ||
			    !is_within(&l->y, p->curve[k].y[i]))
				continue;
			if (n == cap)
				spot = mem_grow(spot, cap = cap ? cap * 2 : 64, sizeof(*spot));
			spot[n++] = (struct figure_spot){ .curve = &p->curve[k], .point = i };
		}
	for (size_t k = 0; n && k < p->n_curves; k++)
		take_curve(&t, f, l, &p->curve[k]);
	for (size_t i = 0; i < n; i++)
		choose(&spot[i], f, l, &t);
	free(t.box);
	*out = spot;
	return n;
}
