/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/hardware_parts.h - what the files of hardware_json share. Not for others.
 *
 * Paths are those of the machine ("/proc/cpuinfo"); root stands before each.
 */
#pragma once
#include <stdarg.h>

#include "base/file.h"
#include "base/limits.h"
#include "json/write.h"

#define HARDWARE_WORD_BYTES 256

struct hardware {
	const char *root;
};

/* Whole, into out, which is emptied before; false: it is not there. */
__attribute__((format(printf, 3, 4)))
bool hardware_read(const struct hardware *h, struct buf *out, const char *fmt, ...);
/* Without the blanks around it; false, and "": not there, or empty. */
bool hardware_word(const struct hardware *h, char out[static HARDWARE_WORD_BYTES],
		   const char *path);
bool hardware_number(const struct hardware *h, int64_t *out, const char *path);

void hardware_put_word(struct json_writer *w, const char *key, const char *word); /* "": null */
void hardware_put_number(struct json_writer *w, const char *key, double v); /* NAN: null */
void hardware_put_count(struct json_writer *w, const char *key, int64_t v); /* below 0: null */

void hardware_put_cpu(const struct hardware *h, struct json_writer *w);     /* hardware_cpu.c */
void hardware_put_memory(const struct hardware *h, struct json_writer *w);
void hardware_put_network(const struct hardware *h, struct json_writer *w); /* hardware_host.c */
/* Container and virtualisation. */
void hardware_put_walls(const struct hardware *h, struct json_writer *w);
/* Of a control group: "cpu" and "max" or their like of version 1; NAN: no limit. */
double hardware_cpu_quota(const struct hardware *h);
int64_t hardware_memory_limit(const struct hardware *h);
