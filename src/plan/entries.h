/* SPDX-License-Identifier: Apache-2.0 */
/* entries.h - inside plan/ only: where every kind of plan starts. */
#pragma once
#include "plan/plan.h"

/* p becomes n roots due at 0: entry i sends sample i and waits for nothing. */
void plan_entries(struct plan *p, uint32_t n);
