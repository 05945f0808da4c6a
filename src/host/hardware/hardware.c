/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c - see hardware.h. */
#include "host/hardware/hardware.h"

#include <assert.h>
#include <dirent.h>
#include <gnu/libc-version.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "host/gpu/gpu.h"
#include "host/telemetry/system.h"

#define WORD_BYTES 256
#define PATH_BYTES (2 * WORD_BYTES + 64)

static_assert(HARDWARE_NAME_BYTES >= 2 * WORD_BYTES + 2, "vendor and product fit");

/* Paths are those of the machine ("/proc/cpuinfo"); root is put before each. */
struct hardware_root { const char *root; };

/* ---- small files ---- */

static bool is_there(const struct hardware_root *h, const char *path)
{
	struct buf whole = { 0 };
	bool is_file;

	buf_printf(&whole, "%s%s", h->root, path);
	is_file = file_exists(whole.data);
	buf_release(&whole);
	return is_file;
}

/* Whole, into out, which is emptied before; false: it is not there. */
static bool read_file(const struct hardware_root *h, struct buf *out, const char *path)
{
	struct buf whole = { 0 };
	bool is_read;

	buf_printf(&whole, "%s%s", h->root, path);
	buf_reset(out);
	is_read = file_read(whole.data, HARDWARE_FILE_BYTES_MAX, out, NULL) == 0;
	buf_release(&whole);
	return is_read;
}

/* Without the blanks around it; false, and "": not there, or empty. */
__attribute__((format(printf, 3, 4)))
static bool read_word(const struct hardware_root *h, char out[static WORD_BYTES],
		      const char *fmt, ...)
{
	struct buf text = { 0 };
	char path[PATH_BYTES];
	struct str word;
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	*out = 0;
	if (read_file(h, &text, path)) {
		word = str_trim(buf_str(&text));
		snprintf(out, WORD_BYTES, "%.*s", (int)word.n, word.p ? word.p : "");
	}
	buf_release(&text);
	return *out;
}

static bool read_number(const struct hardware_root *h, int64_t *out, const char *folder,
			const char *file)
{
	char word[WORD_BYTES];

	return read_word(h, word, "%s/%s", folder, file) && str_to_i64(str_of(word), out);
}

/* "": null */
static void put_word(struct json_writer *w, const char *key, const char *word)
{
	json_member_text(w, key, word && *word ? word : NULL);
}

/* below 0: null */
static void put_count(struct json_writer *w, const char *key, int64_t v)
{
	json_key(w, key);
	if (v >= 0)
		json_put_int(w, v);
	else
		json_put_null(w);
}

/* ---- network ---- */

static int no_dots(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Names in a folder, sorted; free with free_names. */
static size_t names_in(const struct hardware_root *h, const char *folder, struct dirent ***out)
{
	struct buf path = { 0 };
	int n;

	buf_printf(&path, "%s%s", h->root, folder);
	n = scandir(path.data, out, no_dots, alphasort);
	buf_release(&path);
	return n > 0 ? (size_t)n : 0;
}

static void free_names(struct dirent **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	if (n)
		free(names);
}

/* The last part of a link's target. */
static void link_word(const struct hardware_root *h, const char *folder, const char *file,
		      char out[static 256])
{
	struct buf whole = { 0 };
	ssize_t n;
	char *slash;

	buf_printf(&whole, "%s%s/%s", h->root, folder, file);
	n = readlink(whole.data, out, 255);
	out[n > 0 ? n : 0] = 0;
	slash = strrchr(out, '/');
	if (slash)
		memmove(out, slash + 1, strlen(slash));
	buf_release(&whole);
}

static void put_card(const struct hardware_root *h, const char *name, struct json_writer *w)
{
	char folder[PATH_BYTES], driver[256], state[WORD_BYTES];
	int64_t speed;

	snprintf(folder, sizeof(folder), "/sys/class/net/%s", name);
	json_begin_object(w);
	json_member_text(w, "name", name);
	put_count(w, "speed_mbit", read_number(h, &speed, folder, "speed") ? speed : -1);
	link_word(h, folder, "device/driver", driver);
	put_word(w, "driver", driver);
	read_word(h, state, "%s/operstate", folder);
	json_member_bool(w, "is_up", strcmp(state, "up") == 0);
	json_end_object(w);
}

/* "mlx5_0: 200 Gb/sec (4X HDR)" */
static void put_rdma(const struct hardware_root *h, struct json_writer *w)
{
	struct dirent **names = NULL;
	size_t n = names_in(h, "/sys/class/infiniband", &names);

	json_member_array(w, "rdma");
	for (size_t i = 0; i < n && i < HARDWARE_CARDS_MAX; i++) {
		char rate[WORD_BYTES];
		struct buf text = { 0 };

		buf_add_text(&text, names[i]->d_name);
		if (read_word(h, rate, "/sys/class/infiniband/%s/ports/1/rate", names[i]->d_name))
			buf_printf(&text, ": %s", rate);
		json_put_str(w, buf_str(&text));
		buf_release(&text);
	}
	json_end_array(w);
	free_names(names, n);
}

static void put_network(const struct hardware_root *h, struct json_writer *w)
{
	struct dirent **names = NULL;
	size_t n = names_in(h, "/sys/class/net", &names);

	json_member_array(w, "network");
	for (size_t i = 0; i < n && i < HARDWARE_CARDS_MAX; i++)
		if (strcmp(names[i]->d_name, "lo") != 0)
			put_card(h, names[i]->d_name, w);
	json_end_array(w);
	free_names(names, n);
	put_rdma(h, w);
}

/* ---- container, virtualisation ---- */

const char *hardware_container(const char *root)
{
	const struct hardware_root machine = { root }, *h = &machine;
	static const struct { const char *in_group, *name; } groups[] = {
		{ "kubepods", "kubernetes" }, { "/docker", "docker" }, { "libpod", "podman" },
		{ "/lxc", "lxc" }, { "containerd", "containerd" },
	};
	char kernel[WORD_BYTES];
	struct buf group = { 0 };
	const char *name = NULL;

	if (getenv("KUBERNETES_SERVICE_HOST"))
		return "kubernetes";
	if (is_there(h, "/run/.containerenv"))
		return "podman";
	read_file(h, &group, "/proc/self/cgroup");
	for (size_t i = 0; group.len && i < sizeof(groups) / sizeof(*groups) && !name; i++)
		if (strstr(group.data, groups[i].in_group))
			name = groups[i].name;
	buf_release(&group);
	if (name)
		return name;
	if (is_there(h, "/.dockerenv"))
		return "docker";
	if (read_word(h, kernel, "/proc/sys/kernel/osrelease") &&
	    (strstr(kernel, "microsoft") || strstr(kernel, "WSL")))
		return "wsl";
	return getenv("container"); /* set by systemd-nspawn, lxc and similar */
}

/* Whether the processor reports a hypervisor. */
static bool is_guest(const struct hardware_root *h)
{
	struct buf text = { 0 };
	bool is_one = read_file(h, &text, "/proc/cpuinfo") && text.len &&
		      strstr(text.data, " hypervisor");

	buf_release(&text);
	return is_one || is_there(h, "/sys/hypervisor/type");
}

const char *hardware_hypervisor(const char *root, char out[static HARDWARE_NAME_BYTES])
{
	const struct hardware_root machine = { root }, *h = &machine;
	char maker[WORD_BYTES], product[WORD_BYTES];

	out[0] = '\0';
	if (is_guest(h)) {
		read_word(h, maker, "/sys/class/dmi/id/sys_vendor");
		read_word(h, product, "/sys/class/dmi/id/product_name");
		snprintf(out, HARDWARE_NAME_BYTES, "%s%s%s", maker,
			 *maker && *product ? " " : "", product);
		if (!*out)
			snprintf(out, HARDWARE_NAME_BYTES, "unknown");
	}
	return out;
}

/* Container and virtualisation. */
static void put_walls(const struct hardware_root *h, struct json_writer *w)
{
	char name[HARDWARE_NAME_BYTES];

	put_word(w, "container", hardware_container(h->root));
	put_word(w, "virtualization", hardware_hypervisor(h->root, name));
}

/* ---- processor ---- */

#define CPU "/sys/devices/system/cpu"
#define NODE "/sys/devices/system/node"

/* Totals over the threads of all cores. */
struct cpus {
	char model[WORD_BYTES], governor[WORD_BYTES];
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

static void look_at_thread(const struct hardware_root *h, const char *folder, struct cpus *out)
{
	char governor[WORD_BYTES];
	int64_t khz;

	if (read_number(h, &khz, folder, "cpufreq/cpuinfo_max_freq"))
		out->clock_max_mhz = fmax(out->clock_max_mhz, (double)khz / 1000);
	if (!read_word(h, governor, "%s/cpufreq/scaling_governor", folder))
		return;
	if (*out->governor && strcmp(out->governor, governor) != 0)
		snprintf(governor, sizeof(governor), "mixed");
	snprintf(out->governor, sizeof(out->governor), "%s", governor);
}

static void look_at_threads(const struct hardware_root *h, struct cpus *out)
{
	int64_t(*pair)[2] = mem_array(HARDWARE_CPUS_MAX, sizeof(*pair));
	char online[WORD_BYTES];
	int64_t cpu = -1, last = -1;
	struct str list;
	size_t n = 0;

	out->threads = read_word(h, online, CPU "/online") ? 0 : -1;
	list = str_of(online);
	while (out->threads < HARDWARE_CPUS_MAX && next_of_list(&list, &cpu, &last)) {
		char folder[160];
		int64_t socket, core;

		out->threads++;
		snprintf(folder, sizeof(folder), CPU "/cpu%d", (int)cpu);
		look_at_thread(h, folder, out);
		if (read_number(h, &socket, folder, "topology/physical_package_id") &&
		    read_number(h, &core, folder, "topology/core_id")) {
			pair[n][0] = socket;
			pair[n++][1] = core;
		}
	}
	count_pairs(pair, n, out);
	free(pair);
}

/* "name<tab>: value" lines. */
static void read_cpuinfo(const struct hardware_root *h, struct cpus *out)
{
	struct buf text = { 0 };
	struct str rest;
	double sum = 0;
	size_t n = 0;

	read_file(h, &text, "/proc/cpuinfo");
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

static void put_boost(const struct hardware_root *h, struct json_writer *w)
{
	int64_t v;

	json_key(w, "boost");
	if (read_number(h, &v, CPU, "intel_pstate/no_turbo"))
		json_put_bool(w, v == 0);
	else if (read_number(h, &v, CPU, "cpufreq/boost"))
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

static void put_nodes(const struct hardware_root *h, struct json_writer *w)
{
	char online[WORD_BYTES], path[160], cpus[WORD_BYTES];
	int64_t node = -1, last = -1;
	struct buf text = { 0 };
	struct str list;

	read_word(h, online, NODE "/online");
	list = str_of(online);
	json_member_array(w, "numa_nodes");
	for (size_t i = 0; i < HARDWARE_CPUS_MAX && next_of_list(&list, &node, &last); i++) {
		read_word(h, cpus, NODE "/node%d/cpulist", (int)node);
		snprintf(path, sizeof(path), NODE "/node%d/meminfo", (int)node);
		read_file(h, &text, path);
		json_begin_object(w);
		json_member_int(w, "node", node);
		put_word(w, "cpus", cpus);
		put_count(w, "memory_bytes", kilobytes(buf_str(&text), "MemTotal:"));
		json_end_object(w);
	}
	json_end_array(w);
	buf_release(&text);
}

static void put_cpu(const struct hardware_root *h, struct json_writer *w)
{
	struct cpus cpus = { .clock_max_mhz = NAN };
	struct utsname name;
	cpu_set_t allowed;

	read_cpuinfo(h, &cpus);
	look_at_threads(h, &cpus);
	json_member_object(w, "cpu");
	put_word(w, "model", cpus.model);
	put_word(w, "architecture", uname(&name) == 0 ? name.machine : "");
	put_count(w, "sockets", cpus.sockets);
	put_count(w, "cores", cpus.cores);
	put_count(w, "threads", cpus.threads);
	put_count(w, "allowed", sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ?
			   CPU_COUNT(&allowed) : -1);
	json_member_f64(w, "quota", host_group_cpus(h->root, NULL)); /* null: no limit */
	put_word(w, "governor", cpus.governor);
	json_member_f64(w, "clock_mhz", cpus.clock_mhz);
	json_member_f64(w, "clock_max_mhz", cpus.clock_max_mhz);
	put_boost(h, w);
	put_nodes(h, w);
	json_end_object(w);
}

/* ---- memory ---- */

/* "always [madvise] never": the one in brackets. */
static void put_hugepages(const struct hardware_root *h, struct json_writer *w)
{
	char word[WORD_BYTES], *open, *close;

	read_word(h, word, "/sys/kernel/mm/transparent_hugepage/enabled");
	open = strchr(word, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close)
		*close = 0;
	put_word(w, "hugepages", close ? open + 1 : "");
}

static void put_memory(const struct hardware_root *h, struct json_writer *w)
{
	struct buf text = { 0 };
	double limit = host_group_memory(h->root);
	int64_t total;

	read_file(h, &text, "/proc/meminfo");
	total = kilobytes(buf_str(&text), "MemTotal:");
	json_member_object(w, "memory");
	put_count(w, "total_bytes", total);
	put_count(w, "limit_bytes", isinf(limit) || (total >= 0 && limit > (double)total) ? -1 :
		  (int64_t)limit);
	put_count(w, "swap_bytes", kilobytes(buf_str(&text), "SwapTotal:"));
	put_hugepages(h, w);
	json_end_object(w);
	buf_release(&text);
}

/* ---- GPUs ---- */

static void put_links(struct json_writer *w, const struct gpu_set *set, const struct gpu *g,
		      size_t n, size_t i)
{
	static const char *const names[] = { "unknown", "system", "node", "bridge", "switch",
					     "nvlink" };

	json_member_array(w, "links");
	for (size_t k = 0; k < n && g[i].part < 0; k++)
		if (g[k].part < 0)
			json_put_text(w, k == i ? "self" : names[gpu_link(set, i, k)]);
	json_end_array(w);
}

static void put_gpu(struct json_writer *w, const struct gpu *g)
{
	char capability[32] = "";

	if (g->capability_major >= 0)
		snprintf(capability, sizeof(capability), "%d.%d", g->capability_major,
			 g->capability_minor);
	json_member_int(w, "index", g->index);
	put_word(w, "name", g->name);
	put_word(w, "uuid", g->uuid);
	json_member_text(w, "vendor", g->maker == GPU_AMD ? "amd" : "nvidia");
	json_member_f64(w, "memory_bytes", g->memory_bytes);
	put_word(w, "driver", g->driver);
	put_word(w, "cuda", g->cuda);
	put_word(w, "compute_capability", capability);
	json_member_f64(w, "power_limit_w", g->power_limit_w);
	json_member_f64(w, "sm_clock_max_mhz", g->sm_clock_max_mhz);
	json_member_f64(w, "memory_clock_max_mhz", g->memory_clock_max_mhz);
	put_count(w, "numa", g->numa);
	put_word(w, "pci", g->pci);
	put_word(w, "mig_profile", g->profile);
}

static void put_gpus(struct json_writer *w)
{
	struct gpu_set *set = gpu_open(NULL);
	size_t n;
	const struct gpu *g = gpu_list(set, &n);

	json_member_array(w, "gpus");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		put_gpu(w, &g[i]);
		put_links(w, set, g, n, i);
		json_end_object(w);
	}
	json_end_array(w);
	put_word(w, "gpu_note", gpu_note(set));
	gpu_close(set);
}

/* ---- the system ---- */

/* NAME="value" of os-release. */
static void put_distribution(const struct hardware_root *h, struct json_writer *w)
{
	struct buf text = { 0 };
	struct str rest, name = STR("");

	read_file(h, &text, "/etc/os-release");
	rest = buf_str(&text);
	while (rest.n) {
		struct str value = str_cut(&rest, '\n'), key = str_cut(&value, '=');

		if (!str_is(key, "PRETTY_NAME"))
			continue;
		name = str_trim(value);
		if (name.n >= 2 && (*name.p == '"' || *name.p == '\''))
			name = (struct str){ name.p + 1, name.n - 2 };
	}
	if (name.n)
		json_member_str(w, "name", name);
	else
		json_member_null(w, "name");
	buf_release(&text);
}

static void put_os(const struct hardware_root *h, struct json_writer *w)
{
	char kernel[WORD_BYTES], libc[64];

	read_word(h, kernel, "/proc/sys/kernel/osrelease");
	snprintf(libc, sizeof(libc), "glibc %s", gnu_get_libc_version());
	json_member_object(w, "os");
	put_word(w, "kernel", kernel);
	put_distribution(h, w);
	put_word(w, "libc", libc);
	json_end_object(w);
}

void hardware_json(const char *root, struct buf *out)
{
	struct hardware_root h = { .root = root };
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	put_gpus(&w);
	put_cpu(&h, &w);
	put_memory(&h, &w);
	put_os(&h, &w);
	put_network(&h, &w);
	put_walls(&h, &w);
	json_end_object(&w);
}
