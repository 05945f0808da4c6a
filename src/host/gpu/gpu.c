/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - see gpu.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "host/gpu/gpu_internal.h"

/* ---- what CUDA_VISIBLE_DEVICES and its kin leave ---- */

/* Positions of one maker's whole GPUs, in the order in which a variable counts them. */
struct counted_gpus {
	size_t *place;
	size_t n;
};

static void count_in(struct counted_gpus *c, size_t place)
{
	c->place = mem_grow(c->place, c->n + 1, sizeof(*c->place));
	c->place[c->n++] = place;
}

static bool begins(const struct gpu *g, struct str word)
{
	return word.n > 4 && strlen(g->uuid) >= word.n &&
	       strncasecmp(g->uuid, word.p, word.n) == 0;
}

/* Which GPU or part the word names; -1: none, or more than one. */
static long named_by(const struct gpu_set *s, const struct counted_gpus *c, enum gpu_maker maker,
		     struct str word)
{
	uint64_t index;
	long found = -1;

	if (str_to_u64(word, &index))
		return index < c->n ? (long)c->place[index] : -1;
	for (size_t i = 0; i < s->n; i++) {
		if (s->gpu[i].maker != maker || !begins(&s->gpu[i], word))
			continue;
		if (strlen(s->gpu[i].uuid) == word.n)
			return (long)i;
		if (found >= 0)
			return -1;
		found = (long)i;
	}
	return found;
}

static bool is_chosen(const struct counted_gpus *c, size_t place)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->place[i] == place)
			return true;
	return false;
}

/* Looks up each word of the list among the counted ones; in the list's order. */
static struct counted_gpus choose(const struct gpu_set *s, const struct counted_gpus *c,
				  enum gpu_maker maker, const char *text)
{
	struct str rest = str_of(text);
	struct counted_gpus chosen = { 0 };

	while (rest.n) {
		long place = named_by(s, c, maker, str_trim(str_cut(&rest, ',')));

		if (place < 0 || is_chosen(&chosen, (size_t)place))
			break;
		/* A UUID may name one that an earlier variable has left out. */
		if (s->gpu[place].part < 0 && !is_chosen(c, (size_t)place))
			break;
		count_in(&chosen, (size_t)place);
	}
	return chosen;
}

/* Parts are meant by their own names, and by their GPU's. */
static bool is_left(const struct gpu_set *s, const struct counted_gpus *chosen, size_t place)
{
	const struct gpu *g = &s->gpu[place];

	if (is_chosen(chosen, place))
		return true;
	for (size_t i = 0; g->part >= 0 && i < chosen->n; i++)
		if (strcmp(s->gpu[chosen->place[i]].uuid, g->parent) == 0)
			return true;
	return false;
}

static void narrow(struct gpu_set *s, enum gpu_maker maker, const char *first, const char *second)
{
	struct counted_gpus all = { 0 };

	for (size_t i = 0; i < s->n; i++)
		if (s->gpu[i].maker == maker && s->gpu[i].part < 0)
			count_in(&all, i);
	for (int i = 0; i < 2; i++) {
		const char *text = i == 0 ? first : second;
		struct counted_gpus chosen;

		if (!text)
			continue;
		chosen = choose(s, &all, maker, text);
		for (size_t k = 0; k < s->n; k++)
			if (s->gpu[k].maker == maker)
				s->gpu[k].is_allowed &= is_left(s, &chosen, k);
		free(all.place);
		all = chosen;
	}
	free(all.place);
}

/* ---- the set ---- */

#define NVML_LIBRARY "libnvidia-ml.so.1"

struct gpu *gpu_add(struct gpu_set *s, enum gpu_maker maker)
{
	struct gpu *g;

	s->gpu = mem_grow(s->gpu, s->n + 1, sizeof(*s->gpu));
	g = &s->gpu[s->n++];
	*g = (struct gpu){ .maker = maker, .index = -1, .part = -1, .is_allowed = true,
			   .capability_major = -1, .capability_minor = -1, .numa = -1,
			   .memory_bytes = NAN, .power_limit_w = NAN, .sm_clock_max_mhz = NAN,
			   .memory_clock_max_mhz = NAN };
	return g;
}

void gpu_note_add(struct gpu_set *s, const char *fmt, ...)
{
	size_t n = strlen(s->note);
	va_list args;

	if (n && n + 2 < sizeof(s->note)) {
		memcpy(s->note + n, "; ", 3);
		n += 2;
	}
	va_start(args, fmt);
	vsnprintf(s->note + n, sizeof(s->note) - n, fmt, args);
	va_end(args);
}

struct gpu_set *gpu_open(const struct gpu_opts *o)
{
	struct gpu_set *s = mem_grow(NULL, 1, sizeof(*s));
	const char *nvml = o && o->nvml ? o->nvml : getenv("PROFLLM_NVML");
	const char *sysfs = o && o->sysfs ? o->sysfs : getenv("PROFLLM_SYSFS");
	const char *cuda = getenv("CUDA_VISIBLE_DEVICES"), *hip = getenv("HIP_VISIBLE_DEVICES");

	*s = (struct gpu_set){ 0 };
	if (!nvml)
		nvml = NVML_LIBRARY;
	if (*nvml)
		nvml_open(nvml, o && o->timeout_s > 0 ? o->timeout_s : GPU_START_S_MAX, s,
			  &s->nvml);
	s->n_nvidia = s->n;
	amd_open(sysfs && *sysfs ? sysfs : "/sys", s, &s->amd);
	/*
	 * As the makers' libraries read them: an unknown word ends the list. ROCR counts AMD's
	 * GPUs; HIP, or CUDA if HIP is not set, counts those that ROCR leaves.
	 */
	narrow(s, GPU_NVIDIA, cuda, NULL);
	narrow(s, GPU_AMD, getenv("ROCR_VISIBLE_DEVICES"), hip ? hip : cuda);
	return s;
}

void gpu_profile(struct gpu_set *s, const struct gpu_opts *o)
{
	if (!s->dcgm)
		dcgm_open(o && o->dcgm ? o->dcgm : getenv("PROFLLM_DCGM"), s, &s->dcgm);
}

void gpu_close(struct gpu_set *s)
{
	if (!s)
		return;
	dcgm_close(s->dcgm);
	nvml_close(s->nvml);
	amd_close(s->amd);
	free(s->gpu);
	free(s);
}

const struct gpu *gpu_list(const struct gpu_set *s, size_t *n)
{
	*n = s->n;
	return s->gpu;
}

const char *gpu_note(const struct gpu_set *s)
{
	return s->note;
}

/* "3": the third GPU; "3:1": a part of it. */
static bool is_called_by_number(const struct gpu *g, struct str called)
{
	struct str whole = str_cut(&called, ':');
	uint64_t index, part;

	if (!str_to_u64(whole, &index) || index != (uint64_t)g->index)
		return false;
	if (called.p == whole.p + whole.n || called.n == 0)
		return g->part < 0;
	return str_to_u64(called, &part) && g->part >= 0 && part == (uint64_t)g->part;
}

int gpu_find(const struct gpu_set *s, const char *called)
{
	int found = -1;

	for (size_t i = 0; i < s->n; i++) {
		const struct gpu *g = &s->gpu[i];

		if (is_called_by_number(g, str_of(called)) || strcasecmp(g->uuid, called) == 0)
			return (int)i;
		/* "GPU-" alone, or less, is not a usable prefix. */
		if (strlen(called) > 4 && strncasecmp(g->uuid, called, strlen(called)) == 0)
			found = found == -1 ? (int)i : -2;
	}
	return found;
}

void gpu_sample(const struct gpu_set *s, size_t i, struct gpu_sample *out)
{
	*out = (struct gpu_sample){ NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
				    NAN, NAN, NAN };
	if (i < s->n_nvidia)
		nvml_sample(s->nvml, i, out);
	if (i < s->n_nvidia && s->dcgm)
		dcgm_sample(s->dcgm, i, out);
	if (i >= s->n_nvidia && i < s->n)
		amd_sample(s->amd, i - s->n_nvidia, out);
}

size_t gpu_processes(const struct gpu_set *s, size_t i, struct gpu_process *out, size_t max)
{
	if (i < s->n_nvidia)
		return nvml_processes(s->nvml, i, out, max);
	return i < s->n ? amd_processes(s->amd, i - s->n_nvidia, out, max) : 0;
}

enum gpu_link gpu_link(const struct gpu_set *s, size_t a, size_t b)
{
	const struct gpu *x, *y;
	enum gpu_link link = GPU_LINK_UNKNOWN;

	if (a >= s->n || b >= s->n || a == b || s->gpu[a].maker != s->gpu[b].maker)
		return GPU_LINK_UNKNOWN;
	x = &s->gpu[a];
	y = &s->gpu[b];
	if (a < s->n_nvidia)
		link = nvml_link(s->nvml, a, b);
	/* If the driver does not report the link, derive it from the NUMA nodes. */
	if (link == GPU_LINK_UNKNOWN && x->numa >= 0 && y->numa >= 0)
		link = x->numa == y->numa ? GPU_LINK_NODE : GPU_LINK_SYSTEM;
	return link;
}
