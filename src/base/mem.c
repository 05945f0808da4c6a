/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - see mem.h. */
#include "base/mem.h"

#include <unistd.h>

static _Noreturn void out_of_memory(void)
{
	static const char text[] = "profllm: out of memory\n";

	(void)!write(2, text, sizeof(text) - 1);
	_exit(1);
}

void *mem_alloc(size_t n)
{
	return mem_array(n ? n : 1, 1);
}

void *mem_array(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	if (!p)
		out_of_memory();
	return p;
}

void *mem_grow(void *p, size_t count, size_t size)
{
	void *grown = reallocarray(p, count ? count : 1, size);

	if (!grown)
		out_of_memory();
	return grown;
}

char *mem_text(const char *text)
{
	return text ? mem_copy(text, strlen(text)) : NULL;
}

char *mem_copy(const char *p, size_t n)
{
	char *copy = mem_alloc(n + 1);

	if (n)
		memcpy(copy, p, n);
	return copy;
}
