/* SPDX-License-Identifier: Apache-2.0 */
/* slab.c - see slab.h. */
#include "base/slab.h"

#include <errno.h>
#include <sys/mman.h>

int slab_init(struct slab *s, size_t item_bytes, size_t count_max, struct err *e)
{
	void *p = mmap(NULL, item_bytes * count_max, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return err_set(e, ERR_LIMIT, "cannot reserve %zu bytes of address space: %s",
			       item_bytes * count_max, strerror(errno));
	*s = (struct slab){ .data = p, .item_bytes = item_bytes, .count_max = count_max };
	return 0;
}

void slab_prefault(struct slab *s, size_t count)
{
	size_t bytes = (count < s->count_max ? count : s->count_max) * s->item_bytes;

	for (size_t at = 0; at < bytes; at += 4096)
		((volatile char *)s->data)[at] = 0;
}

void slab_release(struct slab *s)
{
	if (s->data)
		munmap(s->data, s->item_bytes * s->count_max);
	*s = (struct slab){ 0 };
}
