/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_series.h - the names of the series that a record has of the machine.
 *
 * telemetry/system.c writes them, metrics/series.c reads them. Labels identify the source: gpu="0",
 * uuid="GPU-...",name="..." for a GPU; process="server",pid="123" for a process and its
 * descendants; none for the host and the sampling thread.
 */
#pragma once

/*
 * X(enum, name of the record's series, unit). Counters only grow, from any start value; facts have
 * one point, taken at the beginning.
 */
#define SYSTEM_SERIES(X)                                                                   \
	X(GPU_MEMORY, "gpu_memory_used", "bytes")       /* by all processes */                   \
	X(GPU_MEMORY_TOTAL, "gpu_memory_total", "bytes") /* fact */                         \
	X(GPU_UTILIZATION, "gpu_utilization", "%")      /* of time with a kernel running */ \
	X(GPU_MEMORY_BUSY, "gpu_memory_busy", "%")      /* of time with its memory read or written */ \
	X(GPU_SM_CLOCK, "gpu_sm_clock", "MHz")                                              \
	X(GPU_MEMORY_CLOCK, "gpu_memory_clock", "MHz")                                      \
	X(GPU_POWER, "gpu_power", "W")                                                      \
	X(GPU_TEMPERATURE, "gpu_temperature", "C")                                          \
	X(GPU_ENERGY, "gpu_energy", "J")                /* counter */                       \
	X(GPU_SM_ACTIVE, "gpu_sm_active", "%")          /* this and the next six: by DCGM */ \
	X(GPU_TENSOR_ACTIVE, "gpu_tensor_active", "%")                                      \
	X(GPU_DRAM_ACTIVE, "gpu_dram_active", "%")                                          \
	X(GPU_NVLINK_SENT, "gpu_nvlink_sent", "bytes/s") /* a rate, over all links */       \
	X(GPU_NVLINK_RECEIVED, "gpu_nvlink_received", "bytes/s")                            \
	X(GPU_PCIE_SENT, "gpu_pcie_sent", "bytes/s")    /* a rate */                      \
	X(GPU_PCIE_RECEIVED, "gpu_pcie_received", "bytes/s")                                \
	X(HOST_CPU, "host_cpu", "s")                    /* counter: busy, over all CPUs */  \
	X(HOST_CPUS, "host_cpus", "CPUs")               /* fact: that this process may use */ \
	X(HOST_MEMORY, "host_memory_used", "bytes")     /* total minus available */          \
	X(HOST_MEMORY_TOTAL, "host_memory_total", "bytes") /* fact: total, or the group's limit */ \
	X(HOST_RECEIVED, "host_received", "bytes")      /* counter: all network cards */     \
	X(HOST_SENT, "host_sent", "bytes")              /* counter */                       \
	X(PROCESS_CPU, "process_cpu", "s")              /* counter: of the whole tree */    \
	X(PROCESS_RSS, "process_rss", "bytes")          /* sum; shared pages count in each */ \
	X(PROCESS_THREADS, "process_threads", "threads")                                    \
	X(PROCESS_COUNT, "process_count", "processes")                                      \
	X(SAMPLER_CPU, "sampler_cpu", "s")              /* counter: the sampling thread's own */ \
	X(SAMPLER_MISSED, "sampler_missed", "samples")  /* counter: skipped samples */
#define X(id, name, unit) SYSTEM_##id,
enum system_series { SYSTEM_SERIES(X) SYSTEM_SERIES_COUNT };
#undef X

/* A note of this kind says what could not be monitored, and why. */
#define NOTE_SYSTEM "system_metrics"

const char *system_series_name(enum system_series id);
const char *system_series_unit(enum system_series id);
