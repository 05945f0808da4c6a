/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - see read.h.
 *
 * A file is cut into runs without building anything (slices); each run is then a tree in memory of
 * its own that is freed before the next one, so that a file of 64 MiB costs its cells and not its
 * trees.
 */
#include "results/store/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "results/index/names.h"
#include "results/read/kind.h"
#include "results/read/read.h"
#include "results/store/kinds.h"
#include "results/store/known.h"

#define INGEST_MEMBERS_MAX 20000  /* keys of one run; the largest documents have 1,200 */
#define INGEST_VALUES_MAX 1000000 /* elements of its lists, arrays per request not counted */
#define CUT_DEPTH_MAX 4

/* Arrays with an element per request, or per iteration. */
static const char *const array_name[] = {
	"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times",
	"generated_texts", "errors", "warmup_latencies",
};
/* Objects that may hold such arrays. */
static const char *const holder[] = {
	"results", "profllm", "throughput", "latency", "startup", "metric", "extra_info",
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/*
 * A run's JSON, split. The hash does not depend on the order of keys, on white space or on
 * escaping: it is the SHA-256 of the document with sorted keys and no white space, followed by a
 * line "name: hash" for each array (its JSON without white space). Numbers count as spelled.
 */
struct run_parts {
	struct str document;      /* JSON, in the arena, or the slice itself when nothing was cut */
	struct str arrays;        /* {"ttfts":[...],...}; empty: none */
	struct json_value *tree;  /* of document */
	char hash[DIGEST_HEX];
};

struct cut {
	struct buf rest;      /* the document without arrays */
	struct buf arrays;    /* an object without its closing brace */
	struct array { struct str name, raw; } array[COUNT(array_name) + 1];
	size_t n;
};

/* ---- cutting ---- */

static bool is_one_of(struct str key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(key, list[i]))
			return true;
	return false;
}

static bool is_array(struct str key, struct json_slice v)
{
	if (str_is(key, "requests")) /* columns per request of a detailed result */
		return v.kind == JSON_OBJECT;
	return v.kind == JSON_ARRAY && is_one_of(key, array_name, COUNT(array_name));
}

/* Keeps the first member of a name and drops duplicates. */
static void take(struct cut *c, struct str key, struct json_slice v)
{
	for (size_t i = 0; i < c->n; i++)
		if (str_eq(c->array[i].name, key))
			return;
	c->array[c->n++] = (struct array){ key, v.raw };
	buf_printf(&c->arrays, "%s\"%.*s\": ", c->arrays.len ? ", " : "{", (int)key.n, key.p);
	buf_add_str(&c->arrays, v.raw);
}

static void add_raw(struct buf *out, struct json_slice v)
{
	if (v.kind == JSON_STRING)
		buf_add_char(out, '"');
	buf_add_str(out, v.raw);
	if (v.kind == JSON_STRING)
		buf_add_char(out, '"');
}

static void cut_object(struct cut *c, struct json_slice object, unsigned depth)
{
	struct json_iter it = json_iter(object);
	struct json_slice v;
	struct str key;
	bool is_first = true;

	buf_add_char(&c->rest, '{');
	while (json_each(&it, &key, &v) > 0) {
		if (is_array(key, v)) {
			take(c, key, v);
			continue;
		}
		buf_add_text(&c->rest, is_first ? "\"" : ", \"");
		buf_add_str(&c->rest, key);
		buf_add_text(&c->rest, "\": ");
		is_first = false;
		if (v.kind == JSON_OBJECT && depth < CUT_DEPTH_MAX &&
		    is_one_of(key, holder, COUNT(holder)))
			cut_object(c, v, depth + 1);
		else
			add_raw(&c->rest, v);
	}
	buf_add_char(&c->rest, '}');
}

/* ---- limits ---- */

/* Members and elements are counted before anything is built from them. "":0, is the least. */
static int count(struct str text, struct err *e)
{
	size_t members = 0, values = 0;
	bool is_inside = false;

	if (text.n < 5 * INGEST_MEMBERS_MAX && text.n < 2 * INGEST_VALUES_MAX)
		return 0;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (is_inside && c == '\\') {
			i++;
		} else if (c == '"') {
			is_inside = !is_inside;
		} else if (!is_inside) {
			members += c == ':';
			values += c == ',';
		}
	}
	if (members > INGEST_MEMBERS_MAX)
		return err_set(e, ERR_LIMIT, "one run has %zu keys; at most %d are accepted "
			       "(INGEST_MEMBERS_MAX)", members, INGEST_MEMBERS_MAX);
	if (values > INGEST_VALUES_MAX)
		return err_set(e, ERR_LIMIT, "one run has more than %d values besides known arrays "
			       "per request (INGEST_VALUES_MAX)", INGEST_VALUES_MAX);
	return 0;
}

/* ---- the hash ---- */

/* head: the key's first eight bytes as a number, which settles most comparisons. */
struct order { uint64_t head; struct str key; const struct json_value *value; };

static struct order order_of(struct str key, const struct json_value *value)
{
	struct order o = { 0, key, value };

	for (size_t i = 0; i < 8; i++)
		o.head = o.head << 8 | (i < key.n ? (unsigned char)key.p[i] : 0);
	return o;
}

static int by_key(const void *a, const void *b)
{
	const struct order *o = a, *p = b;
	struct str x = o->key, y = p->key;
	size_t n = x.n < y.n ? x.n : y.n;
	int d;

	if (o->head != p->head)
		return o->head < p->head ? -1 : 1;
	d = n ? memcmp(x.p, y.p, n) : 0;
	return d ? d : (x.n > y.n) - (x.n < y.n);
}

static void canonical(struct buf *out, const struct json_value *v, struct arena *a);

static void canonical_object(struct buf *out, const struct json_value *v, struct arena *a)
{
	struct order *order = arena_alloc(a, (v->count + 1) * sizeof(*order));

	for (size_t i = 0; i < v->count; i++)
		order[i] = order_of(v->key[i], &v->item[i]);
	qsort(order, v->count, sizeof(*order), by_key);
	buf_add_char(out, '{');
	for (size_t i = 0; i < v->count; i++) {
		if (i)
			buf_add_char(out, ',');
		json_quote(out, order[i].key, true);
		buf_add_char(out, ':');
		canonical(out, order[i].value, a);
	}
	buf_add_char(out, '}');
}

/* Recursion is bounded by JSON_DEPTH_MAX. */
static void canonical(struct buf *out, const struct json_value *v, struct arena *a)
{
	static const char *const word[] = { "null", "false", "true" };

	switch (v->kind) {
	case JSON_OBJECT:
		canonical_object(out, v, a);
		break;
	case JSON_ARRAY:
		buf_add_char(out, '[');
		for (size_t i = 0; i < v->count; i++) {
			if (i)
				buf_add_char(out, ',');
			canonical(out, &v->item[i], a);
		}
		buf_add_char(out, ']');
		break;
	case JSON_STRING:
		json_quote(out, v->text, true);
		break;
	case JSON_INT:
	case JSON_REAL:
		buf_add_str(out, v->raw);
		break;
	default:
		buf_add_text(out, word[v->kind - JSON_NULL]);
	}
}

static void squeeze(struct buf *out, struct str raw)
{
	bool is_inside = false;

	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];

		if (is_inside && c == '\\' && i + 1 < raw.n) {
			buf_add_char(out, c);
			c = raw.p[++i];
		} else if (c == '"') {
			is_inside = !is_inside;
		} else if (!is_inside && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
			continue;
		}
		buf_add_char(out, c);
	}
}

static int by_name(const void *a, const void *b)
{
	struct order x = order_of(((const struct array *)a)->name, NULL);
	struct order y = order_of(((const struct array *)b)->name, NULL);

	return by_key(&x, &y);
}

static void hash(struct cut *c, const struct json_value *tree, struct arena *scratch,
		 char out[DIGEST_HEX])
{
	struct buf text = { 0 }, one = { 0 };
	char hex[DIGEST_HEX];

	canonical(&text, tree, scratch);
	qsort(c->array, c->n, sizeof(*c->array), by_name);
	for (size_t i = 0; i < c->n; i++) {
		buf_reset(&one);
		squeeze(&one, c->array[i].raw);
		buf_printf(&text, "\n%.*s: %s", (int)c->array[i].name.n, c->array[i].name.p,
			   digest_hex(DIGEST_SHA256, buf_str(&one), hex));
	}
	digest_hex(DIGEST_SHA256, buf_str(&text), out);
	buf_release(&text);
	buf_release(&one);
}

/* keep: texts that stay; scratch: the tree, gone when the caller likes. */
static int parts_read(struct json_slice run, struct arena *keep, struct arena *scratch,
		      struct run_parts *out, struct err *e)
{
	struct cut c = { 0 };
	int rc;

	*out = (struct run_parts){ .document = run.raw };
	if (run.kind == JSON_OBJECT)
		cut_object(&c, run, 0);
	if (c.n) {
		out->document = arena_str(keep, buf_str(&c.rest));
		buf_add_char(&c.arrays, '}');
		out->arrays = arena_str(keep, buf_str(&c.arrays));
	}
	rc = count(out->document, e) < 0 || json_parse(scratch, out->document, &out->tree, e) < 0 ?
		-1 : 0;
	if (rc == 0)
		hash(&c, out->tree, scratch, out->hash);
	buf_release(&c.rest);
	buf_release(&c.arrays);
	return rc;
}

#define NOTES_MAX 32
#define ID_DIGITS 16
#define SHOWN_BYTES 60       /* of an invalid text, in its message */
#define WHOLE_MAX 1e15       /* whole numbers below are spelled without a point */
#define LEFT_OUT_BYTES 2000  /* later ones are only counted */

struct noted { struct str text; size_t runs; };

struct run_reader {
	struct str name;
	struct arena *arena;
	struct arena scratch;     /* of the run being read */
	struct cells cells;
	struct buf notes;         /* of that run */
	struct noted note[NOTES_MAX];
	size_t n_notes;
	struct read_run *run;
	size_t n, cap;
};

/* ---- notes ---- */

static void gather_notes(struct run_reader *x)
{
	struct str rest = buf_str(&x->notes);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		size_t i = 0;

		while (i < x->n_notes && !str_eq(x->note[i].text, line))
			i++;
		if (i == NOTES_MAX)
			continue;
		if (i == x->n_notes)
			x->note[x->n_notes++] = (struct noted){ .text = arena_str(x->arena, line) };
		x->note[i].runs++;
	}
	buf_reset(&x->notes);
}

static void hand_notes_out(struct run_reader *x, struct read_file *out)
{
	out->note = arena_alloc(x->arena, (x->n_notes + 1) * sizeof(*out->note));
	for (size_t i = 0; i < x->n_notes; i++)
		out->note[out->n_notes++] = x->note[i].runs < 2 ? x->note[i].text :
			str_of(arena_printf(x->arena, "%.*s (%zu runs)", (int)x->note[i].text.n,
					    x->note[i].text.p, x->note[i].runs));
	if (x->cells.bad_names)
		out->note[out->n_notes++] = str_of(arena_printf(x->arena, "Values left out of the "
			"columns: %zu. Their names are empty, longer than %d bytes, hold control "
			"characters, or are too many.", x->cells.bad_names, COLUMN_BYTES_MAX));
}

/* ---- what the kind does not say ---- */

/* The folder of a sweep, of a path such as sweeps/NAME/SERVE--a=1/summary.json; empty: none. */
static struct str sweep_name(struct str path)
{
	struct str before = { 0 };

	while (path.n) {
		struct str part = str_cut(&path, '/');

		if (str_starts(part, STR("SERVE-")) || str_starts(part, STR("BENCH-")))
			return before;
		if (!path.n && str_is(part, "summary.json"))
			return before;
		before = part;
	}
	return (struct str){ 0 };
}

/* Results have no status; it follows from their counts. */
static const char *status_of(const struct json_value *v)
{
	const struct json_value *ours = json_get(v, "profllm");
	const struct json_value *failed = json_get(v, "failed"), *done = json_get(v, "completed");

	if (json_bool(json_get(ours, "interrupted"), false))
		return "partial";
	if (json_real(done, 1) <= 0)
		return "failed";
	return json_real(failed ? failed : json_get(ours, "failed"), 0) > 0 ? "partial" : "completed";
}

/*
 * If no request completed there are no latencies: vLLM writes 0, which becomes null. Its rates of 0
 * are correct.
 */
static void drop_unmeasured(struct cells *c)
{
	bool is_empty = false;

	for (size_t i = 0; i < c->n; i++)
		if (str_is(c->cell[i].column, "completed"))
			is_empty = c->cell[i].value.kind == VALUE_NUMBER &&
				   c->cell[i].value.number <= 0;
	for (size_t i = 0; is_empty && i < c->n; i++) {
		struct value *v = &c->cell[i].value;

		if (v->kind == VALUE_NUMBER && !(fabs(v->number) > 0) &&
		    column_name(c->cell[i].column).is_metric &&
		    str_ends(c->cell[i].column, STR("_ms")))
			*v = (struct value){ .kind = VALUE_NULL };
	}
}

static void put_common(struct run_reader *x, enum result_kind kind, const struct reading *r,
		       const struct json_value *v, const struct read_run *run)
{
	struct cells *c = &x->cells;
	struct str sweep = sweep_name(x->name);

	cells_put_text(c, "run_id", run->run_id);
	cells_put_text(c, "source", str_of(result_kind_name(kind)));
	if (!isnan(r->timestamp_s))
		cells_put_number(c, "timestamp", r->timestamp_s);
	if (r->timestamp_s > (double)clock_real_ns() / 1e9 + READ_FUTURE_S)
		buf_add_text(r->notes, "The run has a time in the future and counts as the newest until then: "
				       "the clock of the machine that measured it may be wrong.\n");
	if (kind == RESULT_DOCUMENT)
		return;
	if (sweep.n)
		cells_put_text(c, "suite", sweep);
	cells_put_text(c, "status", str_of(status_of(v)));
}

/* ---- values that cannot be ---- */

static struct str cut(struct str s)
{
	size_t n = s.n < SHOWN_BYTES ? s.n : SHOWN_BYTES;

	while (n < s.n && n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	return (struct str){ s.p, n };
}

static void spell(struct buf *out, struct value v)
{
	char number[FMT_F64_BYTES];

	if (v.kind == VALUE_BOOL)
		buf_add_text(out, v.is_true ? "true" : "false");
	else if (v.kind == VALUE_TEXT)
		json_quote(out, cut(v.text), true);
	else if (isnan(v.number))
		buf_add_text(out, "NaN");
	else if (v.number == floor(v.number) && fabs(v.number) < WHOLE_MAX)
		buf_printf(out, "%.0f", v.number);
	else
		buf_add_text(out, fmt_f64(number, v.number));
}

static void add_expected(struct buf *out, const struct known_column *c)
{
	static const char *const kind[] = {
		[KNOWN_BOOL] = "true or false", [KNOWN_NUMBER] = "a number",
		[KNOWN_NUMBER | KNOWN_TEXT] = "a number or a text",
	};

	buf_printf(out, " (expected %s", kind[c->kinds]);
	if (c->min > -INFINITY)
		buf_printf(out, c->max < INFINITY ? " from %g" : " of at least %g", c->min);
	if (c->max < INFINITY)
		buf_printf(out, c->min > -INFINITY ? " to %g" : " of at most %g", c->max);
	buf_add_char(out, ')');
}

/* Converts to the column's kind: a text column accepts any value, a setting's text is parsed. */
static struct value as_kind(const struct known_column *c, struct cell *cell, struct arena *a)
{
	struct value v = cell->value;
	struct buf text = { 0 };

	if (v.kind == VALUE_NUMBER && isnan(v.number) && !(c->kinds & KNOWN_NUMBER))
		return (struct value){ .kind = VALUE_NULL };
	if (known_kind_of(v) & c->kinds || v.kind <= VALUE_NULL)
		return v;
	if (v.kind == VALUE_TEXT)
		return known_is_setting(cell->column) ? value_of_word(v.text) : v;
	if (!(c->kinds & KNOWN_TEXT))
		return v;
	spell(&text, v);
	v = (struct value){ .kind = VALUE_TEXT, .text = arena_str(a, buf_str(&text)) };
	buf_release(&text);
	return v;
}

static bool can_be(const struct known_column *c, struct value v)
{
	if (v.kind == VALUE_NULL)
		return true;
	if (!(known_kind_of(v) & c->kinds))
		return false;
	return v.kind != VALUE_NUMBER || (v.number >= c->min && v.number <= c->max);
}

/* "p50_x" next to "median_x" is a duplicate. */
static bool is_reported(struct str told, struct str name)
{
	char other[COLUMN_BYTES_MAX + 16];
	int n;

	if (!told.n || !str_starts(name, STR("p50_")))
		return false;
	n = snprintf(other, sizeof(other), "median_%.*s:", (int)(name.n - 4), name.p + 4);
	return memmem(told.p, told.n, other, (size_t)n) != NULL;
}

static void tell(struct run_reader *x, struct buf *told, const struct cell *cell,
		 const struct known_column *known)
{
	struct buf one = { 0 };

	buf_printf(&one, "%.*s: ", (int)cell->column.n, cell->column.p);
	spell(&one, cell->value);
	add_expected(&one, known);
	if (told->len)
		buf_add_text(told, "; ");
	buf_add_str(told, buf_str(&one));
	buf_printf(&x->notes, "Not in the columns, because the value is impossible: "
			      "%s.\n", one.data);
	buf_release(&one);
}

/*
 * Cells of columns in the schemas must be of their kind and within their range; others are left
 * out, with a note and the column "left_out". The document keeps them.
 */
static void leave_out(struct run_reader *x)
{
	struct cells *c = &x->cells;
	struct buf told = { 0 };
	size_t kept = 0, more = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct cell cell = c->cell[i];
		const struct known_column *known = known_column(cell.column);

		if (known)
			cell.value = as_kind(known, &cell, x->arena);
		else if (cell.value.kind == VALUE_NUMBER && isnan(cell.value.number))
			cell.value = (struct value){ .kind = VALUE_NULL };
		if (!known || can_be(known, cell.value))
			c->cell[kept++] = cell;
		else if (told.len > LEFT_OUT_BYTES)
			more++;
		else if (!is_reported(buf_str(&told), cell.column))
			tell(x, &told, &cell, known);
	}
	c->n = kept;
	if (more)
		buf_printf(&told, "; and %zu more", more);
	if (told.len)
		cells_put_text(c, "left_out", buf_str(&told));
	buf_release(&told);
}

/* ---- one run ---- */

static struct read_run *next_run(struct run_reader *x)
{
	if (x->n == x->cap) {
		x->cap = x->cap ? 2 * x->cap : 16;
		x->run = mem_grow(x->run, x->cap, sizeof(*x->run));
	}
	x->run[x->n] = (struct read_run){ 0 };
	return &x->run[x->n];
}

static int check_run_id(struct str id, struct err *e)
{
	for (size_t i = 0; i < id.n; i++)
		if ((unsigned char)id.p[i] < ' ' || id.p[i] == 0x7f)
			return err_set(e, ERR_PARSE, "run_id: expected a text without control "
				       "characters");
	return 0;
}

/* A line of `profllm export --format jsonl`: the run's number, then columns without objects. */
static bool is_exported(const struct json_value *v)
{
	if (v->kind != JSON_OBJECT || !v->count || !str_is(v->key[0], "id") ||
	    v->item[0].kind != JSON_INT)
		return false;
	for (size_t i = 1; i < v->count; i++)
		if (v->item[i].kind == JSON_OBJECT || v->item[i].kind == JSON_ARRAY)
			return false;
	return true;
}

static int no_kind(const struct json_value *v, struct err *e)
{
	if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "expected an object with a result, got another value");
	if (str_is(json_text(json_get(v, "command"), STR("")), "bench ab"))
		return err_set(e, ERR_RUN, READ_NOTHING_KNOWN ": this is the answer of bench ab, which "
			       "compares two servers and holds no run of either. Measure each server "
			       "with `profllm bench serve --save-result`, and ingest those two files");
	if (str_starts(json_text(json_get(v, "command"), STR("")), STR("bench serve --find-")))
		return err_set(e, ERR_RUN, READ_NOTHING_KNOWN ": this is the answer of a search, which "
			       "holds no run. A search by `profllm run` (search: {find: rate, slo: ...}) "
			       "is a run of the store, with its capacity");
	if (is_exported(v))
		return err_set(e, ERR_RUN, READ_NOTHING_KNOWN ": this is a line of `profllm export`, "
			       "which has columns of a run but not its document. Ingest the result "
			       "files, or move the store with `profllm backup` and `profllm restore` "
			       "or with `profllm store convert`");
	return err_set(e, ERR_RUN, READ_NOTHING_KNOWN ": expected a document of profllm run, or "
		       "what bench serve, throughput, latency, startup, mm-processor or a sweep "
		       "writes, or a result of aiperf, genai-perf, guidellm, MLPerf or InferenceX "
		       "(docs/guide/store.md lists their files)");
}

static int fill_run(struct run_reader *x, struct json_slice slice, struct read_run *run,
		    struct err *e)
{
	struct reading r = { .cells = &x->cells, .file = x->name, .scratch = &x->scratch,
			     .timestamp_s = NAN, .notes = &x->notes };
	enum result_kind kind;
	struct run_parts parts;

	if (parts_read(slice, x->arena, &x->scratch, &parts, e) < 0)
		return -1;
	kind = is_exported(parts.tree) ? RESULT_NONE : result_kind(parts.tree);
	if (kind == RESULT_NONE)
		return no_kind(parts.tree, e);
	cells_begin(&x->cells);
	if (put_kind(&r, kind, parts.tree, e) < 0 || check_run_id(r.run_id, e) < 0)
		return -1;
	run->hash = arena_str(x->arena, str_of(parts.hash));
	run->run_id = r.run_id.n ? arena_str(x->arena, r.run_id) :
		str_of(arena_printf(x->arena, "sha256:%.*s", ID_DIGITS, parts.hash));
	drop_unmeasured(&x->cells);
	put_common(x, kind, &r, parts.tree, run);
	if (x->cells.is_over)
		return err_set(e, ERR_LIMIT, "one run has more than %d values (INGEST_CELLS_MAX)",
			       INGEST_CELLS_MAX);
	leave_out(x);
	run->row = cells_row(&x->cells);
	run->kind = str_of(result_kind_name(kind));
	run->document = parts.document;
	run->arrays = parts.arrays;
	run->timestamp_s = r.timestamp_s;
	gather_notes(x);
	return 0;
}

static int add_run(struct run_reader *x, struct json_slice slice, struct err *e)
{
	int rc;

	if (x->n == INGEST_RUNS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d runs in one file (INGEST_RUNS_MAX)",
			       INGEST_RUNS_MAX);
	rc = fill_run(x, slice, next_run(x), e);
	arena_release(&x->scratch);
	if (rc == 0)
		x->n++;
	return rc;
}

/* ---- lists ---- */

static int add_each(struct run_reader *x, struct json_slice list, const char *what, struct err *e)
{
	struct json_iter it = json_iter(list);
	struct json_slice v;
	struct str key;
	size_t i = 0;

	while (json_each(&it, &key, &v) > 0) {
		i++;
		if (v.kind != JSON_OBJECT)
			return err_set(e, ERR_PARSE, "%s %zu: expected an object", what, i);
		if (add_run(x, v, e) < 0)
			return err_wrap(e, "%s %zu", what, i);
	}
	return i ? 0 : err_set(e, ERR_PARSE, "the list is empty; expected at least one run");
}

static bool metric_name(struct json_slice record, struct str *name)
{
	struct json_slice v;

	if (!json_path(record, &v, "metric", "name", NULL) || v.kind != JSON_STRING)
		return false;
	*name = v.raw;
	return true;
}

static bool is_record(struct json_slice v)
{
	struct json_slice benchmark;
	struct str name;

	return v.kind == JSON_OBJECT && json_member(v, "benchmark", &benchmark) &&
	       metric_name(v, &name);
}

/* Consecutive records belong to one run until the arguments differ, or the first metric repeats. */
static bool is_same_run(struct json_slice first, struct json_slice v)
{
	struct json_slice a = { 0 }, b = { 0 };
	struct str name = { 0 }, other = { 0 };

	json_member(first, "benchmark", &a);
	json_member(v, "benchmark", &b);
	if (!str_eq(a.raw, b.raw))
		return false;
	metric_name(first, &name);
	return !metric_name(v, &other) || !str_eq(name, other);
}

static int add_records(struct run_reader *x, struct json_slice list, struct err *e)
{
	struct json_iter it = json_iter(list);
	struct json_slice first = { 0 }, all = { .kind = JSON_ARRAY }, v;
	struct buf text = { 0 };
	struct str key;
	int more, rc = 0;

	do {
		more = json_each(&it, &key, &v);
		if (text.len && (more <= 0 || !is_same_run(first, v))) {
			buf_add_char(&text, ']');
			all.raw = arena_str(x->arena, buf_str(&text));
			rc = add_run(x, all, e);
			buf_reset(&text);
		}
		if (more <= 0)
			break;
		if (!text.len)
			first = v;
		buf_add_text(&text, text.len ? ", " : "[");
		if (is_record(v))
			buf_add_str(&text, v.raw);
		else
			rc = err_set(e, ERR_PARSE, "one of the records has no benchmark or metric.name");
	} while (rc == 0);
	buf_release(&text);
	return rc;
}

/*
 * guidellm's file: each benchmark with the common part of the file, {"guidellm": {...},
 * "benchmark": {...}}. Its lists of requests, with prompts and answers, are ignored.
 */
static int add_guidellm(struct run_reader *x, struct json_slice file, struct json_slice list,
			struct err *e)
{
	struct json_iter it = json_iter(list), member;
	struct json_slice benchmark, v, about = { 0 };
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct str key;
	size_t i = 0;
	int rc = 0;

	for (; rc == 0 && json_each(&it, &key, &benchmark) > 0; i++) {
		struct json_slice run = { .kind = JSON_OBJECT };

		buf_reset(&text);
		json_begin_object(&w);
		json_member_object(&w, "guidellm");
		if (json_member(file, "metadata", &about) && about.kind == JSON_OBJECT)
			json_member_raw(&w, "metadata", about.raw);
		if ((json_path(file, &about, "config", "spec", NULL) || json_member(file, "args", &about)) &&
		    about.kind == JSON_OBJECT)
			json_member_raw(&w, "spec", about.raw);
		json_end_object(&w);
		json_member_object(&w, "benchmark");
		member = json_iter(benchmark);
		while (benchmark.kind == JSON_OBJECT && json_each(&member, &key, &v) > 0) {
			if (str_is(key, "requests"))
				continue;
			buf_reset(&x->notes);
			json_unescape(&x->notes, key);
			json_key_str(&w, buf_str(&x->notes));
			json_put_raw(&w, v.kind == JSON_STRING ?
				     (struct str){ v.raw.p - 1, v.raw.n + 2 } : v.raw);
		}
		buf_reset(&x->notes);
		json_end_object(&w);
		json_end_object(&w);
		run.raw = arena_str(x->arena, buf_str(&text));
		if (add_run(x, run, e) < 0)
			rc = err_wrap(e, "benchmark %zu", i + 1);
	}
	buf_release(&text);
	return i ? rc : err_set(e, ERR_PARSE, "guidellm's list \"benchmarks\" is empty; expected at "
				"least one benchmark");
}

/* Whether the list is guidellm's, by members of the file or of its first benchmark. */
static bool is_guidellm(struct json_slice file, struct json_slice list)
{
	struct json_iter it = json_iter(list);
	struct json_slice first, v;
	struct str key;

	return json_path(file, &v, "metadata", "guidellm_version", NULL) ||
	       (json_each(&it, &key, &first) > 0 &&
		json_path(first, &v, "metrics", "requests_per_second", NULL));
}

/* The top members of an object, read in one pass. */
struct top {
	bool has_version, has_config, has_experiments, is_trace;
	struct json_slice experiments, wrapped;
};

static struct top top_of(struct json_slice object)
{
	struct json_iter it = json_iter(object);
	struct json_slice v;
	struct str key;
	struct top top = { 0 };

	while (json_each(&it, &key, &v) > 0) {
		top.has_version |= str_is(key, "schema_version");
		top.has_config |= str_is(key, "config");
		top.is_trace |= str_is(key, "traceEvents");
		if (str_is(key, "experiments")) {
			top.has_experiments = true;
			top.experiments = v;
		}
		if (v.kind == JSON_ARRAY && result_is_wrapper(key))
			top.wrapped = v;
	}
	return top;
}

static int add_value(struct run_reader *x, struct json_slice v, struct err *e)
{
	struct json_slice first = { 0 };
	struct json_iter it;
	struct str key;
	struct top top;

	if (v.kind == JSON_ARRAY) {
		it = json_iter(v);
		return json_each(&it, &key, &first) > 0 && is_record(first) ? add_records(x, v, e) :
			add_each(x, v, "run", e);
	}
	if (v.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "expected an object or a list of objects");
	top = top_of(v);
	if (top.is_trace)
		return err_set(e, ERR_RUN, READ_NOTHING_KNOWN ": this is a profiler's trace. It is "
			       "ingested with the document of its run, or attached to the run: on "
			       "the run's page or by `profllm ingest --trace FILE --run RUN_ID`");
	if (top.has_experiments && top.has_version && !top.has_config) {
		if (top.experiments.kind != JSON_ARRAY)
			return err_set(e, ERR_PARSE, "experiments: expected a list");
		return add_each(x, top.experiments, "experiment", e);
	}
	if (top.wrapped.raw.n && is_guidellm(v, top.wrapped))
		return add_guidellm(x, v, top.wrapped, e);
	if (top.wrapped.raw.n && !top.has_config && !top.has_version)
		return add_each(x, top.wrapped, "run", e);
	return add_run(x, v, e);
}

/* ---- the file ---- */

static int check_bytes(struct str bytes, struct err *e)
{
	size_t at = 0, line = 1, n;

	if (bytes.n > INGEST_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%zu bytes; at most %u are accepted "
					     "(INGEST_BYTES_MAX)",
			       bytes.n, INGEST_BYTES_MAX);
	if (str_starts(bytes, STR("SQLite format 3")))
		return err_set(e, ERR_PARSE, "this is a store or the backup of one, not a result: "
			       "`profllm store convert` and `profllm restore` move its runs");
	if (utf8_is_valid(bytes))
		return 0;
	while (utf8_decode((struct str){ bytes.p + at, bytes.n - at }, &n) != UTF8_BAD) {
		line += bytes.p[at] == '\n';
		at += n;
	}
	return err_set(e, ERR_PARSE, "line %zu: byte %zu of the file is not UTF-8", line, at + 1);
}

static int read_all(struct run_reader *x, struct str bytes, struct err *e)
{
	struct json_scan scan = { .text = bytes };
	struct json_slice v;

	if (json_at_end(&scan))
		return err_set(e, ERR_PARSE, "the file is empty; expected JSON");
	for (size_t i = 1; !json_at_end(&scan); i++) {
		if (json_next(&scan, &v, e) < 0)
			return -1;
		if (add_value(x, v, e) < 0)
			return i == 1 && json_at_end(&scan) ? -1 : err_wrap(e, "value %zu of the file", i);
	}
	return 0;
}

int read_document(struct str name, struct str bytes, struct arena *a, struct read_file *out,
		  struct err *e)
{
	struct run_reader x = { .name = name, .arena = a };
	int rc;

	*out = (struct read_file){ 0 };
	if (!bytes.n)
		bytes = STR("");
	if (result_unpack(&bytes, INGEST_BYTES_MAX, a, e) < 0)
		return -1;
	if (str_starts(bytes, STR("\xef\xbb\xbf")))
		bytes = (struct str){ bytes.p + 3, bytes.n - 3 };
	cells_init(&x.cells, a);
	rc = check_bytes(bytes, e);
	if (rc == 0 && mlperf_log_is(bytes))
		rc = mlperf_log_json(bytes, a, &bytes, e);
	if (rc == 0)
		rc = read_all(&x, bytes, e);
	if (rc == 0) {
		out->run = arena_alloc(a, x.n * sizeof(*out->run));
		memcpy(out->run, x.run, x.n * sizeof(*out->run));
		out->n = x.n;
		hand_notes_out(&x, out);
	}
	arena_release(&x.scratch);
	cells_release(&x.cells);
	buf_release(&x.notes);
	free(x.run);
	return rc;
}
