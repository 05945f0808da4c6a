/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/run.h - experiments one after another on one site: GPUs, ports and servers that may
 * be kept from one to the next (restart: never, on-change). experiment_run() is one alone.
 *
 *	struct site *site = site_new();
 *
 *	for each x:
 *		experiment_run_on(site, x, hooks, &out);
 *		document_write(x, &out, ...);
 *		if (!site_suits(site, next))
 *			site_clear(site, hooks);
 *	site_free(site);
 *
 * experiment_run_on() starts what is not there: servers on the site that suit x are used again,
 * their prefix caches emptied and said so; others are ended before. What died meanwhile is
 * started anew. After a failure or an interruption nothing is left on the site.
 */
#pragma once
#include "experiment/experiment.h"

struct site;

struct site *site_new(void);
/* Ends all servers and gives GPUs and ports back. What could not be ended is a warning. */
void site_clear(struct site *site, const struct experiment_hooks *hooks);
void site_free(struct site *site); /* accepts NULL; clears it without hooks */
/* Whether servers run there that are as x wants them: same commands, environment and GPUs. */
bool site_suits(const struct site *site, const struct experiment *x);

/* As experiment_run, but what runs at the end stays for the next one, or for site_clear. */
void experiment_run_on(struct site *site, const struct experiment *x,
		       const struct experiment_hooks *hooks, struct outcome *out);

/*
 * The outcome of one that never began: its configuration is wrong. reason and category are
 * copied.
 */
void experiment_refused(const char *category, const char *reason, struct outcome *out);
