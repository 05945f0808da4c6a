/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_backend.c - the rules between --backend and the other options; see serve_check.h.
 *
 * Serve spec 1.4, 1.5, 3.1, 3.2, 4.7. What upstream silently ignores is noted.
 */
#include <string.h>

#include "run/serve_check.h"

/* The API chosen. */
static const struct endpoint *endpoint_of(const struct check *c)
{
	/* A part of a mix is checked by itself, without what was derived. */
	return c->d ? c->d->endpoint : endpoint_find(c->o->backend);
}

bool serve_is_openai(const struct check *c)
{
	const struct endpoint *ep = endpoint_of(c);

	return !ep || ep->is_openai;
}

/* Of the options that become body fields, those that are set. */
static size_t sampling_options(const struct serve_opts *o, const char *out[7])
{
	const struct { const char *name; bool is_set; } all[] = {
		{ "top-p", o->top_p.is_set }, { "top-k", o->top_k.is_set },
		{ "min-p", o->min_p.is_set }, { "temperature", o->temperature.is_set },
		{ "frequency-penalty", o->frequency_penalty.is_set },
		{ "presence-penalty", o->presence_penalty.is_set },
		{ "repetition-penalty", o->repetition_penalty.is_set },
	};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].is_set)
			out[n++] = all[i].name;
	return n;
}

static void check_pooling(const struct check *c)
{
	static const char *const silent[] = { "goodput", "output-len", "logprobs",
					      "random-output-len" };
	const char *set[7];
	size_t n = sampling_options(c->o, set);

	for (size_t i = 0; i < n; i++)
		serve_warn(c, "--%s has no effect: --backend %s generates no text", set[i],
			   c->o->backend);
	for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++)
		if (serve_given(c, silent[i]))
			serve_warn(c, "--%s has no effect: --backend %s generates no text",
				   silent[i], c->o->backend);
	if (serve_given(c, "extra-body") && strcmp(c->o->backend, "vllm-rerank") == 0)
		serve_warn(c, "--extra-body has no effect: rerank requests take no further keys, as "
			   "upstream");
}

void serve_find_backend(const struct check *c)
{
	const struct endpoint *ep = endpoint_of(c);

	c->d->is_pooling = ep && ep->is_pooling;
}

int serve_check_backend(const struct check *c)
{
	const struct endpoint *ep = endpoint_of(c);
	const char *set[7];
	size_t n;

	if (ep->is_pooling)
		check_pooling(c);
	else if (!ep->is_openai && !ep->is_ours && (n = sampling_options(c->o, set)) > 0)
		return err_set(c->e, ERR_USAGE, "--%s: sampling options are for APIs like OpenAI's, which "
			       "--backend %s is not", set[0], ep->name);
	return 0;
}
