/* SPDX-License-Identifier: Apache-2.0 */
/* web/routes.c - every route there is, and which one a path means. */
#include "http/url.h"
#include "web/state.h"

extern const struct web_routes server_routes, login_routes;

static const struct web_routes *const lists[] = {
	&server_routes, &login_routes, &upload_routes, &job_routes, &launch_routes, &filters_routes,
	&data_routes, &people_routes, &export_routes, &trace_routes, &analysis_routes,
};
#define LISTS (sizeof(lists) / sizeof(*lists))

size_t routes_count(void)
{
	size_t n = 0;

	for (size_t i = 0; i < LISTS; i++)
		n += lists[i]->n;
	return n;
}

const struct web_route *routes_at(size_t i)
{
	for (size_t k = 0; k < LISTS; k++) {
		if (i < lists[k]->n)
			return &lists[k]->route[i];
		i -= lists[k]->n;
	}
	return NULL;
}

/* Whether path is of this form; id gets what {...} stood for, still encoded. */
static bool is_match(const char *form, struct str path, struct str id[2])
{
	struct str f = str_of(form);
	size_t n_ids = 0;

	while (f.n || path.n) {
		bool is_last = !memchr(f.p, '/', f.n);
		struct str want = str_cut(&f, '/'), got;

		if (is_last != !memchr(path.p, '/', path.n))
			return false;
		got = str_cut(&path, '/');
		if (want.n && want.p[0] == '{') {
			if (got.n == 0 || n_ids == 2)
				return false;
			id[n_ids++] = got;
		} else if (!str_eq(want, got)) {
			return false;
		}
		if (is_last)
			return true;
	}
	return true;
}

/* False: not decodable, or a NUL in it. */
static bool decode(struct arena *a, struct str *s)
{
	struct buf out = { 0 };
	bool is_good = url_add_decoded(&out, *s) && !memchr(out.data ? out.data : "", 0, out.len);

	if (is_good)
		*s = arena_str(a, buf_str(&out));
	buf_release(&out);
	return is_good;
}

/* "GET, HEAD, POST": each method once. */
static void allow(char list[static 64], const char *method)
{
	size_t n = strlen(list);

	if (strstr(list, method))
		return;
	snprintf(list + n, 64 - n, "%s%s%s", n ? ", " : "", method,
		 strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

void routes_find(struct str raw_path, const char *method, struct arena *a, struct route_found *out)
{
	size_t n = routes_count();

	*out = (struct route_found){ 0 };
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	for (size_t i = 0; i < n; i++) {
		const struct web_route *r = routes_at(i);
		struct str id[2] = { 0 };

		if (!is_match(r->path, raw_path, id))
			continue;
		if ((id[0].p && !decode(a, &id[0])) || (id[1].p && !decode(a, &id[1])))
			continue;
		allow(out->allow, r->method);
		if (out->route || strcmp(r->method, method) != 0)
			continue;
		out->route = r;
		out->at = i;
		out->id[0] = id[0];
		out->id[1] = id[1];
	}
}
