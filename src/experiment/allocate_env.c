/* SPDX-License-Identifier: Apache-2.0 */
/* allocate_env.c - what an allocation tells each server. See allocate_parts.h. */
#include "experiment/allocate_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* "0,1", or "MIG-..." */
static char *join(struct allocation *out, const struct gpu *g, const size_t *place, size_t n)
{
	struct buf text = { 0 };
	char *joined;

	for (size_t i = 0; i < n; i++) {
		const struct gpu *one = &g[place[i]];

		buf_add_text(&text, i ? "," : "");
		if (one->part >= 0)
			buf_add_text(&text, one->uuid);
		else
			buf_printf(&text, "%d", one->index);
	}
	joined = arena_text(&out->arena, buf_str(&text));
	buf_release(&text);
	return joined;
}

/* Indices as HIP counts: all GPUs, or from 0 those that ROCR leaves. */
static void env_amd(struct allocation *out, const struct gpu *g, struct allocation_server *s,
		    char **env)
{
	char *list = join(out, g, s->place, s->n_gpus);

	if (getenv("ROCR_VISIBLE_DEVICES")) {
		struct buf own = { 0 };

		*env++ = arena_printf(&out->arena, "ROCR_VISIBLE_DEVICES=%s", list);
		for (size_t i = 0; i < s->n_gpus; i++)
			buf_printf(&own, "%s%zu", i ? "," : "", i);
		list = arena_text(&out->arena, buf_str(&own));
		buf_release(&own);
	}
	*env++ = arena_printf(&out->arena, "HIP_VISIBLE_DEVICES=%s", list);
	/* HIP reads this one too, and programs compare the two. */
	*env = arena_printf(&out->arena, "CUDA_VISIBLE_DEVICES=%s", list);
}

/* One that gets no GPU sees none of those that are not its own. */
static void env_without(struct allocation *out, const struct gpu *g, size_t n, char **env)
{
	if (n && g[0].maker == GPU_NVIDIA)
		*env++ = arena_text(&out->arena, STR("CUDA_VISIBLE_DEVICES="));
	if (n && g[n - 1].maker == GPU_AMD)
		*env = arena_text(&out->arena, STR("HIP_VISIBLE_DEVICES=-1"));
}

static void tell_server(struct allocation *out, const struct experiment_server *of,
			const struct gpu_set *gpus, unsigned share, const size_t *place,
			struct allocation_server *s)
{
	size_t n;
	const struct gpu *g = gpu_list(gpus, &n);
	char **env = arena_alloc(&out->arena, 4 * sizeof(*env));

	s->env = env;
	s->n_gpus = share;
	if (of->url)
		return;
	if (s->n_gpus == 0) {
		env_without(out, g, n, env);
		return;
	}
	s->gpu = arena_alloc(&out->arena, s->n_gpus * sizeof(*s->gpu));
	s->place = arena_alloc(&out->arena, s->n_gpus * sizeof(*s->place));
	memcpy(s->place, place, s->n_gpus * sizeof(*place));
	for (size_t k = 0; k < s->n_gpus; k++)
		s->gpu[k] = (struct outcome_gpu){ .index = g[place[k]].index,
			.uuid = arena_text(&out->arena, str_of(g[place[k]].uuid)),
			.name = arena_text(&out->arena, str_of(g[place[k]].name)) };
	if (g[place[0]].maker == GPU_AMD) {
		env_amd(out, g, s, env);
		return;
	}
	/* Indices are those of the PCI bus order, which is not CUDA's own. */
	env[0] = arena_text(&out->arena, STR("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
	env[1] = arena_printf(&out->arena, "CUDA_VISIBLE_DEVICES=%s",
			      join(out, g, place, s->n_gpus));
}

void allocation_tell(struct allocation *out, const struct experiment *x, const struct gpu_set *gpus,
		     const unsigned *share, const size_t *place)
{
	for (size_t i = 0; i < out->n_servers; i++)
		out->n_gpus += share[i];
	out->used_place = arena_alloc(&out->arena, (out->n_gpus + 1) * sizeof(*out->used_place));
	out->used_bytes = arena_alloc(&out->arena, (out->n_gpus + 1) * sizeof(*out->used_bytes));
	for (size_t i = 0; i < out->n_gpus; i++) {
		struct gpu_sample now;

		gpu_sample(gpus, place[i], &now);
		out->used_place[i] = place[i];
		out->used_bytes[i] = now.memory_used_bytes;
	}
	for (size_t i = 0; i < out->n_servers; i++) {
		tell_server(out, &x->server[i], gpus, share[i], place, &out->server[i]);
		place += share[i];
	}
}
