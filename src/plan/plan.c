/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - see plan.h: the simple plans, LoRA assignment and release; arrivals.c has the rest. */
#include "plan/plan.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "plan/entries.h"

void plan_entries(struct plan *p, uint32_t n)
{
	*p = (struct plan){ .entry = mem_array(n, sizeof(*p->entry)), .n = n, .n_roots = n };
	for (uint32_t i = 0; i < n; i++)
		p->entry[i] = (struct plan_entry){
			.sample = i,
			.after = PLAN_NONE,
			.history = PLAN_NONE,
			.session = PLAN_NONE,
			.lora = PLAN_NO_LORA,
		};
}

void plan_same(struct plan *p, uint32_t n, uint32_t sample)
{
	plan_entries(p, n);
	for (uint32_t i = 0; i < n; i++)
		p->entry[i].sample = sample;
}

void plan_chain(struct plan *p, uint32_t n, double gap_s)
{
	assert(gap_s >= 0 && gap_s <= DUE_S_MAX);
	plan_same(p, n, 0);
	p->n_roots = 1;
	for (uint32_t i = 1; i < n; i++) {
		p->entry[i].after = i - 1;
		p->entry[i].due_s = gap_s;
	}
}

void plan_repeat(struct plan *p, uint32_t n)
{
	assert(n > 0);
	for (uint32_t i = n; i < p->n; i++)
		p->entry[i].sample = i % n;
}

void plan_assign_lora(struct plan *p, unsigned n_modules, enum plan_lora how,
		      struct compat_rng *rng)
{
	assert(n_modules < PLAN_NO_LORA);
	if (!n_modules)
		return;
	/* A single module still costs its draws: upstream chooses among one. */
	for (uint32_t i = 0; i < p->n; i++)
		p->entry[i].lora = (uint16_t)(how == LORA_RANDOM ?
					      pyrandom_choice(&rng->py, n_modules) :
					      i % n_modules);
}

void plan_release(struct plan *p)
{
	if (!p)
		return;
	free(p->entry);
	free(p->join);
	free(p->ramp);
	*p = (struct plan){ 0 };
}
