/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_keep.c - the store over time: other processes, snapshots, backup and restore, old
 * runs, damage, and rows wider than a database takes; on both databases.
 *
 * threads: yes
 */
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define STORE_RIG "test_store_keep_c"
#include "results/index/derive.h"
#include "results/index/index_internal.h"
#include "store_rig.h"

#include "results/store/known.h"

#ifdef __SANITIZE_THREAD__
#define BACKUPS 4
#define BETWEEN 60
#else
#define BACKUPS 5
#define BETWEEN 150 /* runs written from one backup to the next */
#endif

static void put_many(struct store *s, const char *prefix, int first, size_t n)
{
	struct arena a = { 0 };
	struct read_run *run = make_runs(&a, prefix, first, n);
	struct put_result *out = arena_alloc(&a, n * sizeof(*out));

	must(store_put(s, run, n, STR("tester"), &a, out, e));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(out[i].outcome, PUT_NEW);
	arena_release(&a);
}

static void check_clean(struct store *s)
{
	struct arena a = { 0 };
	struct str *finding;
	size_t n;

	must(store_check(s, &a, &finding, &n, e));
	if (n)
		fail_msg("%zu findings, the first: %.*s", n, (int)finding[0].n, finding[0].p);
	arena_release(&a);
}

static struct filter *filter_of(struct arena *a, const char *text)
{
	struct json_value *json;
	struct filter *f;

	must(json_parse(a, str_of(text), &json, e));
	must(filter_read(json, "", a, &f, e));
	return f;
}

static size_t count(struct store *s, const char *filter)
{
	struct index_view *v = index_view(store_index(s));
	struct arena a = { 0 };
	struct query q = { .filter = filter_of(&a, filter) };
	struct answer answer = { 0 };

	must(index_query(v, &q, &a, &answer, e));
	arena_release(&a);
	index_view_release(v);
	return answer.total;
}

/* Two that are open at once, as two processes are: each sees what the other did. */
static void two_at_once(const char *url)
{
	struct store *s = open_store(url, false), *t = open_store(url, false);
	struct store *r = open_store(url, true);
	struct arena a = { 0 };
	struct read_run wide = make_run(&a, "wide", 77);
	struct put_result out;
	struct cell more[7];
	size_t n;

	put_many(s, "s", 0, 5);
	must(store_refresh(t, e));
	assert_int_equal(shown(t, 0, false), 5);
	/* A column that the other one does not know, and then one's own after that. */
	memcpy(more, wide.row.cell, 6 * sizeof(*more));
	more[6] = number_cell("tags.new", 3);
	wide.row = (struct row){ .cell = more, .n = 7 };
	must(store_put(t, &wide, 1, STR(""), &a, &out, e));
	put_many(s, "s", 5, 5);
	assert_int_equal(shown(s, 0, false), 11);
	assert_int_equal(count(s, "{\"column\": \"tags.new\", \"in\": [3]}"), 1);
	must(store_exclude(s, out.id, STR("why not"), STR(""), e));
	must(store_refresh(t, e));
	must(store_refresh(r, e));
	assert_int_equal(shown(t, 0, false), 10);
	assert_int_equal(shown(r, 0, false), 10);
	assert_int_equal(shown(r, INDEX_EXCLUDED, true), 1);
	must(store_remove(t, filter_of(&a, "{\"column\": \"run_id\", \"in\": [\"s-3\"]}"), &n, e));
	assert_int_equal(n, 1);
	must(store_refresh(s, e));
	must(store_refresh(r, e));
	assert_int_equal(shown(s, 0, false), 9);
	assert_int_equal(shown(r, 0, false), 9);
	assert_int_equal(store_put(r, &wide, 1, STR(""), &a, &out, NULL), -1);
	check_clean(s);
	store_close(r);
	store_close(t);
	store_close(s);
	arena_release(&a);
}

static void test_two_at_once(void **state)
{
	(void)state;
	with_stores(two_at_once);
}

/* In the order of numbers, in which the index finds a run without looking at all of them. */
static bool is_in_order(struct store *s)
{
	struct index_view *v = index_view(store_index(s));
	bool is = v->is_ascending;

	index_view_release(v);
	return is;
}

/* What others say of runs, and newer versions, leave a store that reads them in order. */
static void in_order(const char *url)
{
	struct store_opts none = { .url = url, .snapshot = "" };
	struct store *s = open_store(url, false), *other = open_store(url, false), *t;
	struct arena a = { 0 };
	struct read_run newer = make_run(&a, "s-5", 500);
	struct put_result out;
	size_t n;

	put_many(s, "s", 0, 20);
	must(store_exclude(s, store_find(s, STR("s-3")), STR("why not"), STR(""), e));
	must(store_put(s, &newer, 1, STR(""), &a, &out, e));
	put_many(s, "t", 100, 5);
	must(store_archive(s, filter_of(&a, "{\"column\": \"run_id\", \"in\": [\"s-9\"]}"), true, &n,
			   e));
	must(store_refresh(other, e));
	must(store_open(&none, &t, e));
	assert_true(is_in_order(s));
	assert_true(is_in_order(other));
	assert_true(is_in_order(t));
	assert_int_equal(shown(s, 0, false), 23);
	assert_int_equal(shown(other, 0, false), 23);
	assert_int_equal(shown(t, 0, false), 23);
	assert_int_equal(shown(t, INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED, true), 3);
	store_close(s);
	store_close(other);
	store_close(t);
	arena_release(&a);
}

static void test_in_order(void **state)
{
	(void)state;
	with_stores(in_order);
}

/* Opened again: from the snapshot, with changes that came after it, and without one. */
static void opened_again(const char *url)
{
	struct store *s = open_store(url, false), *t;
	struct store_opts none = { .url = url, .snapshot = "" };
	struct arena a = { 0 };
	size_t n;

	put_many(s, "s", 0, 300);
	must(store_exclude(s, store_find(s, STR("s-17")), STR("why not"), STR(""), e));
	store_close(s);
	must(store_open(&none, &t, e));
	assert_int_equal(shown(t, 0, false), 299);
	put_many(t, "t", 0, 10);
	must(store_remove(t, filter_of(&a, "{\"column\": \"run_id\", \"in\": [\"s-3\"]}"), &n, e));
	store_close(t);
	s = open_store(url, false);
	assert_int_equal(shown(s, 0, false), 308);
	assert_int_equal(shown(s, INDEX_EXCLUDED, true), 1);
	assert_int_equal(count(s, "{\"column\": \"run_id\", \"in\": [\"s-3\", \"s-4\", \"t-9\"]}"), 2);
	store_close(s);
	s = open_store(url, true);
	assert_int_equal(shown(s, 0, false), 308);
	check_clean(s);
	store_close(s);
	arena_release(&a);
}

static void test_opened_again(void **state)
{
	(void)state;
	with_stores(opened_again);
}

/* ---- backup ---- */

static void same_runs(struct store *a, struct store *b)
{
	struct index_view *x = index_view(store_index(a)), *y = index_view(store_index(b));
	unsigned all = INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED;
	struct arena m = { 0 };
	struct value *none;
	int64_t *id, *other;
	size_t n, n_other;

	must(index_select(x, NULL, all, NULL, 0, &m, &id, &n, &none, e));
	must(index_select(y, NULL, all, NULL, 0, &m, &other, &n_other, &none, e));
	assert_int_equal(n, n_other);
	for (size_t i = 0; i < n; i++) {
		struct run_whole p, q;
		struct row r, s;
		unsigned flags, others_flags;

		assert_int_equal(id[i], other[i]);
		must(store_run(a, id[i], &m, &p, e));
		must(store_run(b, id[i], &m, &q, e));
		assert_true(str_eq(p.document, q.document) && str_eq(p.hash, q.hash));
		assert_int_equal(p.flags, q.flags);
		assert_true(p.received_s == q.received_s);
		assert_true(index_row(x, id[i], &m, &r, &flags));
		assert_true(index_row(y, id[i], &m, &s, &others_flags));
		assert_int_equal(r.n, s.n);
		assert_int_equal(flags, others_flags);
	}
	index_view_release(x);
	index_view_release(y);
	arena_release(&m);
}

static void backup_and_restore(const char *url)
{
	static int number;
	struct arena a = { 0 };
	struct store *s = open_store(url, false), *t;
	const char *file = in_dir(&a, "backup.db");
	const char *to = arena_printf(&a, "sqlite:%s/restored%d.db", dir, ++number);
	struct read_run again = make_run(&a, "s-1", 1000), late = make_run(&a, "late", 1);
	struct put_result out;
	struct annotation *note;
	struct preset mine = { .name = STR("mine"), .body = STR("{}") };
	int64_t id;
	size_t n;

	put_many(s, "s", 0, 40);
	must(store_put(s, &again, 1, STR(""), &a, &out, e));
	must(store_annotate(s, out.id, STR("kept"), STR("anna"), &id, e));
	must(store_preset_put(s, "preset", &mine, (double)NAN, e));
	must(store_backup(s, file, e));
	put_many(s, "after", 0, 1);
	must(store_restore(to, file, false, NULL, e));
	t = open_store(to, false);
	assert_int_equal(shown(t, INDEX_SUPERSEDED, false), 41);
	must(store_annotations(t, out.id, &a, &note, &n, e));
	assert_int_equal(n, 1);
	check_clean(t);
	/* Numbers go on where they were: none is used twice. */
	must(store_put(t, &late, 1, STR(""), &a, &out, e));
	assert_int_equal(out.id, 42);
	store_close(t);
	assert_int_equal(store_restore(to, file, false, NULL, NULL), -1);
	must(store_restore(to, file, true, NULL, e));
	t = open_store(to, false); /* the snapshot next to it is of the earlier content */
	assert_int_equal(shown(t, INDEX_SUPERSEDED, false), 41);
	must(store_restore(url, file, true, NULL, e));
	assert_int_equal(store_refresh(s, NULL), -1); /* a store that has it open reports it */
	store_close(s);
	s = open_store(url, false);
	same_runs(s, t);
	check_clean(s);
	store_close(t);
	store_close(s);
	arena_release(&a);
}

static void test_backup_and_restore(void **state)
{
	(void)state;
	with_stores(backup_and_restore);
}

struct writer {
	struct store *s;
	atomic_bool is_over;
	atomic_int allowed; /* runs; a slow machine must not have more to back up */
	int written;
};

static void *write_on(void *self)
{
	struct writer *w = self;

	while (!atomic_load(&w->is_over)) {
		struct arena a = { 0 };
		struct put_result out[3];
		struct read_run *run;

		if (w->written >= atomic_load(&w->allowed)) {
			usleep(1000);
			continue;
		}
		run = make_runs(&a, "load", w->written, 3);
		if (store_put(w->s, run, 3, STR(""), &a, out, NULL) == 0)
			w->written += 3;
		arena_release(&a);
	}
	return NULL;
}

/* As of one moment: three runs of a call are all in it, or none. */
static void backup_under_load(const char *url)
{
	struct arena a = { 0 };
	struct writer w = { .s = open_store(url, false) };
	const char *file = in_dir(&a, "under-load.db");
	size_t before = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
	for (int i = 0; i < BACKUPS; i++) {
		const char *to = arena_printf(&a, "sqlite:%s/load-%s-%d.db", dir,
					      store_kind(w.s), i);
		struct store *t;

		atomic_fetch_add(&w.allowed, BETWEEN);
		must(store_backup(w.s, file, e));
		must(store_restore(to, file, false, NULL, e));
		t = open_store(to, false);
		assert_int_equal(shown(t, 0, false) % 3, 0);
		assert_true(shown(t, 0, false) >= before);
		before = shown(t, 0, false);
		check_clean(t);
		store_close(t);
	}
	atomic_store(&w.is_over, true);
	pthread_join(thread, NULL);
	assert_int_equal(shown(w.s, 0, false), w.written);
	check_clean(w.s);
	store_close(w.s);
	arena_release(&a);
}

static void test_backup_under_load(void **state)
{
	(void)state;
	with_stores(backup_under_load);
}

/* ---- old runs ---- */

static void old_runs(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct read_run young = make_run(&a, "young", 1), unset = make_run(&a, "unset", 4), both[2];
	struct retention r = { .archive_days = 30 };
	struct buf told = { 0 };
	struct put_result out[2];
	size_t n;

	young.timestamp_s = (double)NAN; /* as old as its coming */
	both[0] = make_run(&a, "twice", 2);
	both[1] = make_run(&a, "twice", 3);
	unset.timestamp_s = 0; /* also that */
	must(store_put(s, &young, 1, STR(""), &a, out, e));
	must(store_put(s, &unset, 1, STR(""), &a, out, e));
	must(store_put(s, both, 2, STR(""), &a, out, e));
	must(store_archive(s, filter_of(&a, "{\"column\": \"run_id\", \"in\": [\"young\"]}"), true, &n, e));
	assert_int_equal(n, 1);
	assert_int_equal(shown(s, INDEX_ARCHIVED, true), 1);
	must(store_archive(s, filter_of(&a, "{\"and\": []}"), false, &n, e));
	assert_int_equal(n, 1);
	assert_int_equal(shown(s, 0, false), 3);
	must(store_retain(s, &r, &told, e));
	assert_string_equal(told.data, "0 runs removed, 2 archived, 0 traces expired");
	assert_int_equal(shown(s, 0, false), 2);
	/* The newer version gone, the older one is shown again. */
	must(store_remove(s, filter_of(&a, "{\"column\": \"benchmark.num_prompts\", \"in\": [3]}"), &n,
			  e));
	assert_int_equal(n, 1);
	assert_int_equal(store_find(s, STR("twice")), out[0].id);
	assert_int_equal(shown(s, INDEX_SUPERSEDED, true), 0);
	check_clean(s);
	/* What was removed may come again, under another number. */
	must(store_put(s, &both[1], 1, STR(""), &a, out, e));
	assert_int_equal(out[0].outcome, PUT_CONFLICT);
	assert_int_equal(out[0].id, 5);
	r = (struct retention){ .remove_days = 30 };
	buf_reset(&told);
	must(store_retain(s, &r, &told, e));
	assert_string_equal(told.data, "1 runs removed, 0 archived, 0 traces expired");
	assert_int_equal(shown(s, INDEX_ARCHIVED | INDEX_SUPERSEDED, false), 3);
	check_clean(s);
	store_close(s);
	buf_release(&told);
	arena_release(&a);
}

static void test_old_runs(void **state)
{
	(void)state;
	with_stores(old_runs);
}

/* ---- many changes at once, and what is gone for good ---- */

#define MANY 600
#define MANY_BYTES_MAX (2 << 20) /* that all their changes may add during a read */

/*
 * Another process archives every run, and this one does, while a reader holds a version: memory
 * does not grow with the number of runs. Every second one is superseded: their flags differ.
 */
static void many_changes(const char *url)
{
	struct store *s = open_store(url, false), *t = open_store(url, false);
	struct index_view *held;
	struct arena a = { 0 };
	struct read_run *run = arena_alloc(&a, MANY * sizeof(*run));
	struct put_result *out = arena_alloc(&a, MANY * sizeof(*out));
	int64_t bytes;
	size_t n;

	for (int i = 0; i < MANY; i++)
		run[i] = make_run(&a, arena_printf(&a, "s-%d", i / 2), i);
	must(store_put(s, run, MANY, STR(""), &a, out, e));
	must(store_refresh(t, e));
	held = index_view(store_index(s));
	bytes = index_bytes(store_index(s));
	must(store_archive(t, filter_of(&a, "{\"and\": []}"), true, &n, e));
	assert_int_equal(n, MANY);
	must(store_refresh(s, e));
	assert_int_equal(shown(s, 0, false), 0);
	assert_int_equal(shown(s, INDEX_ARCHIVED | INDEX_SUPERSEDED, true), MANY);
	assert_in_range(index_bytes(store_index(s)), 1, bytes + MANY_BYTES_MAX);
	must(store_archive(s, filter_of(&a, "{\"and\": []}"), false, &n, e));
	assert_int_equal(n, MANY);
	assert_int_equal(shown(s, 0, false), MANY / 2);
	assert_in_range(index_bytes(store_index(s)), 1, bytes + MANY_BYTES_MAX);
	index_view_release(held);
	check_clean(s);
	store_close(t);
	store_close(s);
	arena_release(&a);
}

static void test_many_changes(void **state)
{
	(void)state;
	with_stores(many_changes);
}

static bool is_in_file(const char *path, const char *text)
{
	struct buf file = { 0 };
	bool is;

	must(file_read(path, 1u << 30, &file, e));
	is = memmem(file.data, file.len, text, strlen(text)) != NULL;
	buf_release(&file);
	return is;
}

static bool has_column(struct store *s, const char *name)
{
	struct index_view *v = store_view(s);
	bool has = index_column(v, str_of(name)) != NULL;

	index_view_release(v);
	return has;
}

/* What was removed is neither in the snapshot nor, soon, in the memory of another process. */
static void removed_for_good(const char *url)
{
	struct arena a = { 0 };
	const char *snapshot = str_starts(str_of(url), STR("postgres")) ? in_dir(&a, "postgres.index") :
			       arena_printf(&a, "%s.index", url + strlen("sqlite:"));
	struct store *s = open_store(url, false), *t;
	struct read_run secret = make_run(&a, "the-secret-run", 5000);
	struct cell cell[7];
	struct put_result out;
	struct index_view *held;
	struct row row;
	size_t n;

	memcpy(cell, secret.row.cell, 6 * sizeof(*cell));
	cell[2] = text_cell("server.model", "the-secret-model");
	cell[6] = number_cell("tags.the-secret-tag", 3);
	secret.row = (struct row){ .cell = cell, .n = 7 };
	put_many(s, "s", 0, 100);
	must(store_put(s, &secret, 1, STR(""), &a, &out, e));
	store_close(s);
	assert_true(is_in_file(snapshot, "the-secret-model"));
	s = open_store(url, false);
	t = open_store(url, false);
	held = store_view(s);
	must(store_remove(t, filter_of(&a, "{\"column\": \"run_id\", \"in\": [\"the-secret-run\"]}"),
			  &n, e));
	assert_int_equal(n, 1);
	put_many(t, "t", 0, 10);
	assert_true(has_column(s, "tags.the-secret-tag"));
	must(store_maintain(s, e));
	assert_false(has_column(s, "tags.the-secret-tag"));
	assert_false(is_in_file(snapshot, "the-secret"));
	assert_int_equal(shown(s, 0, false), 110);
	assert_true(index_row(held, out.id, &a, &row, NULL)); /* who still reads reads on */
	index_view_release(held);
	/* Both go on as if nothing had been. */
	put_many(s, "u", 0, 10);
	must(store_exclude(t, store_find(t, STR("s-3")), STR("why not"), STR(""), e));
	must(store_refresh(s, e));
	assert_int_equal(shown(s, 0, false), 119);
	assert_int_equal(shown(s, INDEX_EXCLUDED, true), 1);
	must(store_refresh(t, e));
	assert_int_equal(shown(t, 0, false), 119);
	check_clean(s);
	store_close(t);
	store_close(s);
	assert_false(is_in_file(snapshot, "the-secret"));
	s = open_store(url, true);
	assert_int_equal(shown(s, 0, false), 119);
	store_close(s);
	arena_release(&a);
}

static void test_removed_for_good(void **state)
{
	(void)state;
	with_stores(removed_for_good);
}

/* A snapshot that cannot be written is not tried again at once, and keeps no writer waiting. */
static void test_no_snapshot(void **state)
{
	struct arena a = { 0 };
	struct store_opts o = { .url = in_dir(&a, "no-snapshot.db"),
				.snapshot = in_dir(&a, "no-folder/index") };
	struct err why = { 0 };
	struct store *s;
	size_t n;

	(void)state;
	must(store_open(&o, &s, e));
	put_many(s, "s", 0, 10);
	must(store_remove(s, filter_of(&a, "{\"column\": \"run_id\", \"in\": [\"s-3\"]}"), &n, e));
	assert_int_equal(store_maintain(s, &why), -1);
	assert_non_null(strstr(why.text, "no-folder/index"));
	must(store_maintain(s, e));
	put_many(s, "t", 0, 10);
	must(store_maintain(s, e));
	assert_int_equal(shown(s, 0, false), 19);
	store_close(s);
	arena_release(&a);
}

/* ---- width ---- */

/* More columns than a table takes, rows beyond 8 kB, names that SQL would trip over. */
static void wide_rows(const char *url)
{
	static const char *const odd[] = {
		"id", "rest", "ID", "server.Model", "server.model", "say \"hi\"; DROP TABLE documents; --",
		"{int}", "$1", "?", "caf\xc3\xa9", "a.very.long.name.that.postgresql.would.cut.at.63.bytes.one",
		"a.very.long.name.that.postgresql.would.cut.at.63.bytes.one.and.two.and.three",
		"a.very.long.name.that.postgresql.would.cut.at.63.bytes.one.and.two.and.four",
	};
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	size_t n_own = 300, n = n_own + known_column_count; /* a run may add so many */
	struct read_run run[2] = { make_run(&a, "wide", 1), make_run(&a, "odd", 2) };
	struct cell *cell = arena_alloc(&a, n * sizeof(*cell));
	struct cell names[COUNT(odd) + 5];
	char *long_name = arena_alloc(&a, 1000);
	struct put_result out[2];
	struct index_view *v;
	struct row row;
	unsigned flags;

	for (size_t i = 0; i < known_column_count; i++)
		cell[n_own + i] = known_columns[i].type != VALUE_TEXT ?
					  number_cell(known_columns[i].name, (double)i / 7) :
					  text_cell(known_columns[i].name, "a text of more than thirty-two bytes");
	for (size_t i = 0; i < n_own; i++)
		cell[i] = i % 3 ? number_cell(arena_printf(&a, "column.%zu", i), (double)i / 7) :
				  text_cell(arena_printf(&a, "column.%zu", i),
					    arena_printf(&a, "text number %zu of many that are long", i));
	run[0].row = (struct row){ .cell = cell, .n = n };
	for (size_t i = 0; i < COUNT(odd); i++)
		names[i] = number_cell(odd[i], (double)i);
	memset(long_name, 'x', 999);
	names[COUNT(odd)] = number_cell(long_name, 1);             /* beyond any name */
	names[COUNT(odd) + 1] = number_cell("column.0", 5);        /* a text until now */
	names[COUNT(odd) + 2] = number_cell("column.1", HUGE_VAL);
	names[COUNT(odd) + 3] = number_cell("column.2", -0.0);
	names[COUNT(odd) + 4] = (struct cell){ STR("column.3"), { .kind = VALUE_TEXT } };
	names[COUNT(odd) + 4].value.text = (struct str){ "a\0b", 3 };
	run[1].row = (struct row){ .cell = names, .n = COUNT(names) };
	must(store_put(s, run, 2, STR(""), &a, out, e));
	assert_int_equal(out[0].reason.n, 0);
	assert_true(out[1].reason.n > 0);
	check_clean(s);
	store_close(s);
	s = open_store(url, true);
	v = index_view(store_index(s));
	assert_true(index_row(v, out[0].id, &a, &row, &flags));
	assert_int_equal(row.n, derive(&run[0].row, &a).n); /* and those that are computed */
	assert_true(index_row(v, out[1].id, &a, &row, &flags));
	assert_int_equal(row.n, COUNT(names) - 1);
	for (size_t i = 0; i < row.n; i++)
		for (size_t k = 0; k < COUNT(names); k++)
			if (str_eq(row.cell[i].column, names[k].column))
				assert_true(value_same(row.cell[i].value, names[k].value));
	index_view_release(v);
	check_clean(s);
	store_close(s);
	arena_release(&a);
}

static void test_wide_rows(void **state)
{
	(void)state;
	with_stores(wide_rows);
}

/* ---- damage, by SQLite's own hand ---- */

static void sql(const char *path, const char *text)
{
	sqlite3 *db = NULL;
	char *why = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", text, why);
	sqlite3_close(db);
}

static void test_damage_is_found(void **state)
{
	static const struct { const char *sql, *words; } row[] = {
		{ "UPDATE documents SET checksum = 'x' WHERE id = 2", "run 2: the stored document does not match" },
		{ "UPDATE benchmark_runs SET \"server.model\" = 'other' WHERE id = 3", "run 3: value" },
		{ "DELETE FROM benchmark_runs WHERE id = 4", "run 4 has no row" },
		{ "UPDATE originals SET document = substr(document, 1, 20) WHERE id = 5", "run 5: " },
		{ "UPDATE documents SET cells = substr(cells, 1, 9) WHERE id = 6", "run 6: " },
		{ "DELETE FROM originals WHERE id = 7", "1 runs have no document" },
		{ "UPDATE documents SET flags = 4 WHERE id = 8", "1 runs are hidden" },
		{ "UPDATE documents SET flags = 1 WHERE id = 9", "1 runs are excluded without" },
		{ "UPDATE documents SET changed = changed * 2 WHERE id = 10", "change number" },
	};
	struct arena a = { 0 };
	struct store_opts o = { .url = in_dir(&a, "damaged.db"), .has_no_index = true };
	struct store *s = open_store(o.url, false);
	struct str *finding;
	size_t n;

	(void)state;
	put_many(s, "s", 0, 20);
	store_close(s);
	for (size_t i = 0; i < COUNT(row); i++) {
		bool is_there = false;

		sql(o.url, row[i].sql);
		must(store_open(&o, &s, e));
		must(store_check(s, &a, &finding, &n, e));
		for (size_t k = 0; k < n; k++)
			is_there |= strstr(finding[k].p, row[i].words) != NULL;
		if (!is_there)
			fail_msg("%s: not found", row[i].sql);
		assert_int_equal(n, i + 1);
		store_close(s);
	}
	arena_release(&a);
}

/* A store of before marks named a metric, and its backup: marks stay, without one. */
static void test_older_marks(void **state)
{
	static const char older[] = "ALTER TABLE marks DROP COLUMN metric;"
				    "ALTER TABLE documents DROP COLUMN left_out;"
				    "ALTER TABLE jobs DROP COLUMN new_columns;"
				    "DELETE FROM numbers WHERE name IN ('columns', 'rewritten', 'tag');"
				    "DROP TABLE tags;"
				    "DELETE FROM migrations WHERE number > 1";
	struct arena a = { 0 };
	const char *url = in_dir(&a, "older.db"), *backup = in_dir(&a, "older.backup");
	struct store *s = open_store(url, false);
	struct change_mark m = { .series = STR("s"), .metric = STR("p99_ttft_ms"), .at = STR("c1"),
				 .kind = STR("seen"), .who = STR("anna"), .text = STR("") };
	struct change_mark *got;
	int64_t id;
	size_t n;

	(void)state;
	must(store_mark_put(s, &m, &id, e));
	must(store_backup(s, backup, e));
	store_close(s);
	sql(url, older);
	sql(backup, older);
	must(store_restore(in_dir(&a, "restored.db"), backup, false, NULL, e));
	s = open_store(in_dir(&a, "restored.db"), false);
	must(store_marks(s, &a, &got, &n, e));
	assert_int_equal(n, 1);
	assert_true(str_eq(got[0].series, m.series) && !got[0].metric.n);
	store_close(s);
	s = open_store(url, false);
	must(store_mark_put(s, &m, &id, e));
	must(store_marks(s, &a, &got, &n, e));
	assert_int_equal(n, 2);
	assert_true(str_eq(got[0].series, m.series) && !got[0].metric.n);
	assert_true(str_eq(got[1].metric, m.metric));
	store_close(s);
	arena_release(&a);
}

static void test_newer_is_refused(void **state)
{
	struct arena a = { 0 };
	struct store_opts o = { .url = in_dir(&a, "newer.db") };
	struct store *s = open_store(o.url, false);
	struct err why = { 0 };
	const char *backup = in_dir(&a, "newer.backup");
	struct buf aside = { 0 };

	(void)state;
	must(store_backup(s, backup, e));
	store_close(s);
	sql(o.url, "INSERT INTO migrations (number, at) VALUES (99, 0)");
	assert_int_equal(store_open(&o, &s, &why), -1);
	assert_int_equal(why.code, ERR_USAGE);
	assert_non_null(strstr(why.text, "newer"));
	/* The way back to an older program. */
	assert_int_equal(store_restore(o.url, backup, false, &aside, &why), -1);
	must(store_restore(o.url, backup, true, &aside, e));
	assert_true(file_exists(aside.data));
	buf_release(&aside);
	store_close(open_store(o.url, false));
	must(file_write_atomic(in_dir(&a, "text.db"), STR("this is no database, but long enough to"), e));
	o.url = in_dir(&a, "text.db");
	assert_int_equal(store_open(&o, &s, &why), -1);
	assert_int_equal(why.code, ERR_USAGE);
	o.url = in_dir(&a, "nowhere/at/all.db");
	assert_int_equal(store_open(&o, &s, &why), -1);
	o.url = in_dir(&a, "absent.db");
	o.is_read_only = true;
	assert_int_equal(store_open(&o, &s, &why), -1);
	assert_false(file_exists(o.url));
	o.url = "postgresql:///none?host=/nowhere";
	assert_int_equal(store_open(&o, &s, &why), -1);
	assert_int_equal(why.code, ERR_NET);
	arena_release(&a);
}

/* Killed in a write before it had a log, as in its creation: also a reader can undo that. */
static void test_interrupted(void **state)
{
	static const char write[] = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; "
		"CREATE TABLE more(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
		"WHERE i < 3000) INSERT INTO more SELECT randomblob(400) FROM n";
	struct arena a = { 0 };
	const char *path = in_dir(&a, "cut.db"), *url = arena_printf(&a, "sqlite:%s", path);
	struct store *s = open_store(url, false);
	sqlite3 *db;
	pid_t pid;

	(void)state;
	put_many(s, "s", 0, 20);
	store_close(s);
	pid = fork();
	if (!pid)
		_exit(sqlite3_open(path, &db) != SQLITE_OK ||
		      sqlite3_exec(db, write, NULL, NULL, NULL) != SQLITE_OK);
	assert_int_equal(waitpid(pid, &(int){ 0 }, 0), pid);
	assert_int_equal(access(arena_printf(&a, "%s-journal", path), F_OK), 0);
	s = open_store(url, true);
	assert_int_equal(shown(s, 0, false), 20);
	check_clean(s);
	store_close(s);
	arena_release(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_at_once),       cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_opened_again),
		cmocka_unit_test(test_backup_and_restore), cmocka_unit_test(test_backup_under_load),
		cmocka_unit_test(test_old_runs),          cmocka_unit_test(test_wide_rows),
		cmocka_unit_test(test_damage_is_found),   cmocka_unit_test(test_older_marks),
		cmocka_unit_test(test_newer_is_refused),
		cmocka_unit_test(test_many_changes),      cmocka_unit_test(test_removed_for_good),
		cmocka_unit_test(test_no_snapshot),        cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
