/* SPDX-License-Identifier: Apache-2.0 */
/* capture_internal.h - the two sources of packets. Private to capture*.c. */
#pragma once
#include "client/net/capture.h"

struct capture {
	int (*next)(struct capture *c, int wait_ms, struct capture_packet *out, struct err *e);
	uint64_t (*dropped)(struct capture *c);
	void (*close)(struct capture *c);
};
