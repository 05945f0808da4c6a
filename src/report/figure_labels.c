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

#define OFF 0.08 /* inches between a point and its text */

struct box { double x0, y0, x1, y1; };

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

/* The eight places, nearest first: above right, below right, above left, below left, then farther. */
static struct box place(size_t i, double x, double y, double w, double h, struct figure_spot *spot)
{
	static const struct { bool is_left; double up; } around[] = {
		{ false, 1 }, { false, -1 }, { true, 1 }, { true, -1 },
		{ false, 2.2 }, { true, 2.2 }, { false, -2.2 }, { true, -2.2 },
	};
	double up = around[i].up, middle = up * (OFF + h / 2);

	spot->is_left = around[i].is_left;
	spot->dx = spot->is_left ? -OFF : OFF;
	spot->dy = middle;
	return (struct box){ x + spot->dx - (spot->is_left ? w : 0), y + middle - h / 2,
			     x + spot->dx + (spot->is_left ? 0 : w), y + middle + h / 2 };
}
#define PLACES 8

static double covered(const struct box *b, const struct box *taken, size_t n,
		      const struct figure_layout *l)
{
	struct box inside = { 0, 0, l->panel_width, l->panel_height };
	double sum = ((b->x1 - b->x0) * (b->y1 - b->y0) - shared(b, &inside)) * 4;

	for (size_t i = 0; i < n; i++)
		sum += shared(b, &taken[i]);
	return sum;
}

static bool is_shown(const struct figure *f, const struct figure_curve *c, size_t i)
{
	return figure_fits(f->x_scale, c->x[i]) && figure_fits(f->y_scale, c->y[i]);
}

static size_t count(const struct figure_panel *p, bool is_label)
{
	size_t n = 0;

	for (size_t k = 0; k < p->n_curves; k++)
		for (size_t i = 0; i < p->curve[k].n; i++)
			n += is_label ? p->curve[k].label && p->curve[k].label[i] : 1;
	return n;
}

static void choose(struct figure_spot *s, const struct figure *f, const struct figure_layout *l,
		   struct box *taken, size_t *n_taken)
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
		double c = covered(&b, taken, *n_taken, l);

		if (c < least) {
			least = c;
			best = b;
			best_spot = spot;
		}
	}
	*s = best_spot;
	taken[(*n_taken)++] = best;
}

size_t figure_labels(const struct figure_panel *p, const struct figure *f,
		     const struct figure_layout *l, struct figure_spot **out)
{
	size_t labels = count(p, true), points = count(p, false), n = 0, n_taken = 0;
	struct figure_spot *spot = mem_array(labels, sizeof(*spot));
	struct box *taken = mem_array(labels + points, sizeof(*taken));
	const double half = 0.04; /* of a dot */

	for (size_t k = 0; k < p->n_curves; k++)
		for (size_t i = 0; labels && i < p->curve[k].n; i++) {
			const struct figure_curve *c = &p->curve[k];
			double x, y;

			if (!is_shown(f, c, i))
				continue;
			x = inches(f->x_scale, l->x, l->panel_width, c->x[i]);
			y = inches(f->y_scale, l->y, l->panel_height, c->y[i]);
			taken[n_taken++] = (struct box){ x - half, y - half, x + half, y + half };
			if (c->label && c->label[i])
				spot[n++] = (struct figure_spot){ .curve = c, .point = i };
		}
	for (size_t i = 0; i < n; i++)
		choose(&spot[i], f, l, taken, &n_taken);
	free(taken);
	*out = spot;
	return n;
}
