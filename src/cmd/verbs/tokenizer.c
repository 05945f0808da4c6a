/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.c - `profllm tokenizer encode|decode|count|compile|show`: text to token ids and back,
 * for files, pipes and other programs.
 *
 * By default a file is one text (decode: a line is one sequence of ids); with --jsonl each line
 * holds one. Each input line gives an output line, in the same order, whatever the number of
 * threads.
 */
#include "cmd/console/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/console/ordered.h"
#include "cmd/console/progress.h"
#include "cmd/verbs/cmd.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/encode/model.h"
#include "input/token/cache.h"
#include "input/token/load.h"
#include "input/token/tokenizer.h"

struct tokenizer_opts {
	struct opt_list files;
	const char *tokenizer, *tokenizer_mode, *revision, *text;
	bool offline, add_special_tokens, skip_special_tokens, jsonl, timing, json;
	int64_t threads;
};

#define TOKENIZER_ROW(member, name, ...) OPT(struct tokenizer_opts, member, name, __VA_ARGS__)
#define TOKENIZER_MODEL "Model"
#define TOKENIZER_INPUT "Input and output"
#define TOKENIZER_WORK "Work"
#define TOKENIZER_MODEL_ROWS                                                                 \
	TOKENIZER_ROW(tokenizer, "tokenizer", .group = TOKENIZER_MODEL, .arg = "NAME",       \
	    .help = "a tokenizer's file, its directory, a model name (org/name), or "        \
		    "sim (built "                                                            \
		    "in)"),                                                                  \
	TOKENIZER_ROW(tokenizer_mode, "tokenizer-mode", .group = TOKENIZER_MODEL,            \
	    .choices = tokenizer_modes,                                                      \
	    .help = "mistral: prefer Mistral's own file if a model has several"),            \
	TOKENIZER_ROW(revision, "revision", .group = TOKENIZER_MODEL,                        \
	    .help = "branch, tag or commit of a model name; default: main"),                 \
	TOKENIZER_ROW(offline, "offline", .group = TOKENIZER_MODEL,                          \
	    .help = "look for a model name in the local cache only, not on the hub")

static const char *const tokenizer_modes[] = { "auto", "mistral", NULL };

#define STREAM_ROWS                                                                          \
	TOKENIZER_ROW(jsonl, "jsonl", .group = TOKENIZER_INPUT,                              \
	    .help = "read and write JSON lines"),                                            \
	TOKENIZER_ROW(threads, "threads", .group = TOKENIZER_WORK, .min = 0, .max = THREADS_MAX, \
	    .help = "threads that process lines or files; 0: one for each core"),            \
	TOKENIZER_ROW(timing, "timing", .group = TOKENIZER_WORK,                             \
	    .help = "print on stderr how long loading and processing took")
#define FILES_ROW(text)                                                                      \
	TOKENIZER_ROW(files, "FILE", .flags = OPT_POSITIONAL,                                \
	    .help = text "; default and -: standard input")
#define ADD_SPECIAL_ROW                                                                      \
	TOKENIZER_ROW(add_special_tokens, "add-special-tokens", .group = TOKENIZER_INPUT,    \
	    .help = "add the ids that the model expects around a text, such as a BOS token")

#define TEXT_ROW                                                                             \
	TOKENIZER_ROW(text, "text", .group = TOKENIZER_INPUT,                                \
	    .help = "use this text instead of files")

static const struct opt encode_rows[] = {
	FILES_ROW("files with texts"), TOKENIZER_MODEL_ROWS, TEXT_ROW, ADD_SPECIAL_ROW, STREAM_ROWS,
};
static const struct opt decode_rows[] = {
	FILES_ROW("files with token IDs"), TOKENIZER_MODEL_ROWS,
	TOKENIZER_ROW(skip_special_tokens, "skip-special-tokens", .group = TOKENIZER_INPUT,
	    .help = "leave out tokens that are marked special"),
	STREAM_ROWS,
};
static const struct opt count_rows[] = {
	FILES_ROW("files with texts"), TOKENIZER_MODEL_ROWS, TEXT_ROW, ADD_SPECIAL_ROW, STREAM_ROWS,
};
static const struct opt compile_rows[] = { TOKENIZER_MODEL_ROWS };

static const struct tokenizer_opts tokenizer_defaults = { .tokenizer_mode = "auto" };

const struct opt_set cmd_tokenizer_encode_set = {
	.command = "tokenizer encode",
	.summary = "Converts text to token IDs.",
	.usage = "--tokenizer NAME [FILE...] [options]",
	.epilog = "Each FILE is one text and gives one line of ids. With --jsonl each line is one: a\n"
		  "string, or an object with \"text\" or \"prompt\", and gives {\"ids\": [...]}.\n"
		  "Special tokens written in a text become their ids.\n"
		  "Examples:\n"
		  "  profllm tokenizer encode --tokenizer Qwen/Qwen3-8B prompt.txt\n"
		  "  profllm tokenizer encode --tokenizer Qwen/Qwen3-8B --jsonl <prompts.jsonl",
	OPT_SET_OF(encode_rows, tokenizer_defaults),
};
const struct opt_set cmd_tokenizer_decode_set = {
	.command = "tokenizer decode",
	.summary = "Converts token IDs to text.",
	.usage = "--tokenizer NAME [FILE...] [options]",
	.epilog = "Each line holds one sequence: ids with blanks between; with --jsonl an array of\n"
		  "ids, or an object with \"ids\", which gives {\"text\": \"...\"}. Without --jsonl\n"
		  "nothing is put between the texts.\n"
		  "Examples:\n"
		  "  profllm tokenizer encode --tokenizer sim a.txt | profllm tokenizer decode "
		  "--tokenizer sim",
	OPT_SET_OF(decode_rows, tokenizer_defaults),
};
const struct opt_set cmd_tokenizer_count_set = {
	.command = "tokenizer count",
	.summary = "Counts the tokens of texts.",
	.usage = "--tokenizer NAME [FILE...] [options]",
	.epilog = "One number for each FILE, with its name and the sum when there are several; with\n"
		  "--jsonl one for each line, which is as for encode.\n"
		  "Examples:\n"
		  "  profllm tokenizer count --tokenizer Qwen/Qwen3-8B *.md",
	OPT_SET_OF(count_rows, tokenizer_defaults),
};
const struct opt_set cmd_tokenizer_compile_set = {
	.command = "tokenizer compile",
	.summary = "Writes a compiled form of a tokenizer, which loads in milliseconds.",
	.usage = "--tokenizer NAME [options]",
	.epilog = "It goes into $PROFLLM_CACHE_DIR, else $XDG_CACHE_HOME/profllm, else\n"
		  "~/.cache/profllm. Whatever loads the same files later finds it there.",
	OPT_SET_OF(compile_rows, tokenizer_defaults),
};

/* ---- one item ---- */

typedef int item_fn(void *state, const char *name, struct str item, struct buf *out, struct err *e);

struct state {
	const struct tokenizer_opts *opts;
	const struct tokenizer *t;
	struct buf text;
	struct ids ids;
	uint64_t bytes, id_count; /* of text; of ids */
	uint64_t unknown;         /* ids that name no token */
};

/* The text of a line of JSON; borrows from the line or from s->text. */
static int read_text(struct state *s, struct str line, struct str *text, struct err *e)
{
	struct json_scan scan = { .text = line };
	struct json_slice whole, v;

	if (json_next(&scan, &whole, e) < 0)
		return err_wrap(e, "not one JSON value");
	if (!json_at_end(&scan))
		return err_set(e, ERR_PARSE, "expected one JSON value, but more text follows it");
	v = whole;
	if (whole.kind == JSON_OBJECT && !json_member(whole, "text", &v) &&
	    !json_member(whole, "prompt", &v))
		v = whole;
	if (v.kind != JSON_STRING)
		return err_set(e, ERR_PARSE, "expected a string, or an object with a string \"text\" or "
			       "\"prompt\", got %.*s%s", (int)(line.n < 60 ? line.n : 60), line.p,
			       line.n > 60 ? "..." : "");
	buf_reset(&s->text);
	json_unescape(&s->text, v.raw);
	*text = buf_str(&s->text);
	return 0;
}

#define ID_BYTES_MAX 12 /* ten digits and a separator */

/* Written in place: a call for each of millions of ids would take as long as tokenizing. */
static void put_ids(struct buf *out, const struct ids *ids, struct str between)
{
	char *to;

	if (buf_reserve(out, ids->count * ID_BYTES_MAX + 1) < 0)
		return;
	to = out->data + out->len;
	for (size_t i = 0; i < ids->count; i++) {
		uint32_t id = ids->id[i];
		char digit[10];
		size_t at = sizeof(digit);

		do {
			digit[--at] = (char)('0' + id % 10);
			id /= 10;
		} while (id);
		if (i) {
			memcpy(to, between.p, between.n);
			to += between.n;
		}
		memcpy(to, digit + at, sizeof(digit) - at);
		to += sizeof(digit) - at;
	}
	*to = 0;
	out->len = (size_t)(to - out->data);
}

static int encode_item(void *state, const char *name, struct str item, struct buf *out,
		       struct err *e)
{
	struct state *s = state;
	struct str text = item;

	(void)name;
	if (s->opts->jsonl && read_text(s, item, &text, e) < 0)
		return -1;
	ids_reset(&s->ids);
	if (tokenizer_encode(s->t, text, s->opts->add_special_tokens, &s->ids) < 0)
		return tokenizer_refuse(s->t, text, e);
	s->bytes += text.n;
	s->id_count += s->ids.count;
	if (s->opts->jsonl)
		buf_add_text(out, "{\"ids\": [");
	put_ids(out, &s->ids, s->opts->jsonl ? STR(", ") : STR(" "));
	buf_add_text(out, s->opts->jsonl ? "]}\n" : "\n");
	return 0;
}

static int count_item(void *state, const char *name, struct str item, struct buf *out,
		      struct err *e)
{
	struct state *s = state;
	struct str text = item;
	size_t count;

	if (s->opts->jsonl && read_text(s, item, &text, e) < 0)
		return -1;
	count = tokenizer_count(s->t, text, s->opts->add_special_tokens);
	if (count == SIZE_MAX)
		return tokenizer_refuse(s->t, text, e);
	s->bytes += text.n;
	s->id_count += count;
	if (!s->opts->jsonl && s->opts->files.n > 1)
		buf_printf(out, "%zu %s\n", count, name);
	else
		buf_printf(out, "%zu\n", count);
	return 0;
}

static int add_id(struct state *s, struct str word, struct err *e)
{
	uint64_t id;

	if (!str_to_u64(word, &id) || id > UINT32_MAX)
		return err_set(e, ERR_PARSE, "expected token ids, whole numbers from 0 to %u, got '%.*s'",
			       UINT32_MAX, (int)(word.n < 40 ? word.n : 40), word.p);
	ids_push(&s->ids, (uint32_t)id);
	s->unknown += id >= tokenizer_id_limit(s->t);
	return 0;
}

static int read_ids_plain(struct state *s, struct str line, struct err *e)
{
	while ((line = str_trim(line)).n) {
		size_t n = 0;

		while (n < line.n && !memchr(" \t\r\v\f", line.p[n], 5))
			n++;
		if (add_id(s, (struct str){ line.p, n }, e) < 0)
			return -1;
		line = (struct str){ line.p + n, line.n - n };
	}
	return 0;
}

static int read_ids_json(struct state *s, struct str line, struct err *e)
{
	struct json_scan scan = { .text = line };
	struct json_slice v, element;
	struct json_iter it;
	struct str key;

	if (json_next(&scan, &v, e) < 0)
		return err_wrap(e, "not one JSON value");
	if (!json_at_end(&scan))
		return err_set(e, ERR_PARSE, "expected one JSON value, but more text follows it");
	if (v.kind == JSON_OBJECT && json_member(v, "ids", &element))
		v = element;
	if (v.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "expected an array of ids, or an object with one as "
			       "\"ids\", got %.*s%s", (int)(line.n < 60 ? line.n : 60), line.p,
			       line.n > 60 ? "..." : "");
	it = json_iter(v);
	while (json_each(&it, &key, &element) > 0) {
		if (element.kind == JSON_STRING) /* shown with its quotes, and no number for them */
			element.raw = (struct str){ element.raw.p - 1, element.raw.n + 2 };
		if (add_id(s, element.raw, e) < 0)
			return -1;
	}
	return 0;
}

static int decode_item(void *state, const char *name, struct str item, struct buf *out,
		       struct err *e)
{
	struct state *s = state;
	size_t before = out->len;
	struct buf *to = s->opts->jsonl ? &s->text : out;

	(void)name;
	ids_reset(&s->ids);
	buf_reset(&s->text);
	if ((s->opts->jsonl ? read_ids_json : read_ids_plain)(s, item, e) < 0)
		return -1;
	if (tokenizer_decode(s->t, s->ids.id, s->ids.count, s->opts->skip_special_tokens, to) < 0)
		return err_set(e, ERR_LIMIT, "the text of these ids is longer than %llu bytes",
			       to->limit ? (unsigned long long)to->limit : BUF_BYTES_MAX);
	s->id_count += s->ids.count;
	s->bytes += to->len - (to == out ? before : 0);
	if (!s->opts->jsonl)
		return 0;
	buf_add_text(out, "{\"text\": ");
	json_quote(out, buf_str(&s->text), false);
	buf_add_text(out, "}\n");
	return 0;
}

/* ---- all of them ---- */

static void on_progress(void *self, uint64_t done, uint64_t total)
{
	if (total)
		progress_bytes(self, "Read", done, total);
}

static struct state sum_of(const struct state *state, unsigned threads)
{
	struct state sum = { 0 };

	for (unsigned i = 0; i < threads; i++) {
		sum.bytes += state[i].bytes;
		sum.id_count += state[i].id_count;
		sum.unknown += state[i].unknown;
	}
	return sum;
}

static void tell_timing(const struct state *sum, int64_t load_ns, int64_t work_ns,
			unsigned threads)
{
	double seconds = (double)(work_ns ? work_ns : 1) / 1e9;

	fprintf(stderr, "load %.1f ms; %" PRIu64 " bytes, %" PRIu64 " ids in %.3f s: %.1f MB/s, "
		"%.0f ids/s, %u threads\n", (double)load_ns / 1e6, sum->bytes, sum->id_count, seconds,
		(double)sum->bytes / 1e6 / seconds, (double)sum->id_count / seconds, threads);
}

static int run_items(struct ordered work, const struct tokenizer_opts *o,
		     const struct tokenizer *t, int64_t load_ns, struct err *e)
{
	struct state *state = mem_array(work.threads, sizeof(*state)), sum;
	struct progress progress;
	int64_t began_ns = clock_mono_ns();
	int rc;

	progress_init(&progress, isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO) ? PROGRESS_BAR :
		      PROGRESS_NONE);
	for (unsigned i = 0; i < work.threads; i++)
		state[i] = (struct state){ .opts = o, .t = t };
	work.states = state;
	work.state_bytes = sizeof(*state);
	work.progress = on_progress;
	work.self = &progress;
	rc = ordered_run(&work, e);
	progress_clear(&progress);
	sum = sum_of(state, work.threads);
	if (rc == 0 && work.item == count_item && !o->jsonl && o->files.n > 1)
		printf("%" PRIu64 " total\n", sum.id_count);
	if (rc == 0 && sum.unknown)
		fprintf(stderr, "WARNING: %" PRIu64 " ids are not tokens of %s and were skipped\n",
			sum.unknown, tokenizer_name(t));
	if (rc == 0 && o->timing)
		tell_timing(&sum, load_ns, clock_mono_ns() - began_ns, work.threads);
	for (unsigned i = 0; i < work.threads; i++) {
		buf_release(&state[i].text);
		ids_release(&state[i].ids);
	}
	free(state);
	return rc;
}

/* ---- verbs ---- */

struct download {
	struct progress bar;
	char file[64];
};

static void on_download(void *self, const char *file, int64_t done, int64_t total)
{
	struct download *d = self;

	if (strncmp(d->file, file, sizeof(d->file) - 1) != 0) {
		progress_clear(&d->bar);
		progress_init(&d->bar, isatty(STDERR_FILENO) ? PROGRESS_BAR : PROGRESS_NONE);
		snprintf(d->file, sizeof(d->file), "%s", file);
	}
	progress_bytes(&d->bar, d->file, (uint64_t)done, (uint64_t)total);
}

static void on_note(void *self, const char *text)
{
	progress_clear(&((struct download *)self)->bar);
	cli_warn(text);
}

static struct tokenizer_load_opts load_opts(const struct tokenizer_opts *o)
{
	bool is_auto = strcmp(o->tokenizer_mode, "auto") == 0;

	return (struct tokenizer_load_opts){ .mode = is_auto ? NULL : o->tokenizer_mode,
					     .revision = o->revision, .is_offline = o->offline };
}

/*
 * Loads the tokenizer that the options name, downloading if necessary; load_ns: the time taken.
 * NULL with e.
 */
static struct tokenizer *tokenizer_from_opts(const struct tokenizer_opts *o, bool is_uncached,
				      int64_t *load_ns, struct err *e)
{
	struct download download = { 0 };
	struct tokenizer_load_opts opts = load_opts(o);
	int64_t began_ns = clock_mono_ns();
	struct tokenizer *t;

	if (!o->tokenizer) {
		err_set(e, ERR_USAGE, "--tokenizer is missing: a file, its directory, a model name or "
			"sim");
		return NULL;
	}
	opts.is_uncached = is_uncached;
	opts.progress = on_download;
	opts.note = on_note;
	opts.self = &download;
	t = tokenizer_load(o->tokenizer, &opts, e);
	progress_clear(&download.bar);
	*load_ns = clock_mono_ns() - began_ns;
	return t;
}

static struct ordered work_of(const struct tokenizer_opts *o, bool is_whole)
{
	size_t files = o->files.n ? o->files.n : 1;
	unsigned threads = o->threads ? (unsigned)o->threads : parallel_threads();

	return (struct ordered){
		.path = o->files.v, .paths = o->files.n, .is_whole = is_whole,
		.item_bytes_max = is_whole ? TOKEN_TEXT_BYTES_MAX : LINE_BYTES_MAX,
		.threads = is_whole && files < threads ? (unsigned)files : threads,
	};
}

static int run_text(item_fn *item, const struct tokenizer_opts *o, const struct tokenizer *t,
		    struct err *e)
{
	struct state state = { .opts = o, .t = t };
	struct buf out = { 0 };
	int rc = item(&state, "--text", str_of(o->text), &out, e);

	if (rc == 0)
		cli_out_buf(&out);
	buf_release(&state.text);
	ids_release(&state.ids);
	return rc;
}

static int run_verb(struct cli *cli, const struct tokenizer_opts *o, item_fn *item)
{
	struct tokenizer *t;
	struct ordered work;
	int64_t load_ns;

	signal(SIGPIPE, SIG_IGN);
	if (o->text && o->files.n)
		return err_set(&cli->err, ERR_USAGE, "--text and files are mutually exclusive, got "
			       "'%.100s'", o->files.v[0]);
	t = tokenizer_from_opts(o, false, &load_ns, &cli->err);
	if (t && o->text) {
		run_text(item, o, t, &cli->err);
	} else if (t) {
		work = work_of(o, !o->jsonl && item != decode_item);
		work.item = item;
		if (item != decode_item)
			work.absent_hint = "; arguments are files, a text is given with --text";
		run_items(work, o, t, load_ns, &cli->err);
	}
	tokenizer_free(t);
	return 0;
}

int cmd_tokenizer_encode(struct cli *cli, void *values)
{
	return run_verb(cli, values, encode_item);
}

int cmd_tokenizer_count(struct cli *cli, void *values)
{
	return run_verb(cli, values, count_item);
}

int cmd_tokenizer_decode(struct cli *cli, void *values)
{
	return run_verb(cli, values, decode_item);
}

static int load_once(const struct tokenizer_opts *o, bool is_uncached, int64_t *load_ns,
		     struct err *e)
{
	struct tokenizer *t = tokenizer_from_opts(o, is_uncached, load_ns, e);

	tokenizer_free(t);
	return t ? 0 : -1;
}

int cmd_tokenizer_compile(struct cli *cli, void *values)
{
	const struct tokenizer_opts *o = values;
	struct err *e = &cli->err;
	struct tokenizer_opts here = *o;
	struct tokenizer_load_opts opts;
	int64_t before_ns, after_ns;
	struct buf path = { 0 };
	struct stat s;
	int rc = -1;

	if (o->tokenizer && strcmp(o->tokenizer, TOKENIZER_SIM) == 0)
		return err_set(e, ERR_USAGE, "--tokenizer sim is built in: it has no file to compile");
	/* Downloads what is missing, so that the timed part uses no network. */
	if (load_once(o, false, &before_ns, e) < 0)
		return -1;
	here.offline = true;
	opts = load_opts(&here);
	if (load_once(&here, true, &before_ns, e) < 0 ||
	    tokenizer_compile(o->tokenizer, &opts, &path, e) < 0 ||
	    load_once(&here, false, &after_ns, e) < 0)
		goto done;
	if (stat(path.data, &s) < 0) {
		err_set(e, ERR_IO, "cannot examine %s: %s", path.data, strerror(errno));
		goto done;
	}
	printf("Compiled form:     %s\nSize:              %.1f MB\nLoads from source: %.1f ms\n"
	       "Loads compiled:    %.1f ms\n", path.data, (double)s.st_size / 1e6,
	       (double)before_ns / 1e6, (double)after_ns / 1e6);
	rc = 0;
done:
	buf_release(&path);
	return rc;
}

/* ---- show: what a tokenizer is made of, as a page or as JSON ---- */

static const struct opt show_rows[] = {
	TOKENIZER_MODEL_ROWS,
	TOKENIZER_ROW(json, "json", .help = "print one JSON object with the stages as in the file"),
};

const struct opt_set cmd_tokenizer_show_set = {
	.command = "tokenizer show",
	.summary = "Shows where a tokenizer comes from, its parts and its special tokens.",
	.usage = "--tokenizer NAME [options]",
	.epilog = "Examples:\n"
		  "  profllm tokenizer show --tokenizer Qwen/Qwen3-8B\n"
		  "  profllm tokenizer show --tokenizer sim --json",
	OPT_SET_OF(show_rows, tokenizer_defaults),
};

static const char *const kind_name[] = {
	[MODEL_BPE] = "BPE", [MODEL_UNIGRAM] = "Unigram", [MODEL_WORDPIECE] = "WordPiece",
	[MODEL_WORDLEVEL] = "WordLevel",
};
static const char *const role[] = { "bos_token", "eos_token", "unk_token", "pad_token" };
enum { ROLES = sizeof(role) / sizeof(*role) };

struct facts {
	const struct tokenizer *t;
	const struct model *m; /* NULL: built in */
	const char *path;
	int64_t load_ns;
	size_t added, special;
	struct str role[ROLES]; /* empty: not declared; in arena */
	struct buf compiled;    /* where it is or would be; empty: nowhere */
	uint64_t compiled_bytes; /* 0: not made */
	struct arena arena;
};

/* ---- gathering ---- */

static int read_roles(struct facts *f, struct err *e)
{
	static const char *const file[] = { "tokenizer_config.json", "special_tokens_map.json" };

	for (size_t k = 0; k < 2; k++) {
		struct json_value *config;

		if (model_read_beside(&f->arena, f->path, file[k], "added_tokens_decoder", &config,
			e) < 0)
			return -1;
		for (size_t i = 0; i < ROLES; i++) {
			const struct json_value *v = json_get(config, role[i]);

			if (v && v->kind == JSON_OBJECT)
				v = json_get(v, "content");
			if (!f->role[i].n)
				f->role[i] = json_text(v, STR(""));
		}
	}
	return 0;
}

static int gather(struct facts *f, struct err *e)
{
	struct stat s;

	f->m = tokenizer_model(f->t);
	if (!f->m)
		return 0;
	f->path = tokenizer_path(f->t);
	f->added = f->m->added_count;
	for (size_t i = 0; i < f->added; i++)
		f->special += tokenizer_is_special(f->t, f->m->added[i].id);
	if (cache_path(f->path, &f->compiled) && stat(f->compiled.data, &s) == 0)
		f->compiled_bytes = (uint64_t)s.st_size;
	return read_roles(f, e);
}

/* ---- a page ---- */

static void outline(const struct json_value *v, struct buf *out)
{
	static const char *const list[] = { "normalizers", "pretokenizers", "processors",
					    "decoders" };
	const struct json_value *pattern = json_get(v, "pattern");
	struct str text = json_text(json_get(pattern, "Regex"), json_text(json_get(pattern, "String"),
		STR("")));

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		const struct json_value *members = json_get(v, list[i]);

		if (!members || members->kind != JSON_ARRAY)
			continue;
		for (size_t k = 0; k < members->count; k++)
			outline(members->item + k, out);
		return;
	}
	if (!v || v->kind != JSON_OBJECT)
		return;
	if (out->len)
		buf_add_text(out, ", ");
	buf_add_str(out, json_text(json_get(v, "type"), STR("?")));
	if (text.n) {
		buf_add_char(out, ' ');
		json_quote(out, text, true);
	}
}

static void add_stage(struct buf *out, const char *name, struct str text)
{
	struct json_value *root = NULL;
	struct arena arena = { 0 };
	struct buf line = { 0 };

	if (text.n && json_parse(&arena, text, &root, NULL) == 0)
		outline(root, &line);
	buf_printf(out, "%-16s %s\n", name, line.len ? line.data : "none");
	buf_release(&line);
	arena_release(&arena);
}

/* Prints which implementation runs each of the file's expressions. */
static void add_cutters(struct buf *out, const struct pretok *p)
{
	const char *before = "";

	buf_printf(out, "%-16s ", "Cut by");
	for (size_t i = 0; i < p->count; i++) {
		if (p->stage[i].kind == PRETOK_SCAN)
			buf_printf(out, "%sscanner %s", before, p->stage[i].scanner->name);
		else if (p->stage[i].kind == PRETOK_REGEX)
			buf_printf(out, "%sregular expression", before);
		else
			continue;
		before = ", ";
	}
	buf_add_text(out, *before ? "\n" : "no expression\n");
}

static void add_ids(struct buf *out, const struct facts *f, const struct ids *ids)
{
	for (size_t i = 0; i < ids->count; i++) {
		struct buf text = { 0 };

		tokenizer_decode(f->t, ids->id + i, 1, false, &text);
		buf_printf(out, " %" PRIu32 " %s", ids->id[i], text.len ? text.data : "");
		buf_release(&text);
	}
}

static void add_compiled(const struct facts *f, struct buf *out)
{
	buf_printf(out, "%-16s ", "Compiled form");
	if (!f->compiled.len)
		buf_add_text(out, "switched off\n");
	else if (!f->compiled_bytes)
		buf_printf(out, "not made: %s\n", f->compiled.data);
	else
		buf_printf(out, "%.1f MB, %s: %s\n", (double)f->compiled_bytes / 1e6,
			   f->m->mapping.n ? "in use" : "not in use", f->compiled.data);
}

static void add_model(const struct facts *f, struct buf *out)
{
	const struct model *m = f->m;

	buf_printf(out, "%-16s %s\n%-16s %s\n%-16s %s%s", "File", f->path, "Format", m->format, "Model",
		   m->is_byte_level ? "byte-level " : "", kind_name[m->kind]);
	if (m->kind == MODEL_BPE)
		buf_printf(out, ", %zu merges", m->bpe.count);
	buf_printf(out, "\n%-16s %zu, of them %zu special\n", "Added tokens", f->added, f->special);
	add_stage(out, "Normalizer", m->stage_text.normalizer);
	add_stage(out, "Pre-tokenizer", m->stage_text.pre_tokenizer);
	add_cutters(out, &m->pretok);
	add_stage(out, "Post-processor", m->stage_text.post_processor);
	add_stage(out, "Decoder", m->stage_text.decoder);
	buf_printf(out, "%-16s", "Before a text");
	add_ids(out, f, &m->before);
	buf_printf(out, "%s\n%-16s", m->before.count ? "" : " nothing", "After a text");
	add_ids(out, f, &m->after);
	buf_printf(out, "%s\n", m->after.count ? "" : " nothing");
	for (size_t i = 0; i < ROLES; i++) {
		uint32_t id;

		if (!f->role[i].n)
			continue;
		buf_printf(out, "%-16s %.*s", role[i], (int)f->role[i].n, f->role[i].p);
		if (tokenizer_find_id(f->t, f->role[i], &id))
			buf_printf(out, ", id %" PRIu32, id);
		buf_add_char(out, '\n');
	}
	add_compiled(f, out);
}

static void write_page(const struct facts *f, struct buf *out)
{
	buf_printf(out, "%-16s %s\n", "Tokenizer", tokenizer_name(f->t));
	buf_printf(out, "%-16s %zu tokens, ids below %zu\n", "Vocabulary", tokenizer_vocab_size(f->t),
		   tokenizer_id_limit(f->t));
	if (f->m)
		add_model(f, out);
	else
		buf_printf(out, "%-16s %s\n", "File", "none, it is built in");
	buf_printf(out, "%-16s %s\n", "Chat template",
		   tokenizer_has_chat_template(f->t) ? "yes" : "no");
	buf_printf(out, "%-16s %.1f ms\n", "Loaded in", (double)f->load_ns / 1e6);
}

/* ---- JSON ---- */

static void put_id_list(struct json_writer *w, const char *key, const struct ids *ids)
{
	json_member_array(w, key);
	for (size_t i = 0; i < ids->count; i++)
		json_put_int(w, ids->id[i]);
	json_end_array(w);
}

static void put_stage(struct json_writer *w, const char *key, struct str text)
{
	json_member_foreign(w, key, text.n ? text : STR("null"));
}

static void put_model(struct json_writer *w, const struct facts *f)
{
	const struct model *m = f->m;

	json_member_text(w, "path", f->path);
	json_member_text(w, "format", m->format);
	json_member_text(w, "model", kind_name[m->kind]);
	json_member_bool(w, "is_byte_level", m->is_byte_level);
	json_member_int(w, "merges", (int64_t)m->bpe.count);
	json_member_int(w, "added_tokens", (int64_t)f->added);
	json_member_int(w, "special_tokens", (int64_t)f->special);
	put_stage(w, "normalizer", m->stage_text.normalizer);
	put_stage(w, "pre_tokenizer", m->stage_text.pre_tokenizer);
	json_member_array(w, "scanners");
	for (size_t i = 0; i < m->pretok.count; i++)
		if (m->pretok.stage[i].kind == PRETOK_SCAN)
			json_put_text(w, m->pretok.stage[i].scanner->name);
	json_end_array(w);
	put_stage(w, "post_processor", m->stage_text.post_processor);
	put_stage(w, "decoder", m->stage_text.decoder);
	put_id_list(w, "ids_before", &m->before);
	put_id_list(w, "ids_after", &m->after);
	for (size_t i = 0; i < ROLES; i++) {
		json_key(w, role[i]);
		if (f->role[i].n)
			json_put_str(w, f->role[i]);
		else
			json_put_null(w);
	}
	json_member_text(w, "compiled_path", f->compiled.len ? f->compiled.data : NULL);
	json_member_int(w, "compiled_bytes", (int64_t)f->compiled_bytes);
	json_member_bool(w, "is_compiled_in_use", m->mapping.n > 0);
}

static void write_json(const struct facts *f, struct buf *out)
{
	struct json_writer w = json_writer(out);

	w.indent = 2;
	json_begin_object(&w);
	json_member_text(&w, "name", tokenizer_name(f->t));
	json_member_int(&w, "vocab_size", (int64_t)tokenizer_vocab_size(f->t));
	json_member_int(&w, "id_limit", (int64_t)tokenizer_id_limit(f->t));
	json_member_bool(&w, "has_chat_template", tokenizer_has_chat_template(f->t));
	json_member_f64(&w, "load_ms", (double)f->load_ns / 1e6);
	if (f->m)
		put_model(&w, f);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

int cmd_tokenizer_show(struct cli *cli, void *values)
{
	struct tokenizer_opts *o = values;
	struct facts f = { 0 };
	struct buf out = { 0 };
	struct tokenizer *t;

	f.t = t = tokenizer_from_opts(o, false, &f.load_ns, &cli->err);
	if (t && gather(&f, &cli->err) == 0) {
		(o->json ? write_json : write_page)(&f, &out);
		cli_out(buf_str(&out));
	}
	buf_release(&out);
	buf_release(&f.compiled);
	arena_release(&f.arena);
	tokenizer_free(t);
	return 0;
}
