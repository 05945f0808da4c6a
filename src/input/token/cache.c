/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - compiled models and the folder of them.
 *
 * A file is a header, facts, then the tables, each aligned. TABLE lists every array of a model that
 * is written: its pointer, its count, and the size of an element. Facts are the model's own structs
 * with all pointers cleared; the list fills them in again.
 */
#include "input/token/cache.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/token/reader.h"

/* ---- Compiled models ---- */

static const char MAGIC[16] = "profllm tokens\r\n";

struct cache_head {
	char magic[16];
	uint64_t layout, sum, bytes;
};

/* Everything except arrays. */
struct cache_facts {
	struct vocab vocab;
	struct bpe bpe;
	struct unigram unigram;
	struct wordpiece wordpiece;
	struct decoder_table decoder;
	struct added_set raw, normalized;
	enum model_kind kind;
	bool is_byte_level, has_runs;
	char format[MODEL_FORMAT_BYTES];
};

/* An added token, its content as a span of all of them. */
struct flat_added {
	uint32_t start, length, id;
	bool is_single_word, is_lstrip, is_rstrip, is_normalized, is_special, is_silent;
};

struct cache_table {
	size_t pointer, count, size; /* offsets in struct cache_facts; count 0: see element_count */
};

#define T(pointer_, count_, type_)						\
	{ offsetof(struct cache_facts, pointer_), offsetof(struct cache_facts, count_), \
	  sizeof(type_) }
static const struct cache_table TABLE[] = {
	T(vocab.bytes.data, vocab.bytes.len, char),
	T(vocab.entry, vocab.id_limit, struct vocab_entry),
	T(vocab.slot, vocab.slots, struct vocab_slot),
	T(bpe.pair, bpe.slots, struct bpe_pair),
	T(bpe.filter, bpe.filter_words, uint64_t),
	T(bpe.token, bpe.tokens, struct bpe_token),
	T(bpe.seam, bpe.seam_words, uint64_t),
	T(bpe.trie.node, bpe.trie.nodes, struct trie_node),
	T(bpe.trie.label, bpe.trie.nodes, uint8_t),
	T(bpe.lost.node, bpe.lost.nodes, struct trie_node),
	T(bpe.lost.label, bpe.lost.nodes, uint8_t),
	T(unigram.unit, unigram.units, struct unigram_unit),
	T(unigram.end, unigram.units, struct unigram_end),
	T(unigram.page, unigram.pages, uint16_t),
	T(unigram.label, unigram.labels, uint32_t),
	T(wordpiece.first.node, wordpiece.first.nodes, struct trie_node),
	T(wordpiece.first.label, wordpiece.first.nodes, uint8_t),
	T(wordpiece.later.node, wordpiece.later.nodes, struct trie_node),
	T(wordpiece.later.label, wordpiece.later.nodes, uint8_t),
	T(decoder.shown, decoder.count, struct decoder_shown),
	T(decoder.text, decoder.text_bytes, char),
	T(raw.node, raw.count, struct added_node),
	T(normalized.node, normalized.count, struct added_node),
};
#define TABLES (sizeof TABLE / sizeof *TABLE)

static void *pointer_of(const struct cache_facts *f, const struct cache_table *t)
{
	void *p;

	memcpy(&p, (const char *)f + t->pointer, sizeof p);
	return p;
}

static size_t count_of(const struct cache_facts *f, const struct cache_table *t)
{
	size_t n;

	memcpy(&n, (const char *)f + t->count, sizeof n);
	return n;
}

static void set_pointer(struct cache_facts *f, const struct cache_table *t, const void *p)
{
	memcpy((char *)f + t->pointer, &p, sizeof p);
}

/* ---- sums ---- */

static inline uint64_t rotate(uint64_t v, unsigned bits)
{
	return v << bits | v >> (64 - bits);
}

/* A quick hash of many bytes for finding damage; not for secrets. */
static uint64_t compiled_sum(struct str s)
{
	const uint64_t k = 0x9e3779b97f4a7c15u;
	uint64_t h[4] = { s.n, ~s.n, s.n * k, k };
	uint64_t tail[4] = { 0 };
	size_t at = 0;

	for (; s.n - at >= 32; at += 32) {
		uint64_t w[4];

		memcpy(w, s.p + at, 32);
#pragma GCC unroll 4 /* so that h stays in registers: twice as quick */
		for (unsigned i = 0; i < 4; i++)
			h[i] = rotate((h[i] ^ w[i]) * k, 29);
	}
	memcpy(tail, s.p + at, s.n - at);
	for (unsigned i = 0; i < 4; i++)
		h[i] = rotate((h[i] ^ tail[i]) * k, 29);
	for (unsigned i = 1; i < 4; i++)
		h[0] = (h[0] ^ h[i] ^ h[i] >> 32) * k;
	return h[0] ^ h[0] >> 32;
}

/* ---- writing ---- */

static void align(struct buf *out)
{
	static const char zeros[COMPILED_ALIGN];

	buf_add(out, zeros, (COMPILED_ALIGN - out->len % COMPILED_ALIGN) % COMPILED_ALIGN);
}

static void clear_pointers(struct cache_facts *f)
{
	for (size_t i = 0; i < TABLES; i++)
		set_pointer(f, TABLE + i, NULL);
	f->vocab.foreign = (struct map){ 0 };
	f->vocab.arena = (struct arena){ 0 };
	f->vocab.is_borrowed = true;
	f->bpe.vocab = f->unigram.vocab = f->wordpiece.vocab = NULL;
	f->bpe.is_borrowed = f->bpe.trie.is_borrowed = f->bpe.lost.is_borrowed = true;
	f->unigram.is_borrowed = true;
	f->wordpiece.first.is_borrowed = f->wordpiece.later.is_borrowed = true;
	f->decoder.is_borrowed = true;
	f->raw.token = f->normalized.token = NULL;
	f->raw.is_borrowed = f->normalized.is_borrowed = true;
}

static struct cache_facts *facts_of(const struct model *m)
{
	struct cache_facts *f = mem_alloc(sizeof *f);

	f->vocab = m->vocab;
	f->bpe = m->bpe;
	f->unigram = m->unigram;
	f->wordpiece = m->wordpiece;
	f->decoder = m->decoder.table;
	f->raw = m->raw;
	f->normalized = m->normalized;
	f->kind = m->kind;
	f->is_byte_level = m->is_byte_level;
	f->has_runs = m->has_runs;
	memcpy(f->format, m->format, sizeof f->format);
	return f;
}

static void add_blob(struct buf *out, const void *p, size_t bytes)
{
	uint64_t n = bytes;

	buf_add(out, &n, sizeof n);
	align(out);
	if (bytes)
		buf_add(out, p, bytes);
}

static void add_added(struct buf *out, const struct model *m)
{
	struct flat_added *flat = mem_array(m->added_count + 1, sizeof *flat);
	struct buf text = { 0 };

	for (size_t i = 0; i < m->added_count; i++) {
		const struct added_token *t = m->added + i;

		flat[i] = (struct flat_added){ (uint32_t)text.len, (uint32_t)t->content.n, t->id,
			t->is_single_word, t->is_lstrip, t->is_rstrip, t->is_normalized,
			t->is_special, t->is_silent };
		buf_add_str(&text, t->content);
	}
	add_blob(out, flat, m->added_count * sizeof *flat);
	add_blob(out, text.data, text.len);
	free(flat);
	buf_release(&text);
}

static void add_facts(struct buf *out, const struct cache_facts *f)
{
	struct cache_facts *clear = mem_alloc(sizeof *clear);

	memcpy(clear, f, sizeof *clear);
	clear_pointers(clear);
	add_blob(out, clear, sizeof *clear);
	free(clear);
}

static uint64_t layout(void)
{
	uint64_t v = COMPILED_LAYOUT;

	for (size_t i = 0; i < TABLES; i++)
		v = v * 31 + TABLE[i].size + TABLE[i].pointer;
	return v * 31 + sizeof(struct cache_facts) + sizeof(struct flat_added);
}

void compiled_write(const struct model *m, struct buf *out)
{
	struct cache_head head = { .layout = layout() };
	struct cache_facts *f = facts_of(m);
	const struct str stage[] = { m->stage_text.normalizer, m->stage_text.pre_tokenizer,
		m->stage_text.post_processor, m->stage_text.decoder };

	assert(out->len == 0);
	memcpy(head.magic, MAGIC, sizeof head.magic);
	buf_add(out, &head, sizeof head);
	add_facts(out, f);
	for (size_t i = 0; i < sizeof stage / sizeof *stage; i++)
		add_blob(out, stage[i].p, stage[i].n);
	add_added(out, m);
	for (size_t i = 0; i < TABLES; i++)
		add_blob(out, pointer_of(f, TABLE + i), count_of(f, TABLE + i) * TABLE[i].size);
	align(out);
	free(f);
	if (out->is_over)
		return;
	head.bytes = out->len;
	head.sum = compiled_sum((struct str){ out->data + sizeof head, out->len - sizeof head });
	memcpy(out->data, &head, sizeof head);
}

/* ---- reading ---- */

struct cache_cursor {
	struct str bytes;
	size_t at;
	bool is_bad;
};

static struct str next_blob(struct cache_cursor *c)
{
	uint64_t n;
	size_t at;

	if (c->is_bad || c->bytes.n - c->at < sizeof n)
		goto bad;
	memcpy(&n, c->bytes.p + c->at, sizeof n);
	at = c->at + sizeof n;
	at += (COMPILED_ALIGN - at % COMPILED_ALIGN) % COMPILED_ALIGN;
	if (at > c->bytes.n || n > c->bytes.n - at)
		goto bad;
	c->at = at + n;
	return (struct str){ c->bytes.p + at, n };
bad:
	c->is_bad = true;
	return (struct str){ "", 0 };
}

static int check_head(struct str bytes, struct err *e)
{
	struct cache_head head;

	if (bytes.n < sizeof head)
		return err_set(e, ERR_PARSE, "is too short for a compiled tokenizer");
	memcpy(&head, bytes.p, sizeof head);
	if (memcmp(head.magic, MAGIC, sizeof MAGIC) != 0)
		return err_set(e, ERR_PARSE, "is not a compiled tokenizer");
	if (head.layout != layout())
		return err_set(e, ERR_PARSE, "was compiled by another version");
	if (head.bytes != bytes.n || head.sum != compiled_sum((struct str){
		bytes.p + sizeof head, bytes.n - sizeof head }))
		return err_set(e, ERR_PARSE, "is damaged: its checksum is wrong");
	return 0;
}

static int read_added(struct model *m, struct cache_cursor *c, struct err *e)
{
	struct str flat = next_blob(c), text = next_blob(c);
	size_t n = flat.n / sizeof(struct flat_added);

	m->added = mem_array(n + 1, sizeof *m->added);
	map_reserve(&m->added_index, n);
	for (size_t i = 0; i < n; i++) {
		struct flat_added t;

		memcpy(&t, flat.p + i * sizeof t, sizeof t);
		if (t.start > text.n || t.length > text.n - t.start)
			return err_set(e, ERR_PARSE, "is damaged: an added token has no text");
		m->added[i] = (struct added_token){ { text.p + t.start, t.length }, t.id,
			t.is_single_word, t.is_lstrip, t.is_rstrip, t.is_normalized,
			t.is_special, t.is_silent };
		map_put(&m->added_index, m->added[i].content, i);
	}
	m->added_count = m->added_cap = n;
	return 0;
}

/* Spellings outside the byte alphabet are in a map of their own. */
static void read_foreign(struct vocab *v)
{
	for (size_t id = 0; v->is_spelled && id < v->id_limit; id++)
		if (v->entry[id].is_foreign)
			map_put(&v->foreign, vocab_bytes(v, (uint32_t)id), id);
}

static void place(struct model *m, const struct cache_facts *f)
{
	m->vocab = f->vocab;
	m->bpe = f->bpe;
	m->unigram = f->unigram;
	m->wordpiece = f->wordpiece;
	m->decoder.table = f->decoder;
	m->raw = f->raw;
	m->normalized = f->normalized;
	m->kind = f->kind;
	m->is_byte_level = f->is_byte_level;
	m->has_runs = f->has_runs;
	memcpy(m->format, f->format, sizeof m->format);
	m->bpe.vocab = m->unigram.vocab = m->wordpiece.vocab = &m->vocab;
	m->raw.token = m->normalized.token = m->added;
	read_foreign(&m->vocab);
}

static int read_tables(struct model *m, struct cache_facts *f, struct cache_cursor *c,
		       struct err *e)
{
	for (size_t i = 0; i < TABLES; i++) {
		struct str blob = next_blob(c);

		if (blob.n != count_of(f, TABLE + i) * TABLE[i].size)
			c->is_bad = true;
		set_pointer(f, TABLE + i, blob.n ? blob.p : NULL);
	}
	if (c->is_bad)
		return err_set(e, ERR_PARSE, "is damaged: it ends too early");
	place(m, f);
	return 0;
}

int compiled_read(struct model *m, struct str bytes, struct err *e)
{
	struct cache_cursor c = { .bytes = bytes, .at = sizeof(struct cache_head) };
	struct cache_facts *f = mem_alloc(sizeof *f);
	struct stage_texts stage;
	struct str blob;
	int rc = -1;

	assert(!m->vocab.slots);
	if (check_head(bytes, e))
		goto done;
	blob = next_blob(&c);
	if (blob.n != sizeof *f) {
		err_set(e, ERR_PARSE, "is damaged: its facts are missing");
		goto done;
	}
	memcpy(f, blob.p, sizeof *f);
	stage.normalizer = next_blob(&c);
	stage.pre_tokenizer = next_blob(&c);
	stage.post_processor = next_blob(&c);
	stage.decoder = next_blob(&c);
	if (stages_load(m, &stage, e) || read_added(m, &c, e) || read_tables(m, f, &c, e))
		goto done;
	rc = 0;
done:
	free(f);
	return rc;
}

/* ---- The folder of them ---- */

/* Files next to the main one that readers use. */
static const char *const BESIDE[] = { "tokenizer_config.json", "special_tokens_map.json",
	"merges.txt", "added_tokens.json" };
#define SOURCES (1 + sizeof BESIDE / sizeof *BESIDE)

/* ---- names ---- */

static bool cache_dir(struct buf *out)
{
	const char *dir = getenv("PROFLLM_CACHE_DIR");

	if (dir && !*dir)
		return false;
	if (dir)
		buf_printf(out, "%s/tokenizers", dir);
	else if ((dir = getenv("XDG_CACHE_HOME")) && *dir)
		buf_printf(out, "%s/profllm/tokenizers", dir);
	else if ((dir = getenv("HOME")) && *dir)
		buf_printf(out, "%s/.cache/profllm/tokenizers", dir);
	return out->len > 0;
}

static void name_in(struct buf *out, const char *dir, uint64_t sum, const char *end)
{
	buf_reset(out);
	buf_printf(out, "%s/%016" PRIx64 "%s", dir, sum, end);
}

/* Part of the key, as a file's name may decide how its content is read. */
static uint64_t sum_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return compiled_sum(str_of(slash ? slash + 1 : path));
}

/* Source i: the path itself, then those next to it. Caller frees. */
static char *source_path(const char *path, size_t i)
{
	return i == 0 ? mem_text(path) : file_beside(path, BESIDE[i - 1]);
}

/* ---- what the sources are ---- */

/* One line that changes whenever a source is written. */
static void add_stamp(struct buf *out, const char *path)
{
	for (size_t i = 0; i < SOURCES; i++) {
		char *source = source_path(path, i);
		struct stat st;

		if (stat(source, &st) == 0)
			buf_printf(out, "%jd %jd.%09ld %ju ", (intmax_t)st.st_size,
				(intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
				(uintmax_t)st.st_ino);
		else
			buf_add_text(out, "- ");
		free(source);
	}
}

static bool sum_contents(const char *path, uint64_t *sum)
{
	bool is_good = true;

	*sum = sum_name(path);
	for (size_t i = 0; i < SOURCES && is_good; i++) {
		char *source = source_path(path, i);
		struct str bytes;

		if (i == 0 || file_exists(source)) {
			is_good = file_map(source, &bytes, NULL) == 0;
			if (is_good) {
				*sum = *sum * 31 + compiled_sum(bytes);
				file_unmap(bytes);
			}
		}
		free(source);
	}
	return is_good;
}

/* ---- stamps ---- */

struct cache_place {
	struct buf dir, stamp_path, stamp; /* stamp: what it should say before the sum */
	uint64_t sum;                      /* of the contents */
};

static void place_release(struct cache_place *p)
{
	buf_release(&p->dir);
	buf_release(&p->stamp_path);
	buf_release(&p->stamp);
}

static bool place_init(struct cache_place *p, const char *path)
{
	char *real = realpath(path, NULL);

	if (!real || !cache_dir(&p->dir)) {
		free(real);
		return false;
	}
	name_in(&p->stamp_path, p->dir.data, compiled_sum(str_of(real)) * 31 + sum_name(path),
		".stamp");
	add_stamp(&p->stamp, path);
	free(real);
	return true;
}

static bool read_stamp(struct cache_place *p)
{
	char sum[17] = "";
	struct str text;
	bool is_good;

	if (file_load_own(p->stamp_path.data, &text))
		return false;
	is_good = str_starts(text, buf_str(&p->stamp)) && text.n >= p->stamp.len + 16;
	if (is_good)
		memcpy(sum, text.p + p->stamp.len, 16);
	file_unmap(text);
	return is_good && sscanf(sum, "%16" SCNx64, &p->sum) == 1;
}

/* Written under another name and renamed; without fsync, as a checksum detects incomplete files. */
static bool write_file(const char *path, struct str bytes)
{
	struct buf temp = { 0 };
	size_t done = 0;
	bool is_good;
	int fd;

	buf_printf(&temp, "%s.XXXXXX", path);
	fd = mkostemp(temp.data, O_CLOEXEC);
	while (fd >= 0 && done < bytes.n) {
		ssize_t n = write(fd, bytes.p + done, bytes.n - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	is_good = fd >= 0 && done == bytes.n;
	if (fd >= 0)
		close(fd);
	if (is_good)
		is_good = rename(temp.data, path) == 0;
	if (!is_good && fd >= 0)
		unlink(temp.data);
	buf_release(&temp);
	return is_good;
}

static void write_stamp(struct cache_place *p)
{
	struct buf line = { 0 };

	buf_printf(&line, "%s%016" PRIx64 "\n", p->stamp.data, p->sum);
	write_file(p->stamp_path.data, buf_str(&line));
	buf_release(&line);
}

/* ---- compiled files ---- */

static bool read_compiled(struct model *m, const struct cache_place *p)
{
	struct buf name = { 0 };
	struct str bytes;
	struct err e = { 0 };
	bool is_good = false;

	name_in(&name, p->dir.data, p->sum, ".tok");
	if (file_load_own(name.data, &bytes))
		goto done;
	is_good = compiled_read(m, bytes, &e) == 0;
	m->mapping = bytes;
	if (!is_good) {
		TRACE(token, "%s %s\n", name.data, e.text);
		model_release(m);
	}
done:
	buf_release(&name);
	return is_good;
}

bool cache_load(struct model *m, const char *path, struct buf *stamp)
{
	struct cache_place p = { 0 };
	bool is_good = false;

	assert(stamp->len == 0);
	if (place_init(&p, path)) {
		buf_add_str(stamp, buf_str(&p.stamp));
		is_good = read_stamp(&p) && read_compiled(m, &p);
		if (!is_good && sum_contents(path, &p.sum) && read_compiled(m, &p)) {
			write_stamp(&p);
			is_good = true;
		}
	}
	place_release(&p);
	return is_good;
}

/* Removes the oldest files while there are too many. */
static void prune(const char *dir)
{
	for (size_t round = 0; round < TOKEN_CACHE_FILES_MAX; round++) {
		struct dirent *entry;
		struct buf name = { 0 }, oldest = { 0 };
		struct timespec least = { 0 };
		size_t count = 0;
		DIR *d = opendir(dir);

		while (d && (entry = readdir(d))) {
			struct stat st;

			if (!str_ends(str_of(entry->d_name), STR(".tok")))
				continue;
			buf_reset(&name);
			buf_printf(&name, "%s/%s", dir, entry->d_name);
			if (stat(name.data, &st) < 0)
				continue;
			if (count++ == 0 || st.st_mtim.tv_sec < least.tv_sec) {
				least = st.st_mtim;
				buf_reset(&oldest);
				buf_add_str(&oldest, buf_str(&name));
			}
		}
		if (d)
			closedir(d);
		if (count > TOKEN_CACHE_FILES_MAX)
			unlink(oldest.data);
		buf_release(&name);
		buf_release(&oldest);
		if (count <= TOKEN_CACHE_FILES_MAX)
			return;
	}
}

static bool is_worth_it(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size >= TOKEN_CACHE_BYTES_MIN;
}

static bool is_unchanged(const char *path, const struct buf *stamp)
{
	struct buf now = { 0 };
	bool is_same;

	add_stamp(&now, path);
	is_same = str_eq(buf_str(&now), buf_str(stamp));
	buf_release(&now);
	return is_same;
}

bool cache_store(const struct model *m, const char *path, const struct buf *stamp, bool is_forced)
{
	struct cache_place p = { 0 };
	struct buf name = { 0 }, bytes = { 0 };
	bool is_good = false;

	if ((!is_forced && !is_worth_it(path)) || !place_init(&p, path) ||
		!sum_contents(path, &p.sum) || !is_unchanged(path, stamp) ||
		file_mkdirs_mode(p.dir.data, 0700, NULL))
		goto done;
	compiled_write(m, &bytes);
	name_in(&name, p.dir.data, p.sum, ".tok");
	if (bytes.is_over || !write_file(name.data, buf_str(&bytes)))
		goto done;
	write_stamp(&p);
	prune(p.dir.data);
	is_good = true;
done:
	place_release(&p);
	buf_release(&name);
	buf_release(&bytes);
	return is_good;
}

bool cache_path(const char *path, struct buf *out)
{
	struct cache_place p = { 0 };
	bool is_good = place_init(&p, path) && (read_stamp(&p) || sum_contents(path, &p.sum));

	if (is_good)
		name_in(out, p.dir.data, p.sum, ".tok");
	place_release(&p);
	return is_good;
}
