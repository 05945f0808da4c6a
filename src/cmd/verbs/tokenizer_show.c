/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer_show.c - `profllm tokenizer show`: what a tokenizer is made of, as a page or
 * as JSON.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "cmd/verbs/cmd.h"
#include "cmd/verbs/tokenizer.h"
#include "core/json/write.h"
#include "input/encode/model.h"
#include "input/token/cache.h"
#include "input/token/load.h"

static const struct opt rows[] = {
	TOKENIZER_MODEL_ROWS,
	TOKENIZER_ROW(json, "json", .help = "One JSON object, the stages as the file has them."),
};

const struct opt_set cmd_tokenizer_show_set = {
	.command = "tokenizer show",
	.summary = "Where a tokenizer comes from, what it is made of, and its special tokens.",
	.usage = "--tokenizer NAME [options]",
	.epilog = "Examples:\n"
		  "  profllm tokenizer show --tokenizer Qwen/Qwen3-8B\n"
		  "  profllm tokenizer show --tokenizer sim --json",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &tokenizer_defaults, .bytes = sizeof(tokenizer_defaults),
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

/* What does the work of the expressions that the file names. */
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

static void put_ids(struct json_writer *w, const char *key, const struct ids *ids)
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
	put_ids(w, "ids_before", &m->before);
	put_ids(w, "ids_after", &m->after);
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
