/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_questions.c - questions of any kind to 100,000 runs: filters, facets, pages, statistics and
 * every analysis, valid and half-valid, over texts of which every run has its own.
 *
 * An input is read as choices from which a question is made, so that each is one about columns
 * and values that there are; some are then cut or changed at a place. Each is refused in a
 * sentence, or answered in valid JSON. Everything of a question is freed, and its texts are
 * overwritten, before the next one; some are asked again later and must be answered as before:
 * what an answer, or the cache, keeps of a question that is gone is found by that or by the
 * sanitizer.
 *
 *   make build/fuzz/questions && SECONDS_EACH=1800 tools/fuzz.sh questions
 */
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "core/base/mem.h"
#include "results/analyse/analyse.h"
#include "results/index/index_internal.h"

#define RUNS 100000
#define BATCH 500
#define KEPT 32       /* questions that are asked again */
#define DEPTH_MAX 3
#define TEXT_BYTES 48
#define INPUT_BYTES 400 /* enough for all choices of a question */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ---- the runs ---- */

enum kind { NAME, FEW, WHOLE, MEASURED, MIXED, TIME };
static const struct { const char *name; enum kind kind; unsigned n; } column[] = {
	{ "run_id", NAME, 0 }, { "tags.note", NAME, 0 }, { "name", NAME, 0 },
	{ "server.model", FEW, 40 }, { "hardware.gpu", FEW, 3 }, { "suite", FEW, 300 },
	{ "provenance.engine_commit", FEW, 60 }, { "status", FEW, 2 },
	{ "server.tensor_parallel_size", WHOLE, 4 }, { "benchmark.request_rate", WHOLE, 9 },
	{ "hardware.gpu_count", WHOLE, 8 }, { "failed", WHOLE, 3 }, { "completed", WHOLE, 100 },
	{ "request_throughput", MEASURED, 0 }, { "output_throughput", MEASURED, 0 },
	{ "median_ttft_ms", MEASURED, 0 }, { "p99_ttft_ms", MEASURED, 0 },
	{ "median_tpot_ms", MEASURED, 0 }, { "tags.mixed", MIXED, 50 }, { "timestamp", TIME, 0 },
};
#define COLUMNS (sizeof(column) / sizeof(*column))

static uint64_t mix(uint64_t n)
{
	n = (n ^ n >> 31) * 0x7fb5d329728ea185u;
	n = (n ^ n >> 27) * 0x81dadef4bc2dd44du;
	return n ^ n >> 33;
}

/* The value of a run in a column; out has room for TEXT_BYTES. */
static struct value value_of(size_t c, size_t run, char *out)
{
	uint64_t bits = mix(run * COLUMNS + c);
	unsigned n = column[c].n ? column[c].n : 1;
	struct value v = { .kind = VALUE_NUMBER };

	switch (column[c].kind) {
	case WHOLE:
		v.number = bits % 97 == 0 ? HUGE_VAL : (double)(1u << bits % n % 16);
		return v;
	case MEASURED:
		v.number = bits % 211 == 0 ? 0 : exp((double)(bits % 100000) / 10000);
		return bits % 53 ? v : (struct value){ .kind = VALUE_NULL };
	case TIME:
		v.number = 1.7e9 + (double)run * 60;
		return v;
	case MIXED:
		v.number = (double)(bits % n);
		if (bits % 3 == 0)
			return v;
		if (bits % 3 == 1)
			return (struct value){ .kind = VALUE_BOOL, .is_true = bits % 2 };
		break;
	case NAME:
		snprintf(out, TEXT_BYTES, "%s-%016llx", column[c].name, (unsigned long long)bits);
		break;
	case FEW:
		break;
	}
	if (column[c].kind != NAME)
		snprintf(out, TEXT_BYTES, "%s %u", column[c].name, (unsigned)(bits % n));
	return (struct value){ .kind = VALUE_TEXT, .text = str_of(out) };
}

static struct index *runs(void)
{
	static struct index *x;
	static char text[BATCH][COLUMNS][TEXT_BYTES];
	static struct cell cell[BATCH][COLUMNS];
	struct row row[BATCH];
	unsigned flags[BATCH];

	if (x)
		return x;
	x = index_make();
	for (size_t at = 0; at < RUNS; at += BATCH) {
		for (size_t i = 0; i < BATCH; i++) {
			for (size_t c = 0; c < COLUMNS; c++)
				cell[i][c] = (struct cell){ str_of(column[c].name),
							    value_of(c, at + i,
								     text[i][c]) };
			row[i] = (struct row){ (int64_t)(at + i) + 1, cell[i],
					       COLUMNS - (at + i) % 2 };
			flags[i] = (at + i) % 1000 == 999 ? INDEX_REMOVED :
				   (at + i) % 1000 == 998 ? INDEX_ARCHIVED : 0;
		}
		CHECK(index_add_flagged(x, row, flags, BATCH, NULL) == 0);
	}
	return x;
}

/* Here, so that no input is charged for it. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	runs();
	return 0;
}

/* ---- a question ---- */

/* What is left of an input; without any all choices are 0. */
struct choices { const uint8_t *p; size_t n; };

static unsigned choose(struct choices *c, unsigned n)
{
	unsigned v = 0;

	for (unsigned most = 1; most < n && c->n; most *= 256, c->p++, c->n--)
		v = v << 8 | *c->p;
	return v % n;
}

static size_t put_column(struct choices *c, struct buf *out)
{
	unsigned which = choose(c, COLUMNS + 1);

	buf_printf(out, "\"%s\"", which < COLUMNS ? column[which].name : "nowhere");
	return which;
}

static void put_columns(struct choices *c, struct buf *out, const char *name, unsigned most)
{
	unsigned n = choose(c, most + 1);

	buf_printf(out, "\"%s\":[", name);
	for (unsigned i = 0; i < n; i++) {
		buf_add_text(out, i ? "," : "");
		put_column(c, out);
	}
	buf_add_char(out, ']');
}

/* A value of that column, mostly. */
static void put_value(struct choices *c, size_t of, struct buf *out)
{
	size_t which = of < COLUMNS && choose(c, 5) ? of : choose(c, COLUMNS);
	char text[TEXT_BYTES];
	struct value v = value_of(which, choose(c, RUNS), text);

	if (v.kind == VALUE_TEXT)
		buf_printf(out, "\"%s\"", text);
	else if (v.kind == VALUE_NUMBER && isfinite(v.number))
		buf_printf(out, "%.17g", v.number);
	else
		buf_add_text(out, v.kind == VALUE_NUMBER ? "\"inf\"" : v.kind == VALUE_BOOL ? "true" : "null");
}

static void put_filter(struct choices *c, struct buf *out, unsigned depth)
{
	static const char *const words[] = { "and", "or" };
	unsigned kind = choose(c, depth ? 8 : 5), n = 1 + choose(c, 3);
	size_t of;

	if (kind >= 7) {
		buf_add_text(out, "{\"not\":");
		put_filter(c, out, depth - 1);
		buf_add_char(out, '}');
		return;
	}
	if (kind >= 5) {
		buf_printf(out, "{\"%s\":[", words[kind - 5]);
		for (unsigned i = 0; i < n - 1; i++) {
			buf_add_text(out, i ? "," : "");
			put_filter(c, out, depth - 1);
		}
		buf_add_text(out, "]}");
		return;
	}
	buf_add_text(out, "{\"column\":");
	of = put_column(c, out);
	if (kind == 4) {
		buf_printf(out, ",\"missing\":%s}", n % 2 ? "true" : "false");
	} else if (kind == 3) {
		buf_printf(out, ",\"text\":\"%x\"}", choose(c, 4096));
	} else if (kind == 2) {
		buf_add_text(out, ",\"range\":{\"min\":");
		put_value(c, of, out);
		buf_add_text(out, ",\"max\":");
		put_value(c, of, out);
		buf_add_text(out, "}}");
	} else {
		buf_add_text(out, ",\"in\":[");
		for (unsigned i = 0; i < n * 3; i++) {
			buf_add_text(out, i ? "," : "");
			put_value(c, of, out);
		}
		buf_add_text(out, "]}");
	}
}

static void put_side(struct choices *c, struct buf *out)
{
	if (choose(c, 2)) {
		buf_add_text(out, "{\"filter\":");
		put_filter(c, out, 1);
	} else {
		buf_printf(out, "{\"ids\":[%u,%u,", choose(c, RUNS + 10), 1 + choose(c, 200));
		put_value(c, 0, out);
		buf_add_char(out, ']');
	}
	buf_add_char(out, '}');
}

/* Members that some analysis knows; each looks at its own. */
static void put_members(struct choices *c, bool is_compare, struct buf *out)
{
	static const char *const named[] = { "metric", "x", "y" };
	static const char *const lists[] = { "metrics", "series", "color", "group", "columns",
					     "parameters", "configuration" };

	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
		buf_printf(out, ",\"%s\":", named[i]);
		put_column(c, out);
	}
	buf_add_text(out, ",\"by\":");
	if (is_compare)
		buf_add_text(out, choose(c, 2) ? "\"run\"" : "\"suite\"");
	else
		put_column(c, out);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (choose(c, 2))
			continue;
		buf_add_char(out, ',');
		put_columns(c, out, lists[i], 5);
	}
	buf_add_text(out, ",\"groups\":[");
	for (unsigned i = 0, n = 1 + choose(c, 3); i < n; i++) {
		buf_add_text(out, i ? "," : "");
		put_side(c, out);
	}
	buf_add_text(out, "],\"slo\":[{\"column\":");
	put_column(c, out);
	buf_printf(out, ",\"max\":%u}],\"rate\":%u,\"baseline\":", choose(c, 1000), choose(c, 200));
	if (is_compare)
		buf_printf(out, "%u", choose(c, 2));
	else
		buf_printf(out, "{\"last\":%u}", choose(c, 30));
	if (choose(c, 2))
		buf_printf(out, ",\"axis\":\"%s\"", choose(c, 2) ? "time" : "commit");
	if (choose(c, 2))
		buf_printf(out, ",\"limit\":%d,\"window\":%u", (int)choose(c, 300) - 3, choose(c, 100));
}

/* Cut, or another byte at a place. */
static void spoil(struct choices *c, struct buf *out)
{
	static const char other[] = "{}[]\":,0e-\\x nu";
	unsigned at;

	if (!out->len || choose(c, 3))
		return;
	at = choose(c, (unsigned)out->len);
	if (choose(c, 4))
		out->data[at] = other[choose(c, sizeof(other) - 1)];
	else
		out->len = at;
}

/* ---- answers ---- */

static analyse_fn *const analyses[] = {
	analyse_compare, analyse_trends, analyse_regression, analyse_impact, analyse_scaling,
	analyse_capacity, analyse_resources, analyse_pareto, analyse_distribution, analyse_parallel,
};
#define ANALYSES (sizeof(analyses) / sizeof(*analyses))

static void put_cell(struct json_writer *w, struct value v)
{
	if (v.kind == VALUE_TEXT)
		json_put_str(w, v.text);
	else if (v.kind == VALUE_NUMBER)
		json_put_f64(w, isfinite(v.number) ? v.number : 0);
	else
		json_put_int(w, v.kind == VALUE_BOOL ? v.is_true : -(int)v.kind);
}

static void put_facet(struct json_writer *w, const struct facet *f)
{
	size_t rows = f->missing + f->others;

	json_put_str(w, f->column);
	json_put_int(w, (int64_t)f->distinct);
	for (size_t i = 0; i < f->n; i++) {
		put_cell(w, f->value[i].value);
		json_put_int(w, (int64_t)f->value[i].count);
		rows += f->value[i].count;
		if (f->value[i].value.kind == VALUE_NUMBER && isfinite(f->value[i].value.number) &&
		    f->value[i].count)
			CHECK(f->min <= f->value[i].value.number &&
			      f->value[i].value.number <= f->max);
	}
	json_put_int(w, (int64_t)rows);
	CHECK(rows <= RUNS);
}

static struct str *names_of(const struct json_value *v, const char *key, struct arena *a, size_t *n)
{
	const struct json_value *list = json_get(v, key);
	struct str *name;

	*n = list && list->kind == JSON_ARRAY ? list->count : 0;
	name = arena_alloc(a, (*n + 1) * sizeof(*name));
	for (size_t i = 0; i < *n; i++)
		name[i] = json_text(&list->item[i], STR("?"));
	return name;
}

/* The index's own question: {"filter", "facets", "columns", "statistics", "sort", "limit"}. */
static int query(const struct index_view *v, const struct json_value *body, struct arena *a,
		 struct json_writer *w, struct err *e)
{
	struct query q = { .facet_values_max = 20, .histogram_bins = 10 };
	const struct json_value *sort = json_get(body, "sort");
	struct filter *f;
	struct answer got;

	if (filter_read(json_get(body, "filter"), "/filter", a, &f, e) < 0)
		return -1;
	q.filter = f;
	q.facet = names_of(body, "facets", a, &q.n_facets);
	q.column = names_of(body, "columns", a, &q.n_columns);
	q.statistic = names_of(body, "statistics", a, &q.n_statistics);
	q.limit = (size_t)json_int(json_get(body, "limit"), 10) % 2000;
	q.shown = q.limit % 2 ? INDEX_ARCHIVED | INDEX_REMOVED : 0;
	if (sort && sort->kind == JSON_STRING)
		q.sort[q.n_sorts++] = (struct query_sort){ sort->text, q.limit % 3 == 0 };
	if (index_query(v, &q, a, &got, e) < 0)
		return -1;
	CHECK(got.total <= RUNS - RUNS / 1000);
	json_key(w, "answer");
	json_begin_array(w);
	json_put_int(w, (int64_t)got.total);
	for (size_t i = 0; i < got.n_rows; i++) {
		CHECK(!(got.row[i].flags & INDEX_REMOVED));
		json_put_int(w, got.row[i].id);
		for (size_t k = 0; k < q.n_columns; k++)
			put_cell(w, got.row[i].value[k]);
	}
	for (size_t i = 0; i < got.n_facets; i++)
		put_facet(w, &got.facet[i]);
	for (size_t i = 0; i < got.n_statistics; i++) {
		json_put_str(w, got.statistic[i].column);
		json_put_int(w, (int64_t)got.statistic[i].count);
		json_put_f64(w, got.statistic[i].count ? got.statistic[i].mean : 0);
	}
	json_end_array(w);
	return 0;
}

/* Everything that it needs is made for it and gone with it, and overwritten before it is gone. */
static void ask(unsigned which, struct str question, struct buf *out)
{
	char *text = mem_copy(question.p, question.n);
	struct json_writer w = json_writer(out);
	struct json_value *body, *again;
	struct arena a = { 0 };
	struct err e = { 0 };
	struct index_view *v = index_view(runs());
	int rc = -1;

	if (json_parse(&a, (struct str){ text, question.n }, &body, &e) == 0 &&
	    body->kind == JSON_OBJECT) {
		struct analyse_request r = { v, body, &a, NULL };

		json_begin_object(&w);
		rc = which < ANALYSES ? analyses[which](&r, &w, &e) : query(v, body, &a, &w, &e);
		CHECK(rc == 0 || (e.code != ERR_NONE && e.text[0]));
	}
	if (rc == 0) {
		json_end_object(&w);
		CHECK(json_parse(&a, buf_str(out), &again, NULL) == 0);
	} else {
		buf_reset(out);
		buf_add_text(out, e.text);
	}
	index_view_release(v);
	memset(text, '#', question.n);
	arena_release(&a);
	free(text);
}

/* ---- inputs ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

/* Every second one is a new question, whatever was learnt from those before. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	if (size && seed % 2)
		return LLVMFuzzerMutate(data, size, size_max);
	size = size_max < INPUT_BYTES ? size_max : INPUT_BYTES;
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(mix(seed * 65537ull + i) >> 20);
	return size;
}

/* ---- again ---- */

static struct kept { unsigned which; struct buf question, answer; } kept[KEPT];
static unsigned n_asked;

static void ask_again(unsigned i)
{
	struct buf out = { 0 };

	if (kept[i].question.len) {
		ask(kept[i].which, buf_str(&kept[i].question), &out);
		CHECK(str_eq(buf_str(&out), buf_str(&kept[i].answer)));
	}
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct choices c = { data, size };
	struct buf question = { 0 }, out = { 0 };
	unsigned which = choose(&c, 2 * ANALYSES);
	struct kept *k = &kept[n_asked++ % KEPT];

	buf_add_text(&question, "{\"filter\":");
	put_filter(&c, &question, DEPTH_MAX);
	if (which >= ANALYSES) {
		buf_add_char(&question, ',');
		put_columns(&c, &question, "facets", 4);
		buf_add_char(&question, ',');
		put_columns(&c, &question, "columns", 3);
		buf_add_char(&question, ',');
		put_columns(&c, &question, "statistics", 2);
		buf_printf(&question, ",\"limit\":%u,\"sort\":", choose(&c, 1500));
		put_column(&c, &question);
	} else {
		put_members(&c, which == 0, &question);
	}
	buf_add_char(&question, '}');
	spoil(&c, &question);
	ask(which, buf_str(&question), &out);
	buf_release(&k->question);
	buf_release(&k->answer);
	*k = (struct kept){ which, question, out };
	ask_again(choose(&c, KEPT));
	return 0;
}
