/* SPDX-License-Identifier: Apache-2.0 */
/* test_serving.c - the parts of the simulator that need no socket. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "client/http/prometheus.h"
#include "core/base/file.h"
#include "core/rng/rng.h"
#include "scratch.h"
#include "sim/model/draw.h"
#include "sim/model/engine.h"
#include "sim/model/fault.h"
#include "sim/model/prefix.h"
#include "sim/serving/ask.h"
#include "sim/serving/truth.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- distributions ---- */

static void test_dist_reads(void **state)
{
	static const struct {
		const char *text;
		int rc;
		enum dist_kind kind;
		double a, b;
	} rows[] = {
		{ "20", 0, DIST_CONSTANT, 20, 0 },
		{ "0", 0, DIST_CONSTANT, 0, 0 },
		{ "0.25", 0, DIST_CONSTANT, 0.25, 0 },
		{ "uniform:10:30", 0, DIST_UNIFORM, 10, 30 },
		{ "uniform:10:10", 0, DIST_UNIFORM, 10, 10 },
		{ "normal:20:5", 0, DIST_NORMAL, 20, 5 },
		{ "exp:20", 0, DIST_EXP, 20, 0 },
		{ "lognormal:20:0.5", 0, DIST_LOGNORMAL, 20, 0.5 },
		{ "", -1, 0, 0, 0 }, { "-1", -1, 0, 0, 0 }, { "nan", -1, 0, 0, 0 },
		{ "inf", -1, 0, 0, 0 }, { "x", -1, 0, 0, 0 }, { "uniform:30:10", -1, 0, 0, 0 },
		{ "uniform:1", -1, 0, 0, 0 }, { "exp:1:2", -1, 0, 0, 0 }, { "exp:", -1, 0, 0, 0 },
		{ "normal:1:2:3", -1, 0, 0, 0 }, { "gamma:1:2", -1, 0, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct dist d;

		assert_int_equal(dist_parse(&d, "--x", rows[i].text, &e), rows[i].rc);
		if (rows[i].rc < 0) {
			assert_int_equal(e.code, ERR_USAGE);
			assert_non_null(strstr(e.text, "--x"));
			continue;
		}
		assert_int_equal(d.kind, rows[i].kind);
		assert_true(d.a == rows[i].a && d.b == rows[i].b);
	}
}

static void test_dist_draws(void **state)
{
	static const struct { const char *text; double mean, sd; } rows[] = {
		{ "20", 20, 0 }, { "uniform:10:30", 20, 5.7735 }, { "normal:20:5", 20, 5 },
		{ "exp:20", 20, 20 }, { "lognormal:20:0.5", 22.663, 12.078 },
	};
	enum { N = 40000 };
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pcg64 g = rng_fork(7, "test"), again = g;
		double sum = 0, squares = 0, mean, sd;
		struct dist d;

		assert_int_equal(dist_parse(&d, "--x", rows[i].text, NULL), 0);
		for (int k = 0; k < N; k++) {
			double v = dist_draw(&d, &g);

			assert_true(v >= 0 && v == dist_draw(&d, &again));
			sum += v;
			squares += v * v;
		}
		mean = sum / N;
		sd = sqrt(fmax(0, squares / N - mean * mean));
		assert_true(fabs(mean - rows[i].mean) < 0.03 * rows[i].mean);
		assert_true(fabs(sd - rows[i].sd) <= 0.04 * rows[i].sd);
	}
}

/* ---- faults ---- */

static void test_fault_reads(void **state)
{
	static const struct { const char *text, *why; } rows[] = {
		{ "status=503", NULL }, { "status=503:0.1", NULL }, { "reset@5:0.05", NULL },
		{ "close@1", NULL }, { "stall@5=2s:id=slow-*", NULL }, { "malformed@3", NULL },
		{ "slow-start=500us", NULL }, { "coalesce", NULL }, { "coalesce=8:1", NULL },
		{ "crlf:0", NULL }, { "stall@2=10", NULL }, { "status=429:id=a:b", NULL },
		{ "", "unknown fault ''" }, { "explode", "expected one of status, slow-start" },
		{ "status", "needs a status" }, { "status=200", "a status from 400" },
		{ "status=abc", "a status from 400" }, { "status@3=503", "takes no @TOKEN" },
		{ "reset", "needs @TOKEN" }, { "reset@0", "needs @TOKEN" },
		{ "reset@x", "needs @TOKEN" }, { "reset@5=1", "takes nothing" },
		{ "stall@5", "needs a duration" }, { "stall@5=-1s", "takes a duration" },
		{ "stall@5=1h", "takes a duration" }, { "coalesce=1", "a count from 2" },
		{ "crlf:1.5", "probability" }, { "crlf:", "probability" },
		{ "crlf:id=", "id=PATTERN" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct fault_set set = { 0 };
		struct err e = { 0 };
		int rc = fault_add(&set, rows[i].text, &e);

		assert_int_equal(rc, rows[i].why ? -1 : 0);
		if (rows[i].why && !strstr(e.text, rows[i].why))
			fail_msg("'%s' gave '%s'", rows[i].text, e.text);
		assert_int_equal(set.n, rows[i].why ? 0 : 1);
	}
}

static void test_fault_plans(void **state)
{
	static const char *const specs[] = {
		"status=503:id=bad-*", "stall@5=2s:id=slow-?", "reset@9", "coalesce=3:0",
		"crlf:0.5",
	};
	struct fault_set set = { 0 };
	struct fault_plan p;
	int crlf = 0;
	(void)state;
	for (size_t i = 0; i < COUNT(specs); i++)
		assert_int_equal(fault_add(&set, specs[i], NULL), 0);
	for (int i = 0; i < 1000; i++) {
		struct pcg64 g = rng_fork((uint64_t)i, "test"), again = g;
		struct fault_plan q = fault_plan(&set, "slow-1", &again);

		p = fault_plan(&set, "slow-1", &g);
		assert_memory_equal(&p, &q, sizeof(p));
		assert_int_equal(p.status, 0);
		assert_int_equal(p.stall_at, 5);
		assert_int_equal(p.stall_ns, 2000000000);
		assert_int_equal(p.reset_at, 9);
		assert_int_equal(p.coalesce, 0);
		crlf += p.is_crlf;
	}
	assert_in_range(crlf, 430, 570);
	p = fault_plan(&set, "bad-7", &(struct pcg64){ 0 });
	assert_int_equal(p.status, 503);
	assert_int_equal(p.stall_at, 0);
	assert_true(fault_paces(&set));
}

/* ---- requests ---- */

static const struct { enum ask_api api; const char *body, *why, *param; } ask_rows[] = {
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\"}", NULL, NULL },
	{ ASK_COMPLETIONS, "{\"prompt\":[1,2],\"unknown\":{}}", NULL, NULL },
	{ ASK_COMPLETIONS, "{\"prompt\":[\"a\"],\"stop\":null,\"max_tokens\":null}",
	  NULL, NULL },
	{ ASK_COMPLETIONS, "{\"prompt\":[[1,2]],\"n\":1,\"echo\":false}", NULL, NULL },
	{ ASK_CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", NULL, NULL },
	{ ASK_DETOKENIZE, "{\"tokens\":[]}", NULL, NULL },
	{ ASK_TOKENIZE, "{\"messages\":[{\"role\":\"user\"}]}", NULL, NULL },
	{ ASK_RESPONSES, "{\"input\":\"a\",\"max_output_tokens\":3}", NULL, NULL },
	{ ASK_RESPONSES, "{\"input\":[1,2],\"max_output_tokens\":3}", NULL, NULL },
	{ ASK_RESPONSES, "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":"
	  "\"input_text\",\"text\":\"a\"}]}],\"instructions\":\"b\"}", NULL, NULL },
	{ ASK_ANTHROPIC, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
	  "\"max_tokens\":3,\"stop_sequences\":[\"x\"]}", NULL, NULL },
	{ ASK_TGI, "{\"inputs\":\"a\",\"parameters\":{\"max_new_tokens\":3}}", NULL, NULL },
	{ ASK_LLAMACPP, "{\"prompt\":[1,2],\"n_predict\":-1}", NULL, NULL },
	{ ASK_SGLANG, "{\"input_ids\":[1],\"sampling_params\":null}", NULL, NULL },
	{ ASK_DEMO, "{\"prompt\":\"a\",\"max_tokens\":3}", NULL, NULL },
	{ ASK_OLLAMA, "{\"prompt\":\"a\",\"options\":{\"num_predict\":3}}", NULL, NULL },
	{ ASK_RESPONSES, "{}", "input is missing", NULL },
	{ ASK_ANTHROPIC, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
	  "max_tokens is missing", NULL },
	{ ASK_TGI, "{\"parameters\":{}}", "inputs is missing", NULL },
	{ ASK_TGI, "{\"inputs\":\"a\",\"parameters\":{\"max_new_tokens\":0}}",
	  "max_new_tokens must be at least 1", "parameters" },
	{ ASK_SGLANG, "{\"text\":\"a\",\"sampling_params\":7}", "an object",
	  "sampling_params" },
	{ ASK_SGLANG, "{\"sampling_params\":{}}", "text is missing", NULL },
	{ ASK_OLLAMA_CHAT, "{\"messages\":[]}", "empty", "messages" },
	{ ASK_COMPLETIONS, "", "not valid JSON", NULL },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\"} x", "not valid JSON", NULL },
	{ ASK_COMPLETIONS, "[1]", "JSON object", NULL },
	{ ASK_COMPLETIONS, "{}", "prompt is missing", NULL },
	{ ASK_CHAT, "{\"prompt\":\"a\"}", "messages is missing", NULL },
	{ ASK_DETOKENIZE, "{}", "tokens is missing", NULL },
	{ ASK_COMPLETIONS, "{\"prompt\":7}", "prompt must be", "prompt" },
	{ ASK_COMPLETIONS, "{\"prompt\":[]}", "empty list", "prompt" },
	{ ASK_COMPLETIONS, "{\"prompt\":[1,\"a\"]}", "token ids", "prompt" },
	{ ASK_COMPLETIONS, "{\"prompt\":[-1]}", "token ids", "prompt" },
	{ ASK_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"]}", "one prompt", "prompt" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"max_tokens\":0}", "at least 1",
	  "max_tokens" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"max_tokens\":1.5}", "integer",
	  "max_tokens" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"min_tokens\":5,\"max_tokens\":4}",
	  "min_tokens", NULL },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stream\":\"yes\"}", "true or false",
	  "stream" },
	{ ASK_DEMO, "{\"prompt\":\"a\",\"n\":2}", "n must be 1", "n" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"n\":257}", "n must be at most 256", "n" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"priority\":1.5}", "priority must be an integer",
	  "priority" },
	{ ASK_CHAT, "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{}]}]}",
	  "tool_calls[] must be objects", "messages" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"echo\":true}", "echo", "echo" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stop\":\"\"}", "empty", "stop" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stop\":[1]}", "strings", "stop" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stream_options\":1}", "object",
	  "stream_options" },
	{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"model\":1}", "string", "model" },
	{ ASK_CHAT, "{\"messages\":[]}", "empty", "messages" },
	{ ASK_CHAT, "{\"messages\":[{\"content\":\"a\"}]}", "role", "messages" },
	{ ASK_CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":7}]}", "content",
	  "messages" },
};

static void test_ask_rows(void **state)
{
	struct sim_ask a = { 0 };
	(void)state;
	for (size_t i = 0; i < COUNT(ask_rows); i++) {
		const char *param = "";
		struct err e = { 0 };
		int rc = ask_read(&a, ask_rows[i].api, str_of(ask_rows[i].body), &param, &e);

		assert_int_equal(rc, ask_rows[i].why ? -1 : 0);
		if (!ask_rows[i].why)
			continue;
		if (!strstr(e.text, ask_rows[i].why))
			fail_msg("'%s' gave '%s'", ask_rows[i].body, e.text);
		if (ask_rows[i].param)
			assert_string_equal(param, ask_rows[i].param);
	}
	ask_release(&a);
}

static void test_ask_fields(void **state)
{
	struct sim_ask a = { 0 };
	(void)state;
	assert_int_equal(ask_read(&a, ASK_COMPLETIONS, STR(
		"{\"model\":\"m\\u0041\",\"prompt\":\"x\\ny\",\"stream\":true,\"stream_options\":"
		"{\"include_usage\":true,\"continuous_usage_stats\":true},\"max_tokens\":9,"
		"\"min_tokens\":2,\"ignore_eos\":true,\"stop\":[\"ab\",\"c\"],\"logprobs\":null,"
		"\"add_special_tokens\":false}"), NULL, NULL), 0);
	assert_true(str_is(buf_str(&a.model), "mA") && str_is(buf_str(&a.text), "x\ny"));
	assert_true(a.is_stream && a.has_usage && a.has_usage_always && a.is_eos_ignored);
	assert_int_equal(a.max_tokens, 9);
	assert_int_equal(a.min_tokens, 2);
	assert_int_equal(a.stops, 2);
	assert_true(str_is(ask_stop(&a, 0), "ab") && str_is(ask_stop(&a, 1), "c"));
	assert_false(a.has_special);
	assert_int_equal(ask_read(&a, ASK_CHAT, STR(
		"{\"messages\":[{\"role\":\"system\",\"content\":\"be\"},{\"role\":\"user\","
		"\"content\":"
		"[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\"},{\"type\":\"text\","
		"\"text\":\"b\"}]}],\"max_completion_tokens\":3}"), NULL, NULL), 0);
	assert_true(str_is(buf_str(&a.text), "<|system|>\nbe\n<|user|>\na\nb\n<|assistant|>\n"));
	assert_false(a.is_stream || a.has_usage || a.is_eos_ignored || a.has_special || a.stops);
	assert_int_equal(a.max_tokens, 3);
	assert_int_equal(a.model.len, 0);
	assert_int_equal(ask_read(&a, ASK_ANTHROPIC, STR(
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_tokens\":4,"
		"\"system\":[{\"type\":\"text\",\"text\":\"be\"}]}"), NULL, NULL), 0);
	assert_true(str_is(buf_str(&a.text),
			   "<|system|>\nbe\n<|user|>\na\n<|assistant|>\n"));
	assert_true(a.has_usage && !a.is_stream);
	assert_false(a.has_special);
	assert_int_equal(ask_read(&a, ASK_COMPLETIONS, STR("{\"prompt\":\"x\"}"), NULL, NULL), 0);
	assert_true(a.has_special && !a.has_usage && !a.is_stream);
	assert_int_equal(ask_read(&a, ASK_OLLAMA, STR(
		"{\"prompt\":\"a\",\"options\":{\"num_predict\":-2,\"stop\":[\"x\"]}}"), NULL,
		NULL), 0);
	assert_true(a.is_stream && a.stops == 1);
	assert_int_equal(a.max_tokens, -1);
	assert_int_equal(ask_generate_api(STR("{\"inputs\":\"a\"}")), ASK_TGI);
	assert_int_equal(ask_generate_api(STR("{\"input_ids\":[1]}")), ASK_SGLANG);
	assert_int_equal(ask_generate_api(STR("{\"prompt\":\"a\"}")), ASK_DEMO);
	assert_int_equal(ask_generate_api(STR("{")), ASK_DEMO);
	ask_release(&a);
}

/* ---- words ---- */

static void test_words_count_honestly(void **state)
{
	struct tokenizer *t = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
	struct sim_words w = { 0 };
	struct buf text = { 0 };
	(void)state;
	assert_non_null(t);
	assert_int_equal(words_init(&w, t, NULL), 0);
	assert_int_equal(w.n, 17576);
	for (uint64_t i = 0; i < 500; i++) {
		const struct word *word = words_at(&w, 42, i);

		buf_add(&text, word->text, word->n);
		assert_int_equal(tokenizer_count(t, buf_str(&text), false), i + 1);
	}
	assert_ptr_not_equal(words_at(&w, 42, 0), words_at(&w, 43, 0));
	buf_release(&text);
	words_release(&w);
	tokenizer_free(t);
}

/* Words " aa", " ab" ... of two letters, and " az", " azz" ... of more, all in a vocabulary. */
static struct tokenizer *tokenizer_of_words(unsigned short_words, unsigned letters_max)
{
	struct buf text = { 0 }, vocab = { 0 }, merges = { 0 };
	struct tokenizer *t;
	struct err e = { 0 };
	char path[64], word[64] = "a";
	unsigned id = 0;

	for (char c = 'a'; c <= 'z'; c++)
		buf_printf(&vocab, "\"%c\":%u,", c, id++);
	buf_printf(&vocab, "\"Z\":%u,\"\u0120\":%u,\"\u0120a\":%u,\"\u0120aZ\":%u", id, id + 1, id + 2, id + 3);
	id += 4;
	buf_add_text(&merges, "\"\u0120 a\",\"\u0120a Z\"");
	for (unsigned i = 0; i < short_words; i++) {
		buf_printf(&vocab, ",\"\u0120a%c\":%u", 'a' + (int)i, id++);
		buf_printf(&merges, ",\"\u0120a %c\"", 'a' + (int)i);
	}
	for (unsigned n = 2; n <= letters_max; n++) {
		buf_printf(&merges, ",\"\u0120%s z\"", word);
		memcpy(word + n - 1, "z", 2);
		buf_printf(&vocab, ",\"\u0120%s\":%u", word, id++);
	}
	buf_printf(&text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{%s},\"merges\":[%s]},\"pre_tokenizer\":"
		   "{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"}}",
		   vocab.data, merges.data);
	snprintf(path, sizeof(path), "%s/tokenizer.json", dir);
	assert_int_equal(file_write_atomic(path, buf_str(&text), &e), 0);
	t = tokenizer_load(path, NULL, &e);
	if (!t)
		fail_msg("%s", e.text);
	buf_release(&text);
	buf_release(&vocab);
	buf_release(&merges);
	return t;
}

/* Words have 2 to 23 lowercase letters, and there are 16 at least. */
static void test_which_words_count(void **state)
{
	static const struct { unsigned short_words, letters_max; size_t n;
	} row[] = {
		{ 20, 1, 20 }, { 16, 1, 16 }, { 15, 1, 0 },  { 15, 2, 16 },
		{ 0, 22, 21 }, { 0, 23, 22 }, { 0, 24, 22 }, { 0, 30, 22 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct tokenizer *t = tokenizer_of_words(row[i].short_words, row[i].letters_max);
		struct sim_words w = { 0 };
		struct err e = { 0 };
		int rc = words_init(&w, t, &e);

		if (rc != (row[i].n ? 0 : -1) || w.n != row[i].n)
			fail_msg("row %zu: %zu words, not %zu; %s", i, w.n, row[i].n, e.text);
		words_release(&w);
		tokenizer_free(t);
	}
}

/* ---- engine ---- */

#define SEQS_MAX 8
struct served {
	struct sim_engine g;
	struct engine_seq seq[SEQS_MAX];
	int tokens[SEQS_MAX], want[SEQS_MAX];
	char order[64];
};

static void served_token(struct engine_seq *s, void *ctx)
{
	struct served *v = ctx;
	size_t i = (size_t)(s - v->seq);
	size_t n = strlen(v->order);

	if (n + 1 < sizeof(v->order))
		v->order[n] = (char)('a' + i);
	if (++v->tokens[i] == v->want[i])
		engine_remove(&v->g, s);
}

static void served_add(struct served *v, size_t i, uint32_t prompt, int want)
{
	v->seq[i] = (struct engine_seq){ .prompt_left = prompt };
	v->want[i] = want;
	engine_add(&v->g, &v->seq[i]);
}

/* Costs that make every term of a step readable in its length. */
static const struct engine_cost plain = { .prefill_base_us = 1000, .prefill_us_per_token = 10,
					  .decode_base_us = 100000, .decode_us_per_seq = 1 };

static void test_engine_steps(void **state)
{
	/* Two prompts of 6 with a budget of 10: the second is cut in two. */
	static const struct { int64_t us; const char *order; } rows[] = {
		{ 1000 + 100, "a" },                   /* a whole, 4 of b */
		{ 100000 + 1 + 1000 + 20, "ab" },      /* a decodes, b's last 2 */
		{ 100000 + 2, "ab" },                  /* both decode; a has its three */
		{ 100000 + 1, "b" },
	};
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 4, 10);
	served_add(&v, 0, 6, 3);
	served_add(&v, 1, 6, 3);
	for (size_t i = 0; i < COUNT(rows); i++) {
		memset(v.order, 0, sizeof(v.order));
		assert_int_equal(engine_step_begin(&v.g), rows[i].us * 1000);
		engine_step_end(&v.g, served_token, &v);
		assert_string_equal(v.order, rows[i].order);
	}
	assert_int_equal(engine_step_begin(&v.g), -1);
	assert_int_equal(v.g.running_count + v.g.waiting_count, 0);
	engine_release(&v.g);
}

/* Room for 10 tokens and two prompts of 4: the newer one has to give way, once. */
static void test_engine_preempts(void **state)
{
	static const char *const order[] = {
		"ab",     /* both prompts: 8 tokens held */
		"ab",     /* a token each: 10 */
		"a", "a", /* b gave way; a goes on alone and has its four */
		"b", "b", /* b's prompt and its token again, then a new one */
	};
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 4, 100);
	v.g.kv_tokens = 10;
	served_add(&v, 0, 4, 4);
	served_add(&v, 1, 4, 4);
	for (size_t i = 0; i < COUNT(order); i++) {
		memset(v.order, 0, sizeof(v.order));
		assert_true(engine_step_begin(&v.g) > 0);
		/* What b computed before is computed again: 4 of the prompt and 1 of its own. */
		assert_int_equal(v.g.step_tokens, i == 0 ? 8 : i == 1 ? 2 : i == 4 ? 5 : 1);
		engine_step_end(&v.g, served_token, &v);
		assert_string_equal(v.order, order[i]);
		assert_int_equal(v.g.preempted, i < 2 ? 0 : 1);
	}
	assert_int_equal(engine_step_begin(&v.g), -1);
	/* One that fits nowhere is served all the same, when it is alone. */
	served_add(&v, 2, 30, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(engine_step_begin(&v.g) > 0);
		engine_step_end(&v.g, served_token, &v);
	}
	assert_int_equal(v.tokens[2], 2);
	assert_int_equal(v.g.preempted, 1);
	engine_release(&v.g);
}

/* What came from elsewhere is not computed, takes room, and is lost with a preemption. */
static void test_engine_brought(void **state)
{
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 4, 100);
	v.g.kv_tokens = 30;
	served_add(&v, 0, 10, 12);
	served_add(&v, 1, 16, 12);
	engine_remove(&v.g, &v.seq[1]);
	v.seq[1] = (struct engine_seq){ .prompt_left = 16, .brought = 15 };
	engine_add(&v.g, &v.seq[1]);
	assert_int_equal(engine_step_begin(&v.g), (1000 + 11 * 10) * 1000); /* 10 and 1 tokens */
	assert_int_equal(v.seq[0].known, 0);
	assert_int_equal(v.seq[1].known, 15);
	assert_int_equal(v.g.held, 26);
	engine_step_end(&v.g, served_token, &v);
	for (int i = 0; i < 3; i++) {
		assert_true(engine_step_begin(&v.g) > 0);
		engine_step_end(&v.g, served_token, &v);
	}
	/* 28 and 30 tokens were held; then b gave way, and all of it is to be computed. */
	assert_int_equal(v.g.preempted, 1);
	assert_int_equal(v.seq[1].brought, 0);
	assert_int_equal(v.seq[1].prompt_left, 18);
	engine_release(&v.g);
}

/* ---- prefix cache ---- */

static uint32_t take(struct prefix_cache *p, uint32_t first, size_t n, struct prefix_tail *tail)
{
	uint32_t id[512];

	for (size_t i = 0; i < n; i++)
		id[i] = first + (uint32_t)i;
	return prefix_take(p, 0, id, n, tail);
}

static void test_prefix_cache(void **state)
{
	struct prefix_cache p = { 0 };
	struct prefix_tail tail;
	(void)state;
	assert_int_equal(take(&p, 0, 64, &tail), 0); /* switched off */
	assert_int_equal(take(&p, 0, 64, &tail), 0);
	prefix_init(&p, 8 * PREFIX_BLOCK_TOKENS + 3);
	assert_int_equal(p.cap, 8);
	assert_int_equal(take(&p, 0, 40, &tail), 0);
	assert_int_equal(take(&p, 0, 40, &tail), 32);
	assert_int_equal(take(&p, 0, 48, &tail), 32);
	/* All of it is known, but its last token must be computed. */
	assert_int_equal(take(&p, 0, 48, &tail), 32);
	assert_int_equal(take(&p, 0, 49, &tail), 48);
	/* The same tokens elsewhere are another prefix. */
	assert_int_equal(take(&p, 16, 40, &tail), 0);
	/* What was generated continues the prompt, whose tail was unfinished. */
	assert_int_equal(take(&p, 1000, 20, &tail), 0);
	for (uint32_t i = 0; i < 12; i++)
		prefix_add(&p, &tail, 1020 + i);
	assert_int_equal(take(&p, 1000, 33, &tail), 32);
	prefix_reset(&p);
	assert_int_equal(take(&p, 1000, 33, &tail), 0);
	/* Eight blocks are kept: the oldest goes first, and of a prompt its end. */
	assert_int_equal(take(&p, 0, 96, &tail), 0);
	assert_int_equal(take(&p, 5000, 48, &tail), 0);
	assert_int_equal(take(&p, 0, 200, &tail), 80);
	/* A prompt longer than the cache is no trouble. */
	assert_int_equal(take(&p, 7000, 400, &tail), 0);
	prefix_release(&p);
}

/* Blocks that come by their names, as a cache server gets them. */
static void test_prefix_keep(void **state)
{
	static const uint64_t hash[] = { 11, 12, 13, 14, 15 };
	struct prefix_pins all = { .hash = (uint64_t[]){ 11, 12, 13, 14, 15 }, .n = 5 };
	struct prefix_cache p = { 0 };
	size_t held;
	(void)state;
	prefix_insert(&p, hash, 5); /* switched off */
	assert_int_equal(prefix_match(&p, &all, &held), 0);
	prefix_init(&p, 4 * PREFIX_BLOCK_TOKENS);
	prefix_insert(&p, hash, 2);
	prefix_insert(&p, hash, 3);
	assert_int_equal(prefix_match(&p, &all, &held), 3 * PREFIX_BLOCK_TOKENS);
	assert_int_equal(held, 0);
	/* More than there is room for: the beginning stays. */
	prefix_insert(&p, hash, 5);
	assert_int_equal(prefix_match(&p, &all, &held), 4 * PREFIX_BLOCK_TOKENS);
	/* Of what comes then, the end of the old ones makes room. */
	prefix_insert(&p, (uint64_t[]){ 21 }, 1);
	assert_int_equal(prefix_match(&p, &all, &held), 3 * PREFIX_BLOCK_TOKENS);
	prefix_release(&p);
}

static void test_engine_limits(void **state)
{
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 2, 100);
	for (size_t i = 0; i < 4; i++)
		served_add(&v, i, 1, 2);
	assert_int_equal(engine_step_begin(&v.g), (1000 + 20) * 1000);
	assert_int_equal(v.g.running_count, 2);
	assert_int_equal(v.g.waiting_count, 2);
	engine_remove(&v.g, &v.seq[2]); /* gives up while waiting */
	engine_remove(&v.g, &v.seq[0]); /* gives up in the step: no token for it */
	engine_step_end(&v.g, served_token, &v);
	assert_string_equal(v.order, "b");
	assert_true(engine_step_begin(&v.g) > 0);
	assert_int_equal(v.g.running_count, 2); /* b and d */
	engine_step_end(&v.g, served_token, &v);
	assert_string_equal(v.order, "bbd");
	engine_remove(&v.g, &v.seq[3]);
	engine_remove(&v.g, &v.seq[3]); /* twice does no harm */
	assert_int_equal(engine_step_begin(&v.g), -1);
	engine_release(&v.g);
}

static void test_engine_decodes_before_it_prefills(void **state)
{
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 8, 4);
	for (size_t i = 0; i < 4; i++)
		served_add(&v, i, 1, 9);
	assert_true(engine_step_begin(&v.g) > 0);
	engine_step_end(&v.g, served_token, &v);
	served_add(&v, 4, 100, 1);
	assert_int_equal(engine_step_begin(&v.g), (100000 + 4) * 1000);
	assert_int_equal(v.g.waiting_count, 1); /* no budget left for the new one */
	engine_step_end(&v.g, served_token, &v);
	engine_release(&v.g);
}

/* ---- counters, truth ---- */

static void test_counters_text(void **state)
{
	static const struct { const char *name, *label, *value; double wanted; } rows[] = {
		{ "vllm:num_requests_running", NULL, NULL, 3 },
		{ "vllm:prompt_tokens_total", NULL, NULL, 11 },
		{ "vllm:request_success_total", "finished_reason", "length", 4 },
		{ "vllm:request_success_total", "finished_reason", "abort", 0 },
		{ "vllm:time_to_first_token_seconds_bucket", "le", "0.02", 1 },
		{ "vllm:time_to_first_token_seconds_bucket", "le", "0.04", 2 },
		{ "vllm:time_to_first_token_seconds_bucket", "le", "+Inf", 3 },
		{ "vllm:time_to_first_token_seconds_count", NULL, NULL, 3 },
		{ "vllm:time_to_first_token_seconds_sum", NULL, NULL, 5000.05 },
	};
	struct counters c = { .running = 3, .prompt_tokens = 11, .finished[FINISH_LENGTH] = 4 };
	struct buf out = { 0 };
	(void)state;
	counters_observe(&c, HIST_TTFT, 20000000);
	counters_observe(&c, HIST_TTFT, 30000000);
	counters_observe(&c, HIST_TTFT, 5000000000000);
	counters_write(&c, STR("my\"model"), &out);
	assert_non_null(strstr(out.data, "model_name=\"my\\\"model\""));
	assert_non_null(strstr(out.data, "# TYPE vllm:generation_tokens_total counter\n"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct str rest = buf_str(&out), label;
		struct prometheus_sample s;
		bool is_found = false;

		while (!is_found && prometheus_next(&rest, &s, NULL) > 0)
			is_found = str_is(s.name, rows[i].name) && (!rows[i].label ||
				   (prometheus_label(s.labels, rows[i].label, &label) &&
				    str_is(label, rows[i].value)));
		assert_true(is_found);
		assert_true(fabs(s.value - rows[i].wanted) < 1e-9);
	}
	buf_release(&out);
}

static void test_truth_lines(void **state)
{
	char path[] = "/tmp/profllm-truth-XXXXXX";
	struct fault_set set = { 0 };
	struct truth t = { .faults = &set };
	struct truth_row *r = truth_row_new("a\"b", 100);
	char text[1024];
	FILE *f;
	(void)state;
	assert_true(mkstemp(path) >= 0);
	assert_int_equal(fault_add(&set, "reset@2", NULL), 0);
	assert_int_equal(fault_add(&set, "crlf", NULL), 0);
	assert_int_equal(sink_open(&t.sink, "--truth", path, NULL), 0);
	truth_event(r, 150, 0);
	truth_event(r, 151, 1);
	r->prompt_tokens = 7;
	r->output_tokens = 1;
	r->faults = 3;
	r->finish = FINISH_ERROR;
	truth_end(&t, r);
	r = truth_row_new(NULL, 200);
	r->end_ns = 300;
	r->finish = FINISH_LENGTH;
	truth_end(&t, r);
	assert_int_equal(truth_close(&t, NULL), 0);
	f = fopen(path, "r");
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	remove(path);
	assert_string_equal(text,
		"{\"request_id\": \"a\\\"b\", \"recv_ns\": 100, \"send_ns\": [150, 151], "
		"\"tokens\": "
		"[0, 1], \"end_ns\": null, \"prompt_tokens\": 7, \"cached_tokens\": 0, "
		"\"output_tokens\": 1, "
		"\"status\": 200, "
		"\"finish\": \"error\", \"fault\": \"reset@2,crlf\"}\n"
		"{\"request_id\": null, \"recv_ns\": 200, \"send_ns\": [], \"tokens\": [], "
		"\"end_ns\": "
		"300, \"prompt_tokens\": 0, \"cached_tokens\": 0, \"output_tokens\": 0, "
		"\"status\": 200, \"finish\": "
		"\"length\", \"fault\": null}\n");
}

static void test_sink_tells_what_was_lost(void **state)
{
	struct truth_sink s = { 0 };
	struct err e = { 0 };
	struct stat st;
	char path[64];
	mode_t mask = umask(020);
	(void)state;
	snprintf(path, sizeof(path), "%s/truth", dir);
	assert_int_equal(sink_open(&s, "--truth", path, &e), 0);
	assert_int_equal(sink_close(&s, &e), 0);
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0646);
	assert_int_equal(sink_open(&s, "--truth", "/no/such/dir/x", &e), -1);
	assert_non_null(strstr(e.text, "--truth: cannot write /no/such/dir/x"));
	assert_int_equal(sink_close(&s, &e), 0);
	assert_int_equal(sink_open(&s, "--truth", "/dev/full", &e), 0);
	buf_add_text(&s.lines, "line\n");
	assert_false(sink_flush(&s, SIZE_MAX));
	assert_int_equal(sink_close(&s, &e), -1);
	assert_non_null(strstr(e.text, "/dev/full: No space left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dist_reads),
		cmocka_unit_test(test_dist_draws),
		cmocka_unit_test(test_fault_reads),
		cmocka_unit_test(test_fault_plans),
		cmocka_unit_test(test_ask_rows),
		cmocka_unit_test(test_ask_fields),
		cmocka_unit_test(test_words_count_honestly),
		cmocka_unit_test(test_which_words_count),
		cmocka_unit_test(test_engine_steps),
		cmocka_unit_test(test_engine_preempts),
		cmocka_unit_test(test_prefix_cache),
		cmocka_unit_test(test_prefix_keep),
		cmocka_unit_test(test_engine_brought),
		cmocka_unit_test(test_engine_limits),
		cmocka_unit_test(test_engine_decodes_before_it_prefills),
		cmocka_unit_test(test_counters_text),
		cmocka_unit_test(test_truth_lines),
		cmocka_unit_test(test_sink_tells_what_was_lost),
	};
	return cmocka_run_group_tests_name("sim", tests, make_dir, remove_dir);
}
