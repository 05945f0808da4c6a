/* SPDX-License-Identifier: Apache-2.0 */
/* disk.c - see disk.h. */
#include "client/record/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"

#define LOOK_NS 100000000
#define AHEAD_BYTES (32u << 20)    /* space of a slab that is taken before it is needed */
#define POPULATE_BYTES (8u << 20)  /* of it, the part already in memory */
#define PAGE_BYTES 4096

struct region {
	char *p;
	size_t bytes;       /* with space on the disk */
	struct slab *slab;  /* stored in it and may grow; NULL: none */
	size_t item_bytes, count_max;
	int fd;             /* -1: it does not grow */
};

struct disk {
	const char *folder;
	struct region *region;
	size_t n, cap;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the regions and is_stopping */
	pthread_cond_t wake;
	bool is_stopping;
};

/* Reserves space for a slab that will soon need it, and memory for its next part. */
static void grow(struct region *r, size_t used)
{
	size_t most = r->count_max * r->item_bytes, more = AHEAD_BYTES;

	if (r->bytes < most && r->bytes - used < AHEAD_BYTES) {
		more = most - r->bytes < more ? most - r->bytes : more;
		if (fallocate(r->fd, 0, (off_t)r->bytes, (off_t)more) == 0) {
			r->bytes += more;
			__atomic_store_n(&r->slab->count_max, r->bytes / r->item_bytes,
					 __ATOMIC_RELAXED);
		}
	}
	used &= ~(size_t)(PAGE_BYTES - 1);
#ifdef MADV_POPULATE_WRITE
	madvise(r->p + used, r->bytes - used < POPULATE_BYTES ? r->bytes - used : POPULATE_BYTES,
		MADV_POPULATE_WRITE);
#endif
}

/* Pages of a shared mapping, or of one that is only read, lose nothing. */
static void look(struct disk *d)
{
	for (size_t i = 0; i < d->n; i++) {
		struct region *r = &d->region[i];
		size_t used = r->bytes;

		if (r->slab) {
			used = __atomic_load_n(&r->slab->count, __ATOMIC_RELAXED) * r->item_bytes;
			grow(r, used);
			used &= ~(size_t)(PAGE_BYTES - 1);
		}
		if (used)
			madvise(r->p, used, MADV_DONTNEED);
	}
}

static void *disk_main(void *arg)
{
	struct disk *d = arg;

	pthread_mutex_lock(&d->lock);
	while (!d->is_stopping) {
		int64_t until = clock_mono_ns() + LOOK_NS;
		struct timespec at = { until / 1000000000, until % 1000000000 };

		look(d);
		pthread_cond_timedwait(&d->wake, &d->lock, &at);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct disk *disk_new(const char *folder, struct err *e)
{
	struct disk *d = mem_alloc(sizeof(*d));
	pthread_condattr_t attr;
	int error;

	d->folder = folder;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->wake, &attr);
	pthread_condattr_destroy(&attr);
	error = pthread_create(&d->thread, NULL, disk_main, d);
	if (!error)
		return d;
	err_set(e, ERR_LIMIT, "cannot start a thread: %s", strerror(error));
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->wake);
	free(d);
	return NULL;
}

void disk_free(struct disk *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->is_stopping = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->wake);
	for (size_t i = 0; i < d->n; i++)
		if (d->region[i].fd >= 0)
			close(d->region[i].fd);
	free(d->region);
	free(d);
}

static void add(struct disk *d, const struct region *r)
{
	pthread_mutex_lock(&d->lock);
	d->region = mem_room(d->region, d->n, &d->cap, sizeof(*d->region));
	d->region[d->n++] = *r;
	pthread_mutex_unlock(&d->lock);
}

/* Makes a mapping of `mapped` bytes, of which the first r->bytes have space on the disk. */
static int make(struct disk *d, size_t mapped, struct region *r, struct err *e)
{
	const char *folder = d->folder;
	int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
			: file_unnamed(&folder);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)mapped) == 0 &&
	    fallocate(fd, 0, 0, (off_t)r->bytes) == 0)
		p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		err_set(e, ERR_IO, "%zu MB cannot be kept in a file in %s: %s", r->bytes >> 20, folder,
			strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	r->p = p;
	r->fd = fd;
	return 0;
}

int disk_take(struct disk *d, size_t bytes, void **p, struct err *e)
{
	struct region r = { .bytes = bytes };

	assert(bytes);
	if (make(d, bytes, &r, e) < 0)
		return -1;
	close(r.fd);
	r.fd = -1;
	add(d, &r);
	*p = r.p;
	return 0;
}

int disk_slab(struct disk *d, struct slab *s, struct err *e)
{
	size_t mapped = s->item_bytes * s->count_max;
	struct region r = { .bytes = mapped < AHEAD_BYTES ? mapped : AHEAD_BYTES, .slab = s,
			    .item_bytes = s->item_bytes, .count_max = s->count_max };

	assert(s->count == 0 && mapped && AHEAD_BYTES % s->item_bytes == 0);
	if (make(d, mapped, &r, e) < 0)
		return -1;
	slab_release(s);
	*s = (struct slab){ .data = r.p, .item_bytes = r.item_bytes, .mapped_bytes = mapped,
			    .count_max = r.bytes / r.item_bytes };
	add(d, &r);
	return 0;
}

void disk_settle(struct disk *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n; i++) {
		struct region *r = &d->region[i];

		if (!r->slab)
			continue;
		r->bytes = r->slab->count * r->item_bytes;
		r->slab = NULL;
	}
	pthread_mutex_unlock(&d->lock);
}

void disk_watch(struct disk *d, struct str mapped)
{
	struct region r = { .p = (char *)(uintptr_t)mapped.p, .bytes = mapped.n, .fd = -1 };

	if (mapped.n)
		add(d, &r);
}

void disk_unwatch(struct disk *d, const char *p)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n; i++)
		if (d->region[i].p == p)
			d->region[i] = d->region[--d->n];
	pthread_mutex_unlock(&d->lock);
}
