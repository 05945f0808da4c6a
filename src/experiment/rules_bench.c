/* SPDX-License-Identifier: Apache-2.0 */
/* rules_bench.c - see rules.h: the benchmark against the server it is for. */
#include <math.h>

#include "experiment/rules.h"

static const struct experiment_server *serving(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	return mode_is_served(x->mode) && x->n_servers ? &x->server[x->serving] : NULL;
}

/* ---- names ---- */

static bool is_served(const struct json_value *names, struct str name)
{
	if (!names || names->kind == JSON_STRING)
		return names && str_eq(names->text, name);
	for (size_t i = 0; names->kind == JSON_ARRAY && i < names->count; i++) {
		struct str one = json_text(&names->item[i], json_text(json_get(&names->item[i],
							     "name"), STR("")));
		struct str rest = one;

		/* NAME=PATH of adapters. */
		if (str_eq(one, name) || str_eq(str_cut(&rest, '='), name))
			return true;
	}
	return false;
}

static void model_is_served(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const char *asked = q->r->x->serve.served_model_name;
	const char *key = asked && rules_bench(q, "served_model_name") ? "served_model_name" : "model";
	const struct json_value *names, *model;

	if (!s || s->url || s->role == ROLE_PROXY || !rules_bench(q, key))
		return;
	asked = asked ? asked : q->r->x->serve.model;
	model = json_get(s->args, "model");
	names = json_get(s->args, "served_model_name");
	if (!model || !asked || is_served(names ? names : model, str_of(asked)) ||
	    is_served(json_get(s->args, "lora_modules"), str_of(asked)))
		return;
	rules_refuse_bench(q, key, "'%.200s' is not what the server serves: %.300s", asked,
			   config_json(names ? names : model, q->r->a));
}

static void adapters_are_served(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const struct opt_list *asked = &q->r->x->serve.lora_modules;
	const struct json_value *served = s ? json_get(s->args, "lora_modules") : NULL;

	for (size_t i = 0; served && i < asked->n; i++)
		if (!is_served(served, str_of(asked->v[i])))
			rules_note_bench(q, "lora_modules", "'%.200s' is none of server.lora_modules",
					 asked->v[i]);
}

/* ---- lengths ---- */

/* The spread of random lengths upwards; NAN: written in another way. */
static double spread(const char *ratio)
{
	double r;

	return ratio && str_to_f64(str_of(ratio), &r) ? r : NAN;
}

static void requests_fit_the_model(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const struct serve_opts *o = &q->r->x->serve;
	int64_t in = o->input_len.is_set ? o->input_len.v : o->data.random_input_len;
	int64_t out = o->output_len.is_set ? o->output_len.v : o->data.random_output_len;
	double most = s ? rules_number(q, q->r->x->serving, "max_model_len") : NAN, ratio, need;
	const char *key = rules_bench(q, "random_input_len") ? "random_input_len" :
			  rules_bench(q, "input_len") ? "input_len" : "dataset_name";

	if (isnan(most) || most < 1 || strcmp(o->dataset_name, "random") != 0 ||
	    o->data.random_input_len_dist || o->data.random_output_len_dist ||
	    o->data.max_model_len.is_set)
		return;
	ratio = spread(o->data.random_range_ratio);
	ratio = isnan(ratio) ? 0 : ratio;
	need = (double)o->data.random_prefix_len + floor((double)in * (1 + ratio)) +
	       floor((double)out * (1 + ratio));
	if (need > most)
		rules_refuse_bench(q, key, "requests of up to %.0f tokens (prefix %lld, prompt %lld, "
				   "answer %lld, ratio %g), and %s is %.0f", need,
				   (long long)o->data.random_prefix_len, (long long)in,
				   (long long)out, ratio, rules_path(q, q->r->x->serving, "max_model_len"), most);
}

static void load_fits_the_batch(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const struct opt_int *cap = &q->r->x->serve.max_concurrency;
	double seqs = s ? rules_number(q, q->r->x->serving, "max_num_seqs") : NAN;
	double copies = s ? rules_number(q, q->r->x->serving, "data_parallel_size") : NAN;

	seqs *= fmax(1, copies);
	if (s && rules_given(q, q->r->x->serving, "max_num_seqs") && cap->is_set &&
	    (double)cap->v > seqs)
		rules_note_bench(q, "max_concurrency", "%lld is more than the server runs at once "
				 "(max_num_seqs, %.0f in all): the rest waits there",
				 (long long)cap->v, seqs);
}

/* ---- keys ---- */

static bool has_authorization(const struct opt_list *header)
{
	for (size_t i = 0; i < header->n; i++) {
		struct str rest = str_of(header->v[i]);

		if (str_eq_nocase(str_trim(str_cut(&rest, '=')), STR("authorization")))
			return true;
	}
	return false;
}

/* A server that was told a key is asked with it. */
static void key_is_sent(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	struct opt_list *header = &q->r->x->serve.header;
	const struct json_value *key = s ? json_get(s->args, "api_key") : NULL;
	const char **v;

	if (key && key->kind == JSON_ARRAY && key->count)
		key = &key->item[0];
	if (!key || key->kind != JSON_STRING || has_authorization(header))
		return;
	v = arena_alloc(q->r->a, (header->n + 1) * sizeof(*v));
	for (size_t i = 0; i < header->n; i++)
		v[i] = header->v[i];
	v[header->n] = arena_printf(q->r->a, "Authorization=Bearer %s", key->text.p);
	*header = (struct opt_list){ v, header->n + 1, true };
}

rule *const rules_of_benchmark[] = {
	model_is_served, adapters_are_served, requests_fit_the_model, load_fits_the_batch,
	key_is_sent, NULL,
};
