/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - shared libraries that are loaded when they are first needed.
 *
 * A program linked with a library loads it and its dependencies at every start: libcurl alone
 * brings thirty others. So the libraries that most commands never use (downloads, databases, the
 * dashboard, pictures and sound) are opened by the code that calls them. Their headers are needed
 * to build, the libraries only to run:
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
	const char *file;        /* name that dlopen gets */
	const char *package;     /* Debian package, for the message */
	const char *const *name; /* names of the n functions */
	void **call;             /* their addresses once loaded */
	size_t n;
	bool is_open;            /* guarded by a lock in library_open */
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
 * Loads the library unless it is loaded; safe from any thread. -1: it is not installed or lacks a
 * function; the message names the package to install. It stays loaded until the process ends.
 */
int library_open(struct library *l, struct err *e);
