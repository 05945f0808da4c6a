/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - the GPUs of this machine: their properties, current state and users.
 *
 * NVIDIA's are read through NVML (gpu/nvml.c), AMD's through sysfs (gpu/amd.c), both found at run
 * time: without a driver the list is empty. Nothing is changed, neither clocks nor MIG.
 *
 * gpu_open() looks once; the list does not change until gpu_close(). What is unknown (an old
 * driver, a GPU that fell off the bus, a permission) is NAN, -1 or "" and never a failure. A driver
 * that does not answer within the timeout is never used again: its GPUs are not listed.
 *
 * A GPU that is split (MIG) is listed, and so are its parts, which follow it: work can only go to
 * the parts. gpu_sample of a part gives its memory; other values are only known for the whole GPU.
 *
 * Every function may be called from any thread.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GPU_TEXT_BYTES 96

enum gpu_maker { GPU_NVIDIA, GPU_AMD };

struct gpu {
	enum gpu_maker maker;
	int index;                   /* as nvidia-smi and rocm-smi count; of a part: its GPU's */
	int part;                    /* MIG: number in its GPU; -1: a whole GPU */
	bool is_split;               /* MIG is on: its parts are used, not it */
	bool is_allowed;             /* by CUDA_VISIBLE_DEVICES and the like of our environment */
	char uuid[GPU_TEXT_BYTES];   /* "GPU-..." or "MIG-..."; "" */
	char parent[GPU_TEXT_BYTES]; /* of a part: its GPU's UUID; else "" */
	char profile[32];            /* of a part: "1g.10gb"; else "" */
	char name[GPU_TEXT_BYTES];
	char pci[32];                /* "0000:3b:00.0", lower case; "" */
	char driver[GPU_TEXT_BYTES]; /* its version; "" */
	char cuda[16];               /* the newest CUDA the driver supports: "12.4"; "" */
	int capability_major, capability_minor; /* CUDA's compute capability; -1 */
	int numa;                    /* node of its memory bus; -1 */
	double memory_bytes;         /* total; NAN */
	double power_limit_w;        /* current; NAN */
	double sm_clock_max_mhz, memory_clock_max_mhz; /* NAN */
};

/* Values at one moment. NAN: not reported. */
struct gpu_sample {
	double utilization_percent;  /* share of time with work, over the driver's last period */
	double memory_busy_percent;  /* the same for its memory bus */
	double memory_used_bytes;    /* by programs, without what the driver keeps for itself */
	double memory_free_bytes;
	double sm_clock_mhz, memory_clock_mhz;
	double power_w, temperature_c;
	double energy_j;             /* since the driver was loaded: take differences */
	/* From DCGM, after gpu_profile: means over its last period, shares of cycles, all links. */
	double sm_active_percent, tensor_active_percent, dram_active_percent;
	double nvlink_sent_bytes_per_s, nvlink_received_bytes_per_s;
	double pcie_sent_bytes_per_s, pcie_received_bytes_per_s;
};

/* A program that computes on it. Those outside our PID namespace may be missing. */
struct gpu_process {
	pid_t pid;
	double memory_bytes;         /* NAN */
};

/* How two GPUs are connected; greater is better. */
enum gpu_link {
	GPU_LINK_UNKNOWN,
	GPU_LINK_SYSTEM,             /* across NUMA nodes */
	GPU_LINK_NODE,               /* one NUMA node */
	GPU_LINK_BRIDGE,             /* one host bridge */
	GPU_LINK_SWITCH,             /* only PCIe switches, or on one board */
	GPU_LINK_DIRECT,             /* NVLink, directly or through its own switch */
};

/* Zeroed: taken from the environment. */
struct gpu_opts {
	const char *nvml;            /* NULL: $PROFLLM_NVML, else the driver's; "": none */
	const char *dcgm;            /* NULL: $PROFLLM_DCGM, else NVIDIA's of version 4 or 3; "": none */
	const char *sysfs;           /* NULL: $PROFLLM_SYSFS, else "/sys" */
	double timeout_s;            /* for the driver to start; 0: GPU_START_S_MAX */
};

struct gpu_set;

/* Never NULL: without GPUs or a driver the list is empty. o may be NULL. */
struct gpu_set *gpu_open(const struct gpu_opts *o);
void gpu_close(struct gpu_set *s); /* accepts NULL */
/*
 * From now on gpu_sample also reads DCGM's host engine for whole NVIDIA GPUs, if its library is
 * installed and it runs on this machine; else no change. Not thread-safe.
 */
void gpu_profile(struct gpu_set *s, const struct gpu_opts *o);

/* Whole GPUs by index, each followed by its parts. Lives until gpu_close. */
const struct gpu *gpu_list(const struct gpu_set *s, size_t *n);
/* Why an installed driver reports nothing, in one sentence; "" when all is well or none is. */
const char *gpu_note(const struct gpu_set *s);

/* Finds a GPU by index ("1:0": a part), UUID or UUID prefix; -1: not found, -2: ambiguous. */
int gpu_find(const struct gpu_set *s, const char *called);

/* i: place in the list. Cheap enough for sampling: a handful of calls into the driver. */
void gpu_sample(const struct gpu_set *s, size_t i, struct gpu_sample *out);
/* Fills at most max; returns how many there are, which may be more than max. */
size_t gpu_processes(const struct gpu_set *s, size_t i, struct gpu_process *out, size_t max);
enum gpu_link gpu_link(const struct gpu_set *s, size_t a, size_t b);
