/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware.h - the machine an experiment ran on, as the document's hardware_info.
 *
 * GPUs (gpu/gpu.h), CPU, memory, NUMA, kernel, distribution, network cards, container and
 * virtualisation, as the files of /proc, /sys and /etc say. Nothing is started and nothing waits;
 * what is not said is null. Nothing personal: no host name, no addresses, no serial numbers but
 * the GPUs' UUIDs.
 */
#pragma once
#include "core/base/str.h"

/* Appends one JSON object. root stands before every path ("" the machine itself; tests). */
void hardware_json(const char *root, struct buf *out);
