/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - --live: a full screen on stderr while the main run goes on.
 *
 * It has the terminal from the first live_show() to live_leave(), on an alternate screen, so
 * that what stood there before comes back; a signal that ends the program gives it back
 * too. What is to be printed meanwhile waits in live_print() until then.
 *
 * Everything is done on the thread that waits for the loops, five times a second at
 * most, from what is published: the loops do nothing for it.
 */
#pragma once
#include "bench/serve/point.h"

struct live;

/* NULL when stderr is no terminal that could show it; title is borrowed. */
struct live *live_new(const char *title, const char *url);
void live_free(struct live *l); /* leaves the screen; accepts NULL */

void live_show(struct live *l, const struct run_sample *now);
bool live_is_on(const struct live *l); /* false for NULL */
/* Keeps a line for stdout, or a warning, until the screen is left. */
void live_print(struct live *l, bool is_warning, const char *text);
void live_leave(struct live *l); /* accepts NULL */
