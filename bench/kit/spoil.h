/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoil.h - ways to spoil a run for real: what is taken from the client, and what is put between it
 * and the server. Most of them need root.
 *
 * Everything acts on the calling process, on those that it starts afterwards, or on the process
 * named; call it in a child process that ends with the run. Nothing else on the machine changes.
 */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "kit/kit.h"

/* ---- networks of one's own ---- */

/* A network in which there is loopback alone. */
int spoil_own_network(struct err *e);
/* Limits the local ports for this network's connections to this many. */
int spoil_few_ports(unsigned ports, struct err *e);

#define SPOIL_NEAR "10.9.0.1" /* where the server listens */
#define SPOIL_FAR "10.9.0.2"  /* where the client finds it, beyond the lossy link */
/*
 * A link of this network that loses a share of the packets, each way: a process reads them from a
 * TUN device, exchanges their addresses and writes them back. TCP repairs the losses in earnest.
 */
int spoil_lossy_link(struct child *relay, double share, struct err *e);

/* ---- less of a processor ---- */

/* A control group that may use so much of a CPU; dir is where it is. cgroup v2, else v1. */
struct spoil_quota { char dir[96]; };
int spoil_quota_make(struct spoil_quota *q, double cpus, struct err *e);
int spoil_quota_enter(const struct spoil_quota *q, struct err *e); /* the calling process */
void spoil_quota_remove(struct spoil_quota *q); /* once it is empty */

/* ---- words changed on the way ---- */

/*
 * A relay before 127.0.0.1:port that replaces one text by another of the same length, in both
 * directions; *relay_port is where it listens. to NULL: it waits for 100 ms after the event with
 * the first text.
 */
int spoil_relay(struct child *relay, uint16_t port, const char *from, const char *to,
		uint16_t *relay_port, struct err *e);
