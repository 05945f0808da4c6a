/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/stray.h - a process that gets away: the simulator leaves one on request, so that those
 * who stop servers can be tested against servers that do.
 */
#pragma once
#include "base/err.h"

/*
 * Starts a process in a session of its own, a child of nobody we know. It does nothing, keeps
 * standard streams open, has the signal handling of its maker, and ends by itself after so many
 * seconds.
 */
int stray_leave(unsigned seconds, struct err *e);
