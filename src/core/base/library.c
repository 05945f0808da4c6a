/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - see base/library.h. */
#include "core/base/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>

static int load(struct library *l, struct err *e)
{
	void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
	const char *why = handle ? NULL : dlerror();

	for (size_t i = 0; i < l->n && !why; i++) {
		l->call[i] = dlsym(handle, l->name[i]);
		if (!l->call[i])
			why = dlerror();
	}
	if (!why) {
		l->is_open = true;
		return 0;
	}
	return err_set(e, ERR_IO, "cannot load %s: %s; install the package %s or a newer version of it",
		       l->file, why, l->package);
}

int library_open(struct library *l, struct err *e)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int rc;

	assert(l->n > 0 && l->file && l->package);
	pthread_mutex_lock(&lock);
	rc = l->is_open ? 0 : load(l, e);
	pthread_mutex_unlock(&lock);
	return rc;
}
