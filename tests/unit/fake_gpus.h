/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_gpus.h - GPUs that are not there, for a test program: tests/fake/nvml.c in place of the
 * driver, its state in a file below dir.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/gpu/gpu.h"
#include "scratch.h"

/* The path relative to this program: ../tests/NAME. */
static inline const char *fake_library(const char *name)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 100);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	for (int i = 0; i < 2; i++) {
		slash = strrchr(path, '/');
		if (slash)
			*slash = 0;
	}
	snprintf(path + strlen(path), 100, "/tests/%s", name);
	return path;
}

static inline void fake_state(const char *lines)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "%s/gpus", dir);
	setenv("FAKE_NVML_STATE", path, 1);
	f = fopen(path, "w");
	fputs(lines, f);
	fclose(f);
}

/* The GPUs that these lines describe; none of AMD's. */
static inline struct gpu_set *fake_open(const char *lines)
{
	struct gpu_opts o = { .nvml = fake_library("libfake-nvml.so"), .sysfs = dir };

	fake_state(lines);
	return gpu_open(&o);
}
