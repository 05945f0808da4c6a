/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.c - encode and decode over a loaded model, the built-in tokenizer or a server.
 *
 * Working memory is pooled: an encode takes one set and gives it back, so the
 * word cache stays warm and a const tokenizer serves all threads.
 */
#include "input/token/tokenizer.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/parallel.h"
#include "core/base/str.h"
#include "input/encode/chars.h"
#include "input/encode/model.h"
#include "input/encode/words.h"
#include "input/token/cache.h"
#include "input/token/load.h"
#include "input/token/remote.h"

/* ---- The built-in tokenizer ---- */

/*
 * Pure arithmetic, without table or state. Encoding looks at most seven bytes ahead and never back,
 * so the ids of a text do not depend on preceding text.
 */

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* The token at the front of n > 0 bytes; its length goes to *used. */
static inline uint32_t sim_next(const char *p, size_t n, size_t *used)
{
	if (*p == ' ' && n >= 4 && is_lower(p[1]) && is_lower(p[2]) && is_lower(p[3])) {
		*used = 4;
		return SIM_WORD_FIRST +
			(uint32_t)(((p[1] - 'a') * 26 + (p[2] - 'a')) * 26 + (p[3] - 'a'));
	}
	if (*p == '<' && n >= sizeof SIM_END_TEXT - 1 &&
	    memcmp(p, SIM_END_TEXT, sizeof SIM_END_TEXT - 1) == 0) {
		*used = sizeof SIM_END_TEXT - 1;
		return SIM_END;
	}
	*used = 1;
	return (uint8_t)*p;
}

static void sim_encode(struct str text, struct ids *out)
{
	uint32_t *to = ids_reserve(out, text.n);
	const uint32_t *start = to;

	for (size_t i = 0, used; i < text.n; i += used)
		*to++ = sim_next(text.p + i, text.n - i, &used);
	out->count += (size_t)(to - start);
	assert(out->count <= out->cap);
}

static size_t sim_count(struct str text)
{
	size_t count = 0;

	for (size_t i = 0, used; i < text.n; i += used) {
		sim_next(text.p + i, text.n - i, &used);
		count++;
	}
	return count;
}

static void sim_decode(const uint32_t *ids, size_t n, bool skip_special, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t id = ids[i], word = id - SIM_WORD_FIRST;

		if (id < SIM_WORD_FIRST) {
			buf_add_char(out, (char)id);
		} else if (id < SIM_VOCAB) {
			char text[4] = { ' ', (char)('a' + word / (26 * 26)),
				(char)('a' + word / 26 % 26), (char)('a' + word % 26) };

			buf_add(out, text, sizeof text);
		} else if (id == SIM_END && !skip_special) {
			buf_add_text(out, SIM_END_TEXT);
		}
	}
}

/* ---- Long texts in parts ---- */

/*
 * Some programs around tiktoken cut long texts: Llama 3's and Kimi's encode blocks of 400,000
 * characters, and within a block start again after 25,000 characters that are all blanks, or all
 * not. Nothing merges across such a cut, and no special token is found there.
 */

#define RUNS_BLOCK_CHARS 400000
#define RUNS_CHARS_MAX 25000

struct text_runs {
	struct str rest;
	size_t block; /* characters of the block handed out */
};

/* Python's isspace: White_Space, and four separators among the controls. */
static bool is_blank(uint32_t cp)
{
	return chars_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
}

/* The next part of valid UTF-8; false at the end. Start with { .rest = text }. */
static bool runs_next(struct text_runs *r, struct str *part)
{
	struct str text = r->rest;
	size_t at = 0, run = 0, n;
	bool was_blank = false;

	while (at < text.n && r->block < RUNS_BLOCK_CHARS) {
		bool is_now = is_blank(utf8_decode((struct str){ text.p + at, text.n - at }, &n));

		run = is_now == was_blank ? run + 1 : 1;
		was_blank = is_now;
		if (run > RUNS_CHARS_MAX)
			break;
		at += n;
		r->block++;
	}
	if (r->block == RUNS_BLOCK_CHARS)
		r->block = 0;
	*part = (struct str){ text.p, at };
	r->rest = (struct str){ text.p + at, text.n - at };
	return at > 0;
}

/* ---- Tokenizers ---- */

struct encode_work {
	struct encode_work *next;
	struct buf text;
	struct normalize_work normalize;
	struct pretok_work pretok;
	struct words_work *words;
	struct ids count; /* for tokenizer_count */
	/* The current encode. */
	const struct model *model;
	struct ids *out;
};

struct encode_pool {
	pthread_mutex_t lock;
	struct encode_work *idle;
};

struct tokenizer {
	char *name, *path;
	bool is_sim;
	struct token_remote *remote; /* a server's tokenizer; model is empty then */
	struct model model;
	struct encode_pool *pool;
};

/* ---- working memory ---- */

/* The limit fits the growth of the largest allowed text; ids and offsets stay below 32 bits. */
#define WORK_BYTES_MAX (10ull * TOKEN_TEXT_BYTES_MAX)

static_assert(WORK_BYTES_MAX < UINT32_MAX, "positions in a word are 32-bit");

static struct encode_work *work_new(void)
{
	struct encode_work *w = mem_alloc(sizeof *w);

	pretok_work_init(&w->pretok, WORK_BYTES_MAX);
	w->words = words_work_new();
	w->text.limit = WORK_BYTES_MAX;
	return w;
}

static struct encode_work *work_take(const struct tokenizer *t)
{
	struct encode_work *w;

	pthread_mutex_lock(&t->pool->lock);
	w = t->pool->idle;
	if (w)
		t->pool->idle = w->next;
	pthread_mutex_unlock(&t->pool->lock);
	if (!w)
		w = work_new();
	w->model = &t->model;
	return w;
}

static void work_give_back(const struct tokenizer *t, struct encode_work *w)
{
	pthread_mutex_lock(&t->pool->lock);
	w->next = t->pool->idle;
	t->pool->idle = w;
	pthread_mutex_unlock(&t->pool->lock);
}

static void work_free(struct encode_work *w)
{
	buf_release(&w->text);
	normalize_work_release(&w->normalize);
	pretok_work_release(&w->pretok);
	words_work_free(w->words);
	ids_release(&w->count);
	free(w);
}

/* ---- life ---- */

static int load_model(struct model *m, const char *path, bool is_uncached, struct err *e)
{
	struct buf stamp = { 0 };
	int rc = 0;

	if (is_uncached || !cache_load(m, path, &stamp)) {
		rc = model_load(m, path, e);
		if (rc == 0 && !is_uncached)
			cache_store(m, path, &stamp, false);
	}
	buf_release(&stamp);
	return rc;
}

static struct tokenizer *tokenizer_new(const char *name)
{
	struct tokenizer *t = mem_alloc(sizeof *t);

	t->name = mem_text(name);
	t->pool = mem_alloc(sizeof *t->pool);
	pthread_mutex_init(&t->pool->lock, NULL);
	return t;
}

struct tokenizer *tokenizer_of_server(const char *name, const struct token_server *server,
	struct err *e)
{
	struct token_remote *remote = token_remote_new(server, e);
	struct tokenizer *t = remote ? tokenizer_new(name) : NULL;

	if (t)
		t->remote = remote;
	return t;
}

struct tokenizer *tokenizer_load(const char *name, const struct tokenizer_load_opts *opts,
	struct err *e)
{
	struct tokenizer *t = tokenizer_new(name);
	struct buf path = { 0 };
	int rc = 0;

	t->is_sim = strcmp(name, TOKENIZER_SIM) == 0;
	if (t->is_sim) {
		ids_push(&t->model.special, SIM_END);
		return t;
	}
	rc = find_tokenizer(name, opts ? opts : &(struct tokenizer_load_opts){ 0 }, &path, e);
	if (rc == 0)
		rc = load_model(&t->model, path.data, opts && opts->is_uncached, e);
	if (rc == 0)
		rc = model_load_config(&t->model, path.data, e);
	t->path = buf_take(&path);
	if (rc == 0)
		return t;
	tokenizer_free(t);
	return NULL;
}

void tokenizer_free(struct tokenizer *t)
{
	struct encode_work *next;

	if (!t)
		return;
	for (struct encode_work *w = t->pool->idle; w; w = next) {
		next = w->next;
		work_free(w);
	}
	pthread_mutex_destroy(&t->pool->lock);
	free(t->pool);
	model_release(&t->model);
	token_remote_free(t->remote);
	free(t->name);
	free(t->path);
	free(t);
}

int tokenizer_compile(const char *name, const struct tokenizer_load_opts *opts, struct buf *path,
	struct err *e)
{
	struct buf source = { 0 }, stamp = { 0 };
	struct model m = { 0 };
	int rc = -1;

	if (find_tokenizer(name, opts ? opts : &(struct tokenizer_load_opts){ 0 }, &source, e))
		goto done;
	if (!cache_load(&m, source.data, &stamp)) {
		if (model_load(&m, source.data, e))
			goto done;
		if (!cache_store(&m, source.data, &stamp, true)) {
			err_set(e, ERR_IO, "cannot keep a compiled form of %s: PROFLLM_CACHE_DIR "
				"is empty, or the cache directory cannot be written", source.data);
			goto done;
		}
	}
	rc = cache_path(source.data, path) ? 0 :
		err_set(e, ERR_IO, "cannot find the compiled form of %s again", source.data);
done:
	model_release(&m);
	buf_release(&source);
	buf_release(&stamp);
	return rc;
}

/* ---- encode ---- */

static void take_words(void *ctx, const struct str *word, size_t count)
{
	struct encode_work *w = ctx;

	words_encode(w->model, w->words, word, count, w->out);
}

/* Text between two added tokens found in the raw text; is_start: at the input's front. */
static int encode_piece(struct encode_work *w, struct str text, bool is_start)
{
	const struct model *m = w->model;
	struct added_walk walk = { .text = normalize(&m->normalizer, &w->normalize, text) };
	const char *walk_start = walk.text.p;
	struct str before;
	uint32_t id;
	bool is_more;

	if (w->normalize.failure)
		return -1;
	do {
		is_more = added_next(&m->normalized, &walk, &before, &id);
		if (pretok_run(&m->pretok, &w->pretok, before,
			is_start && before.p == walk_start, take_words, w))
			return -1;
		if (is_more)
			ids_push(w->out, id);
	} while (is_more);
	return 0;
}

static int encode_text(struct encode_work *w, struct str text)
{
	struct added_walk walk = { .text = text };
	struct str before;
	uint32_t id;
	bool is_more;

	do {
		is_more = added_next(&w->model->raw, &walk, &before, &id);
		if (before.n > 0 && encode_piece(w, before, before.p == text.p))
			return -1;
		if (is_more)
			ids_push(w->out, id);
	} while (is_more);
	return 0;
}

static int encode(struct encode_work *w, struct str text, bool add_special)
{
	const struct model *m = w->model;
	struct text_runs runs;
	struct str part;
	int rc = 0;

	if (!utf8_is_valid(text)) {
		buf_reset(&w->text);
		utf8_add_lossy(&w->text, text);
		text = buf_str(&w->text);
	}
	normalize_begin(&w->normalize, text.n);
	pretok_begin(&w->pretok, text.n);
	if (add_special)
		ids_add(w->out, m->before.id, m->before.count);
	runs = (struct text_runs){ .rest = text };
	if (!m->has_runs)
		rc = encode_text(w, text);
	else
		while (rc == 0 && runs_next(&runs, &part))
			rc = encode_text(w, part);
	if (add_special)
		ids_add(w->out, m->after.id, m->after.count);
	return rc;
}

int tokenizer_encode(const struct tokenizer *t, struct str text, bool add_special,
	struct ids *out)
{
	size_t before = out->count;
	struct encode_work *w;
	int rc;

	if (text.n > TOKEN_TEXT_BYTES_MAX)
		return -1;
	if (t->is_sim) {
		sim_encode(text, out);
		return 0;
	}
	if (t->remote)
		return token_remote_encode(t->remote, text, add_special, out, NULL);
	w = work_take(t);
	w->out = out;
	rc = encode(w, text, add_special);
	work_give_back(t, w);
	if (rc)
		out->count = before;
	return rc;
}

int tokenizer_refuse(const struct tokenizer *t, struct str text, struct err *e)
{
	struct ids ids = { 0 };
	struct encode_work *w;
	int rc;

	if (text.n > TOKEN_TEXT_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the text has %zu bytes; at most %u are encoded at once",
			text.n, TOKEN_TEXT_BYTES_MAX);
	if (t->is_sim)
		return err_set(e, ERR_LIMIT, "the text of %zu bytes cannot be encoded", text.n);
	if (t->remote)
		return token_remote_encode(t->remote, text, false, &ids, e) ? -1 :
			err_set(e, ERR_NET, "the tokenizer's server did not answer");
	/* Encodes again to find what stopped it: limits ensure that this takes no time. */
	w = work_take(t);
	w->out = &ids;
	rc = encode(w, text, false);
	if (rc && w->normalize.failure)
		normalize_explain(&t->model.normalizer, &w->normalize, e);
	else if (rc)
		pretok_explain(&w->pretok, e);
	else
		err_set(e, ERR_LIMIT, "a regular expression took too long on a text of %zu bytes",
			text.n);
	work_give_back(t, w);
	ids_release(&ids);
	return err_wrap(e, "the tokenizer %s", t->path);
}

size_t tokenizer_count(const struct tokenizer *t, struct str text, bool add_special)
{
	struct encode_work *w;
	size_t count;

	if (text.n > TOKEN_TEXT_BYTES_MAX)
		return SIZE_MAX;
	if (t->is_sim)
		return sim_count(text);
	if (t->remote) {
		struct ids ids = { 0 };
		int rc = token_remote_encode(t->remote, text, add_special, &ids, NULL);

		count = rc ? SIZE_MAX : ids.count;
		ids_release(&ids);
		return count;
	}
	w = work_take(t);
	ids_reset(&w->count);
	w->out = &w->count;
	count = encode(w, text, add_special) ? SIZE_MAX : w->count.count;
	work_give_back(t, w);
	return count;
}

/* ---- decode ---- */

int tokenizer_decode_bytes(const struct tokenizer *t, const uint32_t *ids, size_t n,
	bool skip_special, struct buf *out)
{
	if (t->remote)
		return token_remote_decode(t->remote, ids, n, out, NULL);
	if (!t->is_sim)
		return decoder_run(&t->model, ids, n, skip_special, true, out);
	sim_decode(ids, n, skip_special, out);
	return out->is_over ? -1 : 0;
}

int tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, bool skip_special,
	struct buf *out)
{
	size_t before = out->len;

	if (t->remote)
		return token_remote_decode(t->remote, ids, n, out, NULL);
	if (!t->is_sim)
		return decoder_run(&t->model, ids, n, skip_special, false, out);
	sim_decode(ids, n, skip_special, out);
	return out->is_over ? -1 : decoder_make_valid(out, before);
}

/* ---- facts ---- */

size_t tokenizer_vocab_size(const struct tokenizer *t)
{
	if (t->remote)
		return token_remote_vocab_size(t->remote);
	return t->is_sim ? SIM_VOCAB : t->model.vocab.count;
}

size_t tokenizer_id_limit(const struct tokenizer *t)
{
	if (t->remote)
		return token_remote_id_limit(t->remote);
	return t->is_sim ? SIM_END + 1 : t->model.vocab.id_limit;
}

size_t tokenizer_special_per_sequence(const struct tokenizer *t)
{
	if (t->remote)
		return token_remote_special_per_sequence(t->remote);
	return t->model.before.count + t->model.after.count;
}

const uint32_t *tokenizer_special_ids(const struct tokenizer *t, size_t *count)
{
	*count = t->model.special.count;
	return t->model.special.id;
}

bool tokenizer_is_special(const struct tokenizer *t, uint32_t id)
{
	if (t->is_sim)
		return id == SIM_END;
	return id < t->model.vocab.id_limit && t->model.vocab.entry[id].is_special;
}

bool tokenizer_find_id(const struct tokenizer *t, struct str content, uint32_t *id)
{
	uint32_t found;

	if (t->is_sim || t->remote) {
		struct ids ids = { 0 };

		found = tokenizer_encode(t, content, false, &ids) == 0 && ids.count == 1 ?
			ids.id[0] : VOCAB_NONE;
		ids_release(&ids);
	} else {
		const struct added_token *added = model_added(&t->model, content);

		found = added ? added->id : vocab_find(&t->model.vocab, content.p, content.n);
	}
	if (found != VOCAB_NONE)
		*id = found;
	return found != VOCAB_NONE;
}

bool tokenizer_has_chat_template(const struct tokenizer *t)
{
	return t->model.has_chat_template;
}

const char *tokenizer_name(const struct tokenizer *t)
{
	return t->name;
}

const struct model *tokenizer_model(const struct tokenizer *t)
{
	return t->is_sim || t->remote ? NULL : &t->model;
}

struct token_remote *tokenizer_remote(const struct tokenizer *t)
{
	return t->remote;
}

const char *tokenizer_path(const struct tokenizer *t)
{
	return t->path;
}

/* ---- Many texts ---- */

/* Many texts at once, by several threads. */

struct encode_batch {
	const struct tokenizer *t;
	const struct str *text;
	size_t n;
	bool has_special;
	struct ids *ids; /* or */
	size_t *count;
};

static bool encode_one(void *self, size_t i, unsigned worker)
{
	struct encode_batch *b = self;

	(void)worker;
	if (b->ids)
		return tokenizer_encode(b->t, b->text[i], b->has_special, b->ids + i) == 0;
	b->count[i] = tokenizer_count(b->t, b->text[i], b->has_special);
	return b->count[i] != SIZE_MAX;
}

static int run(struct encode_batch *b, unsigned threads, struct err *e)
{
	size_t first;

	if (tokenizer_remote(b->t))
		return token_remote_batch(tokenizer_remote(b->t), b->text, b->n, b->has_special,
			b->ids, b->count, e);
	first = parallel_for(threads, b->n, encode_one, b);
	if (first == b->n)
		return 0;
	tokenizer_refuse(b->t, b->text[first], e);
	return err_wrap(e, "text %zu", first);
}

int tokenizer_encode_batch(const struct tokenizer *t, const struct str *text, size_t n,
	bool add_special, unsigned threads, struct ids *out, struct err *e)
{
	struct encode_batch b = {
		.t = t, .text = text, .n = n, .has_special = add_special, .ids = out
	};

	return run(&b, threads, e);
}

int tokenizer_count_batch(const struct tokenizer *t, const struct str *text, size_t n,
	bool add_special, unsigned threads, size_t *out, struct err *e)
{
	struct encode_batch b = {
		.t = t, .text = text, .n = n, .has_special = add_special, .count = out
	};

	return run(&b, threads, e);
}
