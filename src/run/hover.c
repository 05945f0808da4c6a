/* SPDX-License-Identifier: Apache-2.0 */
/* hover.c - see hover.h. */
#include "run/hover.h"

#include <math.h>

void hover_init(struct hover *h, double capacity, int64_t max)
{
	*h = (struct hover){ .capacity = fmax(capacity, 1), .max = max };
}

int64_t hover_level(const struct hover *h)
{
	double level = round(h->capacity);

	return level < 1 ? 1 : level > (double)h->max ? h->max : (int64_t)level;
}

void hover_tell(struct hover *h, double gap, bool passes)
{
	double move = fmin(fmax(HOVER_STEP * fabs(gap), HOVER_MOVE_MIN), HOVER_MOVE_MAX);

	h->capacity *= exp(passes ? move : -move);
	h->capacity = fmin(fmax(h->capacity, 0.5), (double)h->max);
}
