/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prices.c - the price per hour of each kind of GPU and the power of its board: defaults for cost
 * and energy where a request has none.
 *
 * A GPU is a value of the column gpu_model. Prices are entered by users, never guessed. A board's
 * power is the vendor's figure, with its document, unless users enter another one.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "web/api.h"

#define KIND "price"
#define GPU_BYTES_MAX 200
#define GPUS_SHOWN 200       /* kinds of GPU among the runs, most runs first */
#define PRICES_KEPT_MAX 500
#define PRICE_TRIES 10       /* while others change the same price */
#define USD_MAX 1e6          /* of an hour */
#define WATTS_MAX 1e6

/* ---- what vendors state ---- */

/*
 * Words of a gpu_model between dashes. Rows with more words precede those with fewer; a name
 * without its form factor is the module that servers are sold with.
 */
static const struct board { const char *words; double watts; const char *source; } boards[] = {
	{ "h100 pcie", 350, "NVIDIA H100 data sheet: H100 PCIe, 300 to 350 W" },
	{ "h100 nvl", 400, "NVIDIA H100 data sheet: H100 NVL, 350 to 400 W" },
	{ "h100", 700, "NVIDIA H100 data sheet: H100 SXM, up to 700 W" },
	{ "h200 nvl", 600, "NVIDIA H200 data sheet: H200 NVL, up to 600 W" },
	{ "h200", 700, "NVIDIA H200 data sheet: H200 SXM, up to 700 W" },
	{ "b200", 1000, "NVIDIA HGX B200 data sheet: up to 1,000 W for each GPU" },
	{ "a100 80gb pcie", 300, "NVIDIA A100 80GB data sheet: PCIe, 300 W" },
	{ "a100 pcie 80gb", 300, "NVIDIA A100 80GB data sheet: PCIe, 300 W" },
	{ "a100 pcie", 250, "NVIDIA A100 40GB data sheet: PCIe, 250 W" },
	{ "a100", 400, "NVIDIA A100 data sheet: SXM4, 400 W" },
	{ "l40s", 350, "NVIDIA L40S data sheet: 350 W" },
	{ "l40", 300, "NVIDIA L40 data sheet: 300 W" },
	{ "l4", 72, "NVIDIA L4 data sheet: 72 W" },
	{ "a10", 150, "NVIDIA A10 data sheet: 150 W" },
	{ "t4", 70, "NVIDIA T4 data sheet: 70 W" },
	{ "mi325x", 1000, "AMD Instinct MI325X data sheet: peak board power 1,000 W" },
	{ "mi300x", 750, "AMD Instinct MI300X data sheet: peak board power 750 W" },
	{ "mi210", 300, "AMD Instinct MI210 data sheet: peak board power 300 W" },
};

static bool has_word(struct str name, struct str word)
{
	while (name.n)
		if (str_eq(str_cut(&name, '-'), word))
			return true;
	return false;
}

static bool has_words(struct str name, struct str words)
{
	while (words.n)
		if (!has_word(name, str_cut(&words, ' ')))
			return false;
	return true;
}

static const struct board *board_of(struct str gpu)
{
	for (size_t i = 0; i < sizeof(boards) / sizeof(*boards); i++)
		if (has_words(gpu, str_of(boards[i].words)))
			return &boards[i];
	return NULL;
}

/* ---- what is known of each GPU ---- */

struct price {
	struct str gpu, who;
	int64_t preset;      /* 0: nothing was entered */
	double usd, watts;   /* NAN: unknown */
	double at_s;
	const char *source;  /* of watts; NULL: entered by people */
};

static struct price price_read(const struct preset *p, struct arena *a)
{
	struct price out = { .gpu = p->name, .preset = p->id, .at_s = p->at_s, .usd = NAN,
			     .watts = NAN };
	struct json_value *body;

	if (json_parse(a, p->body, &body, NULL) == 0) {
		out.usd = json_real(json_get(body, "usd_per_hour"), NAN);
		out.watts = json_real(json_get(body, "power_w"), NAN);
		out.who = json_text(json_get(body, "who"), STR(""));
	}
	return out;
}

static void add_board(struct price *p)
{
	const struct board *b = isnan(p->watts) ? board_of(p->gpu) : NULL;

	if (!b)
		return;
	p->watts = b->watts;
	p->source = b->source;
}

static const struct price *price_find(const struct price *p, size_t n, struct str gpu)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(p[i].gpu, gpu))
			return &p[i];
	return NULL;
}

/* Prices of GPUs in the runs, then of others with a price. */
static int prices_read(const struct web_request *r, const struct index_view *view,
		       struct price **out, size_t *n, struct err *e)
{
	static const struct str column = { "gpu_model", 9 };
	struct query q = { .facet = &column, .n_facets = 1, .facet_values_max = GPUS_SHOWN };
	struct answer answer;
	struct preset *preset;
	struct price *kept;
	size_t n_presets, n_kept, gpus = 0;

	if (store_presets(r->store, KIND, r->arena, &preset, &n_presets, e) < 0)
		return -1;
	if (view && index_column(view, column)) {
		if (index_query(view, &q, r->arena, &answer, e) < 0)
			return -1;
		gpus = answer.facet[0].n;
	}
	*out = arena_alloc(r->arena, (gpus + n_presets + 1) * sizeof(**out));
	kept = arena_alloc(r->arena, (n_presets + 1) * sizeof(*kept));
	*n = n_kept = 0;
	for (size_t i = 0; i < n_presets; i++)
		kept[n_kept++] = price_read(&preset[i], r->arena);
	for (size_t i = 0; i < gpus; i++) {
		struct value v = answer.facet[0].value[i].value;
		const struct price *known;

		if (v.kind != VALUE_TEXT)
			continue;
		known = price_find(kept, n_kept, v.text);
		(*out)[*n] = (struct price){ .gpu = v.text, .usd = NAN, .watts = NAN, .at_s = NAN };
		if (known)
			(*out)[*n] = *known;
		++*n;
	}
	for (size_t i = 0; i < n_kept; i++)
		if (!price_find(*out, *n, kept[i].gpu))
			(*out)[(*n)++] = kept[i];
	for (size_t i = 0; i < *n; i++)
		add_board(&(*out)[i]);
	return 0;
}

int prices_put(const struct web_request *r, struct json_writer *usd, struct json_writer *watts,
	       struct err *e)
{
	struct price *p;
	size_t n;

	if (prices_read(r, r->view, &p, &n, e) < 0)
		return -1;
	json_begin_object(usd);
	json_begin_object(watts);
	for (size_t i = 0; i < n; i++) {
		if (!isnan(p[i].usd)) {
			json_key_str(usd, p[i].gpu);
			json_put_f64(usd, p[i].usd);
		}
		if (!isnan(p[i].watts)) {
			json_key_str(watts, p[i].gpu);
			json_put_f64(watts, p[i].watts);
		}
	}
	json_end_object(usd);
	json_end_object(watts);
	return 0;
}

/* ---- routes ---- */

static int prices(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct price *p;
	size_t n;

	if (prices_read(r, r->view, &p, &n, e) < 0)
		return -1;
	json_member_array(&a->json, "items");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&a->json);
		json_member_str(&a->json, "gpu", p[i].gpu);
		data_put_key_number(&a->json, "usd_per_hour", p[i].usd);
		data_put_key_number(&a->json, "power_w", p[i].watts);
		json_member_str(&a->json, "who", p[i].who);
		data_put_key_number(&a->json, "at", p[i].at_s);
		json_member_text(&a->json, "source", p[i].source);
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	return 0;
}

/* "was": what the member was when the user read it; now: what it is. */
static int check_was(const struct web_request *r, struct web_answer *a, const char *what,
		     double now, struct err *e)
{
	const struct json_value *v = json_get(r->body, "was");
	double was = json_real(v, NAN);

	if (v && v->kind != JSON_NULL && isnan(was))
		return asked_wrong(a, e, r->arena, "/was", "a number or null");
	if (!v || (isnan(was) == isnan(now) && !(was < now || was > now)))
		return 0;
	a->pointer = STR("/was");
	return asked_refuse(a, 409, e, "the %s of %.*s was changed in another window after it was "
			    "shown here, so this change was not saved", what, (int)r->id[0].n,
			    r->id[0].p);
}

/* A number above 0, or null, which removes it; when the member is missing, *out stays. */
static int read_amount(const struct web_request *r, struct web_answer *a, const char *name,
		       const char *what, double max, double now, double *out, struct err *e)
{
	const struct json_value *v = json_get(r->body, name);
	double given = json_real(v, NAN);

	if (!v)
		return 0;
	if (v->kind != JSON_NULL && !(given > 0 && given <= max))
		return asked_wrong(a, e, r->arena, arena_printf(r->arena, "/%s", name),
				   arena_printf(r->arena, "a number above 0 and at most %.0f, or null to "
						"remove it", max));
	if (check_was(r, a, what, now, e) < 0)
		return -1;
	*out = v->kind == JSON_NULL ? NAN : given;
	return 0;
}

static int put_price(const struct web_request *r, struct web_answer *a, const struct price *p,
		     struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct preset put = { .id = p->preset, .name = p->gpu };
	int rc = 0;

	json_begin_object(&w);
	data_put_key_number(&w, "usd_per_hour", p->usd);
	data_put_key_number(&w, "power_w", p->watts);
	json_member_str(&w, "who", p->who);
	json_end_object(&w);
	put.body = buf_str(&text);
	if (!isnan(p->usd) || !isnan(p->watts))
		rc = store_preset_put(r->store, KIND, &put, p->preset ? p->at_s : (double)NAN, e);
	else if (p->preset)
		rc = store_preset_drop(r->store, KIND, p->preset, e);
	buf_release(&text);
	return rc < 0 ? asked_usage(a, 409, e) : 0;
}

/* Changes the members that the request has; the others stay as the store has them now. */
static int change_once(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct price new = { .gpu = r->id[0], .usd = NAN, .watts = NAN }, shown;
	struct preset *p;
	size_t n;

	if (!new.gpu.n || new.gpu.n > GPU_BYTES_MAX)
		return asked_refuse(a, 404, e, "the name of a GPU has 1 to %d bytes", GPU_BYTES_MAX);
	if (store_presets(r->store, KIND, r->arena, &p, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (str_eq(p[i].name, new.gpu))
			new = price_read(&p[i], r->arena);
	if (!new.preset && n >= PRICES_KEPT_MAX)
		return asked_refuse(a, 422, e, "there are prices of %zu GPUs, and more are not kept "
				    "(PRICES_KEPT_MAX); remove some of them", n);
	shown = new;
	add_board(&shown);
	if (asked_object(r, a, "usd_per_hour power_w was who", e) < 0 ||
	    read_amount(r, a, "usd_per_hour", "price", USD_MAX, shown.usd, &new.usd, e) < 0 ||
	    read_amount(r, a, "power_w", "power", WATTS_MAX, shown.watts, &new.watts, e) < 0 ||
	    asked_who(r, a, &new.who, e) < 0)
		return -1;
	return put_price(r, a, &new, e);
}

static int price_change(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int rc = -1;

	/* 409 but for "was": someone else changed this price between reading and writing it. */
	for (int tries = 0; rc < 0 && tries < PRICE_TRIES; tries++) {
		a->status = 0;
		rc = change_once(r, a, e);
		if (a->status != 409 || a->pointer.n)
			return rc;
	}
	return rc;
}

static const struct web_route routes[] = {
	{ "GET", "/api/settings/prices", 0, prices },
	{ "PUT", "/api/settings/prices/{gpu}", ROUTE_CHANGES, price_change },
};
const struct web_routes prices_routes = { routes, sizeof(routes) / sizeof(*routes) };
