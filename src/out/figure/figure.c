/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c - see figure.h: a figure as data; layout of its labels. */
#include "out/figure/figure.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/schema/schema.h"
#include "out/figure/figure_internal.h"

#define OFF 0.08    /* inches between a point and its text */
#define FAR 0.15

#define MOST 1e200 /* beyond it an axis cannot label its ends */

/* ---- scales ---- */

double figure_place(enum figure_scale scale, double v)
{
	switch (scale) {
	case FIGURE_LOG:
		return log10(v);
	case FIGURE_SQRT:
		return sqrt(v);
	case FIGURE_SYMLOG:
		return copysign(log10(1 + fabs(v)), v);
	case FIGURE_ASINH:
		return asinh(v);
	case FIGURE_LOGIT:
		return log10(v / (1 - v));
	case FIGURE_LINEAR:
		break;
	}
	return v;
}

static double figure_unplace(enum figure_scale scale, double place)
{
	switch (scale) {
	case FIGURE_LOG:
		return pow(10, place);
	case FIGURE_SQRT:
		return place > 0 ? place * place : 0;
	case FIGURE_SYMLOG:
		return copysign(pow(10, fabs(place)) - 1, place);
	case FIGURE_ASINH:
		return sinh(place);
	case FIGURE_LOGIT:
		return 1 / (1 + pow(10, -place));
	case FIGURE_LINEAR:
		break;
	}
	return place;
}

bool figure_fits(enum figure_scale scale, double v)
{
	if (scale == FIGURE_LOGIT)
		return v > 0 && v < 1;
	if (scale == FIGURE_LOG)
		return v >= 1 / MOST && v <= MOST;
	return fabs(v) <= MOST && (scale != FIGURE_SQRT || v >= 0);
}

/* ---- labels ---- */

struct box { double x0, y0, x1, y1, weight; };

#define WEIGHT_LABEL 20 /* two texts on one place cannot be read */
#define WEIGHT_LINE 4   /* of labelled lines; context weighs 1 */

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
	struct box inside = { 0, 0, l->panel_width, l->panel_height, 0 };
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

/* Areas occupied by a panel's points, lines and labels, in a growing list. */
struct taken_boxes { struct box *box; size_t n, cap; };

static void take(struct taken_boxes *t, struct box b)
{
	t->box = mem_room(t->box, t->n, &t->cap, sizeof(*t->box));
	t->box[t->n++] = b;
}

static void take_dot(struct taken_boxes *t, double x, double y, double weight)
{
	const double half = 0.04; /* inches */

	take(t, (struct box){ x - half, y - half, x + half, y + half, weight });
}

/* Dots all along the way. */
static void take_line(struct taken_boxes *t, double x0, double y0, double x1, double y1)
{
	double length = hypot(x1 - x0, y1 - y0);
	size_t steps = length > 0.1 ? (size_t)(length / 0.1) : 0;

	for (size_t i = 1; i < steps; i++) {
		double part = (double)i / (double)steps;

		take_dot(t, x0 + (x1 - x0) * part, y0 + (y1 - y0) * part, WEIGHT_LINE);
	}
}

static void take_curve(struct taken_boxes *t, const struct figure *f, const struct figure_layout *l,
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

/* Letters of the widest line. */
static size_t figure_columns(const char *text)
{
	size_t most = 0;
	struct str rest = str_of(text);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		size_t letters = 0;

		for (size_t i = 0; i < line.n; i++)
			letters += ((unsigned char)line.p[i] & 0xc0) != 0x80;
		most = letters > most ? letters : most;
	}
	return most;
}

static void choose(struct figure_spot *s, const struct figure *f, const struct figure_layout *l,
		   struct taken_boxes *t)
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
	struct taken_boxes t = { 0 };
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

#define AIR 0.04 /* share of an axis left free at both ends */

const char *const figure_scale_names[] = {
	"linear", "log", "sqrt", "symlog", "asinh", "logit", NULL,
};

int figure_scale_parse(enum figure_scale *out, const char *text, struct err *e)
{
	*out = FIGURE_LINEAR;
	if (!text || !*text)
		return 0;
	for (size_t i = 0; figure_scale_names[i]; i++)
		if (strcmp(text, figure_scale_names[i]) == 0) {
			*out = (enum figure_scale)i;
			return 0;
		}
	return err_set(e, ERR_USAGE, "'%s' is no scale; there are linear, log, sqrt, symlog, asinh, "
		       "logit", text);
}

void figure_axis_label(struct buf *out, const char *variable)
{
	const struct schema_field *field = schema_field_find(variable);

	buf_add_text(out, variable);
	if (field && *field->unit)
		buf_printf(out, " (%s)", field->unit);
}

size_t figure_left_out(const struct figure *f)
{
	size_t n = 0;

	for (size_t p = 0; p < f->rows * f->cols; p++)
		for (size_t k = 0; k < f->panel[p].n_curves; k++)
			for (size_t i = 0; i < f->panel[p].curve[k].n; i++)
				n += !is_shown(f, &f->panel[p].curve[k], i);
	return n;
}

/* ---- ranges ---- */

static void widen(struct figure_range *r, enum figure_scale scale, double v)
{
	if (!figure_fits(scale, v))
		return;
	r->low = v < r->low ? v : r->low;
	r->high = v > r->high ? v : r->high;
}

static void widen_by_curve(const struct figure *f, const struct figure_curve *c,
			   struct figure_layout *l)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!is_shown(f, c, i))
			continue;
		widen(&l->x, f->x_scale, c->x[i]);
		widen(&l->y, f->y_scale, c->y[i]);
		if (c->low && c->high) {
			widen(&l->y, f->y_scale, c->low[i]);
			widen(&l->y, f->y_scale, c->high[i]);
		}
	}
}

static struct figure_range with_air(struct figure_range r, enum figure_scale scale, bool is_y)
{
	bool from_zero = is_y && (scale == FIGURE_LINEAR || scale == FIGURE_SQRT) && r.low >= 0 &&
			 r.low < r.high / 2;
	double low, high, air;

	if (r.low > r.high) /* nothing to show */
		r = scale == FIGURE_LOGIT ? (struct figure_range){ 0.1, 0.9 } :
		    (struct figure_range){ 1, 10 };
	low = figure_place(scale, from_zero ? 0 : r.low);
	high = figure_place(scale, r.high);
	air = (high - low) * AIR;
	if (!(air > 0))
		air = scale == FIGURE_LINEAR && high != 0 ? fabs(high) * 0.1 : 0.5;
	return (struct figure_range){ from_zero ? 0 : figure_unplace(scale, low - air),
				      figure_unplace(scale, high + air) };
}

static bool has_labels(const struct figure *f)
{
	for (size_t p = 0; p < f->rows * f->cols; p++)
		for (size_t k = 0; k < f->panel[p].n_curves; k++)
			if (f->panel[p].curve[k].label)
				return true;
	return false;
}

static void add_room(struct figure_range *r, enum figure_scale scale, double part)
{
	double low = figure_place(scale, r->low), high = figure_place(scale, r->high);

	r->high = figure_unplace(scale, high + (high - low) * part);
}

/* A limit beyond the points still leaves an axis: gnuplot rejects an empty one. */
static void set_limits(struct figure_range *r, const struct figure_limits *limits)
{
	if (limits->low == 0 && limits->high == 0)
		return;
	if (!isnan(limits->low))
		r->low = limits->low;
	if (!isnan(limits->high))
		r->high = limits->high;
	if (r->low >= r->high && isnan(limits->high))
		r->high = r->low + fmax(fabs(r->low), 1);
	else if (r->low >= r->high)
		r->low = r->high - fmax(fabs(r->high), 1) / 2;
}

static void find_ranges(const struct figure *f, struct figure_layout *l)
{
	l->x = l->y = (struct figure_range){ INFINITY, -INFINITY };
	for (size_t p = 0; p < f->rows * f->cols; p++) {
		for (size_t k = 0; k < f->panel[p].n_curves; k++)
			widen_by_curve(f, &f->panel[p].curve[k], l);
		for (size_t k = 0; k < f->panel[p].n_limits; k++) {
			const struct figure_limit *limit = &f->panel[p].limit[k];

			widen(limit->is_vertical ? &l->x : &l->y,
			      limit->is_vertical ? f->x_scale : f->y_scale, limit->at);
		}
	}
	l->x = with_air(l->x, f->x_scale, false);
	l->y = with_air(l->y, f->y_scale, true);
	if (has_labels(f)) { /* labels extend to the right of points and above */
		add_room(&l->x, f->x_scale, 0.15);
		add_room(&l->y, f->y_scale, 0.05);
	}
	set_limits(&l->x, &f->x_limits);
	set_limits(&l->y, &f->y_limits);
}

/* ---- sizes ---- */

size_t figure_lines(const char *text)
{
	size_t n = text && *text;

	for (; text && *text; text++)
		n += *text == '\n' && text[1];
	return n;
}

size_t figure_legend(const struct figure *f, const struct figure_curve **out)
{
	struct map seen = { 0 };
	size_t n = 0;

	for (size_t p = 0; p < f->rows * f->cols; p++)
		for (size_t k = 0; k < f->panel[p].n_curves; k++) {
			const struct figure_curve *c = &f->panel[p].curve[k];

			if (!c->title || !*c->title || map_get(&seen, str_of(c->title), NULL))
				continue;
			map_put(&seen, str_of(c->title), 1);
			if (out)
				out[n] = c;
			n++;
		}
	map_release(&seen);
	return n;
}

/* Small print for many curves, then several columns. */
static double size_legend(const struct figure *f, struct figure_layout *l)
{
	size_t n = figure_legend(f, NULL), all = n + figure_lines(f->legend_title);
	size_t widest = 0, columns;
	const struct figure_curve **curve;
	/* gnuplot starts another column where entries would be taller than the panels. */
	double room = (double)f->rows * l->panel_height - FIGURE_LINE_IN(FIGURE_FONT_PT);

	if (n == 0)
		return 0;
	curve = mem_array(n, sizeof(struct figure_curve *));
	figure_legend(f, curve);
	for (size_t i = 0; i < n; i++) {
		size_t width = figure_columns(curve[i]->title);

		widest = width > widest ? width : widest;
	}
	free(curve);
	l->legend_pt = room / (double)all * 72 / 1.5;
	l->legend_pt = l->legend_pt > FIGURE_FONT_PT - 1 ? FIGURE_FONT_PT - 1 :
		       l->legend_pt < 6.5 ? 6.5 : l->legend_pt;
	l->legend_rows = (size_t)(room / FIGURE_LINE_IN(l->legend_pt));
	l->legend_rows = l->legend_rows ? l->legend_rows : 1;
	columns = (n + l->legend_rows - 1) / l->legend_rows;
	if (columns == 1 && f->legend_title && figure_columns(f->legend_title) > widest + 5)
		widest = figure_columns(f->legend_title) - 5;
	return 0.25 + (double)columns * (0.55 + (double)widest * FIGURE_LETTER_IN(l->legend_pt));
}

struct figure_layout figure_layout(const struct figure *f)
{
	struct figure_layout l = { .left = 0.95, .bottom = 0.7, .gap_x = 0.25 };
	size_t title_lines = 0;
	double legend;

	assert(f->rows > 0 && f->cols > 0);
	for (size_t i = 0; i < f->rows * f->cols; i++) {
		size_t n = figure_lines(f->panel[i].title);

		title_lines = n > title_lines ? n : title_lines;
	}
	l.panel_height = f->panel_height_in > 0 ? f->panel_height_in : FIGURE_HEIGHT_IN;
	l.panel_height -= l.bottom;
	l.panel_height = l.panel_height > 0.5 ? l.panel_height : 0.5;
	l.panel_width = (f->panel_width_in > 0 ? f->panel_width_in
					       : (l.panel_height + l.bottom) * 4 / 3) - l.left;
	l.panel_width = l.panel_width > 0.5 ? l.panel_width : 0.5;
	l.gap_y = 0.2 + (double)title_lines * FIGURE_LINE_IN(FIGURE_FONT_PT);
	l.height = l.bottom + (double)f->rows * (l.panel_height + l.gap_y) +
		   (f->title ? FIGURE_LINE_IN(FIGURE_FONT_PT + 2) : 0) + 0.05;
	l.width = l.left + (double)f->cols * (l.panel_width + l.gap_x);
	legend = size_legend(f, &l);
	if (legend > 0)
		l.legend_x = l.width;
	l.width += legend;
	find_ranges(f, &l);
	return l;
}

/* ---- the table ---- */

static void add_number(struct buf *out, double v, const char *after)
{
	char text[FMT_F64_BYTES];

	buf_printf(out, "%s%s", isnan(v) ? "NaN" : fmt_f64(text, v), after);
}

/* One line, whatever is in the text: a table has no other way to end it. */
static void add_line(struct buf *out, const char *text)
{
	for (; text && *text; text++)
		buf_add_char(out, (unsigned char)*text < ' ' ? ' ' : *text == '"' ? '\'' : *text);
}

static void add_curve(struct buf *out, const struct figure *f, const struct figure_curve *c)
{
	for (size_t i = 0; i < c->n; i++) {
		bool is_one = !c->low || !c->high;

		if (!is_shown(f, c, i))
			buf_add_text(out, "# not drawn: ");
		add_number(out, c->x[i], " ");
		add_number(out, c->y[i], " ");
		add_number(out, is_one ? NAN : c->low[i], " ");
		add_number(out, is_one ? NAN : c->high[i], " ");
		buf_printf(out, "%zu", c->count ? c->count[i] : (size_t)1);
		if (c->label && c->label[i]) {
			buf_add_text(out, " \"");
			add_line(out, c->label[i]);
			buf_add_char(out, '"');
		}
		buf_add_char(out, '\n');
	}
	if (c->n == 0)
		buf_add_text(out, "NaN NaN NaN NaN 0\n");
}

void figure_data(const struct figure *f, struct buf *out)
{
	buf_add_text(out, "# x: ");
	add_line(out, f->x_label);
	buf_add_text(out, "; y: ");
	add_line(out, f->y_label);
	buf_add_text(out, "\n# x y low high count label\n");
	for (size_t p = 0; p < f->rows * f->cols; p++)
		for (size_t k = 0; k < f->panel[p].n_curves; k++) {
			const struct figure_curve *c = &f->panel[p].curve[k];

			buf_printf(out, "\n\n# panel %zu", p + 1);
			if (f->panel[p].title) {
				buf_add_text(out, " (");
				add_line(out, f->panel[p].title);
				buf_add_char(out, ')');
			}
			buf_add_text(out, ": ");
			add_line(out, c->title ? c->title : "points");
			buf_add_char(out, '\n');
			add_curve(out, f, c);
		}
}
