/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_people.c - notes, exclusions, presets, marks, traces and jobs; on both databases. */
/* threads: yes */
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"

#define STORE_RIG "test_store_people_c"
#include "store_rig.h"

/* A call that must fail as the caller's mistake, with a sentence that holds those words. */
#define refuses(call, words) do { \
		struct err refusal = { 0 }, *e = &refusal; \
		assert_int_equal(call, -1); \
		assert_int_equal(refusal.code, ERR_USAGE); \
		if (!strstr(refusal.text, words)) \
			fail_msg("%s: %s", #call, refusal.text); \
	} while (0)

static int64_t put_one(struct store *s, struct arena *a, const char *name, int content)
{
	struct read_run run = make_run(a, name, content);
	struct put_result out;

	must(store_put(s, &run, 1, STR("tester"), a, &out, e));
	return out.id;
}

static void notes(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	int64_t run = put_one(s, &a, "x", 1), first, second;
	struct annotation *note;
	size_t n;

	must(store_annotate(s, run, STR("warm \"cache\" \xc3\xa9"), STR("anna"), &first, e));
	must(store_annotate(s, run, STR("second"), STR(""), &second, e));
	must(store_annotations(s, run, &a, &note, &n, e));
	assert_int_equal(n, 2);
	assert_int_equal(note[0].id, first);
	assert_int_equal(note[0].run, run);
	assert_true(str_is(note[0].text, "warm \"cache\" \xc3\xa9"));
	assert_true(str_is(note[0].who, "anna"));
	assert_true(note[0].at_s > 1.7e9);
	must(store_annotation_drop(s, first, e));
	refuses(store_annotation_drop(s, first, e), "there is no note");
	must(store_annotations(s, run, &a, &note, &n, e));
	assert_int_equal(n, 1);
	assert_int_equal(note[0].id, second);
	refuses(store_annotate(s, run + 1, STR("x"), STR(""), &first, e), "there is no run");
	refuses(store_annotate(s, run, STR(""), STR(""), &first, e), "is empty");
	refuses(store_annotate(s, run, ((struct str){ "a\0b", 3 }), STR(""), &first, e), "U+0000");
	refuses(store_annotate(s, run, STR("\xff\xfe"), STR(""), &first, e), "UTF-8");
	store_close(s);
	arena_release(&a);
}

static bool is_shown(struct store *s, int64_t run)
{
	struct index_view *v = store_view(s);
	struct arena a = { 0 };
	unsigned flags = 0;
	struct row row;
	bool is_there = index_row(v, run, &a, &row, &flags);

	index_view_release(v);
	arena_release(&a);
	return is_there && !(flags & INDEX_EXCLUDED);
}

static void bulk(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	int64_t id[4], few[2];
	struct bulk_result done;
	struct exclusion *ex;
	char name[3] = "r0";
	size_t n;

	for (int i = 0; i < 4; i++, name[1]++)
		id[i] = put_one(s, &a, name, i + 1);
	must(store_exclude(s, id[1], STR("before"), STR("anna"), e));
	few[0] = id[0];
	few[1] = id[1];
	must(store_bulk(s, BULK_EXCLUDE, few, 2, STR("hot room"), STR("bert"), &done, e));
	assert_int_equal(done.n_changed, 1);
	assert_int_equal(done.n_same, 1);
	assert_false(is_shown(s, id[0]) || is_shown(s, id[1]) || !is_shown(s, id[2]));
	must(store_exclusions(s, id[0], &a, &ex, &n, e));
	assert_true(n == 1 && str_is(ex[0].reason, "hot room") && str_is(ex[0].who, "bert"));
	must(store_exclusions(s, id[1], &a, &ex, &n, e));
	assert_true(n == 1 && str_is(ex[0].reason, "before"));
	must(store_bulk(s, BULK_INCLUDE, id, 4, STR(""), STR(""), &done, e));
	assert_int_equal(done.n_changed, 2);
	assert_int_equal(done.n_same, 2);
	assert_true(is_shown(s, id[0]) && is_shown(s, id[1]));
	few[1] = id[3] + 100;
	must(store_bulk(s, BULK_DELETE, few, 2, STR(""), STR(""), &done, e));
	assert_int_equal(done.n_changed, 1);
	assert_int_equal(done.n_missing, 1);
	assert_false(is_shown(s, id[0]));
	assert_true(is_shown(s, id[1]) && is_shown(s, id[2]) && is_shown(s, id[3]));
	refuses(store_bulk(s, BULK_EXCLUDE, id, 1, STR(""), STR(""), &done, e), "reason is empty");
	refuses(store_bulk(s, BULK_DELETE, id, STORE_BULK_MAX + 1, STR(""), STR(""), &done, e),
		"STORE_BULK_MAX");
	assert_true(is_shown(s, id[1]));
	store_close(s);
	arena_release(&a);
}

static void tags(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct bulk_result done;
	struct index_view *v;
	struct run_tag *tag;
	struct str *run_id;
	uint64_t before;
	int64_t id[2];
	size_t n;

	id[0] = put_one(s, &a, "r1", 1);
	id[1] = put_one(s, &a, "r2", 2);
	v = store_view(s);
	before = index_view_version(v);
	index_view_release(v);
	must(store_bulk(s, BULK_TAG, id, 2, STR("baseline"), STR("anna"), &done, e));
	assert_int_equal(done.n_changed, 2);
	must(store_bulk(s, BULK_TAG, id + 1, 1, STR("a b, c"), STR("bert"), &done, e));
	must(store_bulk(s, BULK_TAG, id, 2, STR("baseline"), STR("bert"), &done, e));
	assert_true(done.n_changed == 0 && done.n_same == 2);
	must(store_tags(s, id[1], &a, &tag, &n, e));
	assert_true(n == 2 && str_is(tag[0].tag, "a b, c") && str_is(tag[1].tag, "baseline") &&
		    str_is(tag[1].who, "anna"));
	must(store_tags(s, 0, &a, &tag, &n, e));
	assert_int_equal(n, 3);
	must(store_tagged(s, STR("baseline"), &a, &run_id, &n, e));
	assert_true(n == 2 && str_is(run_id[0], "r1") && str_is(run_id[1], "r2"));
	v = store_view(s);
	assert_true(index_view_version(v) > before); /* answers that are kept are of before */
	index_view_release(v);
	must(store_bulk(s, BULK_UNTAG, id, 2, STR("a b, c"), STR(""), &done, e));
	assert_true(done.n_changed == 1 && done.n_same == 1);
	must(store_bulk(s, BULK_DELETE, id, 1, STR(""), STR(""), &done, e));
	must(store_tagged(s, STR("baseline"), &a, &run_id, &n, e));
	assert_true(n == 1 && str_is(run_id[0], "r2"));
	refuses(store_bulk(s, BULK_TAG, id + 1, 1, STR(""), STR(""), &done, e), "the tag is empty");
	refuses(store_bulk(s, BULK_TAG, id + 1, 1, STR(" x"), STR(""), &done, e), "with a space");
	store_close(s);
	arena_release(&a);
}

static void test_tags(void **state)
{
	(void)state;
	with_stores(tags);
}

static void test_bulk(void **state)
{
	(void)state;
	with_stores(bulk);
}

static void test_notes(void **state)
{
	(void)state;
	with_stores(notes);
}

static void exclusions(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	int64_t run = put_one(s, &a, "x", 1);
	struct exclusion *x;
	struct run_whole w;
	size_t n;

	put_one(s, &a, "y", 2);
	must(store_exclude(s, run, STR("the fan had failed"), STR("anna"), e));
	assert_int_equal(shown(s, 0, false), 1);
	assert_int_equal(shown(s, INDEX_EXCLUDED, true), 1);
	must(store_exclude(s, run, STR("power limit"), STR("bert"), e));
	must(store_exclusions(s, run, &a, &x, &n, e));
	assert_int_equal(n, 2);
	assert_true(x[0].is_over);
	assert_false(x[1].is_over);
	assert_true(str_is(x[1].reason, "power limit"));
	assert_true(str_is(x[1].who, "bert"));
	must(store_run(s, run, &a, &w, e));
	assert_int_equal(w.flags, INDEX_EXCLUDED);
	must(store_exclude(s, run, STR(""), STR("anna"), e));
	assert_int_equal(shown(s, 0, false), 2);
	must(store_exclusions(s, run, &a, &x, &n, e));
	assert_int_equal(n, 2);
	assert_true(x[1].is_over);
	refuses(store_exclude(s, run + 7, STR("x"), STR(""), e), "there is no run");
	store_close(s);
	arena_release(&a);
}

static void test_exclusions(void **state)
{
	(void)state;
	with_stores(exclusions);
}

static int put(struct store *s, const char *kind, struct preset *p, struct err *e)
{
	return store_preset_put(s, kind, p, (double)NAN, e);
}

static void presets(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct preset mine = { .name = STR("mine"), .body = STR("{\"and\": []}") };
	struct preset yours = { .name = STR("yours"), .body = STR("{}") }, other = yours, *p;
	double first_s;
	size_t n;

	must(put(s, "preset", &mine, e));
	must(put(s, "preset", &yours, e));
	assert_true(yours.id > mine.id);
	other.name = mine.name;
	refuses(put(s, "preset", &other, e), "already");
	other.id = yours.id;
	refuses(put(s, "preset", &other, e), "already");
	refuses(put(s, "preset", &(struct preset){ .name = STR("") }, e), "empty");
	first_s = yours.at_s;
	yours.name = STR("ours");
	yours.body = STR("[]");
	must(put(s, "preset", &yours, e));
	assert_int_equal(yours.id, other.id);
	/* What was saved meanwhile is not replaced unseen. */
	must(store_preset_put(s, "preset", &yours, yours.at_s, e));
	assert_true(yours.at_s > first_s);
	other = yours;
	other.body = STR("lost");
	refuses(store_preset_put(s, "preset", &other, first_s, e), "another window");
	assert_true(other.at_s == yours.at_s);
	/* Nor what another machine saved, whose clock is behind. */
	refuses(store_preset_put(s, "preset", &other, yours.at_s + 9, e), "another window");
	/* A new name alone leaves the body as others have saved it, and the other way round. */
	other = (struct preset){ .id = yours.id, .name = STR("theirs") };
	must(put(s, "preset", &other, e));
	other = (struct preset){ .id = yours.id, .body = STR("[]") };
	must(put(s, "preset", &other, e));
	must(store_presets(s, "preset", &a, &p, &n, e));
	assert_true(str_is(p[1].name, "theirs") && str_is(p[1].body, "[]"));
	must(put(s, "preset", &yours, e));
	must(store_presets(s, "preset", &a, &p, &n, e));
	assert_int_equal(n, 2);
	assert_true(str_is(p[0].name, "mine") && str_is(p[0].body, "{\"and\": []}"));
	assert_true(str_is(p[1].name, "ours") && str_is(p[1].body, "[]"));
	assert_true(p[1].at_s == yours.at_s);
	/* Another kind has its own names. */
	other = (struct preset){ .name = mine.name, .body = STR("{}") };
	must(put(s, "board", &other, e));
	must(store_presets(s, "board", &a, &p, &n, e));
	assert_int_equal(n, 1);
	assert_int_equal(p[0].id, other.id);
	refuses(store_preset_drop(s, "board", mine.id, e), "there is no board");
	mine.name = STR("x");
	refuses(put(s, "board", &mine, e), "there is no board");
	must(store_preset_drop(s, "preset", mine.id, e));
	refuses(store_preset_drop(s, "preset", mine.id, e), "there is no preset");
	refuses(put(s, "preset", &mine, e), "there is no view");
	store_close(s);
	arena_release(&a);
}

static void test_presets(void **state)
{
	(void)state;
	with_stores(presets);
}

static void marks(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct change_mark m = { .series = STR("llama / H100"), .metric = STR("p99_ttft_ms"),
				 .at = STR("abc123"),
				 .kind = STR("expected"), .text = STR("new kernel"),
				 .who = STR("anna") };
	struct change_mark *got;
	int64_t id;
	size_t n;

	must(store_mark_put(s, &m, &id, e));
	must(store_marks(s, &a, &got, &n, e));
	assert_int_equal(n, 1);
	assert_int_equal(got[0].id, id);
	assert_true(str_eq(got[0].metric, m.metric));
	assert_true(str_eq(got[0].series, m.series) && str_eq(got[0].at, m.at) &&
		    str_eq(got[0].kind, m.kind) && str_eq(got[0].text, m.text));
	must(store_mark_drop(s, id, e));
	refuses(store_mark_drop(s, id, e), "there is no mark");
	must(store_marks(s, &a, &got, &n, e));
	assert_int_equal(n, 0);
	store_close(s);
	arena_release(&a);
}

static void test_marks(void **state)
{
	(void)state;
	with_stores(marks);
}

/* ---- traces ---- */

static const char *trace_file(struct arena *a, const char *name, const char *text)
{
	const char *path = in_dir(a, name);

	must(file_write_atomic(path, str_of(text), e));
	return path;
}

static void traces(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	const char *one = trace_file(&a, "one.json.gz", url), *two = trace_file(&a, "two", "other");
	int64_t run = put_one(s, &a, "x", 1), id, same, free_id, again;
	struct trace *t, open;
	struct retention small = { .trace_bytes = 3 };
	char text[512] = { 0 };
	struct buf told = { 0 };
	size_t n;
	int fd;

	must(store_trace_put(s, run, STR("../../etc/rank0.json.gz"), one, &id, e));
	must(store_trace_put(s, run, STR("rank0.json.gz"), one, &same, e));
	assert_int_equal(same, id);
	must(store_trace_put(s, 0, STR("free"), one, &free_id, e));
	assert_int_not_equal(free_id, id);
	must(store_trace_put(s, run, STR("two"), two, &again, e));
	refuses(store_trace_put(s, run + 9, STR("x"), two, &again, e), "there is no run");
	refuses(store_trace_put(s, run, STR("none"), trace_file(&a, "none", ""), &again, e), "none is empty");
	must(store_traces(s, run, &a, &t, &n, e));
	assert_int_equal(n, 2);
	assert_true(str_is(t[1].name, "rank0.json.gz"));
	assert_true(str_is(t[1].model, "llama"));
	assert_true(str_is(t[1].state, "here"));
	assert_int_equal(t[1].bytes, strlen(url));
	must(store_traces(s, 0, &a, &t, &n, e));
	assert_int_equal(n, 3);
	fd = store_trace_open(s, id, &a, &open, NULL);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), strlen(url));
	assert_string_equal(text, url);
	close(fd);
	/* The file goes with the last trace that has its content. */
	must(store_trace_drop(s, id, e));
	refuses(store_trace_drop(s, id, e), "there is no trace");
	fd = store_trace_open(s, free_id, &a, &open, NULL);
	assert_true(fd >= 0);
	close(fd);
	must(store_trace_drop(s, free_id, e));
	must(store_traces(s, 0, &a, &t, &n, e));
	assert_int_equal(n, 1);
	must(store_retain(s, &small, &told, e));
	assert_true(str_ends(buf_str(&told), STR("1 traces expired")));
	buf_release(&told);
	must(store_traces(s, 0, &a, &t, &n, e));
	assert_true(str_is(t[0].state, "expired"));
	refuses(store_trace_open(s, t[0].id, &a, &open, e), "expired");
	store_close(s);
	arena_release(&a);
}

static void test_traces(void **state)
{
	(void)state;
	with_stores(traces);
}

static const char *state_of(struct store *s, struct arena *a, int64_t run)
{
	struct trace *t;
	size_t n;

	must(store_traces(s, run, a, &t, &n, e));
	assert_int_equal(n, 1);
	return arena_text(a, t[0].state);
}

/* A trace that comes along with its run is stored once; an expired one only returns manually. */
static void traces_that_come_along(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	const char *file = trace_file(&a, "along", "come along");
	int64_t run = put_one(s, &a, "along", 1), id, again;
	struct retention small = { .trace_bytes = 3 };
	struct buf told = { 0 };
	bool is_new;

	must(store_trace_take(s, run, STR("d/along"), file, &is_new, e));
	assert_true(is_new);
	must(store_trace_take(s, run, STR("d/along"), file, &is_new, e));
	assert_false(is_new);
	must(store_retain(s, &small, &told, e));
	must(store_trace_take(s, run, STR("d/along"), file, &is_new, e));
	assert_false(is_new);
	assert_string_equal(state_of(s, &a, run), "expired");
	must(store_trace_put(s, run, STR("by hand"), file, &id, e));
	assert_string_equal(state_of(s, &a, run), "here");
	must(store_trace_put(s, run, STR("by hand"), file, &again, e));
	assert_int_equal(again, id);
	buf_release(&told);
	store_close(s);
	arena_release(&a);
}

static void test_traces_that_come_along(void **state)
{
	(void)state;
	with_stores(traces_that_come_along);
}

/* A restored store lacks the files, which is not an error; the same file again completes it. */
static void traces_of_a_backup(const char *url)
{
	static int number;
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	const char *file = trace_file(&a, "backed", url), *backup = in_dir(&a, "traces.backup");
	const char *copy = arena_printf(&a, "sqlite:%s/traces-copy%d.db", dir, ++number);
	int64_t run = put_one(s, &a, "backed", 1), id;
	struct str *finding;
	bool is_new;
	size_t n;

	must(store_trace_put(s, run, STR("backed"), file, &id, e));
	must(store_backup(s, backup, e));
	assert_string_equal(state_of(s, &a, run), "here");
	store_close(s);
	must(store_restore(copy, backup, false, NULL, e));
	s = open_store(copy, false);
	assert_string_equal(state_of(s, &a, run), "left_out");
	must(store_check(s, &a, &finding, &n, e));
	assert_int_equal(n, 0);
	must(store_trace_take(s, run, STR("backed"), file, &is_new, e));
	assert_true(is_new);
	assert_string_equal(state_of(s, &a, run), "here");
	must(store_trace_drop(s, id, e));
	must(store_check(s, &a, &finding, &n, e));
	assert_int_equal(n, 0);
	store_close(s);
	arena_release(&a);
}

static void test_traces_of_a_backup(void **state)
{
	(void)state;
	with_stores(traces_of_a_backup);
}

/* ---- jobs ---- */

static void work_off(struct store *s)
{
	int rc;

	do {
		struct err why = { 0 };

		rc = store_job_step(s, &why);
		if (rc < 0)
			fail_msg("%s", why.text);
	} while (rc > 0);
}

/* What bench serve writes, shortened to what its reader rests on. */
static const char *result_text(struct arena *a, int number)
{
	return arena_printf(a, "{\"date\": \"20250101-0000%02d\", \"endpoint_type\": \"vllm\","
			       " \"backend\": \"vllm\", \"label\": null, \"model_id\": \"m\","
			       " \"tokenizer_id\": \"m\", \"num_prompts\": %d, \"request_rate\": \"inf\","
			       " \"burstiness\": 1.0, \"max_concurrency\": null, \"duration\": 1.5,"
			       " \"completed\": 3, \"failed\": 0, \"total_input_tokens\": 3,"
			       " \"total_output_tokens\": 9, \"request_throughput\": 2.0,"
			       " \"output_throughput\": 6.0, \"total_token_throughput\": 8.0,"
			       " \"mean_ttft_ms\": 1.0, \"median_ttft_ms\": 1.0, \"std_ttft_ms\": 0.0,"
			       " \"p99_ttft_ms\": 1.0}", number % 60, number);
}

static void jobs(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct str name[3] = { STR("a.json"), STR("../b\0.json"), STR("c\xff.json") };
	struct str bytes[3] = { str_of(result_text(&a, 1)), str_of(result_text(&a, 2)), STR("{\"a\":") };
	struct job j, *list;
	char id[17], other[17];
	size_t n;

	must(store_job_begin(s, STR("upload"), STR("{}"), id, e));
	must(store_job_add_all(s, id, name, bytes, 3, e));
	work_off(s); /* nothing is taken before all of it is there */
	must(store_job(s, id, &a, &j, e));
	assert_true(str_is(j.state, "waiting"));
	assert_int_equal(j.n_files, 3);
	assert_int_equal(j.n_done, 0);
	must(store_job_add(s, id, STR("d.json"), str_of(result_text(&a, 1)), e));
	store_close(s); /* a restart in between */
	s = open_store(url, false);
	must(store_job_resume(s, 0, e));
	work_off(s);
	must(store_job(s, id, &a, &j, e));
	assert_true(str_is(j.state, "done"));
	assert_true(j.ended_s >= j.created_s);
	assert_int_equal(j.n_done, 4);
	assert_int_equal(j.n_outcome[PUT_NEW], 2);
	assert_int_equal(j.n_outcome[PUT_DUPLICATE], 1);
	assert_int_equal(j.n_outcome[PUT_INVALID], 1);
	assert_int_equal(j.file[0].result.outcome, PUT_NEW);
	assert_int_equal(j.file[0].n_runs, 1);
	assert_int_equal(j.file[2].result.outcome, PUT_INVALID);
	assert_true(j.file[2].result.reason.n > 0);
	assert_int_equal(j.file[3].result.id, j.file[0].result.id);
	assert_int_equal(shown(s, 0, false), 2);
	/* One that is given up, one of another kind, and one without files. */
	must(store_job_begin(s, STR("upload"), STR("{}"), other, e));
	must(store_job_add(s, other, STR("e.json"), str_of(result_text(&a, 5)), e));
	must(store_job_state(s, other, "cancelled", STR("{\"why\": 1}"), e));
	must(store_job_begin(s, STR("run"), STR("{}"), other, e));
	must(store_job_state(s, other, "running", (struct str){ 0 }, e));
	must(store_job_begin(s, STR("upload"), STR("{}"), other, e));
	must(store_job_state(s, other, "running", (struct str){ 0 }, e));
	work_off(s);
	must(store_jobs(s, 10, &a, &list, &n, e));
	assert_int_equal(n, 4);
	assert_true(str_is(list[0].state, "done"));
	assert_true(str_is(list[1].state, "running") && str_is(list[1].kind, "run"));
	assert_true(str_is(list[2].state, "cancelled") && str_is(list[2].detail, "{\"why\": 1}"));
	assert_int_equal(list[2].n_done, 0);
	assert_int_equal(shown(s, 0, false), 2);
	/* One that has ended takes no more files and cannot run again. */
	snprintf(other, sizeof(other), "%.16s", list[2].id.p);
	refuses(store_job_add(s, other, STR("f.json"), str_of(result_text(&a, 6)), e), "has ended");
	refuses(store_job_state(s, other, "running", (struct str){ 0 }, e), "has ended");
	work_off(s);
	must(store_job(s, other, &a, &j, e));
	assert_true(str_is(j.state, "cancelled"));
	assert_int_equal(j.n_files, 1);
	refuses(store_job(s, "0000", &a, &j, e), "there is no job");
	refuses(store_job_state(s, id, "lost", STR(""), e), "never");
	refuses(store_job_add(s, "0000", STR("x"), STR("{}"), e), "there is no job");
	/* Names that cannot be guessed from when they were made. */
	must(store_job_begin(s, STR("run"), STR("{}"), id, e));
	must(store_job_begin(s, STR("run"), STR("{}"), other, e));
	assert_int_equal(strspn(id, "0123456789abcdef"), 16);
	assert_int_not_equal(strncmp(id, other, 8), 0);
	store_close(s);
	arena_release(&a);
}

#define WATCHED_JOBS 30
#define WATCHED_FILES 20

/* What work_off does, of another thread: NULL, or the store where a step failed. */
static void *take_in(void *self)
{
	struct err why = { 0 };
	int rc;

	do
		rc = store_job_step(self, &why);
	while (rc > 0);
	return rc < 0 ? self : NULL;
}

/* A client that sees that a job is done finds its runs in the index. */
static void watched_jobs(const char *url)
{
	struct store *s = open_store(url, false);

	for (int k = 0; k < WATCHED_JOBS; k++) {
		struct arena a = { 0 }, seen = { 0 };
		struct str name[WATCHED_FILES], bytes[WATCHED_FILES];
		struct job j = { 0 };
		pthread_t thread;
		void *failed;
		int64_t end;
		char id[17];

		for (int i = 0; i < WATCHED_FILES; i++) {
			name[i] = STR("a.json");
			bytes[i] = str_of(result_text(&a, k * WATCHED_FILES + i));
		}
		must(store_job_begin(s, STR("upload"), STR("{}"), id, e));
		must(store_job_add_all(s, id, name, bytes, WATCHED_FILES, e));
		must(store_job_resume(s, 0, e));
		assert_int_equal(pthread_create(&thread, NULL, take_in, s), 0);
		end = clock_mono_ns() + 60000000000;
		do {
			arena_release(&seen);
			must(store_job(s, id, &seen, &j, e));
		} while (!str_is(j.state, "done") && clock_mono_ns() < end);
		assert_true(str_is(j.state, "done"));
		assert_int_equal(shown(s, 0, false), (k + 1) * WATCHED_FILES);
		pthread_join(thread, &failed);
		assert_null(failed);
		arena_release(&seen);
		arena_release(&a);
	}
	store_close(s);
}

static void test_watched_jobs(void **state)
{
	(void)state;
	with_stores(watched_jobs);
}

static void test_jobs(void **state)
{
	(void)state;
	with_stores(jobs);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes), cmocka_unit_test(test_tags),
		cmocka_unit_test(test_bulk),
		cmocka_unit_test(test_exclusions),
		cmocka_unit_test(test_presets), cmocka_unit_test(test_marks),
		cmocka_unit_test(test_traces_that_come_along),
		cmocka_unit_test(test_traces_of_a_backup),
		cmocka_unit_test(test_traces),  cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_watched_jobs),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
