/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sets_workload_file.c - a workload written, read back, and read after damage.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/data/workload_file.h"
#include "input/sets/datasets.h"
#include "scratch.h"

static const struct sample full = {
	.prompt = { "[1, 2, 3]", 9 }, .kind = PROMPT_JSON, .prompt_len = 3, .output_len = -1,
	.request_id = { "bench-7", 7 }, .timestamp_s = 0.1,
	.messages = { "[{\"role\": \"user\"}]", 18 }, .media = { "[{}]", 4 },
	.overrides = { "{\"a\": 1}", 8 }, .file = { "RI\0FF", 5 }, .file_name = "audio.wav",
	.sequences = 4, .audio_s = 1.5f,
};

static void make(struct workload *w)
{
	struct sample *s;

	*w = (struct workload){ 0 };
	s = workload_add(w);
	s->prompt = (struct str){ "a\0b", 3 };
	s->prompt_len = 2;
	s->output_len = 128;
	s->request_id = STR("bench-0");
	*workload_add(w) = full;
	s = workload_add(w); /* everything empty */
	s->request_id = STR("");
}

static void assert_texts(struct str a, struct str b)
{
	assert_int_equal(a.n, b.n);
	assert_true(a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static void assert_same(const struct sample *a, const struct sample *b)
{
	assert_texts(a->headers, b->headers);
	assert_texts(a->expected, b->expected);
	assert_texts(a->constraint, b->constraint);
	assert_int_equal(a->priority, b->priority);
	assert_texts(a->prompt, b->prompt);
	assert_texts(a->messages, b->messages);
	assert_texts(a->media, b->media);
	assert_texts(a->overrides, b->overrides);
	assert_texts(a->file, b->file);
	assert_texts(str_of(a->file_name), str_of(b->file_name));
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->prompt_len, b->prompt_len);
	assert_int_equal(a->output_len, b->output_len);
	assert_int_equal(a->sequences, b->sequences);
	assert_true(a->audio_s == b->audio_s);
	assert_true(a->timestamp_s == b->timestamp_s ||
		    (isnan(a->timestamp_s) && isnan(b->timestamp_s)));
}

static char *write_one(struct workload *w, char hash[DIGEST_HEX])
{
	char *path = file_join(dir, "w.bin");
	struct err e;

	make(w);
	if (workload_file_write(path, w, STR("bench-"), STR("{\"seed\": 1}"), NULL, hash, &e) < 0)
		fail_msg("%s", e.text);
	return path;
}

static void what_is_written_is_read(void **state)
{
	struct workload w, r = { 0 };
	char hash[DIGEST_HEX], read_hash[DIGEST_HEX];
	struct str description;
	struct err e;
	char *path = write_one(&w, hash);

	(void)state;
	if (workload_file_read(path, SIZE_MAX, "run-", &r, &description, read_hash, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(hash, read_hash);
	assert_true(str_is(description, "{\"seed\": 1}"));
	assert_int_equal(r.n, w.n);
	for (size_t i = 0; i < w.n; i++)
		assert_same(&w.v[i], &r.v[i]);
	assert_true(str_is(r.v[0].request_id, "run-0"));
	assert_true(str_is(r.v[1].request_id, "run-7"));
	assert_int_equal(r.v[2].request_id.n, 0);
	workload_release(&r);
	assert_int_equal(workload_file_read(path, 2, "", &r, &description, read_hash, &e), 0);
	assert_int_equal(r.n, 2);
	workload_release(&r);
	workload_release(&w);
	free(path);
}

static unsigned layout_of_file(const char *path)
{
	struct workload_file_head head;
	struct buf bytes = { 0 };
	struct err e;

	assert_int_equal(file_read(path, 1 << 20, &bytes, &e), 0);
	memcpy(&head, bytes.data, sizeof(head));
	buf_release(&bytes);
	return head.layout;
}

/*
 * Requests of priorities, with headers or constraints of their own, need the second layout; others
 * keep the first and its hashes.
 */
static void requests_that_differ_are_read(void **state)
{
	static const struct sample own = {
		.prompt = STR("a"), .prompt_len = 1, .timestamp_s = NAN, .priority = INT64_MIN,
		.overrides = STR("{\"priority\": -9223372036854775808}"),
		.headers = STR("{\"X-A\": \"b\"}"), .expected = STR("an answer"),
		.constraint = STR("{\"regex\": \"a+\"}"),
	};
	char *path = file_join(dir, "own.bin"), hash[DIGEST_HEX], first[DIGEST_HEX];
	struct workload w = { 0 }, r = { 0 };
	struct str description;
	struct err e;

	(void)state;
	*workload_add(&w) = (struct sample){ .prompt = STR("plain"), .timestamp_s = NAN };
	assert_int_equal(workload_file_write(path, &w, STR(""), STR("{}"), NULL, first, &e), 0);
	assert_int_equal(layout_of_file(path), 1);
	for (size_t i = 0; i < 4; i++) {
		w.v[0] = (struct sample){ .prompt = STR("plain"), .timestamp_s = NAN };
		w.v[0].headers = i == 0 ? own.headers : (struct str){ 0 };
		w.v[0].expected = i == 1 ? own.expected : (struct str){ 0 };
		w.v[0].constraint = i == 2 ? own.constraint : (struct str){ 0 };
		w.has_priorities = i == 3;
		assert_int_equal(workload_file_write(path, &w, STR(""), STR("{}"), NULL, hash, &e), 0);
		assert_int_equal(layout_of_file(path), 2);
	}
	*workload_add(&w) = own;
	assert_int_equal(workload_file_write(path, &w, STR(""), STR("{}"), NULL, hash, &e), 0);
	assert_int_equal(layout_of_file(path), 2);
	assert_int_equal(workload_file_read(path, SIZE_MAX, "", &r, &description, first, &e), 0);
	assert_string_equal(hash, first);
	assert_true(r.has_priorities);
	assert_int_equal(r.n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_same(&w.v[i], &r.v[i]);
	workload_release(&r);
	w.v[1].headers = STR("{\"Content-Length\": \"0\"}");
	assert_int_equal(workload_file_write(path, &w, STR(""), STR("{}"), NULL, hash, &e), 0);
	assert_int_equal(workload_file_read(path, SIZE_MAX, "", &r, &description, first, &e), -1);
	assert_non_null(strstr(e.text, "request 1 is malformed"));
	workload_release(&r);
	workload_release(&w);
	free(path);
}

/* ---- sessions ---- */

static struct turn two_roots[] = {
	{ .history = TURN_NONE },
	{ .session = 0, .history = 0, .wait = 0, .n_waits = 1, .number = 1, .gap_s = .1,
	  .gap_kind = TURN_THINKS, .is_gap_from_start = true },
	{ .session = 0, .history = TURN_NONE },
	{ .session = 0, .history = 0, .wait = 1, .n_waits = 2, .number = 1, .gap_s = 1e-9,
	  .gap_kind = TURN_CALLS_TOOLS },
	{ .session = 1, .history = TURN_NONE },
	{ .session = 1, .history = 4, .wait = 3, .n_waits = 1, .number = 1, .gap_s = 5,
	  .is_gap_from_arrival = true },
};
static uint32_t waits[] = { 0, 1, 2, 4 };
static struct session two[] = { { STR("a#2"), 0, 4 }, { STR("b"), 4, 2 } };

static int write_sessions(const char *path, struct workload *w, struct sessions *s)
{
	char hash[DIGEST_HEX];
	struct err e;

	*w = (struct workload){ 0 };
	*s = (struct sessions){ two_roots, waits, two, 6, 4, 2 };
	for (int i = 0; i < 6; i++)
		*workload_add(w) = (struct sample){ .messages = STR("[]"), .timestamp_s = NAN,
						    .headers = STR("{\"X-A\": \"b\"}") };
	w->sessions = s;
	return workload_file_write(path, w, STR(""), STR("{}"), NULL, hash, &e);
}

static void sessions_are_read(void **state)
{
	char *path = file_join(dir, "sessions.bin"), hash[DIGEST_HEX];
	struct workload w, r = { 0 };
	struct str description;
	struct sessions s;
	struct err e;

	(void)state;
	assert_int_equal(write_sessions(path, &w, &s), 0);
	for (size_t most = 1; most <= 3; most++) {
		assert_int_equal(workload_file_read(path, most, "", &r, &description, hash, &e), 0);
		assert_int_equal(r.sessions->n_sessions, most < 2 ? most : 2);
		assert_int_equal(r.n, most == 1 ? 4 : 6);
		assert_int_equal(r.sessions->n_turns, r.n);
		for (size_t i = 0; i < r.n; i++) {
			const struct turn *a = &two_roots[i], *b = &r.sessions->turn[i];

			assert_same(&w.v[i], &r.v[i]);
			assert_true(a->session == b->session && a->history == b->history);
			assert_true(a->number == b->number && a->gap_s == b->gap_s);
			assert_int_equal(a->gap_kind, b->gap_kind);
			assert_int_equal(a->is_gap_from_start, b->is_gap_from_start);
			assert_int_equal(a->is_gap_from_arrival, b->is_gap_from_arrival);
			assert_int_equal(a->n_waits, b->n_waits);
			for (uint32_t k = 0; k < a->n_waits; k++)
				assert_int_equal(waits[a->wait + k],
						 r.sessions->waits[b->wait + k]);
		}
		assert_texts(r.sessions->session[0].id, two[0].id);
		workload_release(&r);
	}
	workload_release(&w);
	free(path);
}

/* Invalid files: no turn waits for a later one, or continues what has not ended. */
static void other_sessions_are_refused(void **state)
{
	char *path = file_join(dir, "bad.bin"), hash[DIGEST_HEX];

	(void)state;
	for (int k = 0; k < 8; k++) {
		struct turn kept[6];
		uint32_t kept_wait = waits[3];
		struct str kept_id = two[1].id, description;
		struct workload w, r = { 0 };
		struct sessions s;
		struct err e = { 0 };

		memcpy(kept, two_roots, sizeof(kept));
		switch (k) {
		case 0: waits[3] = 5; break;             /* for itself */
		case 1: waits[3] = 3; break;             /* another session's */
		case 2: two_roots[5].history = 5; break;
		case 3: two_roots[3].history = 3; break;
		case 4: two_roots[3].wait = 2;           /* it continues 0, and waits for 2 alone */
			two_roots[3].n_waits = 1; break;
		case 5: two_roots[5].gap_s = -1; break;
		case 6: two_roots[5].gap_kind = 3; break;
		case 7: two[1].id = STR("b\r\nX: y"); break;
		}
		assert_int_equal(write_sessions(path, &w, &s), 0);
		if (workload_file_read(path, SIZE_MAX, "", &r, &description, hash, &e) == 0)
			fail_msg("case %d was taken", k);
		assert_non_null(strstr(e.text, "bad.bin: session "));
		assert_non_null(strstr(e.text, "is malformed"));
		memcpy(two_roots, kept, sizeof(kept));
		waits[3] = kept_wait;
		two[1].id = kept_id;
		workload_release(&r);
		workload_release(&w);
	}
	free(path);
}

/* The hash is of what is sent: neither the description nor the run's id prefix changes it. */
static void the_hash_is_of_the_content(void **state)
{
	char *path = file_join(dir, "other.bin");
	char hash[DIGEST_HEX], other[DIGEST_HEX];
	struct workload w;
	struct err e;

	(void)state;
	free(write_one(&w, hash));
	w.v[0].request_id = STR("else-0");
	w.v[1].request_id = STR("else-7");
	assert_int_equal(workload_file_write(path, &w, STR("else-"), STR("{}"), NULL, other, &e), 0);
	assert_string_equal(hash, other);
	w.v[0].output_len++;
	assert_int_equal(workload_file_write(path, &w, STR("else-"), STR("{}"), NULL, other, &e), 0);
	assert_string_not_equal(hash, other);
	workload_release(&w);
	free(path);
}

/* Every cut and every changed byte of the content is noticed. */
static void damage_is_noticed(void **state)
{
	struct buf bytes = { 0 };
	char hash[DIGEST_HEX], *path, *cut;
	struct workload w;
	struct str description;
	struct err e;

	(void)state;
	path = write_one(&w, hash);
	workload_release(&w);
	cut = file_join(dir, "cut.bin");
	assert_int_equal(file_read(path, 1 << 20, &bytes, &e), 0);
	for (size_t n = 0; n < bytes.len; n++) {
		assert_int_equal(file_write_atomic(cut, (struct str){ bytes.data, n }, &e), 0);
		assert_int_equal(workload_file_read(cut, SIZE_MAX, "", &w, &description, hash, &e), -1);
		assert_non_null(strstr(e.text, "cut.bin"));
		workload_release(&w);
	}
	for (size_t i = sizeof(struct workload_file_head) + 16; i < bytes.len; i++) {
		bytes.data[i] ^= 1;
		assert_int_equal(file_write_atomic(cut, buf_str(&bytes), &e), 0);
		assert_int_equal(workload_file_read(cut, SIZE_MAX, "", &w, &description, hash, &e), -1);
		assert_non_null(strstr(e.text, "damaged"));
		workload_release(&w);
		bytes.data[i] ^= 1;
	}
	buf_release(&bytes);
	free(path);
	free(cut);
}

/* The dataset takes the whole file or the number asked for, and says when it is too short. */
static void the_dataset_replays(void **state)
{
	struct workload w, r = { 0 };
	struct compat_rng rng;
	char hash[DIGEST_HEX], *path = write_one(&w, hash);
	struct dataset_opts opts = { .path = path };
	struct dataset_env env = { .request_id_prefix = "x-" };
	struct err e;

	(void)state;
	compat_rng_seed(&rng, 0);
	assert_int_equal(dataset_find("workload")->build(&opts, &env, &rng, &r, &e), 0);
	assert_int_equal(r.n, 3);
	assert_string_equal(r.hash, hash);
	workload_release(&r);
	env.num_prompts = 4;
	assert_int_equal(dataset_find("workload")->build(&opts, &env, &rng, &r, &e), -1);
	assert_non_null(strstr(e.text, "holds 3 requests, and --num-prompts asks for 4"));
	workload_release(&r);
	workload_release(&w);
	free(path);
}

/* What was forced on when a file was made holds for its replay; chat cannot carry ids. */
static void the_description_holds(void **state)
{
	struct workload w = { 0 }, r = { 0 };
	struct compat_rng rng;
	char hash[DIGEST_HEX], *path = file_join(dir, "held.bin");
	struct dataset_opts opts = { .path = path };
	struct dataset_env env = {
		.request_id_prefix = "x-", .backend = "openai", .tokenizer_name = "other",
	};
	const struct str held = STR("{\"tokenizer\": \"sim\", \"ignore_eos\": true, \"self_timed\": "
				    "true}");
	struct sample *s = workload_add(&w);
	struct err e;

	(void)state;
	compat_rng_seed(&rng, 0);
	s->prompt = STR("[17, 4]");
	s->kind = PROMPT_JSON;
	s->timestamp_s = 2;
	assert_int_equal(workload_file_write(path, &w, STR(""), held, NULL, hash, &e), 0);
	assert_int_equal(dataset_find("workload")->build(&opts, &env, &rng, &r, &e), 0);
	assert_true(r.is_eos_ignored && r.is_self_timed);
	assert_non_null(strstr(r.notes.p, "made with the tokenizer sim"));
	workload_release(&r);
	env.backend = "openai-chat";
	env.is_chat_backend = true;
	assert_int_equal(dataset_find("workload")->build(&opts, &env, &rng, &r, &e), -1);
	assert_non_null(strstr(e.text, "held.bin: request 0 is a list of token ids"));
	workload_release(&r);
	workload_release(&w);
	free(path);
}

/* Ids become headers: one that would end its line is refused in any file. */
static void ids_stay_on_their_line(void **state)
{
	char hash[DIGEST_HEX], *path = file_join(dir, "line.bin");
	struct workload w = { 0 }, r = { 0 };
	struct str description;
	struct err e;

	(void)state;
	workload_add(&w)->request_id = STR("a\r\nX-Other: b");
	assert_int_equal(workload_file_write(path, &w, STR(""), STR("{}"), NULL, hash, &e), 0);
	assert_int_equal(workload_file_read(path, 1, "", &r, &description, hash, &e), -1);
	assert_non_null(strstr(e.text, "line.bin: request 0 is malformed"));
	workload_release(&r);
	workload_release(&w);
	free(path);
}

static void stopping_leaves_no_file(void **state)
{
	char hash[DIGEST_HEX], *path = file_join(dir, "stopped.bin");
	atomic_bool cancel = true;
	struct workload w;
	struct err e;

	(void)state;
	make(&w);
	assert_int_equal(workload_file_write(path, &w, STR(""), STR("{}"), &cancel, hash, &e), -1);
	assert_int_equal(e.code, ERR_CANCELLED);
	assert_false(file_exists(path));
	workload_release(&w);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(requests_that_differ_are_read),
		cmocka_unit_test(sessions_are_read),
		cmocka_unit_test(other_sessions_are_refused),
		cmocka_unit_test(the_hash_is_of_the_content),
		cmocka_unit_test(damage_is_noticed),
		cmocka_unit_test(the_dataset_replays),
		cmocka_unit_test(the_description_holds),
		cmocka_unit_test(ids_stay_on_their_line),
		cmocka_unit_test(stopping_leaves_no_file),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
