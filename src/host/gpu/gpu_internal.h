/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_internal.h - shared by the files of gpu/. A driver finds its GPUs and adds them to the set in
 * its own order; functions of a driver take its own index, from 0.
 */
#pragma once
#include "host/gpu/gpu.h"

struct nvml; /* nvml.c */
struct dcgm; /* dcgm.c */
struct amd;  /* amd.c */

struct gpu_set {
	struct gpu *gpu;
	size_t n, n_nvidia;      /* NVIDIA's come first */
	char note[512];
	struct nvml *nvml;
	struct dcgm *dcgm;       /* NULL: not used */
	struct amd *amd;
};

/* Appends a zeroed GPU with everything "unknown". */
struct gpu *gpu_add(struct gpu_set *s, enum gpu_maker maker);
/* Adds a sentence to the note, cut to fit. */
__attribute__((format(printf, 2, 3)))
void gpu_note_add(struct gpu_set *s, const char *fmt, ...);

/*
 * library: the file to load. *out NULL when there is no driver. Returns within timeout_s, even if
 * the driver hangs.
 */
void nvml_open(const char *library, double timeout_s, struct gpu_set *s, struct nvml **out);
void nvml_close(struct nvml *v);
void nvml_sample(const struct nvml *v, size_t i, struct gpu_sample *out);
size_t nvml_processes(const struct nvml *v, size_t i, struct gpu_process *out, size_t max);
enum gpu_link nvml_link(const struct nvml *v, size_t a, size_t b);

/* library NULL: the newest one installed. *out NULL: no library, or no host engine. */
void dcgm_open(const char *library, const struct gpu_set *s, struct dcgm **out);
void dcgm_close(struct dcgm *v);
/* i: place among NVIDIA's in the set. Unknown values are left unchanged. */
void dcgm_sample(const struct dcgm *v, size_t i, struct gpu_sample *out);

void amd_open(const char *sysfs, struct gpu_set *s, struct amd **out);
void amd_close(struct amd *v);
void amd_sample(const struct amd *v, size_t i, struct gpu_sample *out);
size_t amd_processes(const struct amd *v, size_t i, struct gpu_process *out, size_t max);

