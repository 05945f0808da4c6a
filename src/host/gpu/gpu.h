/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - the GPUs of this machine: what they are, what they do now, who uses them.
 *
 * NVIDIA's are seen through NVML (gpu/nvml.h), AMD's through sysfs (gpu/amd.h), both found at run
 * time: without driver there are simply no GPUs. Nothing is ever changed, neither clocks nor MIG.
 *
 * gpu_open() looks once; the list does not change until gpu_close(). What is unknown (an old
 * driver, a GPU that fell off the bus, a permission) is NAN, -1 or "" and never a failure. A driver
 * that does not answer within the timeout is left alone for good: its GPUs are not listed.
 *
 * A GPU that is split (MIG) is listed, and so is each of its parts: work can go to the parts only.
 * Parts follow their GPU. gpu_sample of a part tells its memory; the rest is known of the whole.
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
	char cuda[16];               /* the newest CUDA that the driver takes: "12.4"; "" */
	int capability_major, capability_minor; /* CUDA's compute capability; -1 */
	int numa;                    /* node of its memory bus; -1 */
	double memory_bytes;         /* in all; NAN */
	double power_limit_w;        /* that holds now; NAN */
	double sm_clock_max_mhz, memory_clock_max_mhz; /* NAN */
};

/* One moment. NAN: not told. */
struct gpu_sample {
	double utilization_percent;  /* of time in which it worked, over the driver's last period */
	double memory_busy_percent;  /* likewise, of its memory's bus */
	double memory_used_bytes;    /* by programs, without what the driver keeps for itself */
	double memory_free_bytes;
	double sm_clock_mhz, memory_clock_mhz;
	double power_w, temperature_c;
	double energy_j;             /* counted since the driver was loaded: take differences */
	/* After gpu_profile, by DCGM: means over its last period. Shares of cycles, all links. */
	double sm_active_percent, tensor_active_percent, dram_active_percent;
	double nvlink_sent_bytes_per_s, nvlink_received_bytes_per_s;
	double pcie_sent_bytes_per_s, pcie_received_bytes_per_s;
};

/* A program that computes on it. Those outside our space of process numbers may be missing. */
struct gpu_process {
	pid_t pid;
	double memory_bytes;         /* NAN */
};

/* How two GPUs reach each other, better is greater. */
enum gpu_link {
	GPU_LINK_UNKNOWN,
	GPU_LINK_SYSTEM,             /* across NUMA nodes */
	GPU_LINK_NODE,               /* one NUMA node */
	GPU_LINK_BRIDGE,             /* one host bridge */
	GPU_LINK_SWITCH,             /* PCIe switches alone, or on one board */
	GPU_LINK_DIRECT,             /* NVLink, directly or by a switch of its own */
};

/* Zeroed: as the environment says. */
struct gpu_opts {
	const char *nvml;            /* NULL: $PROFLLM_NVML, else the driver's; "": none */
	const char *dcgm;            /* NULL: $PROFLLM_DCGM, else NVIDIA's of version 4 or 3; "": none */
	const char *sysfs;           /* NULL: $PROFLLM_SYSFS, else "/sys" */
	double timeout_s;            /* for the driver to start; 0: GPU_START_S_MAX */
};

struct gpu_set;

/* Never NULL: without GPUs, or without a driver, the list is empty. o may be NULL. */
struct gpu_set *gpu_open(const struct gpu_opts *o);
void gpu_close(struct gpu_set *s); /* accepts NULL */
/*
 * From now on gpu_sample also tells what DCGM's host engine reads of whole NVIDIA GPUs, where its
 * library is installed and it runs on this machine; else nothing changes. Not from several threads.
 */
void gpu_profile(struct gpu_set *s, const struct gpu_opts *o);

/* Whole GPUs by index, each followed by its parts. Lives until gpu_close. */
const struct gpu *gpu_list(const struct gpu_set *s, size_t *n);
/* Why a driver that is there tells nothing, in one sentence; "" when all is well or none is. */
const char *gpu_note(const struct gpu_set *s);

/* The one called so: index ("1:0": a part), UUID, or a beginning of it; -1: none, -2: several. */
int gpu_find(const struct gpu_set *s, const char *called);

/* i: place in the list. What is done often: a handful of calls into the driver. */
void gpu_sample(const struct gpu_set *s, size_t i, struct gpu_sample *out);
/* At most max of them; how many there are: more than max when out was too short. */
size_t gpu_processes(const struct gpu_set *s, size_t i, struct gpu_process *out, size_t max);
enum gpu_link gpu_link(const struct gpu_set *s, size_t a, size_t b);
