/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - see watch.h. */
#include "run/watch.h"

#include <math.h>

#include "base/mem.h"
#include "http/prometheus.h"

struct watch_servers {
	struct remote_target *target;
	struct telemetry_source *source;
	size_t n;
	struct arena arena;
	struct telemetry *telemetry;
};

/* proxy: as requests to that server go; NULL: none. */
static void add_server(struct watch_servers *w, const struct stage *s, const char *base_url,
		       const char *path, const char *proxy)
{
	struct remote remote = s->remote;
	struct remote_target *t = &w->target[w->n];
	struct buf labels = { 0 };
	struct err ignored;

	remote.base_url = base_url;
	remote.proxy = proxy ? proxy : "";
	if (remote_target_init(t, &remote, path, &ignored) < 0) {
		remote_target_release(t);
		return;
	}
	prometheus_add_label(&labels, "url", str_of(base_url));
	w->source[w->n++] = (struct telemetry_source){
		.url = t->url.data, .labels = arena_text(&w->arena, buf_str(&labels)),
		.opts = t->opts,
	};
	buf_release(&labels);
}

/* --metrics-url: one, or several with commas between. */
static void add_told(struct watch_servers *w, const struct stage *s, struct str urls)
{
	while (urls.n) {
		struct str url = str_trim(str_cut(&urls, ','));

		if (url.n)
			add_server(w, s, arena_text(&w->arena, url), "", s->proxy[0]);
	}
}

static size_t count_told(const char *urls)
{
	size_t n = 1;

	for (; urls && *urls; urls++)
		n += *urls == ',';
	return n;
}

struct watch_servers *watch_begin(struct stage *s)
{
	const struct opt_list *urls = &s->opts->base_urls;
	size_t room = urls->n + count_told(s->opts->metrics_url);
	struct watch_servers *w;

	if (!stage_may_ask_server(s) || s->derived->compat & COMPAT_V011)
		return NULL;
	w = mem_alloc(sizeof(*w));
	w->target = mem_array(room, sizeof(*w->target));
	w->source = mem_array(room, sizeof(*w->source));
	if (s->opts->metrics_url)
		add_told(w, s, str_of(s->opts->metrics_url));
	else if (urls->n == 0)
		add_server(w, s, s->derived->base_url, "/metrics", s->proxy[0]);
	for (size_t i = 0; i < urls->n && !s->opts->metrics_url; i++)
		add_server(w, s, urls->v[i], "/metrics", s->proxy[i]);
	w->telemetry = telemetry_begin(w->source, w->n, (int64_t)(s->opts->metrics_interval * 1e9));
	return w;
}

void watch_now(const struct watch_servers *w, struct telemetry_now *out)
{
	*out = (struct telemetry_now){ NAN, NAN, NAN };
	if (w)
		telemetry_now(w->telemetry, out);
}

void watch_end(struct watch_servers *w, struct record *into)
{
	if (!w)
		return;
	telemetry_end(w->telemetry, into);
	for (size_t i = 0; i < w->n; i++)
		remote_target_release(&w->target[i]);
	free(w->target);
	free(w->source);
	arena_release(&w->arena);
	free(w);
}
