/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amd.c - AMD's GPUs through the sysfs files of their driver. See gpu_internal.h.
 *
 *   class/drm/cardN/device/   one GPU: vendor, mem_info_vram_*, gpu_busy_percent, pp_dpm_*, ...
 *   class/drm/cardN/device/hwmon/hwmonM/   its sensors: power, energy, temperature
 *   class/kfd/kfd/topology/nodes/N/        compute nodes, in HIP's order
 *   class/kfd/kfd/proc/PID/vram_ID         processes that compute, with their memory
 */
#include <assert.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "host/gpu/gpu_internal.h"

#define VENDOR 0x1002

struct amd_card {
	char *device;    /* its folder */
	char *sensors;   /* its hwmon folder; NULL */
	uint64_t id;     /* KFD's; 0: none */
	unsigned order;  /* of its KFD node; GPUs without one come last */
	char pci[32];
};

struct amd {
	char *kfd;       /* "/sys/class/kfd/kfd" */
	struct amd_card *card;
	size_t n;
};

/* ---- small files ---- */

/* The file's text without surrounding blanks; "" if there is none. Caller frees. */
static char *text_of(const char *folder, const char *name)
{
	char *path = file_join(folder, name), text[SYSFS_BYTES_MAX];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
	struct str s = str_trim((struct str){ text, n });

	if (f)
		fclose(f);
	free(path);
	return mem_copy(s.p, s.n);
}

static double number_of(const char *folder, const char *name, double unit)
{
	char *text = folder ? text_of(folder, name) : NULL;
	double value;

	if (!text || !*text || !str_to_f64(str_of(text), &value))
		value = NAN;
	free(text);
	return value * unit;
}

/* "1: 1700Mhz *": the line with the star is how it runs now; max: the last line. */
static double clock_of(const char *folder, const char *name, bool is_max)
{
	char *text = text_of(folder, name);
	struct str rest = str_of(text);
	double mhz = NAN;

	while (rest.n) {
		struct str line = str_trim(str_cut(&rest, '\n'));
		bool is_now = str_ends(line, STR("*"));
		size_t digits = 0;
		double value;

		str_cut(&line, ':');
		line = str_trim(line);
		while (digits < line.n && line.p[digits] >= '0' && line.p[digits] <= '9')
			digits++;
		if ((is_now || is_max) && str_to_f64((struct str){ line.p, digits }, &value))
			mhz = value;
	}
	free(text);
	return mhz;
}

/* "key VALUE" in a file of such lines. */
static bool property(const char *text, const char *key, uint64_t *out)
{
	struct str rest = str_of(text);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (str_is(str_cut(&line, ' '), key))
			return str_to_u64(str_trim(line), out);
	}
	return false;
}

/* ---- finding them ---- */

/* Entries of a folder that begin so, each with its number; in no order. */
static void each_numbered(const char *folder, const char *prefix, void *ctx,
			  void (*found)(void *ctx, const char *path, unsigned number))
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		struct str name = str_of(entry->d_name);
		uint64_t number;
		char *path;

		if (!str_starts(name, str_of(prefix)))
			continue;
		name.p += strlen(prefix);
		name.n -= strlen(prefix);
		/* "card0-DP-1" is a connector. */
		if (!str_to_u64(name, &number) || number > UINT32_MAX)
			continue;
		path = file_join(folder, entry->d_name);
		found(ctx, path, (unsigned)number);
		free(path);
	}
	if (dir)
		closedir(dir);
}

static void keep_sensors(void *ctx, const char *path, unsigned number)
{
	struct amd_card *c = ctx;

	(void)number;
	if (!c->sensors)
		c->sensors = mem_text(path);
}

/* PCI_SLOT_NAME=0000:c1:00.0 */
static void read_pci(struct amd_card *c)
{
	char *text = text_of(c->device, "uevent");
	struct str rest = str_of(text);

	while (rest.n) {
		struct str line = str_trim(str_cut(&rest, '\n'));

		if (str_is(str_cut(&line, '='), "PCI_SLOT_NAME"))
			snprintf(c->pci, sizeof(c->pci), "%.*s", (int)line.n, line.p);
	}
	free(text);
}

static void keep_card(void *ctx, const char *path, unsigned number)
{
	struct amd *v = ctx;
	char *device = file_join(path, "device"), *hwmon;
	char *vendor = text_of(device, "vendor");
	struct amd_card *c;

	(void)number;
	if (strtol(vendor, NULL, 16) != VENDOR || v->n == GPUS_MAX ||
	    isnan(number_of(device, "mem_info_vram_total", 1))) {
		free(vendor);
		free(device);
		return;
	}
	free(vendor);
	v->card = mem_grow(v->card, v->n + 1, sizeof(*v->card));
	c = &v->card[v->n++];
	*c = (struct amd_card){ .device = device, .order = UINT32_MAX };
	read_pci(c);
	hwmon = file_join(device, "hwmon");
	each_numbered(hwmon, "hwmon", c, keep_sensors);
	free(hwmon);
}

/* A node's location_id is bus, device and function in its PCI domain. */
static void match_node(void *ctx, const char *path, unsigned number)
{
	struct amd *v = ctx;
	char *id = text_of(path, "gpu_id"), *text = text_of(path, "properties");
	uint64_t gpu_id, place, domain = 0;
	char pci[32];

	if (str_to_u64(str_of(id), &gpu_id) && gpu_id &&
	    property(text, "location_id", &place)) {
		(void)property(text, "domain", &domain);
		snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", (unsigned)domain & 0xffff,
			 (unsigned)(place >> 8) & 0xff, (unsigned)(place >> 3) & 0x1f,
			 (unsigned)place & 7);
		for (size_t i = 0; i < v->n; i++)
			if (strcmp(v->card[i].pci, pci) == 0) {
				v->card[i].id = gpu_id;
				v->card[i].order = number;
			}
	}
	free(id);
	free(text);
}

static int by_order(const void *a, const void *b)
{
	const struct amd_card *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return strcmp(x->pci, y->pci);
}

static void describe(const struct amd_card *c, const char *driver, struct gpu *g)
{
	char *name = text_of(c->device, "product_name"), *id = text_of(c->device, "unique_id");
	double numa = number_of(c->device, "numa_node", 1);

	snprintf(g->name, sizeof(g->name), "%s", *name ? name : "AMD GPU");
	if (*id)
		snprintf(g->uuid, sizeof(g->uuid), "GPU-%s", id);
	snprintf(g->pci, sizeof(g->pci), "%s", c->pci);
	snprintf(g->driver, sizeof(g->driver), "%s", driver);
	g->numa = isnan(numa) ? -1 : (int)numa;
	g->memory_bytes = number_of(c->device, "mem_info_vram_total", 1);
	g->power_limit_w = number_of(c->sensors, "power1_cap", 1e-6);
	g->sm_clock_max_mhz = clock_of(c->device, "pp_dpm_sclk", true);
	g->memory_clock_max_mhz = clock_of(c->device, "pp_dpm_mclk", true);
	free(name);
	free(id);
}

void amd_open(const char *sysfs, struct gpu_set *s, struct amd **out)
{
	struct amd *v = mem_alloc(sizeof(*v));
	char *drm = file_join(sysfs, "class/drm"), *module = file_join(sysfs, "module/amdgpu");
	char *driver = text_of(module, "version"), *nodes;

	v->kfd = file_join(sysfs, "class/kfd/kfd");
	nodes = file_join(v->kfd, "topology/nodes");
	each_numbered(drm, "card", v, keep_card);
	each_numbered(nodes, "", v, match_node);
	if (v->n)
		qsort(v->card, v->n, sizeof(*v->card), by_order);
	for (size_t i = 0; i < v->n; i++) {
		struct gpu *g = gpu_add(s, GPU_AMD);

		g->index = (int)i;
		describe(&v->card[i], driver, g);
	}
	free(drm);
	free(module);
	free(driver);
	free(nodes);
	*out = v;
}

void amd_close(struct amd *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->card[i].device);
		free(v->card[i].sensors);
	}
	free(v->card);
	free(v->kfd);
	free(v);
}

/* ---- looking at one ---- */

void amd_sample(const struct amd *v, size_t i, struct gpu_sample *out)
{
	const struct amd_card *c = &v->card[i];

	assert(i < v->n);
	out->utilization_percent = number_of(c->device, "gpu_busy_percent", 1);
	out->memory_busy_percent = number_of(c->device, "mem_busy_percent", 1);
	out->memory_used_bytes = number_of(c->device, "mem_info_vram_used", 1);
	out->memory_free_bytes = number_of(c->device, "mem_info_vram_total", 1) -
				 out->memory_used_bytes;
	out->sm_clock_mhz = clock_of(c->device, "pp_dpm_sclk", false);
	out->memory_clock_mhz = clock_of(c->device, "pp_dpm_mclk", false);
	/* Older boards report a mean, newer ones the current value. */
	out->power_w = number_of(c->sensors, "power1_average", 1e-6);
	if (isnan(out->power_w))
		out->power_w = number_of(c->sensors, "power1_input", 1e-6);
	out->energy_j = number_of(c->sensors, "energy1_input", 1e-6);
	out->temperature_c = number_of(c->sensors, "temp1_input", 1e-3);
}

struct listing {
	uint64_t id;
	struct gpu_process *out;
	size_t n, max;
};

static void keep_process(void *ctx, const char *path, unsigned number)
{
	struct listing *l = ctx;
	char name[40];
	double bytes;

	snprintf(name, sizeof(name), "vram_%llu", (unsigned long long)l->id);
	bytes = number_of(path, name, 1);
	/* Every program that opened the driver has a file for each GPU. */
	if (isnan(bytes) || bytes <= 0)
		return;
	if (l->n < l->max)
		l->out[l->n] = (struct gpu_process){ (pid_t)number, bytes };
	l->n++;
}

size_t amd_processes(const struct amd *v, size_t i, struct gpu_process *out, size_t max)
{
	struct listing l = { .id = v->card[i].id, .out = out, .max = max };
	char *proc = file_join(v->kfd, "proc");

	if (l.id)
		each_numbered(proc, "", &l, keep_process);
	free(proc);
	return l.n;
}
