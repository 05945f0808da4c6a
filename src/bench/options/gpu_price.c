/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_price.c - see gpu_price.h. */
#include "bench/options/gpu_price.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/base/file.h"
#include "core/base/str.h"

#define TABLE_BYTES_MAX 1048576

static bool contains(struct str text, struct str part)
{
	for (size_t i = 0; part.n && i + part.n <= text.n; i++)
		if (strncasecmp(text.p + i, part.p, part.n) == 0)
			return true;
	return false;
}

/* "4xNVIDIA H100": 4, and the rest. */
static int read_gpus(const char *gpus, uint32_t *count, struct str *name, struct err *e)
{
	struct str rest = str_of(gpus), head;
	size_t digits = 0;
	int64_t n = 1;

	while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
		digits++;
	head = (struct str){ rest.p, digits };
	*name = (struct str){ rest.p + digits, rest.n - digits };
	if (digits && name->n && (*name->p == 'x' || *name->p == 'X'))
		*name = str_trim((struct str){ name->p + 1, name->n - 1 });
	else if (digits && name->n) { /* a name that begins with digits */
		*name = rest;
		digits = 0;
	}
	if ((digits && (!str_to_i64(head, &n) || n < 1 || n > GPU_COUNT_MAX)) ||
	    (!digits && !name->n))
		return err_set(e, ERR_USAGE, "--gpus: expected a number from 1 to %d, also with a name "
			       "(4xH100), got '%.60s'", GPU_COUNT_MAX, gpus);
	*count = (uint32_t)n;
	return 0;
}

/* The price in the table's longest line for that GPU; false: none. */
static int find_price(const char *path, struct str table, struct str gpu, double *out,
		      struct err *e)
{
	struct str best = { 0 };
	size_t line = 0;

	while (table.n) {
		struct str text = str_cut(&table, '\n'), price, name;
		double v;

		line++;
		price = str_cut(&text, '#');
		name = str_trim(str_cut(&price, '='));
		price = str_trim(price);
		if (!name.n && !price.n)
			continue;
		if (!name.n || !str_to_f64(price, &v) || !(v > 0) || !isfinite(v))
			return err_set(e, ERR_USAGE, "%s:%zu: expected NAME = PRICE with a price above 0",
				       path, line);
		if (contains(gpu, name) && name.n > best.n) {
			best = name;
			*out = v;
		}
	}
	if (!best.n)
		return err_set(e, ERR_USAGE, "--gpu-price: %s has no line for '%.*s'; add one, or give "
			       "the price itself", path, (int)gpu.n, gpu.p);
	return 0;
}

int gpu_price_read(const char *gpus, const char *price, uint32_t *count, double *price_per_hour,
		   struct err *e)
{
	struct buf table = { 0 };
	struct str name = { 0 };
	int rc;

	*count = 0;
	*price_per_hour = 0;
	if (gpus && *gpus && read_gpus(gpus, count, &name, e) < 0)
		return -1;
	if (!price)
		return 0;
	if (str_to_f64(str_of(price), price_per_hour)) {
		if (*price_per_hour > 0 && isfinite(*price_per_hour))
			return 0;
		return err_set(e, ERR_USAGE, "--gpu-price: expected a price above 0, or a file, got "
			       "'%.60s'", price);
	}
	if (file_read(price, TABLE_BYTES_MAX, &table, e) < 0)
		return err_wrap(e, "--gpu-price");
	if (!name.n)
		rc = err_set(e, ERR_USAGE, "--gpu-price: a file of prices needs the GPU's name: "
			     "--gpus 4xH100, say");
	else
		rc = find_price(price, buf_str(&table), name, price_per_hour, e);
	buf_release(&table);
	return rc;
}
