/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.c - requests of several sets in one run, each with its share; not in upstream.
 *
 * The set of each request is drawn first, from a fork of the seed; then every set is built by
 * itself with the resulting number of prompts, seeded with --seed plus its place in the list, so
 * that two sets of one kind do not give the same prompts. Nothing is drawn from the run's own
 * generators: arrival times are those of any other set.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "input/data/build.h"
#include "input/data/request_keys.h"

struct mix_part {
	struct dataset_component set;
	struct workload made;
	size_t wanted, taken;
};

struct mix {
	const struct dataset_env *env;
	struct mix_part part[MIX_PARTS_MAX];
	size_t parts;
	uint8_t *choice; /* of each request */
	size_t n;
	struct arena arena;
};

static int read_parts(struct mix *m, const char *text, struct err *e)
{
	struct json_scan scan = { str_of(text), 0 };
	struct json_slice list, one;
	struct json_iter it;

	if (json_next(&scan, &list, e) < 0)
		return err_wrap(e, "--mix");
	if (list.kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "--mix: expected a list like [{\"weight\": 0.7, "
			       "\"dataset-name\": \"sharegpt\", \"dataset-path\": \"...\"}, ...]");
	it = json_iter(list);
	while (json_each(&it, NULL, &one) == 1) {
		if (m->parts == MIX_PARTS_MAX)
			return err_set(e, ERR_USAGE, "--mix: at most %d sets", MIX_PARTS_MAX);
		if (m->env->component(m->env->component_self, one, &m->arena,
				      &m->part[m->parts].set, e) < 0)
			return err_wrap(e, "set %zu of the mix", m->parts + 1);
		m->parts++;
	}
	return m->parts ? 0 : err_set(e, ERR_USAGE, "--mix: the list is empty");
}

static void draw(struct mix *m)
{
	struct pcg64 rng = rng_fork(m->env->seed, "mix");
	double cdf[MIX_PARTS_MAX];

	for (size_t k = 0; k < m->parts; k++)
		cdf[k] = m->part[k].set.weight;
	pcg64_cdf(cdf, cdf, m->parts);
	m->choice = mem_array(m->n, sizeof(*m->choice));
	for (size_t i = 0; i < m->n; i++) {
		m->choice[i] = (uint8_t)pcg64_choose(&rng, cdf, m->parts);
		m->part[m->choice[i]].wanted++;
	}
}

static int build_part(const struct mix *m, size_t k, struct mix_part *p, struct err *e)
{
	const struct dataset *d = p->set.dataset;
	struct dataset_env env = *m->env;
	struct compat_rng rng;

	env.num_prompts = (int64_t)p->wanted;
	env.seed = (uint32_t)(env.seed + k);
	env.chat = p->set.chat;
	env.progress = NULL; /* each set would begin at 0 again */
	compat_rng_seed(&rng, (uint32_t)env.seed);
	if (!p->wanted)
		return 0;
	if ((d->check && d->check(&p->set.opts, &env, e) < 0) ||
	    d->build(&p->set.opts, &env, &rng, &p->made, e) < 0 ||
	    dataset_drop_long(&p->made, &p->set.opts, e) < 0)
		return err_wrap(e, "set %zu of the mix (%s)", k + 1, d->name);
	if (p->made.sessions)
		return err_set(e, ERR_RUN, "set %zu of the mix (%s) makes conversations; a mix has "
			       "single requests alone", k + 1, d->name);
	if (p->made.n >= p->wanted)
		return 0;
	return err_set(e, ERR_RUN, "set %zu of the mix (%s) has %zu of the %zu requests that its "
		       "weight gives it", k + 1, d->name, p->made.n, p->wanted);
}

static bool is_generation(const struct dataset_env *env)
{
	static const char *const name[] = { "vllm", "openai", "openai-chat" };

	for (size_t i = 0; env->backend && i < sizeof(name) / sizeof(*name); i++)
		if (strcmp(env->backend, name[i]) == 0)
			return true;
	return false;
}

/* Merges the row's keys over those of its set, and both over the set's defaults. */
static void own_keys(struct mix *m, const struct mix_part *p, struct sample *s)
{
	const int64_t asked = p->set.own.output_len;

	if (p->set.has_length && !request_keys_has(s, "max_tokens") &&
	    !request_keys_has(s, "max_completion_tokens"))
		s->output_len = asked;
	request_keys_lay(s, &p->set.own, &m->arena);
	if ((p->set.dataset->ignores_eos || p->made.is_eos_ignored) && is_generation(m->env) &&
	    !request_keys_has(s, "ignore_eos"))
		request_keys_put(s, "ignore_eos", STR("true"), &m->arena);
}

static int take_one(struct mix *m, size_t i, struct workload *w, struct err *e)
{
	struct mix_part *p = &m->part[m->choice[i]];
	struct sample *s = workload_add(w);

	*s = p->made.v[p->taken++];
	s->request_id = dataset_request_id(w, m->env, i);
	s->timestamp_s = NAN; /* times of one set mean nothing among others */
	own_keys(m, p, s);
	w->has_priorities |= p->made.has_priorities || p->set.has_priority;
	if (s->file_name)
		s->file_name = arena_text(&w->arena, str_of(s->file_name));
	return workload_keep(w, &s->prompt, e) < 0 || workload_keep(w, &s->messages, e) < 0 ||
	       workload_keep(w, &s->media, e) < 0 || workload_keep(w, &s->file, e) < 0 ?
	       -1 : dataset_keep_own(w, s, e);
}

static int build_all(struct mix *m, struct workload *w, struct err *e)
{
	draw(m);
	for (size_t k = 0; k < m->parts; k++) {
		struct str notes, line;

		if (build_part(m, k, &m->part[k], e) < 0)
			return -1;
		notes = m->part[k].made.notes;
		while (notes.n) {
			line = str_cut(&notes, '\n');
			dataset_note(w, "set %zu of the mix (%s): %.*s", k + 1,
				     m->part[k].set.dataset->name, (int)line.n, line.p);
		}
	}
	for (size_t i = 0; i < m->n; i++) {
		if (take_one(m, i, w, e) < 0)
			return -1;
		dataset_progress(m->env, i + 1, m->n);
	}
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct mix *m;
	int rc;

	(void)rng;
	if (!o->mix.text || !env->component)
		return err_set(e, ERR_USAGE, "--dataset-name mix needs --mix, a list of sets with weights");
	if (env->num_prompts < 1 || env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts: a mix has from 1 to %u requests, got %" PRId64,
			       REQUESTS_MAX, env->num_prompts);
	m = mem_alloc(sizeof(*m));
	m->env = env;
	m->n = (size_t)env->num_prompts;
	rc = read_parts(m, o->mix.text, e);
	if (rc == 0)
		rc = build_all(m, w, e);
	for (size_t k = 0; k < m->parts; k++)
		workload_release(&m->part[k].made);
	arena_release(&m->arena);
	free(m->choice);
	free(m);
	return rc;
}

static const char *const options[] = { "mix", NULL };

const struct dataset dataset_mix = {
	.name = "mix", .summary = "several sets with weights (--mix)", .options = options,
	.forbids_path = true, .build = build,
};
