/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.h - text to token ids and back, with exactly the ids of the model's own tokenizer.
 *
 * Reads every kind of file that token/reader.h lists: tokenizer.json (BPE, Unigram, WordPiece,
 * WordLevel), tiktoken, tekken, sentencepiece, vocab.json with merges.txt. A stage of an unknown
 * kind is one error that names its type and the file; nothing is approximated.
 *
 * Built-in tokenizer "sim" (no file, no start-up cost): ids 0..255 are the bytes; ids 256..17831
 * are a space and three lowercase ASCII letters, in alphabetical order (" aaa" is 256, " zzz"
 * 17831); id 17832 is the added special token "<|end|>". Encoding goes from left to right and takes
 * "<|end|>" first, then a space followed by three lowercase letters, then one byte. So every
 * sequence of word tokens re-encodes to itself, and decoding returns exactly the encoded bytes.
 *
 * Threads: a loaded tokenizer may be used by any number of threads at once. It keeps a pool of
 * working memory (regex state, word cache), one for each running encode; only load and free must be
 * alone.
 *
 * Not here: chat templates (chat/chat.h; only whether there is one), truncation, padding, offsets,
 * pairs of sequences.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "input/encode/ids.h"

#define TOKENIZER_SIM "sim"
#define SIM_WORD_FIRST 256u
#define SIM_WORDS (26u * 26u * 26u)
#define SIM_VOCAB (SIM_WORD_FIRST + SIM_WORDS)
#define SIM_END SIM_VOCAB
#define SIM_END_TEXT "<|end|>"

struct tokenizer;

/* Zeroed: revision "main", everything else from the environment; see fetch/hub.h. */
struct tokenizer_load_opts {
	const char *revision;  /* branch, tag or commit on the hub; NULL: "main" */
	const char *cache_dir; /* the hub directory itself; NULL: environment */
	const char *token;     /* the hub's; NULL: environment */
	bool is_offline;       /* only the cache */
	const char *mode;      /* "mistral": that form of it first (token/load.h); else NULL */
	bool is_uncached;      /* neither read nor write a compiled form (token/cache.h) */
	const atomic_bool *cancel; /* set: a download ends soon with ERR_CANCELLED */
	/* Progress of a download above 1 MB, in bytes; a sentence for people. Each may be NULL. */
	void (*progress)(void *self, const char *file, int64_t done, int64_t total);
	void (*note)(void *self, const char *text);
	void *self;
};

/*
 * "sim", or a tokenizer's file, or a directory that holds one, or a model name ("org/name") on the
 * Hugging Face hub, through its local cache; tried in that order (see token/load.h).
 * tokenizer_config.json, special_tokens_map.json and chat_template.jinja next to the file are also
 * read. opts may be NULL. NULL with ERR_IO when nothing was found (the text lists where it looked),
 * ERR_NET when the hub cannot be reached and the cache has no copy, ERR_PARSE for a file that is
 * damaged or of an unsupported kind.
 */
struct tokenizer *tokenizer_load(const char *name_or_path, const struct tokenizer_load_opts *opts,
	struct err *e);
void tokenizer_free(struct tokenizer *t);

/*
 * The tokenizer of a server that has /tokenize and /detokenize (token/remote.h), under this name;
 * every text is a request. It fails where the server does not answer, has no special ids, and its
 * bytes (tokenizer_decode_bytes) are its text. NULL with ERR_NET or ERR_PARSE.
 */
struct token_server;
struct token_remote;
struct tokenizer *tokenizer_of_server(const char *name, const struct token_server *server,
	struct err *e);
struct token_remote *tokenizer_remote(const struct tokenizer *t); /* NULL: not a server's */

/*
 * Writes the compiled form ahead of time, also of a small file. *path: where it is. Later loads by
 * this name take milliseconds.
 */
int tokenizer_compile(const char *name_or_path, const struct tokenizer_load_opts *opts,
	struct buf *path, struct err *e);

/*
 * Appends the ids of text. add_special also adds what the post-processor puts around one sequence
 * (a BOS, for example). Special tokens written in the text become their ids in either case. Bytes
 * that are not UTF-8 count as U+FFFD, one for each maximal ill-formed part ("sim" keeps them as
 * they are). Returns 0, or -1 (out unchanged) when text is longer than TOKEN_TEXT_BYTES_MAX, when
 * the file's stages would make more of it than normalize_growth() allows, or when its regular
 * expressions take more than TOKEN_SEARCH_NS (encode/regex.h).
 */
int tokenizer_encode(const struct tokenizer *t, struct str text, bool add_special,
	struct ids *out);

/* How many ids tokenizer_encode gives; SIZE_MAX where it fails. */
size_t tokenizer_count(const struct tokenizer *t, struct str text, bool add_special);

/*
 * The same for n texts by several threads, including the caller's; 0: as many as there are cores to
 * run on (parallel_threads). out holds n places: ids are appended to those of encode_batch (zeroed
 * ones will do), counts are written over. The result does not depend on the number of threads. -1
 * with ERR_LIMIT, which names the first text that cannot be encoded; later places may then be
 * untouched.
 */
int tokenizer_encode_batch(const struct tokenizer *t, const struct str *text, size_t n,
	bool add_special, unsigned threads, struct ids *out, struct err *e);
int tokenizer_count_batch(const struct tokenizer *t, const struct str *text, size_t n,
	bool add_special, unsigned threads, size_t *out, struct err *e);

/*
 * Explains why tokenizer_encode or tokenizer_count refused the text: the tokenizer's file, the step
 * and the limit. Encodes it once more to find out. Returns -1.
 */
int tokenizer_refuse(const struct tokenizer *t, struct str text, struct err *e);

/*
 * Appends the text of the whole sequence. It is always valid UTF-8: bytes that do not form a
 * character become U+FFFD, so texts of parts do not add up to the text of the whole (see
 * tokenizer_decode_bytes). Unknown ids are left out. skip_special leaves out added tokens marked
 * special. Returns 0, or -1 when out is over its limit.
 */
int tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, bool skip_special,
	struct buf *out);

/*
 * The same with exact bytes, so that decoding piece by piece gives the same as all at once: byte
 * tokens are their bytes, and every token reads as it does between others (one that begins a word
 * brings its space, which tokenizer_decode leaves out at the very start).
 */
int tokenizer_decode_bytes(const struct tokenizer *t, const uint32_t *ids, size_t n,
	bool skip_special, struct buf *out);

/* V: entries of the model's vocabulary, added tokens above it not counted. */
size_t tokenizer_vocab_size(const struct tokenizer *t);
/* The highest id plus one, added tokens included. */
size_t tokenizer_id_limit(const struct tokenizer *t);
/* S: ids that add_special adds to one sequence. */
size_t tokenizer_special_per_sequence(const struct tokenizer *t);

/*
 * The declared special ids: bos, eos, unk, sep, pad, cls, mask, then the
 * additional ones, each once, in that order; from tokenizer_config.json and
 * special_tokens_map.json. Empty without these files, as upstream. Borrowed.
 */
const uint32_t *tokenizer_special_ids(const struct tokenizer *t, size_t *count);

/* An added token marked special: what skip_special leaves out. */
bool tokenizer_is_special(const struct tokenizer *t, uint32_t id);

/* The id of an added token or vocabulary entry by its content as people write it ("<|im_end|>"). */
bool tokenizer_find_id(const struct tokenizer *t, struct str content, uint32_t *id);

bool tokenizer_has_chat_template(const struct tokenizer *t);
const char *tokenizer_name(const struct tokenizer *t); /* as given to tokenizer_load */
/*
 * What was read, for a page about it (encode/model.h), and from where; NULL for "sim" and
 * a server. Borrowed.
 */
struct model;
const struct model *tokenizer_model(const struct tokenizer *t);
const char *tokenizer_path(const struct tokenizer *t);
