/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dcgm.c - counters of a GPU that only NVIDIA's DCGM provides, through its library, loaded at run
 * time. See gpu_internal.h.
 *
 * The host engine (nv-hostengine) that runs on this machine is queried; none is started, because
 * only one at a time may read the GPU's profiling counters. It samples them by itself; the latest
 * values are taken. Functions, structs and numbers are those of the library's public interface,
 * declared here in our own words. A field whose status is not 0, or whose value is blank, is
 * unknown.
 */
#include <assert.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "host/gpu/gpu_internal.h"

typedef uintptr_t handle;

#define ENGINE "127.0.0.1"
#define ENGINE_TIMEOUT_MS 1000
#define EVERY_US 100000                   /* the host engine's own sampling */
#define KEPT_S 5.0
#define KEPT_SAMPLES 2
#define GPUS_MAX 64                       /* the library's 32 and some */
#define ALL_GPUS 0x7fffffffu              /* DCGM_GROUP_ALL_GPUS */
#define VERSION(type, n) ((unsigned)sizeof(type) | (unsigned)(n) << 24)
#define BLANK_INT 0x7ffffffffffffff0ll    /* from here on: DCGM_INT64_IS_BLANK */
#define BLANK_REAL 140737488355328.0      /* from here on: DCGM_FP64_IS_BLANK */
enum { TYPE_REAL = 'd', TYPE_INT = 'i', TYPE_TEXT = 's' };
enum { FIELD_UUID = 54 };

struct connect_how { unsigned version, persists, timeout_ms, is_socket; };
struct field_value {
	unsigned version;
	unsigned short field, type;
	int status;
	int64_t at_us;
	union { int64_t i; double d; char text[256]; char bytes[4096]; } is;
};

/* DCGM's number, the target of its value, and a factor: shares become per cent. */
static const struct { unsigned short field; size_t offset; double unit; } fields[] = {
	{ 1002, offsetof(struct gpu_sample, sm_active_percent), 100 },
	{ 1004, offsetof(struct gpu_sample, tensor_active_percent), 100 },
	{ 1005, offsetof(struct gpu_sample, dram_active_percent), 100 },
	{ 1009, offsetof(struct gpu_sample, pcie_sent_bytes_per_s), 1 },
	{ 1010, offsetof(struct gpu_sample, pcie_received_bytes_per_s), 1 },
	{ 1011, offsetof(struct gpu_sample, nvlink_sent_bytes_per_s), 1 },
	{ 1012, offsetof(struct gpu_sample, nvlink_received_bytes_per_s), 1 },
};
#define FIELDS (sizeof(fields) / sizeof(*fields))

struct dcgm_calls {
	int (*init)(void);
	int (*connect)(const char *, struct connect_how *, handle *);
	int (*disconnect)(handle);
	int (*devices)(handle, unsigned *, int *);
	int (*group)(handle, int, unsigned short *, const char *, handle *);
	int (*ungroup)(handle, handle);
	int (*watch)(handle, handle, handle, long long, double, int);
	int (*unwatch)(handle, handle, handle);
	int (*update)(handle, int);
	int (*latest)(handle, int, unsigned short *, unsigned, struct field_value *);
};

static const struct { const char *name; size_t offset; } symbols[] = {
	{ "dcgmInit", offsetof(struct dcgm_calls, init) },
	{ "dcgmConnect_v2", offsetof(struct dcgm_calls, connect) },
	{ "dcgmDisconnect", offsetof(struct dcgm_calls, disconnect) },
	{ "dcgmGetAllSupportedDevices", offsetof(struct dcgm_calls, devices) },
	{ "dcgmFieldGroupCreate", offsetof(struct dcgm_calls, group) },
	{ "dcgmFieldGroupDestroy", offsetof(struct dcgm_calls, ungroup) },
	{ "dcgmWatchFields", offsetof(struct dcgm_calls, watch) },
	{ "dcgmUnwatchFields", offsetof(struct dcgm_calls, unwatch) },
	{ "dcgmUpdateAllFields", offsetof(struct dcgm_calls, update) },
	{ "dcgmGetLatestValuesForFields", offsetof(struct dcgm_calls, latest) },
};

struct dcgm {
	struct dcgm_calls call;
	handle engine, group;
	bool is_watching;
	int *id;         /* DCGM's number for each GPU of the set; -1: unknown to it */
};

/* The library is never closed: it has threads of its own. */
static bool load(const char *library, struct dcgm_calls *call)
{
	void *is = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; is && i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *found = dlsym(is, symbols[i].name);

		if (!found)
			return false;
		memcpy((char *)call + symbols[i].offset, &found, sizeof(found));
	}
	return is != NULL;
}

static bool load_any(const char *library, struct dcgm_calls *call)
{
	static const char *const known[] = { "libdcgm.so.4", "libdcgm.so.3" };

	if (library)
		return *library && load(library, call);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (load(known[i], call))
			return true;
	return false;
}

static bool begin_watch(struct dcgm *v)
{
	struct connect_how how = { .version = VERSION(struct connect_how, 2),
				   .timeout_ms = ENGINE_TIMEOUT_MS };
	unsigned short field[FIELDS + 1] = { FIELD_UUID };
	char name[64];

	for (size_t i = 0; i < FIELDS; i++)
		field[i + 1] = fields[i].field;
	snprintf(name, sizeof(name), "profllm-%d-%p", (int)getpid(), (void *)v);
	if (v->call.init() != 0 || v->call.connect(ENGINE, &how, &v->engine) != 0)
		return false;
	if (v->call.group(v->engine, (int)FIELDS + 1, field, name, &v->group) == 0 &&
	    v->call.watch(v->engine, ALL_GPUS, v->group, EVERY_US, KEPT_S, KEPT_SAMPLES) == 0) {
		v->is_watching = true;
		v->call.update(v->engine, 1);
	}
	return true;
}

/* It counts GPUs in an order of its own. */
static void find_ids(struct dcgm *v, const struct gpu_set *s)
{
	unsigned short field = FIELD_UUID;
	unsigned id[GPUS_MAX];
	int n = 0;

	v->id = mem_array(s->n + 1, sizeof(*v->id));
	for (size_t k = 0; k < s->n; k++)
		v->id[k] = -1;
	if (v->call.devices(v->engine, id, &n) != 0)
		return;
	for (int i = 0; i < n && i < GPUS_MAX; i++) {
		struct field_value got = { .version = VERSION(struct field_value, 1) };

		if (v->call.latest(v->engine, (int)id[i], &field, 1, &got) != 0 ||
		    got.status != 0 || got.type != TYPE_TEXT)
			continue;
		got.is.text[sizeof(got.is.text) - 1] = 0;
		for (size_t k = 0; k < s->n_nvidia; k++)
			if (s->gpu[k].part < 0 && strcasecmp(s->gpu[k].uuid, got.is.text) == 0)
				v->id[k] = (int)id[i];
	}
}

void dcgm_open(const char *library, const struct gpu_set *s, struct dcgm **out)
{
	struct dcgm *v = mem_alloc(sizeof(*v));

	*out = NULL;
	if (!s->n_nvidia || !load_any(library, &v->call) || !begin_watch(v)) {
		free(v);
		return;
	}
	if (!v->is_watching) {
		dcgm_close(v);
		return;
	}
	find_ids(v, s);
	*out = v;
}

void dcgm_close(struct dcgm *v)
{
	if (!v)
		return;
	if (v->is_watching)
		v->call.unwatch(v->engine, ALL_GPUS, v->group);
	if (v->group)
		v->call.ungroup(v->engine, v->group);
	v->call.disconnect(v->engine);
	free(v->id);
	free(v);
}

static double number_of(const struct field_value *got)
{
	if (got->status != 0)
		return NAN;
	if (got->type == TYPE_REAL)
		return got->is.d < BLANK_REAL ? got->is.d : NAN;
	return got->type == TYPE_INT && got->is.i < BLANK_INT ? (double)got->is.i : NAN;
}

void dcgm_sample(const struct dcgm *v, size_t i, struct gpu_sample *out)
{
	struct field_value got[FIELDS];
	unsigned short field[FIELDS];

	if (v->id[i] < 0)
		return;
	for (size_t k = 0; k < FIELDS; k++) {
		field[k] = fields[k].field;
		got[k] = (struct field_value){ .version = VERSION(struct field_value, 1),
					       .status = -1 };
	}
	if (v->call.latest(v->engine, v->id[i], field, FIELDS, got) != 0)
		return;
	for (size_t k = 0; k < FIELDS; k++) {
		double value = number_of(&got[k]) * fields[k].unit;

		memcpy((char *)out + fields[k].offset, &value, sizeof(value));
	}
}
