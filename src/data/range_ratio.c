/* SPDX-License-Identifier: Apache-2.0 */
/* range_ratio.c - see range_ratio.h. */
#include "data/range_ratio.h"

#include "json/read.h"
#include "opt/opt.h"

static int check(const char *option, const char *text, const char *which, double r, struct err *e)
{
	if (r >= 0 && r < 1)
		return 0;
	return err_set(e, ERR_USAGE, "%s: the %s ratio must be in [0, 1), got '%.100s'", option, which,
		       text);
}

int range_ratio_parse(const char *option, const char *text, double *input, double *output,
		      struct err *e)
{
	struct json_scan scan = { str_of(text), 0 };
	struct json_slice object, in, out;

	if (opt_python_float(str_of(text), input)) {
		*output = *input;
		return check(option, text, "range", *input, e);
	}
	if (json_next(&scan, &object, NULL) < 0 || !json_at_end(&scan) ||
	    object.kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "%s: expected a number or JSON like {\"input\": 0.3, "
			       "\"output\": 0.5}, got '%.100s'", option, text);
	if (!json_member(object, "input", &in) || !json_member(object, "output", &out) ||
	    !json_to_f64(in, input) || !json_to_f64(out, output))
		return err_set(e, ERR_USAGE, "%s: the object needs the numbers \"input\" and "
			       "\"output\", got '%.100s'", option, text);
	if (check(option, text, "input", *input, e) < 0)
		return -1;
	return check(option, text, "output", *output, e);
}
