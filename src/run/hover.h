/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/hover.h - staying at the boundary: which level comes next when the limits are watched in
 * short windows, and what the capacity seems to be meanwhile. Pure.
 *
 * Stochastic approximation (Robbins and Monro 1951) with a constant step, so that it follows a
 * capacity that drifts: after each window the estimate moves by a share (HOVER_STEP) of its gap
 * (run/sla.h), as if gaps grew in proportion to the load, never by more than HOVER_MOVE_MAX. It
 * always moves up after a window that passed and down after one that failed.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define HOVER_STEP 0.4
#define HOVER_MOVE_MAX 0.2   /* of a window, as a logarithm: 22 % */
#define HOVER_MOVE_MIN 0.002

struct hover {
	double capacity; /* the estimate, a level */
	int64_t max;
};

void hover_init(struct hover *h, double capacity, int64_t max);
/* The level of the next window. */
int64_t hover_level(const struct hover *h);
void hover_tell(struct hover *h, double gap, bool passes);
