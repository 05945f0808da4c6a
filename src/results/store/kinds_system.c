/* SPDX-License-Identifier: Apache-2.0 */
/* kinds_system.c - see kinds.h: the machine, and what it did while load ran. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/store/kinds.h"

#define NAME_BYTES 192

/* How one figure of several GPUs or processes becomes one. */
enum join { JOIN_MEAN, JOIN_SUM, JOIN_MIN, JOIN_MAX };

struct total { double value; size_t n; };

static void add(struct total *t, enum join how, double v)
{
	if (isnan(v))
		return;
	if (t->n == 0)
		t->value = v;
	else if (how == JOIN_MIN)
		t->value = fmin(t->value, v);
	else if (how == JOIN_MAX)
		t->value = fmax(t->value, v);
	else
		t->value += v;
	t->n++;
}

/* figure.span of each element of the list as one cell. */
static void join(struct reading *r, const char *prefix, const struct json_value *list,
		 struct str figure, struct str span, enum join how)
{
	struct total t = { 0 };
	char name[NAME_BYTES];

	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *v = NULL, *element = &list->item[i];

		for (size_t k = 0; element->kind == JSON_OBJECT && k < element->count; k++)
			if (str_eq(element->key[k], figure))
				v = &element->item[k];
		for (size_t k = 0; span.n && v && v->kind == JSON_OBJECT && k < v->count; k++)
			if (str_eq(v->key[k], span)) {
				v = &v->item[k];
				break;
			}
		add(&t, how, json_real(v, NAN));
	}
	if (!t.n)
		return;
	snprintf(name, sizeof(name), "%s.%.*s%s%.*s", prefix, (int)(figure.n < 100 ? figure.n : 100),
		 figure.p, span.n ? "." : "", (int)span.n, span.n ? span.p : "");
	cells_put_number(r->cells, name, how == JOIN_MEAN ? t.value / (double)t.n : t.value);
}

/* Every figure that has a least, mean and largest value; how the means are put together. */
static void join_spans(struct reading *r, const char *prefix, const struct json_value *list,
		       enum join means)
{
	const struct json_value *first = list->count ? &list->item[0] : NULL;

	for (size_t i = 0; first && first->kind == JSON_OBJECT && i < first->count; i++) {
		if (first->item[i].kind != JSON_OBJECT)
			continue;
		join(r, prefix, list, first->key[i], STR("min"), means == JOIN_SUM ? means : JOIN_MIN);
		join(r, prefix, list, first->key[i], STR("mean"), means);
		join(r, prefix, list, first->key[i], STR("max"), means == JOIN_SUM ? means : JOIN_MAX);
	}
}

static bool is_list(const struct json_value *v)
{
	return v && v->kind == JSON_ARRAY;
}

/* The first GPU stands for all: a machine with different ones has "hardware.gpus_differ". */
static void put_gpus(struct reading *r, const struct json_value *gpus)
{
	static const char *const aside[] = { "index", "uuid", "pci", "links", "name", "numa" };
	const struct json_value *first = gpus->count ? &gpus->item[0] : NULL;
	struct str name = json_text(json_get(first, "name"), STR(""));
	size_t whole = 0;
	bool do_differ = false;

	for (size_t i = 0; i < gpus->count; i++) {
		const struct json_value *part = json_get(&gpus->item[i], "mig_profile");

		whole += !part || part->kind == JSON_NULL;
		do_differ |= !str_eq(json_text(json_get(&gpus->item[i], "name"), STR("")), name);
	}
	if (name.n)
		cells_put_text(r->cells, "hardware.gpu", name);
	cells_put_number(r->cells, "hardware.gpus", (double)whole);
	if (do_differ)
		cells_put(r->cells, STR("hardware.gpus_differ"),
			  (struct value){ .kind = VALUE_BOOL, .is_true = true });
	for (size_t i = 0; first && first->kind == JSON_OBJECT && i < first->count; i++) {
		bool is_aside = false;

		for (size_t k = 0; k < sizeof(aside) / sizeof(*aside); k++)
			is_aside |= str_is(first->key[i], aside[k]);
		if (!is_aside)
			cells_put_json(r->cells, "hardware.gpu", first->key[i], &first->item[i]);
	}
}

static void put_hardware(struct reading *r, const struct json_value *info)
{
	for (size_t i = 0; info && info->kind == JSON_OBJECT && i < info->count; i++) {
		struct str key = info->key[i];
		const struct json_value *v = &info->item[i];

		if (str_is(key, "gpus") && v->kind == JSON_ARRAY)
			put_gpus(r, v);
		else
			cells_put_json(r->cells, "hardware", key, v);
	}
}

void put_system(struct reading *r, const struct json_value *system)
{
	const struct json_value *gpus = json_get(system, "gpus");
	const struct json_value *processes = json_get(system, "processes");

	for (size_t i = 0; system && system->kind == JSON_OBJECT && i < system->count; i++) {
		struct str key = system->key[i];

		if (!str_is(key, "gpus") && !str_is(key, "processes") && !str_is(key, "hardware_info"))
			cells_put_json(r->cells, "system", key, &system->item[i]);
	}
	if (is_list(gpus)) {
		join_spans(r, "system.gpu", gpus, JOIN_MEAN);
		join(r, "system.gpu", gpus, STR("energy_j"), STR(""), JOIN_SUM);
	}
	if (is_list(processes)) {
		join_spans(r, "system.processes", processes, JOIN_SUM);
		join(r, "system.processes", processes, STR("cpu_s"), STR(""), JOIN_SUM);
	}
	put_hardware(r, json_get(system, "hardware_info"));
}
