/* SPDX-License-Identifier: Apache-2.0 */
/* web/metrics.h - counts for people and for Prometheus. */
#pragma once
#include "web/route.h"

/* The route /metrics. */
int metrics_page(const struct web_request *r, struct web_answer *a, struct err *e);
/* Runs there are: the newest version of each, excluded and archived ones too. */
int metrics_runs(const struct web_request *r, size_t *n, struct err *e);
