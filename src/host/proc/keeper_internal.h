/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_internal.h - what both sides of a keeper's pipes agree on. Private to proc/.
 *
 *   keeper.c        our side
 *   keeper_life.c   the keeper's
 *
 * The keeper finds its orders in a nameless file as its standard input: texts, each ended by a
 * NUL, in the order of enum order_text, then the words of when_orphaned and the program's. It
 * closes nothing it was not given: there is nothing else.
 */
#pragma once
#include <stdint.h>

enum keeper_fd {
	KEEPER_ORDERS = 0,  /* /dev/null once it is read */
	KEEPER_OUT = 1,     /* the program's standard output and error */
	KEEPER_ERR = 2,
	KEEPER_CONTROL = 3, /* closes when the tree is to end; nothing is ever written to it */
	KEEPER_REPORT = 4,  /* struct keeper_report */
	KEEPER_FOLLOW = 5,  /* where the log is copied to */
	KEEPER_PASS = 6,    /* what the program gets as KEEPER_PASSED_FD; closed once it runs */
	KEEPER_FDS,
};

enum order_text {
	ORDER_MARK,
	ORDER_ROSTER,       /* path of the roster file, "" for none */
	ORDER_GRACE_MS,
	ORDER_LEAVES_REST,  /* "1" or "0" */
	ORDER_FOLLOWS,      /* likewise */
	ORDER_PASSES,       /* likewise */
	ORDER_OWNER,        /* process number */
	ORDER_OWNER_START,
	ORDER_ORPHANED,     /* number of words of when_orphaned */
	ORDER_TEXTS,
};

enum keeper_said {
	SAID_STARTED, /* value: the program's process number, for whoever debugs it */
	SAID_FAILED,  /* value: errno of what could not be done; the keeper ends */
	SAID_ENDED,   /* value: the program's exit status, or minus the signal */
	SAID_GONE,    /* value: how many of the tree could not be ended; the keeper ends */
};

/* Small enough to go through a pipe in one piece. */
struct keeper_report { int32_t said, value; };
