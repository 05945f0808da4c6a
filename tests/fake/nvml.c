/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.c - stands in for NVIDIA's library where tests need GPUs: its functions by name, and figures
 * from a small text file, $FAKE_NVML_STATE, that is read anew at each call. tests/README.md says
 * what may stand in it. Without a file: eight idle GPUs of 80 GiB, NVLink among the first four and
 * among the last four, a NUMA node for each four.
 *
 * Energy is counted as time passes, at the power that holds then. A line about a process counts
 * while that process is alive. With FAKE_NVML_OLD it is a library of long ago: first forms only.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GPUS 64
#define PARTS 7
#define PROCESSES 16
#define FAILS 16
#define GIB 1073741824.0

enum { OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6,
       INSUFFICIENT_SIZE = 7 };

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; };
struct process { unsigned pid; uint64_t memory; unsigned gpu_instance, compute_instance; };
struct old_process { unsigned pid; uint64_t memory; };
struct memory { uint64_t total, free, used; };
struct memory_v2 { unsigned version; uint64_t total, reserved, free, used; };
struct rates { unsigned gpu, memory; };

struct gpu {
	char name[96], uuid[96], profile[32];
	double total, used, part_used[PARTS];
	double util, membusy, power, limit, temp, clock, memclock;
	int numa, board, parts;
	struct process process[PROCESSES];
	int processes;
	struct { char call[64]; int code; } fail[FAILS];
	int fails;
};

static struct {
	int count, init_code, cuda;
	bool hangs;
	char driver[96];
	struct gpu gpu[GPUS];
} state;
static double energy_mj[GPUS];
static int64_t counted_ns;
static int users;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void set(struct gpu *g, const char *key, const char *value)
{
	static const struct { const char *key; size_t offset; double unit; } numbers[] = {
		{ "total", offsetof(struct gpu, total), 1 },
		{ "used", offsetof(struct gpu, used), 1 },
		{ "util", offsetof(struct gpu, util), 1 },
		{ "membusy", offsetof(struct gpu, membusy), 1 },
		{ "power", offsetof(struct gpu, power), 1 },
		{ "limit", offsetof(struct gpu, limit), 1 },
		{ "temp", offsetof(struct gpu, temp), 1 },
		{ "clock", offsetof(struct gpu, clock), 1 },
		{ "memclock", offsetof(struct gpu, memclock), 1 },
	};
	double first = 0, second = 0;
	char word[64] = "";

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (strcmp(numbers[i].key, key) == 0)
			*(double *)((char *)g + numbers[i].offset) = strtod(value, NULL);
	if (strcmp(key, "name") == 0)
		snprintf(g->name, sizeof(g->name), "%s", value);
	else if (strcmp(key, "uuid") == 0)
		snprintf(g->uuid, sizeof(g->uuid), "%s", value);
	else if (strcmp(key, "numa") == 0)
		g->numa = (int)strtol(value, NULL, 10);
	else if (strcmp(key, "board") == 0)
		g->board = (int)strtol(value, NULL, 10);
	else if (strcmp(key, "part") == 0 && sscanf(value, "%lf %lf", &first, &second) == 2 &&
		 first >= 0 && first < PARTS)
		g->part_used[(int)first] = second;
	else if (strcmp(key, "mig") == 0 && sscanf(value, "%31s %lf", word, &second) == 2) {
		snprintf(g->profile, sizeof(g->profile), "%.31s", word);
		g->parts = second < PARTS ? (int)second : PARTS;
	} else if (strcmp(key, "fail") == 0 && g->fails < FAILS &&
		   sscanf(value, "%63s %lf", word, &first) == 2) {
		snprintf(g->fail[g->fails].call, sizeof(word), "%s", word);
		g->fail[g->fails++].code = (int)first;
	} else if (strcmp(key, "process") == 0 && g->processes < PROCESSES &&
		   sscanf(value, "%lf %lf", &first, &second) == 2 &&
		   (kill((pid_t)first, 0) == 0 || errno == EPERM)) {
		g->process[g->processes++] = (struct process){ .pid = (unsigned)first,
			.memory = second < 0 ? UINT64_MAX : (uint64_t)second };
	}
}

static void line(char *text)
{
	char number[16], key[32], value[128] = "";
	int used = 0;

	text[strcspn(text, "\n")] = 0;
	if (sscanf(text, "gpu %15s %31s %n", number, key, &used) == 2) {
		for (int i = 0; i < GPUS; i++)
			if (number[0] == '*' || strtol(number, NULL, 10) == i)
				set(&state.gpu[i], key, text + used);
	} else if (sscanf(text, "%31s %127[^\n]", key, value) == 2) {
		if (strcmp(key, "count") == 0)
			state.count = (int)strtol(value, NULL, 10);
		if (strcmp(key, "driver") == 0)
			snprintf(state.driver, sizeof(state.driver), "%.95s", value);
		if (strcmp(key, "cuda") == 0)
			state.cuda = (int)strtol(value, NULL, 10);
		if (strcmp(key, "init") == 0)
			state.init_code = (int)strtol(value, NULL, 10);
		if (strcmp(key, "hang") == 0)
			state.hangs = strcmp(value, "init") == 0;
	}
}

static void count_energy(void)
{
	struct timespec t;
	int64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	for (int i = 0; counted_ns && i < GPUS; i++)
		energy_mj[i] += state.gpu[i].power * 1e-6 * (double)(now_ns - counted_ns);
	counted_ns = now_ns;
}

/* Under the mutex. What no file says stays as it is, as quick as a driver: bench/telemetry.c. */
static void read_state(void)
{
	static bool is_usual;
	const char *path = getenv("FAKE_NVML_STATE");
	FILE *f = path ? fopen(path, "re") : NULL;
	char text[256];

	count_energy();
	if (is_usual && !f)
		return;
	is_usual = !f;
	memset(&state, 0, sizeof(state));
	state.count = 8;
	state.cuda = 12040;
	snprintf(state.driver, sizeof(state.driver), "550.54.14");
	for (int i = 0; i < GPUS; i++) {
		struct gpu *g = &state.gpu[i];

		snprintf(g->name, sizeof(g->name), "NVIDIA Fake 80GB");
		snprintf(g->uuid, sizeof(g->uuid), "GPU-%08x-fa4e-4e5e-8000-%012x",
			 0xa0000000u + (unsigned)i * 0x1111u, (unsigned)i);
		g->total = 80 * GIB;
		g->power = 100;
		g->limit = 700;
		g->temp = 40;
		g->clock = 1500;
		g->memclock = 2619;
		g->numa = g->board = i / 4;
	}
	while (f && fgets(text, sizeof(text), f))
		if (text[0] != '#')
			line(text);
	if (f)
		fclose(f);
}

/* Handles: number of the GPU from 1; of a part, its number from 1 above that. */
static int begin(void *device, const char *call, struct gpu **g, int *part)
{
	uintptr_t handle = (uintptr_t)device;
	int i = (int)(handle & 0xff) - 1;

	pthread_mutex_lock(&mutex);
	read_state();
	if (users == 0 || i < 0 || i >= state.count || i >= GPUS) {
		pthread_mutex_unlock(&mutex);
		return users == 0 ? UNINITIALIZED : INVALID_ARGUMENT;
	}
	*g = &state.gpu[i];
	*part = (int)(handle >> 8) - 1;
	for (int k = 0; k < (*g)->fails; k++)
		if (strcmp((*g)->fail[k].call, call) == 0) {
			int code = (*g)->fail[k].code;

			pthread_mutex_unlock(&mutex);
			return code;
		}
	return OK;
}

/* What most functions are: a figure of the GPU, written where the caller wants it. */
#define ASK(what, ...) do { \
	struct gpu *g; \
	int part, code = begin(device, __func__, &g, &part); \
	(void)part; \
	if (code) \
		return code; \
	what; \
	pthread_mutex_unlock(&mutex); \
	return __VA_ARGS__ + 0; \
} while (0)

int nvmlInit_v2(void)
{
	int code;

	pthread_mutex_lock(&mutex);
	read_state();
	code = state.init_code;
	if (!code)
		users++;
	pthread_mutex_unlock(&mutex);
	while (state.hangs)
		pause();
	return code;
}

int nvmlShutdown(void)
{
	pthread_mutex_lock(&mutex);
	users--;
	pthread_mutex_unlock(&mutex);
	return OK;
}

const char *nvmlErrorString(int code)
{
	switch (code) {
	case 3: return "Not Supported";
	case 15: return "GPU is lost";
	case 16: return "GPU requires reset";
	case 18: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}

int nvmlSystemGetDriverVersion(char *out, unsigned n)
{
	snprintf(out, n, "%s", state.driver);
	return OK;
}

int nvmlSystemGetCudaDriverVersion_v2(int *out)
{
	*out = state.cuda;
	return OK;
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
	*out = (unsigned)state.count;
	return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
{
	struct gpu *g;
	int part, code = begin((void *)(uintptr_t)(i + 1), __func__, &g, &part);

	if (code)
		return code;
	*device = (void *)(uintptr_t)(i + 1);
	pthread_mutex_unlock(&mutex);
	return OK;
}

int nvmlDeviceGetUUID(void *device, char *out, unsigned n)
{
	ASK(if (part >= 0)
		    snprintf(out, n, "MIG-%.80s-%d", g->uuid + 4, part);
	    else
		    snprintf(out, n, "%s", g->uuid));
}

int nvmlDeviceGetName(void *device, char *out, unsigned n)
{
	ASK(snprintf(out, n, "%.60s%s%.30s", g->name, part >= 0 ? " MIG " : "",
		     part >= 0 ? g->profile : ""));
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *out)
{
	ASK(memset(out, 0, sizeof(*out)); out->bus = (unsigned)(g - state.gpu) + 0x10);
}

/* A part has its share of the memory. */
static double total_of(const struct gpu *g, int part)
{
	return part >= 0 ? g->total / PARTS : g->total;
}

static double used_of(const struct gpu *g, int part)
{
	double used = g->used;

	for (int i = 0; i < g->processes; i++)
		used += g->process[i].memory == UINT64_MAX ? 0 : (double)g->process[i].memory;
	return part >= 0 ? g->part_used[part] : used;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
	ASK(*out = ((struct memory){ .total = (uint64_t)total_of(g, part),
				     .used = (uint64_t)used_of(g, part),
				     .free = (uint64_t)(total_of(g, part) - used_of(g, part)) }));
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
	ASK(*major = 9; *minor = 0);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *out)
{
	ASK(*out = (unsigned)(g->limit * 1000));
}

int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *out)
{
	ASK(*out = (unsigned)(which == 2 ? g->memclock : g->clock));
}

int nvmlDeviceGetMaxClockInfo(void *device, unsigned which, unsigned *out)
{
	ASK(*out = which == 2 ? 2619 : 1980);
}

int nvmlDeviceGetUtilizationRates(void *device, struct rates *out)
{
	ASK(*out = ((struct rates){ (unsigned)g->util, (unsigned)g->membusy }),
	    part >= 0 ? NOT_SUPPORTED : OK);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *out)
{
	ASK(*out = (unsigned)(g->power * 1000), part >= 0 ? NOT_SUPPORTED : OK);
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *out)
{
	ASK(*out = (unsigned)g->temp, sensor ? INVALID_ARGUMENT : OK);
}

#ifdef FAKE_NVML_OLD
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *n, struct old_process *out)
{
	ASK(for (int i = 0; i < g->processes && i < (int)*n; i++)
		    out[i] = ((struct old_process){ g->process[i].pid, g->process[i].memory });
	    *n = (unsigned)g->processes);
}
#else
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *out)
{
	/* As the library does: the driver's own share stands apart, and the version is checked. */
	ASK(if (out->version == (sizeof(*out) | 2u << 24)) {
		    out->total = (uint64_t)total_of(g, part);
		    out->used = (uint64_t)used_of(g, part);
		    out->reserved = part >= 0 ? 0 : 600000000;
		    out->free = out->total - out->reserved - out->used;
	    }, out->version == (sizeof(*out) | 2u << 24) ? OK : 25);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out)
{
	ASK(*out = 5000000 + (unsigned long long)energy_mj[g - state.gpu],
	    part >= 0 ? NOT_SUPPORTED : OK);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process *out)
{
	unsigned room = *n;

	ASK(for (int i = 0; i < g->processes && i < (int)room; i++)
		    out[i] = g->process[i];
	    *n = (unsigned)g->processes, *n > room ? INSUFFICIENT_SIZE : OK);
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
	ASK(*current = *pending = g->parts > 0);
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *out)
{
	ASK(*out = PARTS);
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned i, void **out)
{
	ASK(*out = (void *)((uintptr_t)device | (uintptr_t)(i + 1) << 8),
	    (int)i < g->parts ? OK : NOT_FOUND);
}

int nvmlDeviceGetNumaNodeId(void *device, unsigned *out)
{
	ASK(*out = (unsigned)g->numa, g->numa < 0 ? NOT_SUPPORTED : OK);
}

int nvmlDeviceGetP2PStatus(void *device, void *other, unsigned which, unsigned *out)
{
	int i = (int)((uintptr_t)other & 0xff) - 1;

	ASK(*out = which == 2 && g->board >= 0 && g->board == state.gpu[i].board ? 0 : 5);
}

int nvmlDeviceGetTopologyCommonAncestor(void *device, void *other, unsigned *out)
{
	int i = (int)((uintptr_t)other & 0xff) - 1;

	ASK(*out = g->numa == state.gpu[i].numa ? 40 : 50);
}
#endif
