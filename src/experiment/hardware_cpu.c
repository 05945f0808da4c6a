/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/hardware_cpu.c - processor and memory, by /proc/cpuinfo, /proc/meminfo and sysfs. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/mem.h"
#include "experiment/hardware_parts.h"

#define CPU "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"

/* What the threads of all cores say together. */
struct cpus {
	char model[HARDWARE_WORD_BYTES], governor[HARDWARE_WORD_BYTES];
	int64_t sockets, cores, threads;
	double clock_mhz, clock_max_mhz;
};

/* The next number of the kernel's list ("0-3,8"); false at its end. *last: of the range it is in. */
static bool next_of_list(struct str *list, int64_t *at, int64_t *last)
{
	struct str range, first;

	if (*at < *last) {
		++*at;
		return true;
	}
	if (!list->n)
		return false;
	range = str_trim(str_cut(list, ','));
	first = str_cut(&range, '-');
	if (!str_to_i64(first, at) || *at < 0)
		return false;
	if (!range.n || !str_to_i64(range, last) || *last - *at > HARDWARE_CPUS_MAX)
		*last = *at;
	return true;
}

static int compare_pairs(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : x[1] != y[1] ? (x[1] < y[1] ? -1 : 1) : 0;
}

/* Of pairs (socket, core), sorted. */
static void count_pairs(int64_t (*pair)[2], size_t n, struct cpus *out)
{
	qsort(pair, n, sizeof(*pair), compare_pairs);
	out->sockets = out->cores = n ? 0 : -1;
	for (size_t i = 0; i < n; i++) {
		out->sockets += !i || pair[i][0] != pair[i - 1][0];
		out->cores += !i || compare_pairs(pair[i], pair[i - 1]) != 0;
	}
}

static bool number_of(const struct hardware *h, int64_t cpu, const char *file, int64_t *out)
{
	char path[160];

	snprintf(path, sizeof(path), CPU "/cpu%d/%s", (int)cpu, file);
	return hardware_number(h, out, path);
}

static void look_at_thread(const struct hardware *h, int64_t cpu, struct cpus *out)
{
	char path[160], governor[HARDWARE_WORD_BYTES];
	int64_t khz;

	if (number_of(h, cpu, "cpufreq/cpuinfo_max_freq", &khz))
		out->clock_max_mhz = fmax(out->clock_max_mhz, (double)khz / 1000);
	snprintf(path, sizeof(path), CPU "/cpu%d/cpufreq/scaling_governor", (int)cpu);
	if (!hardware_word(h, governor, path))
		return;
	if (*out->governor && strcmp(out->governor, governor) != 0)
		snprintf(governor, sizeof(governor), "mixed");
	snprintf(out->governor, sizeof(out->governor), "%s", governor);
}

static void look_at_threads(const struct hardware *h, struct cpus *out)
{
	int64_t(*pair)[2] = mem_array(HARDWARE_CPUS_MAX, sizeof(*pair));
	char online[HARDWARE_WORD_BYTES];
	int64_t cpu = -1, last = -1;
	struct str list;
	size_t n = 0;

	out->threads = hardware_word(h, online, CPU "/online") ? 0 : -1;
	list = str_of(online);
	while (out->threads < HARDWARE_CPUS_MAX && next_of_list(&list, &cpu, &last)) {
		int64_t socket, core;

		out->threads++;
		look_at_thread(h, cpu, out);
		if (number_of(h, cpu, "topology/physical_package_id", &socket) &&
		    number_of(h, cpu, "topology/core_id", &core)) {
			pair[n][0] = socket;
			pair[n++][1] = core;
		}
	}
	count_pairs(pair, n, out);
	free(pair);
}

/* "name<tab>: value" lines. */
static void read_cpuinfo(const struct hardware *h, struct cpus *out)
{
	struct buf text = { 0 };
	struct str rest;
	double sum = 0;
	size_t n = 0;

	hardware_read(h, &text, "/proc/cpuinfo");
	rest = buf_str(&text);
	while (rest.n) {
		struct str value = str_cut(&rest, '\n'), name = str_trim(str_cut(&value, ':'));
		double mhz;

		value = str_trim(value);
		if (!*out->model && (str_is(name, "model name") || str_is(name, "cpu model")))
			snprintf(out->model, sizeof(out->model), "%.*s", (int)value.n, value.p);
		if (str_is(name, "cpu MHz") && str_to_f64(value, &mhz)) {
			sum += mhz;
			n++;
		}
	}
	out->clock_mhz = n ? sum / (double)n : NAN;
	buf_release(&text);
}

static void put_boost(const struct hardware *h, struct json_writer *w)
{
	int64_t v;

	json_key(w, "boost");
	if (hardware_number(h, &v, CPU "/intel_pstate/no_turbo"))
		json_put_bool(w, v == 0);
	else if (hardware_number(h, &v, CPU "/cpufreq/boost"))
		json_put_bool(w, v == 1);
	else
		json_put_null(w);
}

/* "Node 0 MemTotal:  1024 kB" */
static int64_t kilobytes(struct str text, const char *name)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');
		const char *at = memmem(line.p, line.n, name, strlen(name));
		struct str value;
		int64_t kb;

		if (!at)
			continue;
		at += strlen(name);
		value = str_trim((struct str){ at, line.n - (size_t)(at - line.p) });
		if (str_to_i64(str_cut(&value, ' '), &kb) && kb >= 0 && kb < INT64_MAX / 1024)
			return kb * 1024;
	}
	return -1;
}

static void put_nodes(const struct hardware *h, struct json_writer *w)
{
	char online[HARDWARE_WORD_BYTES], path[160], cpus[HARDWARE_WORD_BYTES];
	int64_t node = -1, last = -1;
	struct buf text = { 0 };
	struct str list;

	hardware_word(h, online, NODE "/online");
	list = str_of(online);
	json_member_array(w, "numa_nodes");
	for (size_t i = 0; i < HARDWARE_CPUS_MAX && next_of_list(&list, &node, &last); i++) {
		snprintf(path, sizeof(path), NODE "/node%d/cpulist", (int)node);
		hardware_word(h, cpus, path);
		hardware_read(h, &text, NODE "/node%d/meminfo", (int)node);
		json_begin_object(w);
		json_member_int(w, "node", node);
		hardware_put_word(w, "cpus", cpus);
		hardware_put_count(w, "memory_bytes", kilobytes(buf_str(&text), "MemTotal:"));
		json_end_object(w);
	}
	json_end_array(w);
	buf_release(&text);
}

void hardware_put_cpu(const struct hardware *h, struct json_writer *w)
{
	struct cpus cpus = { .clock_max_mhz = NAN };
	struct utsname name;
	cpu_set_t allowed;

	read_cpuinfo(h, &cpus);
	look_at_threads(h, &cpus);
	json_member_object(w, "cpu");
	hardware_put_word(w, "model", cpus.model);
	hardware_put_word(w, "architecture", uname(&name) == 0 ? name.machine : "");
	hardware_put_count(w, "sockets", cpus.sockets);
	hardware_put_count(w, "cores", cpus.cores);
	hardware_put_count(w, "threads", cpus.threads);
	hardware_put_count(w, "allowed", sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ?
			   CPU_COUNT(&allowed) : -1);
	hardware_put_number(w, "quota", hardware_cpu_quota(h));
	hardware_put_word(w, "governor", cpus.governor);
	hardware_put_number(w, "clock_mhz", cpus.clock_mhz);
	hardware_put_number(w, "clock_max_mhz", cpus.clock_max_mhz);
	put_boost(h, w);
	put_nodes(h, w);
	json_end_object(w);
}

/* ---- memory ---- */

/* "always [madvise] never": the one in brackets. */
static void put_hugepages(const struct hardware *h, struct json_writer *w)
{
	char word[HARDWARE_WORD_BYTES], *open, *close;

	hardware_word(h, word, "/sys/kernel/mm/transparent_hugepage/enabled");
	open = strchr(word, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close)
		*close = 0;
	hardware_put_word(w, "hugepages", close ? open + 1 : "");
}

void hardware_put_memory(const struct hardware *h, struct json_writer *w)
{
	struct buf text = { 0 };
	int64_t total, limit = hardware_memory_limit(h);

	hardware_read(h, &text, "/proc/meminfo");
	total = kilobytes(buf_str(&text), "MemTotal:");
	json_member_object(w, "memory");
	hardware_put_count(w, "total_bytes", total);
	hardware_put_count(w, "limit_bytes", total >= 0 && limit > total ? -1 : limit);
	hardware_put_count(w, "swap_bytes", kilobytes(buf_str(&text), "SwapTotal:"));
	put_hugepages(h, w);
	json_end_object(w);
	buf_release(&text);
}
