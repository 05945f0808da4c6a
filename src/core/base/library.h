/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - shared libraries that are loaded when they are first needed.
 *
 * A program that is linked with a library loads it, and all that it needs itself, at every start:
 * libcurl alone brings thirty others. So the libraries of what most commands never do (downloads,
 * databases, the dashboard, pictures and sound) are opened by the code that does it. Their headers
 * are needed to build, they themselves only to run:
 *
 *     #define FOO_CALLS(X) X(foo_open) X(foo_close)
 *     LIBRARY(lib, FOO_CALLS, "libfoo.so.1", "libfoo1");
 *
 *     if (library_open(&lib_library, e) < 0)
 *         return -1;
 *     lib.foo_open();
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

struct library {
	const char *file;        /* as the loader looks for it */
	const char *package;     /* Debian's, for the message */
	const char *const *name; /* functions, n of them */
	void **call;             /* what they become */
	size_t n;
	bool is_open;            /* behind a lock: asked by library_open alone */
};

#define LIBRARY_CALL(f) __typeof__(&f) f;
#define LIBRARY_NAME(f) #f,
/* Two static variables: NAME, whose members are the functions, and NAME_library. */
#define LIBRARY(NAME, CALLS, its_file, its_package) \
	static struct { CALLS(LIBRARY_CALL) } NAME; \
	static const char *const NAME##_names[] = { CALLS(LIBRARY_NAME) }; \
	static struct library NAME##_library = { its_file, its_package, NAME##_names, \
		(void **)&NAME, sizeof(NAME##_names) / sizeof(*NAME##_names), false }

/*
 * Loads it unless it is loaded; from any thread. -1: it is not installed or lacks a function, with
 * the package to install in the sentence. A library stays loaded until the process ends.
 */
int library_open(struct library *l, struct err *e);
