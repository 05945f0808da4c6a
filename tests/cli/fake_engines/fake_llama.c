/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_llama.c - replaces llama.cpp's library where the tests drive workers/llama_worker: its
 * functions by name, with strict checks of what it is asked to decode.
 *
 * A model is any file that begins with GGUF. A text has a token for each byte. After token x in
 * sequence s comes x + 1, so that a token which is fed back to the wrong sequence or at the wrong
 * place is detected: it, a gap between positions, logits read of a row that asked for none, and a
 * sequence that was not emptied end the process with a line that says so. FAKE_JOURNAL gets a line
 * for each step: tokens of prompts, tokens fed back.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCES 64
#define VOCABULARY 1000
#define END 999 /* its end of text */

/* As llama.cpp 0.5.0 has them; the rest is as long, and of no concern here. */
struct model_params { uint32_t rest[20]; };
struct context_params { uint32_t n_ctx, n_batch, n_ubatch, n_seq_max, rest[36]; };
struct batch {
	int32_t n_tokens;
	int32_t *token;
	float *embd;
	int32_t *pos;
	int32_t *n_seq_id;
	int32_t **seq_id;
	int8_t *logits;
};
struct chain_params { bool no_perf; };

static struct { int32_t length, last, expected; } sequence[SEQUENCES];
static struct context_params made;
static int32_t row_token[1 << 16], row_sequence[1 << 16], rows;
static int model_mark, context_mark, sampler_mark;

static _Noreturn void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "fake_llama: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(70);
}

static void note(const char *format, ...)
{
	const char *path = getenv("FAKE_JOURNAL");
	FILE *f = path ? fopen(path, "a") : NULL;
	va_list args;

	if (!f)
		return;
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fclose(f);
}

/* ---- loading ---- */

void llama_backend_init(void) { }
const char *ggml_version(void) { return "0.0.7"; }
struct model_params llama_model_default_params(void)
{
	return (struct model_params){ { 0 } };
}

struct context_params llama_context_default_params(void)
{
	bool is_strange = getenv("FAKE_STRANGE") != NULL;

	return (struct context_params){ is_strange ? 4096 : 512, 2048, 512, 1, { 0 } };
}

void *llama_model_load_from_file(const char *path, struct model_params p)
{
	char head[4] = "";
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(head, 1, sizeof(head), f) : 0;

	for (size_t i = 0; i < sizeof(p.rest) / sizeof(*p.rest); i++)
		if (p.rest[i])
			fail("the model's parameters are not the defaults");
	if (f)
		fclose(f);
	return n == 4 && memcmp(head, "GGUF", 4) == 0 ? &model_mark : NULL;
}

void llama_model_free(void *m) { note("model_free %d\n", m == &model_mark); }

void *llama_init_from_model(void *m, struct context_params p)
{
	if (m != &model_mark)
		fail("another model");
	if (p.n_ctx > 100000)
		return NULL; /* out of memory */
	made = p;
	for (int i = 0; i < SEQUENCES; i++)
		sequence[i].length = 0;
	note("context %u %u %u %u\n", p.n_ctx, p.n_batch, p.n_ubatch, p.n_seq_max);
	return &context_mark;
}

void llama_free(void *c) { note("context_free %d\n", c == &context_mark); }
uint32_t llama_n_ctx(const void *c) { (void)c; return made.n_ctx; }
uint32_t llama_n_batch(const void *c) { (void)c; return made.n_batch; }
uint32_t llama_n_seq_max(const void *c) { (void)c; return made.n_seq_max; }
size_t llama_max_parallel_sequences(void) { return SEQUENCES; }
void llama_set_n_threads(void *c, int32_t n, int32_t batch)
{
	(void)c;
	note("threads %d %d\n", n, batch);
}
void *llama_get_memory(const void *c) { (void)c; return &context_mark; }
const void *llama_model_get_vocab(const void *m) { return m; }
int32_t llama_model_n_ctx_train(const void *m) { (void)m; return 256; }
int32_t llama_model_desc(const void *m, char *out, size_t n)
{
	(void)m;
	return snprintf(out, n, "a fake model");
}

/* ---- words ---- */

int32_t llama_vocab_n_tokens(const void *v) { (void)v; return VOCABULARY; }
bool llama_vocab_is_eog(const void *v, int32_t token) { (void)v; return token == END; }

int32_t llama_tokenize(const void *v, const char *text, int32_t n, int32_t *out, int32_t max,
		       bool has_special, bool is_parsed)
{
	(void)v;
	(void)has_special;
	(void)is_parsed;
	if (n > max)
		return -n;
	for (int32_t i = 0; i < n; i++)
		out[i] = (unsigned char)text[i];
	return n;
}

int32_t llama_token_to_piece(const void *v, int32_t token, char *out, int32_t n, int32_t stripped,
			     bool is_special)
{
	(void)v;
	(void)stripped;
	(void)is_special;
	note("piece %d\n", token);
	return snprintf(out, (size_t)n, "x");
}

/* ---- steps ---- */

bool llama_memory_seq_rm(void *m, int32_t s, int32_t begin, int32_t end)
{
	if (m != &context_mark || begin != -1 || end != -1)
		fail("only whole sequences are removed");
	sequence[s].length = 0;
	return true;
}

struct batch llama_batch_init(int32_t n, int32_t embd, int32_t sequences)
{
	struct batch b = { 0 };

	(void)embd;
	b.token = calloc((size_t)n, sizeof(int32_t));
	b.pos = calloc((size_t)n, sizeof(int32_t));
	b.n_seq_id = calloc((size_t)n, sizeof(int32_t));
	b.seq_id = calloc((size_t)n + 1, sizeof(*b.seq_id));
	for (int32_t i = 0; i < n; i++)
		b.seq_id[i] = calloc((size_t)sequences, sizeof(int32_t));
	b.logits = calloc((size_t)n, 1);
	return b;
}

void llama_batch_free(struct batch b)
{
	for (int32_t i = 0; b.seq_id[i]; i++)
		free(b.seq_id[i]);
	free(b.seq_id);
	free(b.token);
	free(b.pos);
	free(b.n_seq_id);
	free(b.logits);
}

int32_t llama_decode(void *c, struct batch b)
{
	int32_t prompts = 0, back = 0;

	(void)c;
	if (b.n_tokens <= 0 || (uint32_t)b.n_tokens > made.n_batch)
		fail("a batch of %d tokens", b.n_tokens);
	for (int32_t i = 0; i < b.n_tokens; i++) {
		int32_t s = b.seq_id[i][0];

		if (b.n_seq_id[i] != 1 || s < 0 || (uint32_t)s >= made.n_seq_max)
			fail("token %d belongs to sequence %d", i, s);
		if (b.pos[i] != sequence[s].length)
			fail("sequence %d has %d tokens, the next one is at %d", s,
			     sequence[s].length, b.pos[i]);
		if ((uint32_t)sequence[s].length >= made.n_ctx / made.n_seq_max)
			fail("sequence %d is too long", s);
		if (sequence[s].length && sequence[s].expected >= 0) {
			if (b.token[i] != sequence[s].expected)
				fail("sequence %d: %d was sampled, %d comes back", s,
				     sequence[s].expected, b.token[i]);
			back++;
		} else {
			prompts++;
		}
		sequence[s].length++;
		sequence[s].expected = -1;
		row_token[i] = b.logits[i] ? b.token[i] : -1;
		row_sequence[i] = s;
	}
	rows = b.n_tokens;
	note("step %d %d\n", prompts, back);
	return 0;
}

void *llama_sampler_chain_init(struct chain_params p) { (void)p; return &sampler_mark; }
void llama_sampler_chain_add(void *chain, void *s) { (void)chain; (void)s; }
void *llama_sampler_init_greedy(void) { note("greedy\n"); return &sampler_mark; }
void *llama_sampler_init_dist(uint32_t seed) { note("dist %u\n", seed); return &sampler_mark; }
void *llama_sampler_init_temp(float t) { note("temp %.2f\n", (double)t); return &sampler_mark; }
void *llama_sampler_init_top_p(float p, size_t n)
{
	note("top_p %.2f %zu\n", (double)p, n);
	return &sampler_mark;
}
void llama_sampler_free(void *s) { (void)s; }

int32_t llama_sampler_sample(void *sampler, void *c, int32_t row)
{
	int32_t s;

	(void)sampler;
	(void)c;
	if (row < 0 || row >= rows || row_token[row] < 0)
		fail("row %d has no logits", row);
	s = row_sequence[row];
	sequence[s].expected = (row_token[row] + 1) % VOCABULARY;
	return sequence[s].expected;
}
