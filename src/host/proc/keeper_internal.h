/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_internal.h - the protocol between the two sides of a keeper's pipes. Private to proc/.
 *
 *   keeper.c        our side
 *   keeper_life.c   the keeper's
 *
 * The keeper's standard input is a nameless file with its orders: texts, each ended by a NUL, in
 * the order of enum order_text, then the words of when_orphaned and the program's. It has no other
 * descriptors than these, so it need not close any.
 */
#pragma once
#include <stdint.h>

#define KEEPER_NAME "profllm-keeper"

enum keeper_fd {
	KEEPER_ORDERS = 0,  /* /dev/null once it has been read */
	KEEPER_OUT = 1,     /* the program's standard output and error */
	KEEPER_ERR = 2,
	KEEPER_CONTROL = 3, /* closes when the tree must end; nothing is ever written to it */
	KEEPER_REPORT = 4,  /* struct keeper_report */
	KEEPER_FOLLOW = 5,  /* destination of the log's copy */
	KEEPER_PASS = 6,    /* becomes KEEPER_PASSED_FD in the program; closed once it runs */
	KEEPER_FDS,
};

enum order_text {
	ORDER_MARK,
	ORDER_ROSTER,       /* path of the roster file, "" for none */
	ORDER_GRACE_MS,
	ORDER_LEAVES_REST,  /* "1" or "0" */
	ORDER_FOLLOWS,      /* "1" or "0" */
	ORDER_PASSES,       /* "1" or "0" */
	ORDER_OWNER,        /* process number */
	ORDER_OWNER_START,
	ORDER_ORPHANED,     /* number of words of when_orphaned */
	ORDER_TEXTS,
};

enum keeper_said {
	SAID_STARTED, /* value: the program's process number, for debugging */
	SAID_FAILED,  /* value: errno of what failed; the keeper ends */
	SAID_ENDED,   /* value: the program's exit status, or minus the signal */
	SAID_GONE,    /* value: how many of the tree could not be ended; the keeper ends */
};

/* Small enough to go through a pipe atomically. */
struct keeper_report { int32_t said, value; };
