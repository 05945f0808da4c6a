/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dashboard.h - a dashboard by its address, and the token for it.
 *
 * A dashboard that made its token itself stores it for this user's other programs, in a file named
 * by machine and address (home folders are shared between machines):
 *
 *   $XDG_STATE_HOME/profllm/dashboards/MACHINE/127.0.0.1:8080     (or below ~/.local/state)
 *
 * The file has mode 0600 and the two folders above it 0700. The next dashboard at that address
 * replaces what a killed one has left. Such a token is sent only to the loopback address or Unix
 * socket that it was stored for, never through a proxy or to a name that may mean another address.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"
#include "input/fetch/fetch.h"

struct dashboard {
	struct buf base;      /* URL without a slash at its end */
	struct buf socket;    /* path of its Unix socket; empty: none */
	struct buf header;    /* "Authorization: Bearer TOKEN"; empty: none */
	const char *headers[2];
	bool is_own;          /* the token is one that a dashboard has kept */
};

/* Whether this is the address of a dashboard: http://..., https://... or unix:PATH. */
bool dashboard_is_name(const char *name);
/*
 * token_file: its first line is the token; NULL: the stored one of that dashboard, if any. An error
 * never quotes a token. Release it in any case.
 */
int dashboard_find(const char *name, const char *token_file, struct dashboard *d, struct err *e);
/*
 * The address as a dashboard prints it, which may end in ?token=TOKEN; else the token is that of
 * DASHBOARD_TOKEN_VARIABLE, else the dashboard's stored one. Release it in any case.
 */
#define DASHBOARD_TOKEN_VARIABLE "PROFLLM_DASHBOARD_TOKEN"
int dashboard_find_printed(const char *url, struct dashboard *d, struct err *e);
/* header, unix_socket and proxy for requests to it; borrowed from d. */
struct fetch_opts dashboard_opts(struct dashboard *d);
/*
 * Appends "answered 413: ..." for an answer of any status: the detail that a dashboard gives, or what
 * the page of a proxy in front of it means.
 */
void dashboard_add_answer(const struct fetch_reply *r, struct buf *out);
/* Forgets the token, too. */
void dashboard_release(struct dashboard *d);
/* A name that means the same from another folder. Caller frees. */
char *dashboard_absolute(const char *name);

/* Stores the token of a dashboard with this name. path: the file, for dashboard_forget. */
int dashboard_keep(const char *name, const char *token, struct buf *path, struct err *e);
/* Removes the file, and releases path. */
void dashboard_forget(struct buf *path);
