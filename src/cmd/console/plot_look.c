/* SPDX-License-Identifier: Apache-2.0 */
/* plot_look.c - see plot_look.h. */
#include "cmd/console/plot_look.h"

#include <math.h>
#include <string.h>

/* In the order of enum figure_style. */
const char *const plot_styles[] = { "line-points", "line", "points", "steps", NULL };

static int read_limits(const char *option, const char *text, enum figure_scale scale,
		       struct figure_limits *out, struct err *e)
{
	struct str rest = str_of(text), low = str_cut(&rest, ':');
	bool is_good;

	if (!text)
		return 0;
	*out = (struct figure_limits){ NAN, NAN };
	is_good = strchr(text, ':') && (!low.n || str_to_f64(str_trim(low), &out->low)) &&
		  (!rest.n || str_to_f64(str_trim(rest), &out->high)) && (low.n || rest.n) &&
		  !isinf(out->low) && !isinf(out->high);
	if (!is_good)
		return err_set(e, ERR_USAGE, "%s: expected LOW:HIGH, such as 0:200 or :200, got '%.60s'",
			       option, text);
	if (out->low >= out->high)
		return err_set(e, ERR_USAGE, "%s: the first number must be below the second, got "
			       "'%.60s'", option, text);
	if (scale == FIGURE_LOG && (out->low <= 0 || out->high <= 0))
		return err_set(e, ERR_USAGE, "%s: numbers on a logarithmic axis must be above 0, got "
			       "'%.60s'", option, text);
	return 0;
}

int plot_look_apply(const struct plot_look *look, struct figure *f, struct err *e)
{
	if (read_limits("--xlim", look->xlim, f->x_scale, &f->x_limits, e) < 0 ||
	    read_limits("--ylim", look->ylim, f->y_scale, &f->y_limits, e) < 0)
		return -1;
	f->title = look->title ? look->title : f->title;
	f->x_label = look->xlabel ? look->xlabel : f->x_label;
	f->y_label = look->ylabel ? look->ylabel : f->y_label;
	if (look->width > 0)
		f->panel_width_in = look->width;
	if (look->height > 0)
		f->panel_height_in = look->height;
	for (unsigned i = 0; look->style && plot_styles[i]; i++)
		if (strcmp(look->style, plot_styles[i]) == 0)
			f->style = (enum figure_style)i;
	return 0;
}
