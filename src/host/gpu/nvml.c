/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.c - NVIDIA's GPUs through the driver's library, loaded at run time. See gpu_internal.h.
 *
 * The functions and structs are those of the library's public interface, declared here in our own
 * words: only what we call, each in the newest form that the library has. A function that is
 * missing, or returns anything but 0, leaves its values unknown.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "host/gpu/gpu_internal.h"

typedef void *device; /* the library's opaque handle */

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };          /* nvmlClockType_t */
enum { SENSOR_GPU = 0 };                          /* nvmlTemperatureSensors_t */
enum { P2P_NVLINK = 2, P2P_OK = 0 };              /* nvmlGpuP2PCapsIndex_t, ...Status_t */
enum { INSUFFICIENT_SIZE = 7 };                   /* nvmlReturn_t */
#define NOT_AVAILABLE UINT64_MAX                  /* NVML_VALUE_NOT_AVAILABLE */

struct memory_v1 { uint64_t total, free, used; };
struct memory_v2 { unsigned version; uint64_t total, reserved, free, used; };
struct nvml_rates { unsigned gpu, memory; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
/* The first form of the list ends after memory. */
struct process_v2 { unsigned pid; uint64_t memory; unsigned gpu_instance, compute_instance; };
struct process_v1 { unsigned pid; uint64_t memory; };

struct nvml_calls {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error)(int);
	int (*driver)(char *, unsigned);
	int (*cuda)(int *);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, device *);
	int (*uuid)(device, char *, unsigned);
	int (*name)(device, char *, unsigned);
	int (*pci)(device, struct pci *);
	int (*memory_v2)(device, struct memory_v2 *);
	int (*memory_v1)(device, struct memory_v1 *);
	int (*capability)(device, int *, int *);
	int (*power_limit)(device, unsigned *);
	int (*clock)(device, unsigned, unsigned *);
	int (*clock_max)(device, unsigned, unsigned *);
	int (*rates)(device, struct nvml_rates *);
	int (*power)(device, unsigned *);
	int (*energy)(device, unsigned long long *);
	int (*temperature)(device, unsigned, unsigned *);
	int (*processes)(device, unsigned *, void *);
	int (*processes_v1)(device, unsigned *, void *);
	int (*mig_mode)(device, unsigned *, unsigned *);
	int (*mig_count)(device, unsigned *);
	int (*mig_by_index)(device, unsigned, device *);
	int (*p2p)(device, device, unsigned, unsigned *);
	int (*ancestor)(device, device, unsigned *);
	int (*numa)(device, unsigned *);
};

/* In order of preference where a call has two rows: the first one found is used. */
static const struct { const char *name; size_t offset; } symbols[] = {
	{ "nvmlInit_v2", offsetof(struct nvml_calls, init) },
	{ "nvmlShutdown", offsetof(struct nvml_calls, shutdown) },
	{ "nvmlErrorString", offsetof(struct nvml_calls, error) },
	{ "nvmlSystemGetDriverVersion", offsetof(struct nvml_calls, driver) },
	{ "nvmlSystemGetCudaDriverVersion_v2", offsetof(struct nvml_calls, cuda) },
	{ "nvmlSystemGetCudaDriverVersion", offsetof(struct nvml_calls, cuda) },
	{ "nvmlDeviceGetCount_v2", offsetof(struct nvml_calls, count) },
	{ "nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml_calls, by_index) },
	{ "nvmlDeviceGetUUID", offsetof(struct nvml_calls, uuid) },
	{ "nvmlDeviceGetName", offsetof(struct nvml_calls, name) },
	{ "nvmlDeviceGetPciInfo_v3", offsetof(struct nvml_calls, pci) },
	{ "nvmlDeviceGetMemoryInfo_v2", offsetof(struct nvml_calls, memory_v2) },
	{ "nvmlDeviceGetMemoryInfo", offsetof(struct nvml_calls, memory_v1) },
	{ "nvmlDeviceGetCudaComputeCapability", offsetof(struct nvml_calls, capability) },
	{ "nvmlDeviceGetEnforcedPowerLimit", offsetof(struct nvml_calls, power_limit) },
	{ "nvmlDeviceGetClockInfo", offsetof(struct nvml_calls, clock) },
	{ "nvmlDeviceGetMaxClockInfo", offsetof(struct nvml_calls, clock_max) },
	{ "nvmlDeviceGetUtilizationRates", offsetof(struct nvml_calls, rates) },
	{ "nvmlDeviceGetPowerUsage", offsetof(struct nvml_calls, power) },
	{ "nvmlDeviceGetTotalEnergyConsumption", offsetof(struct nvml_calls, energy) },
	{ "nvmlDeviceGetTemperature", offsetof(struct nvml_calls, temperature) },
	{ "nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct nvml_calls, processes) },
	{ "nvmlDeviceGetComputeRunningProcesses_v2", offsetof(struct nvml_calls, processes) },
	{ "nvmlDeviceGetComputeRunningProcesses", offsetof(struct nvml_calls, processes_v1) },
	{ "nvmlDeviceGetMigMode", offsetof(struct nvml_calls, mig_mode) },
	{ "nvmlDeviceGetMaxMigDeviceCount", offsetof(struct nvml_calls, mig_count) },
	{ "nvmlDeviceGetMigDeviceHandleByIndex", offsetof(struct nvml_calls, mig_by_index) },
	{ "nvmlDeviceGetP2PStatus", offsetof(struct nvml_calls, p2p) },
	{ "nvmlDeviceGetTopologyCommonAncestor", offsetof(struct nvml_calls, ancestor) },
	{ "nvmlDeviceGetNumaNodeId", offsetof(struct nvml_calls, numa) },
};

struct nvml {
	struct nvml_calls call;
	device *device;  /* as many as the set has of NVIDIA's */
	size_t n;
};

/* Results of the starting thread. The last user frees it. */
struct nvml_start {
	pthread_mutex_t mutex;
	pthread_cond_t has_changed;
	bool is_done, is_left;
	char *library;
	struct gpu_set found;
	struct nvml *nvml;
};

/* ---- finding them ---- */

/* false: no such library, or a useless one, which is then noted. */
static bool load(const char *library, struct nvml *v, struct gpu_set *s)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		/* The driver's own name is tried on every machine; a file was named on purpose. */
		if (strchr(library, '/'))
			gpu_note_add(s, "%s", dlerror());
		return false;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *symbol = dlsym(handle, symbols[i].name);
		char *place = (char *)&v->call + symbols[i].offset;
		void *held;

		memcpy(&held, place, sizeof(held));
		if (symbol && !held)
			memcpy(place, &symbol, sizeof(symbol));
	}
	/* It stays loaded: nothing is gained by unmapping a driver that may have threads. */
	if (v->call.init && v->call.shutdown && v->call.count && v->call.by_index)
		return true;
	gpu_note_add(s, "%s has not the functions of NVML", library);
	return false;
}

static const char *error_text(const struct nvml *v, int error)
{
	const char *text = v->call.error ? v->call.error(error) : NULL;

	return text ? text : "unknown error";
}

static int numa_of(const struct nvml *v, device d, const char *pci)
{
	char path[96];
	unsigned node;
	int told = -1;
	FILE *f;

	if (v->call.numa && v->call.numa(d, &node) == 0)
		return (int)node;
	/* Older drivers do not know; the bus does. */
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", pci);
	f = *pci ? fopen(path, "re") : NULL;
	if (f && fscanf(f, "%d", &told) != 1)
		told = -1;
	if (f)
		fclose(f);
	return told;
}

/* Converts "00000000:3B:00.0" to sysfs' form "0000:3b:00.0". */
static void pci_of(const struct nvml *v, device d, char out[32])
{
	struct pci p = { 0 };

	if (v->call.pci && v->call.pci(d, &p) == 0)
		snprintf(out, 32, "%04x:%02x:%02x.0", p.domain, p.bus, p.device);
}

static double unsigned_of(int (*call)(device, unsigned *), device d, double unit)
{
	unsigned value;

	return call && call(d, &value) == 0 ? value * unit : (double)NAN;
}

static double clock_of(int (*call)(device, unsigned, unsigned *), device d, unsigned which)
{
	unsigned value;

	return call && call(d, which, &value) == 0 ? value : (double)NAN;
}

static void memory_of(const struct nvml *v, device d, double *total, double *used, double *left)
{
	struct memory_v2 now = { .version = sizeof(now) | 2u << 24 };
	struct memory_v1 old;

	/* The second form excludes memory that the driver keeps for itself, as nvidia-smi does. */
	if (v->call.memory_v2 && v->call.memory_v2(d, &now) == 0) {
		*total = (double)now.total;
		*used = (double)now.used;
		*left = (double)now.free;
	} else if (v->call.memory_v1 && v->call.memory_v1(d, &old) == 0) {
		*total = (double)old.total;
		*used = (double)old.used;
		*left = (double)old.free;
	}
}

static void describe(const struct nvml *v, device d, struct gpu *g)
{
	double used, left;
	int version;

	if (!v->call.uuid || v->call.uuid(d, g->uuid, sizeof(g->uuid)) != 0)
		g->uuid[0] = 0;
	if (!v->call.name || v->call.name(d, g->name, sizeof(g->name)) != 0)
		g->name[0] = 0;
	if (!v->call.driver || v->call.driver(g->driver, sizeof(g->driver)) != 0)
		g->driver[0] = 0;
	if (v->call.cuda && v->call.cuda(&version) == 0)
		snprintf(g->cuda, sizeof(g->cuda), "%d.%d", version / 1000, version % 1000 / 10);
	if (!v->call.capability ||
	    v->call.capability(d, &g->capability_major, &g->capability_minor) != 0)
		g->capability_major = g->capability_minor = -1;
	memory_of(v, d, &g->memory_bytes, &used, &left);
	g->power_limit_w = unsigned_of(v->call.power_limit, d, 1e-3);
	g->sm_clock_max_mhz = clock_of(v->call.clock_max, d, CLOCK_SM);
	g->memory_clock_max_mhz = clock_of(v->call.clock_max, d, CLOCK_MEMORY);
}

static struct gpu *add(struct nvml *v, struct gpu_set *s, device d)
{
	struct gpu *g = gpu_add(s, GPU_NVIDIA);

	v->device = mem_grow(v->device, v->n + 1, sizeof(*v->device));
	v->device[v->n++] = d;
	describe(v, d, g);
	return g;
}

/* The parts of the GPU at this place. */
static void add_parts(struct nvml *v, struct gpu_set *s, size_t whole)
{
	device parent = v->device[whole], d;
	unsigned current = 0, pending = 0, most = 0;

	if (!v->call.mig_mode || v->call.mig_mode(parent, &current, &pending) != 0 ||
	    current != 1 || !v->call.mig_count || !v->call.mig_by_index)
		return;
	s->gpu[whole].is_split = true;
	if (v->call.mig_count(parent, &most) != 0 || most > GPU_PARTS_MAX)
		return;
	for (unsigned i = 0; i < most; i++) {
		const char *profile;
		struct gpu *g;

		/* Numbers without a part are refused. */
		if (v->call.mig_by_index(parent, i, &d) != 0)
			continue;
		g = add(v, s, d);
		g->part = (int)i;
		g->index = s->gpu[whole].index;
		g->numa = s->gpu[whole].numa;
		memcpy(g->pci, s->gpu[whole].pci, sizeof(g->pci));
		memcpy(g->parent, s->gpu[whole].uuid, sizeof(g->parent));
		if (!*g->name)
			memcpy(g->name, s->gpu[whole].name, sizeof(g->name));
		if (g->capability_major < 0) {
			g->capability_major = s->gpu[whole].capability_major;
			g->capability_minor = s->gpu[whole].capability_minor;
		}
		profile = strstr(g->name, "MIG ");
		if (profile)
			snprintf(g->profile, sizeof(g->profile), "%s", profile + 4);
	}
}

static void find(const char *library, struct gpu_set *s, struct nvml **out)
{
	struct nvml *v = mem_alloc(sizeof(*v));
	unsigned count = 0;
	int error = 0;

	if (!load(library, v, s)) {
		free(v);
		return;
	}
	error = v->call.init();
	if (error) {
		gpu_note_add(s, "NVIDIA's driver does not start: %s", error_text(v, error));
		free(v);
		return;
	}
	error = v->call.count(&count);
	if (error)
		gpu_note_add(s, "NVIDIA's driver does not count its GPUs: %s",
			     error_text(v, error));
	for (unsigned i = 0; !error && i < count && i < GPUS_MAX; i++) {
		struct gpu *g;
		device d;
		int refused = v->call.by_index(i, &d);

		if (refused) {
			gpu_note_add(s, "GPU %u is not available: %s", i, error_text(v, refused));
			continue;
		}
		g = add(v, s, d);
		g->index = (int)i;
		pci_of(v, d, g->pci);
		g->numa = numa_of(v, d, g->pci);
		add_parts(v, s, v->n - 1);
	}
	*out = v;
}

/* ---- starting within a time ---- */

static void start_free(struct nvml_start *t)
{
	pthread_cond_destroy(&t->has_changed);
	pthread_mutex_destroy(&t->mutex);
	free(t->library);
	free(t);
}

static void *start_run(void *arg)
{
	struct nvml_start *t = arg;
	bool is_left;

	find(t->library, &t->found, &t->nvml);
	pthread_mutex_lock(&t->mutex);
	t->is_done = true;
	is_left = t->is_left;
	pthread_cond_signal(&t->has_changed);
	pthread_mutex_unlock(&t->mutex);
	if (is_left) {
		nvml_close(t->nvml);
		free(t->found.gpu);
		start_free(t);
	}
	return NULL;
}

static bool await(struct nvml_start *t, double timeout_s)
{
	struct timespec until;
	int64_t at_ns = clock_mono_ns() + (int64_t)(timeout_s * 1e9);
	bool is_done;
	int error = 0;

	until = (struct timespec){ at_ns / 1000000000, at_ns % 1000000000 };
	pthread_mutex_lock(&t->mutex);
	while (!t->is_done && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&t->has_changed, &t->mutex, &until);
	is_done = t->is_done;
	t->is_left = !is_done;
	pthread_mutex_unlock(&t->mutex);
	return is_done;
}

#define HUNG_AGAIN_S 1 /* for a driver that has not answered before */

void nvml_open(const char *library, double timeout_s, struct gpu_set *s, struct nvml **out)
{
	/* The driver belongs to the machine: later calls need not wait for the timeout again. */
	static atomic_bool has_hung;
	struct nvml_start *t = mem_alloc(sizeof(*t));
	pthread_condattr_t how;
	pthread_t thread;

	t->library = mem_text(library);
	pthread_mutex_init(&t->mutex, NULL);
	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&t->has_changed, &how);
	pthread_condattr_destroy(&how);
	*out = NULL;
	if (atomic_load(&has_hung) && timeout_s > HUNG_AGAIN_S)
		timeout_s = HUNG_AGAIN_S;
	if (pthread_create(&thread, NULL, start_run, t) != 0) {
		start_free(t);
		return;
	}
	if (!await(t, timeout_s)) {
		pthread_detach(thread);
		atomic_store(&has_hung, true);
		gpu_note_add(s, "NVIDIA's driver does not answer within %g s", timeout_s);
		return;
	}
	pthread_join(thread, NULL);
	atomic_store(&has_hung, false);
	free(s->gpu);
	*s = t->found;
	*out = t->nvml;
	start_free(t);
}

void nvml_close(struct nvml *v)
{
	if (!v)
		return;
	v->call.shutdown();
	free(v->device);
	free(v);
}

/* ---- looking at one ---- */

void nvml_sample(const struct nvml *v, size_t i, struct gpu_sample *out)
{
	device d = v->device[i];
	unsigned long long energy_mj;
	struct nvml_rates rates;
	unsigned degrees;
	double total;

	assert(i < v->n);
	memory_of(v, d, &total, &out->memory_used_bytes, &out->memory_free_bytes);
	if (v->call.rates && v->call.rates(d, &rates) == 0) {
		out->utilization_percent = rates.gpu;
		out->memory_busy_percent = rates.memory;
	}
	out->sm_clock_mhz = clock_of(v->call.clock, d, CLOCK_SM);
	out->memory_clock_mhz = clock_of(v->call.clock, d, CLOCK_MEMORY);
	out->power_w = unsigned_of(v->call.power, d, 1e-3);
	if (v->call.energy && v->call.energy(d, &energy_mj) == 0)
		out->energy_j = (double)energy_mj * 1e-3;
	if (v->call.temperature && v->call.temperature(d, SENSOR_GPU, &degrees) == 0)
		out->temperature_c = degrees;
}

size_t nvml_processes(const struct nvml *v, size_t i, struct gpu_process *out, size_t max)
{
	struct process_v2 now[GPU_PROCESSES_MAX];
	struct process_v1 old[GPU_PROCESSES_MAX];
	bool is_old = !v->call.processes;
	unsigned n = GPU_PROCESSES_MAX;
	int error = -1;

	if (!is_old)
		error = v->call.processes(v->device[i], &n, now);
	else if (v->call.processes_v1)
		error = v->call.processes_v1(v->device[i], &n, old);
	if (error == INSUFFICIENT_SIZE)
		n = GPU_PROCESSES_MAX;
	else if (error)
		return 0;
	for (size_t k = 0; k < n && k < max && error == 0; k++) {
		uint64_t memory = is_old ? old[k].memory : now[k].memory;

		out[k].pid = (pid_t)(is_old ? old[k].pid : now[k].pid);
		out[k].memory_bytes = memory == NOT_AVAILABLE ? (double)NAN : (double)memory;
	}
	return n;
}

enum gpu_link nvml_link(const struct nvml *v, size_t a, size_t b)
{
	unsigned status, level;

	assert(a < v->n && b < v->n);
	if (v->call.p2p && v->call.p2p(v->device[a], v->device[b], P2P_NVLINK, &status) == 0 &&
	    status == P2P_OK)
		return GPU_LINK_DIRECT;
	if (!v->call.ancestor || v->call.ancestor(v->device[a], v->device[b], &level) != 0)
		return GPU_LINK_UNKNOWN;
	/* nvmlGpuTopologyLevel_t: one board, one switch, several, host bridge, node, system. */
	return level <= 20 ? GPU_LINK_SWITCH : level <= 30 ? GPU_LINK_BRIDGE :
	       level <= 40 ? GPU_LINK_NODE : GPU_LINK_SYSTEM;
}
