/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/target.h - files that will be written after an hour of load, checked before it. */
#pragma once
#include "base/err.h"

/*
 * Whether path can be written; what names the option in the error. A new file is made
 * and taken away again; a device or a pipe is not opened.
 */
int target_check(const char *what, const char *path, struct err *e);
