/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.c - the meta of a record: what a report needs in addition to the record itself.
 *
 * One JSON object with the members "report", "metrics", "trust" and "options". Programs that write
 * records may add members, which are skipped here. Scalars of a struct are declared once, in a
 * table used for reading and writing.
 */
#include "out/report/report.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "core/json/write.h"

enum scalar_kind { SCALAR_TEXT, SCALAR_BOOL, SCALAR_I64, SCALAR_U64, SCALAR_U32, SCALAR_F64 };
struct scalar { const char *key; enum scalar_kind kind; size_t offset; };

#define ROW(type, member)                                                                 \
	{ #member, _Generic(((type *)0)->member, const char *: SCALAR_TEXT, bool: SCALAR_BOOL, \
			    int64_t: SCALAR_I64, uint64_t: SCALAR_U64, uint32_t: SCALAR_U32,    \
			    double: SCALAR_F64), offsetof(type, member) }
#define F(member) ROW(struct report_facts, member)
#define O(member) ROW(struct metrics_opts, member)
#define T(member) ROW(struct trust_facts, member)

static const struct scalar facts_rows[] = {
	F(backend), F(label), F(model_id), F(tokenizer_id), F(num_prompts), F(request_rate),
	F(burstiness), F(user_rate), F(users), F(max_concurrency), F(gpus), F(gpu_price),
	F(ramp_strategy), F(ramp_start_rps), F(ramp_end_rps),
	F(is_detailed), F(is_detail_strict), F(is_v011), F(has_plot_tip), F(version), F(build),
	F(transport), F(http_version),
	F(dataset), F(chat_template), F(workload_hash), F(request_id_prefix), F(warm_connections),
	F(threads), F(processes), F(clock_error_ms),
	F(segments.events), F(segments.dropped), F(segments.unused),
	F(round_trip_ms),
	F(capture.source), F(capture.packets), F(capture.dropped), F(capture.holes),
	F(capture.cut_packets), F(capture.connections), F(capture.joined), F(capture.tls),
	F(capture.http2), F(capture.lost), F(capture.cut), F(capture.abandoned),
	F(capture.other), F(capture.beyond), F(capture.unread), F(capture.whole),
	F(capture.without_usage), F(capture.counted),
	F(load.aborted), F(load.time_limit_s), F(load.used_up_s), F(load.urls),
	F(load.prompt_salt), F(load.prompt_salt_key), F(load.is_profile_asked), F(load.is_profiled),
	F(load.reuse.order), F(load.reuse.pass), F(load.reuse.copies), F(load.reuse.repeated),
	F(load.reuse.pass_requests), F(load.reuse.ideal),
	F(load.is_replay), F(load.trace_format), F(load.speedup), F(load.ideal_hit_rate),
	F(load.prefix_exact), F(load.adapters),
	F(budget.level.streams), F(budget.level.events_per_s), F(budget.level.requests),
	F(budget.level.events), F(budget.level.threads), F(budget.level.stamps),
	F(budget.level.is_burst), F(budget.level.is_tls), F(budget.rounds), F(budget.at_ns),
	F(budget.is_kept), F(budget.send), F(budget.kernel), F(budget.late),
	F(budget.signs.ttft), F(budget.signs.e2el), F(budget.signs.itl),
	F(budget.ttft.mean), F(budget.ttft.p99), F(budget.ttft.low), F(budget.ttft.high),
	F(budget.itl.mean), F(budget.itl.p99), F(budget.itl.low), F(budget.itl.high),
	F(budget.e2el.mean), F(budget.e2el.p99), F(budget.e2el.low), F(budget.e2el.high),
};
static const struct scalar opts_rows[] = {
	O(is_pooling), O(has_tokenizer), O(is_rate_finite), O(is_user_stamps), O(is_peak_exact),
	O(is_prompt_from_sample),
	O(is_peak_in_tokens), O(is_eos_ignored), O(max_concurrency), O(max_sessions),
	O(n_hosts), O(reports_cached_tokens),
	O(session_limit_ms), O(finds_steady_state), O(steady_threshold), O(steady_min_window_s),
};
static const struct scalar trust_rows[] = {
	T(cpu_share_max), T(reads), T(reads_without_stamp), T(clock_step_ns),
	T(wait_share_max), T(throttled_share), T(connections_most), T(ports), T(descriptors),
	T(no_ports), T(no_descriptors), T(resent), T(out_of_order), T(resolve_ns),
	T(is_kernel_stamped), T(is_interrupted), T(is_aborted), T(is_broken_off),
	T(lost), T(knows_explained), T(cached_explained), T(answers), T(told_by), T(no_tap),
	T(is_capture), T(capture_dropped), T(capture_lost), T(capture_counted), T(capture_prompts),
};
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- scalars ---- */

static void write_scalars(struct json_writer *w, const void *from, const struct scalar *row,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const void *p = (const char *)from + row[i].offset;

		json_key(w, row[i].key);
		switch (row[i].kind) {
		case SCALAR_TEXT: json_put_text(w, *(const char *const *)p); break;
		case SCALAR_BOOL: json_put_bool(w, *(const bool *)p); break;
		case SCALAR_I64: json_put_int(w, *(const int64_t *)p); break;
		case SCALAR_U64: json_put_int(w, (int64_t)*(const uint64_t *)p); break;
		case SCALAR_U32: json_put_int(w, *(const uint32_t *)p); break;
		case SCALAR_F64: json_put_setting(w, *(const double *)p); break;
		}
	}
}

static int64_t bounded(const struct json_value *v, int64_t low, int64_t high)
{
	int64_t n = json_int(v, 0);

	return n < low ? low : n > high ? high : n;
}

/* The text of a member, NUL-terminated in the tree's arena; NULL for null. */
static const char *text_of(const struct json_value *v)
{
	return v && v->kind == JSON_STRING ? v->text.p : NULL;
}

static void read_scalars(const struct json_value *from, void *to, const struct scalar *row,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct json_value *v = json_get(from, row[i].key);
		void *p = (char *)to + row[i].offset;

		switch (row[i].kind) {
		case SCALAR_TEXT: *(const char **)p = text_of(v); break;
		case SCALAR_BOOL: *(bool *)p = json_bool(v, false); break;
		case SCALAR_I64: *(int64_t *)p = json_int(v, 0); break;
		case SCALAR_U64: *(uint64_t *)p = (uint64_t)bounded(v, 0, INT64_MAX); break;
		case SCALAR_U32: *(uint32_t *)p = (uint32_t)bounded(v, 0, UINT32_MAX); break;
		case SCALAR_F64: *(double *)p = json_setting(v, 0); break;
		}
	}
}

/* ---- lists ---- */

static void write_facts(struct json_writer *w, const struct report_facts *f)
{
	json_begin_object(w);
	json_member_text(w, "date", f->date);
	write_scalars(w, f, facts_rows, COUNT(facts_rows));
	json_member_array(w, "metadata");
	for (size_t i = 0; i < f->n_metadata; i++) {
		json_begin_array(w);
		json_put_text(w, f->metadata[i].key);
		json_put_text(w, f->metadata[i].value);
		json_end_array(w);
	}
	json_end_array(w);
	json_member_array(w, "ramp");
	for (size_t i = 0; i < f->n_ramp; i++) {
		json_begin_array(w);
		json_put_int(w, f->ramp[i].rps);
		json_put_text(w, f->ramp[i].timestamp);
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

static void write_opts(struct json_writer *w, const struct metrics_opts *o)
{
	json_begin_object(w);
	write_scalars(w, o, opts_rows, COUNT(opts_rows));
	json_member_array(w, "percentiles");
	for (size_t i = 0; i < o->n_percentiles; i++)
		json_put_f64(w, o->percentile[i]);
	json_end_array(w);
	json_member_array(w, "blocks");
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		if (o->selected & BLOCK_BIT(b))
			json_put_text(w, metric_block_key(b));
	json_end_array(w);
	json_member_array(w, "goodput");
	for (size_t i = 0; i < o->n_goodput; i++) {
		json_begin_array(w);
		json_put_text(w, metric_block_key(o->goodput[i].block));
		json_put_setting(w, o->goodput[i].limit_ms);
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

void report_meta_write(const struct report_meta *m, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_key(&w, "report");
	write_facts(&w, &m->facts);
	json_key(&w, "metrics");
	write_opts(&w, &m->opts);
	json_member_object(&w, "trust");
	write_scalars(&w, &m->trust, trust_rows, COUNT(trust_rows));
	json_end_object(&w);
	json_key(&w, "options");
	if (m->facts.options.n)
		json_put_raw(&w, m->facts.options);
	else
		json_put_null(&w);
	json_end_object(&w);
}

static size_t count_of(const struct json_value *v)
{
	return v && v->kind == JSON_ARRAY ? v->count : 0;
}

static const struct json_value *item_of(const struct json_value *v, size_t i)
{
	return i < count_of(v) ? &v->item[i] : NULL;
}

static void read_facts(struct report_facts *f, const struct json_value *v, struct arena *a)
{
	const struct json_value *pairs = json_get(v, "metadata"), *ramp = json_get(v, "ramp");
	const char *date = text_of(json_get(v, "date"));

	read_scalars(v, f, facts_rows, COUNT(facts_rows));
	snprintf(f->date, sizeof(f->date), "%s", date ? date : "");
	if (!f->backend)
		f->backend = "unknown";
	f->metadata = arena_alloc(a, count_of(pairs) * sizeof(*f->metadata));
	for (size_t i = 0; i < count_of(pairs); i++) {
		const char *key = text_of(item_of(item_of(pairs, i), 0));

		if (key)
			f->metadata[f->n_metadata++] = (struct report_pair){
				key, text_of(item_of(item_of(pairs, i), 1)) };
	}
	f->ramp = arena_alloc(a, count_of(ramp) * sizeof(*f->ramp));
	for (size_t i = 0; i < count_of(ramp); i++)
		f->ramp[f->n_ramp++] = (struct report_ramp){
			json_int(item_of(item_of(ramp, i), 0), 0),
			text_of(item_of(item_of(ramp, i), 1)) };
}

static int read_opts(struct metrics_opts *o, const struct json_value *v, struct arena *a,
		     struct err *e)
{
	const struct json_value *list = json_get(v, "percentiles");
	double *percentile = arena_alloc(a, count_of(list) * sizeof(*percentile));

	read_scalars(v, o, opts_rows, COUNT(opts_rows));
	if (o->max_concurrency < 0)
		o->max_concurrency = 0;
	for (size_t i = 0; i < count_of(list); i++) {
		percentile[i] = json_real(&list->item[i], NAN);
		if (!(percentile[i] >= 0 && percentile[i] <= 100))
			return err_set(e, ERR_PARSE, "the record's meta has a percentile outside 0..100");
	}
	o->percentile = percentile;
	o->n_percentiles = count_of(list);
	list = json_get(v, "blocks");
	for (size_t i = 0; i < count_of(list); i++)
		o->selected |= BLOCK_BIT(metric_block_find(json_text(&list->item[i], STR(""))));
	list = json_get(v, "goodput");
	for (size_t i = 0; i < count_of(list) && i < METRICS_GOODPUT_MAX; i++)
		if (!metrics_opts_add_goodput(o, json_text(item_of(&list->item[i], 0), STR("")),
					      json_setting(item_of(&list->item[i], 1), 0)))
			return err_set(e, ERR_PARSE, "the record's meta has an unknown goodput name");
	return 0;
}

int report_meta_read(struct report_meta *m, struct str json, struct arena *a, struct err *e)
{
	const struct json_value *options;
	struct json_value *v;
	struct buf text = { 0 };

	*m = (struct report_meta){ 0 };
	if (json_parse(a, json, &v, e) < 0)
		return err_wrap(e, "the record's meta");
	if (v->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "the record's meta is not a JSON object");
	read_facts(&m->facts, json_get(v, "report"), a);
	if (read_opts(&m->opts, json_get(v, "metrics"), a, e) < 0)
		return -1;
	read_scalars(json_get(v, "trust"), &m->trust, trust_rows, COUNT(trust_rows));
	options = json_get(v, "options");
	if (options && options->kind == JSON_OBJECT) {
		struct json_writer w = json_writer(&text);

		json_put_value(&w, options);
		m->facts.options = arena_take(a, &text);
	}
	return 0;
}
