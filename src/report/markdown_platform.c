/* SPDX-License-Identifier: Apache-2.0 */
/* markdown_platform.c - the machine that tables were made on, from /proc and /sys. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "report/grid.h"
#include "report/markdown_rows.h"

static const char *cpu_brand(struct arena *a)
{
	struct buf text = { 0 };
	struct err ignored;
	struct str rest;
	const char *brand = "";

	if (file_read("/proc/cpuinfo", 1u << 22, &text, &ignored) < 0)
		return brand;
	rest = buf_str(&text);
	while (rest.n && !*brand) {
		struct str value = str_cut(&rest, '\n'), key = str_trim(str_cut(&value, ':'));

		if (str_is(key, "model name"))
			brand = arena_text(a, str_trim(value));
	}
	buf_release(&text);
	return brand;
}

/* Entries of a folder of /sys that are one word and a number: "node0". */
static int count_numbered(const char *dir, const char *word)
{
	struct dirent **entry;
	int n = scandir(dir, &entry, NULL, NULL), count = 0;
	size_t word_n = strlen(word);

	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;

		count += strncmp(name, word, word_n) == 0 && name[word_n] &&
			 strspn(name + word_n, "0123456789") == strlen(name + word_n);
		free(entry[i]);
	}
	if (n > 0)
		free(entry);
	return count;
}

/* Distinct pairs of package and core; the number of processors where the kernel does not say. */
static long physical_cores(long processors, struct arena *a)
{
	int64_t *seen = arena_alloc(a, ((size_t)processors + 1) * sizeof(*seen));
	long n = 0;

	for (long i = 0; i < processors; i++) {
		static const char *const part[] = { "physical_package_id", "core_id" };
		int64_t id = 0;
		long k = 0;

		for (int p = 0; p < 2; p++) {
			char *path = arena_printf(a, "/sys/devices/system/cpu/cpu%ld/topology/%s", i,
						  part[p]);
			struct buf text = { 0 };
			struct err ignored;
			int64_t v = i;

			if (file_read(path, 4096, &text, &ignored) == 0)
				str_to_i64(str_trim(buf_str(&text)), &v);
			id = id * 65536 + v;
			buf_release(&text);
		}
		while (k < n && seen[k] != id)
			k++;
		if (k == n)
			seen[n++] = id;
	}
	return n;
}

static const char *binary_size(double bytes, struct arena *a)
{
	static const char unit[][2] = { "", "K", "M", "G", "T", "P" };
	size_t i = 0;

	while (bytes >= 1024 && i + 1 < sizeof(unit) / sizeof(*unit)) {
		bytes /= 1024;
		i++;
	}
	return arena_printf(a, "%.2f%sB", bytes, unit[i]);
}

void markdown_platform(struct buf *out, struct arena *a)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	int nodes = count_numbered("/sys/devices/system/node", "node");
	const char *brand = cpu_brand(a);
	struct grid g;

	grid_begin(&g, a);
	grid_add(&g, "");
	grid_add(&g, "Platform Info");
	grid_end_heads(&g);
	grid_add(&g, "Physical cores");
	grid_add(&g, arena_printf(a, "%ld", physical_cores(processors, a)));
	grid_add(&g, "Total cores");
	grid_add(&g, arena_printf(a, "%ld", processors));
	grid_add(&g, "Total Memory");
	grid_add(&g, binary_size(memory, a));
	if (nodes) {
		grid_add(&g, "Total NUMA nodes");
		grid_add(&g, arena_printf(a, "%d", nodes));
	}
	if (*brand) {
		grid_add(&g, "CPU Brand");
		grid_add(&g, brand);
	}
	grid_markdown(&g, out);
}
