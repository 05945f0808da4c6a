/* SPDX-License-Identifier: Apache-2.0 */
/*
 * structured.c - prompts whose answers have to satisfy a JSON Schema, a grammar, a pattern or a
 * choice, as upstream's structured-output benchmark makes them; conversations spec 4.1.
 *
 * Prompts draw nothing except, with --random-prefix-len, their common first ids, from NumPy's
 * generator. Which requests are constrained is one sample(range(N), int(N * ratio)) of Python's
 * generator. Each of json-unique's schemas has a property of its own, so that no server can reuse
 * its grammar; its name comes from a separate generator, seeded with the seed.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/constrain/constrain.h"
#include "input/data/build.h"
#include "input/encode/ids.h"
#include "input/sets/hf.h"
#include "input/sets/random.h"
#include "input/token/tokenizer.h"

/*
 * The rows of --structured-dataset xgrammar_bench: messages that ask for JSON, its schema, and an
 * answer.
 *
 * From a dataset of the hub, a folder like one or a file, in the file's order: columns "prompt" (a
 * list of messages), "schema" (a JSON Schema as text) and "completion". Left out are rows with
 * schema features that vLLM's benchmark leaves out because xgrammar did not support them
 * (conversations spec 4.3, the newest rules).
 */
#define XGRAMMAR_BENCH_NAME "NousResearch/json-mode-eval" /* without --dataset-path */

struct structured_row {
	struct str messages; /* JSON list */
	struct str contents; /* their texts, a line feed after each */
	struct str schema, completion;
};

/* Zeroed is a valid empty one. */
struct structured_rows {
	struct structured_row *v;
	size_t n, cap, left_out;
	struct arena arena;
};

/* ---- what is left out ---- */

/* "type" is that word, or a list that has it. */
static bool is_of_type(const struct json_value *object, const char *type)
{
	const struct json_value *t = json_get(object, "type");

	if (t && t->kind == JSON_STRING)
		return str_is(t->text, type);
	for (size_t i = 0; t && t->kind == JSON_ARRAY && i < t->count; i++)
		if (t->item[i].kind == JSON_STRING && str_is(t->item[i].text, type))
			return true;
	return false;
}

static bool has(const struct json_value *object, const char *key)
{
	return json_get(object, key) != NULL;
}

static bool is_bad_array(const struct json_value *o)
{
	return has(o, "uniqueItems") || has(o, "contains") || has(o, "minContains") ||
	       has(o, "maxContains");
}

static bool has_two_rules(const struct json_value *o)
{
	return (has(o, "pattern") || has(o, "format")) && (has(o, "minLength") || has(o, "maxLength"));
}

static bool is_bad_string(const struct json_value *o)
{
	static const char *const formats[] = {
		"email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid",
		"uri", "uri-reference", "uri-template", "json-pointer", "relative-json-pointer",
	};
	const struct json_value *format = json_get(o, "format");
	bool is_known = !format;

	for (size_t i = 0; format && i < sizeof(formats) / sizeof(*formats); i++)
		is_known = is_known || str_is(json_text(format, STR("")), formats[i]);
	return !is_known || has_two_rules(o);
}

static bool is_object(const struct json_value *v)
{
	return v && v->kind == JSON_OBJECT;
}

static bool is_bad_object(const struct json_value *o)
{
	const struct json_value *names = json_get(o, "propertyNames");
	const struct json_value *patterns = json_get(o, "patternProperties");
	const struct json_value *unevaluated = json_get(o, "unevaluatedProperties");
	bool has_properties = has(o, "properties");

	if (names && (has_properties || patterns || is_object(json_get(o, "additionalProperties")) ||
		      (unevaluated && unevaluated->kind != JSON_TRUE)))
		return true;
	if (is_object(names) && has_two_rules(names))
		return true;
	return patterns && (has_properties || (is_object(patterns) && patterns->count > 1));
}

/* Searches all levels, like upstream also objects that are data, such as values of an enum. */
/* Whether vLLM's benchmark leaves a row with this schema out. */
static bool structured_is_unsupported(const struct json_value *v)
{
	if (v->kind == JSON_OBJECT) {
		bool is_number = is_of_type(v, "number") || is_of_type(v, "integer");

		if ((is_number && has(v, "multipleOf")) ||
		    (is_of_type(v, "array") && is_bad_array(v)) ||
		    (is_of_type(v, "string") && is_bad_string(v)) ||
		    (is_of_type(v, "object") && is_bad_object(v)))
			return true;
	}
	for (size_t i = 0; (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) && i < v->count; i++)
		if (structured_is_unsupported(&v->item[i]))
			return true;
	return false;
}

/* ---- rows ---- */

static const struct hf_class bench = {
	.name = "xgrammar_bench", .split = "train",
	.ids = (const char *const[]){ XGRAMMAR_BENCH_NAME, NULL },
	.columns = (const char *const[]){ "prompt", "schema", "completion", NULL },
};

static int read_messages(const struct hf_row *r, struct arena *a, struct structured_row *out,
			 struct err *e)
{
	struct json_slice list, message, content;
	struct buf text = { 0 };
	struct json_iter it;
	int rc = hf_column(r, "prompt", &list, e);

	if (rc == 0 && list.kind != JSON_ARRAY)
		rc = hf_refuse(r, e, "\"prompt\" must be a list of messages");
	it = json_iter(list);
	while (rc == 0 && json_each(&it, NULL, &message) == 1) {
		if (!json_member(message, "content", &content) || content.kind != JSON_STRING)
			rc = hf_refuse(r, e, "\"prompt\": a message has no text \"content\"");
		else
			json_unescape(&text, content.raw);
		buf_add_char(&text, '\n');
	}
	if (rc == 0 && !text.len)
		rc = hf_refuse(r, e, "\"prompt\" has no messages");
	if (rc == 0) {
		out->messages = arena_str(a, list.raw);
		out->contents = arena_str(a, buf_str(&text));
	}
	buf_release(&text);
	return rc;
}

/* 1; 0: it is left out; -1. */
static int read_row(const struct hf_row *r, struct arena *a, struct structured_row *out,
		    struct err *e)
{
	struct arena scratch = { 0 };
	struct json_value *schema;
	struct err why = { 0 };
	bool is_left_out = false;
	int rc = hf_text(r, "schema", a, &out->schema, e);

	if (rc == 0 && json_parse(&scratch, out->schema, &schema, &why) < 0)
		rc = hf_refuse(r, e, "\"schema\" is not valid JSON: %s", why.text);
	else if (rc == 0)
		is_left_out = structured_is_unsupported(schema);
	arena_release(&scratch);
	if (rc < 0 || is_left_out)
		return rc < 0 ? -1 : 0;
	return read_messages(r, a, out, e) < 0 ||
	       hf_text(r, "completion", a, &out->completion, e) < 0 ? -1 : 1;
}

static int read_all(struct hf *h, struct structured_rows *out, struct err *e)
{
	struct structured_row row = { 0 };
	struct hf_row next;
	int rc;

	for (size_t i = 0; (rc = hf_next_row(h, i, &next, e)) > 0; i++) {
		rc = dataset_go_on(h->env, e) < 0 ? -1 : read_row(&next, &out->arena, &row, e);
		if (rc < 0)
			return -1;
		out->left_out += rc == 0;
		if (rc == 0)
			continue;
		out->v = mem_room(out->v, out->n, &out->cap, sizeof(*out->v));
		out->v[out->n++] = row;
	}
	return rc;
}

/* ERR_RUN: no row is left; ERR_PARSE: a row without these columns, or a schema that is not JSON. */
static int structured_rows_read(const struct dataset_opts *o, const struct dataset_env *env,
				struct workload *w, struct structured_rows *out, struct err *e)
{
	struct dataset_opts in_order = *o;
	struct hf h = { .class = &bench, .opts = &in_order, .env = env, .w = w };
	int rc;

	in_order.disable_shuffle = true;
	in_order.path = o->path ? o->path : XGRAMMAR_BENCH_NAME;
	h.where = (struct source_opts){
		.path = in_order.path, .cancel = env->cancel, .split = bench.split,
		.progress = env->download, .note = env->note, .self = env->self,
	};
	rc = hf_open_split(&h, e);
	if (rc == 0)
		rc = read_all(&h, out, e);
	if (rc == 0 && !out->n)
		rc = err_set(e, ERR_RUN, "%s: no row is left; %zu have schemas that vLLM's "
			     "benchmark skips", in_order.path, out->left_out);
	hf_close_rows(&h);
	buf_release(&h.text);
	return rc;
}

static void structured_rows_release(struct structured_rows *r)
{
	free(r->v);
	arena_release(&r->arena);
	*r = (struct structured_rows){ 0 };
}

/* ---- requests ---- */

/*
 * The form of the constraint in a request: of releases up to 0.10.1, of later ones, and OpenAI's.
 */
enum structured_form { FORM_NEW, FORM_GUIDED, FORM_RESPONSE };

/* A person, as in upstream's script of 0.32; before, it was characters of a game. */
static const char usual_schema[] =
	"{\"type\": \"object\", \"properties\": {"
	"\"name\": {\"type\": \"string\"}, \"email\": {\"type\": \"string\"}, "
	"\"street\": {\"type\": \"string\"}, \"city\": {\"type\": \"string\"}, "
	"\"state\": {\"type\": \"string\"}, \"zip\": {\"type\": \"string\"}, "
	"\"phone\": {\"type\": \"string\"}, \"website\": {\"type\": \"string\"}, "
	"\"company\": {\"type\": \"string\"}, \"age\": {\"type\": \"integer\"}}, "
	"\"required\": [\"name\", \"email\"]}";

#define BENCH "xgrammar_bench"
#define INDENT "        "
#define RULE(text) INDENT text "\n\n"
static const char sql_grammar[] = "\n"
	RULE("root ::= select_statement")
	RULE("select_statement ::= \"SELECT \" column \" from \" table \" where \" condition")
	RULE("column ::= \"col_1 \" | \"col_2 \"")
	RULE("table ::= \"table_1 \" | \"table_2 \"")
	RULE("condition ::= column \"= \" number")
	INDENT "number ::= \"1 \" | \"2 \"\n" INDENT;

static const struct plain {
	const char *name, *prompt, *kind, *text;
} plain[] = {
	{ "grammar", "Generate an SQL query to show the 'username'             and 'email' from the "
		     "'users' table.", "grammar", sql_grammar },
	{ "regex", "Generate an email address for Alan Turing,             who works in Enigma. End "
		   "in .com and new line.                 Example result: alan.turing@enigma.com\n",
	  "regex", "\\w+@\\w+\\.com\\n" },
	{ "choice", "Classify this sentiment: vLLM is wonderful!", "choice",
	  "[\"Positive\", \"Negative\"]" },
};

struct structured {
	const struct dataset_opts *o;
	const struct tokenizer *tokenizer;
	struct ids prefix;         /* --random-prefix-len; empty: none */
	enum structured_form form;
	const struct plain *plain; /* NULL: a schema */
	bool is_unique;
	bool is_bench;             /* xgrammar_bench: each request has a row's schema */
	struct structured_rows rows;
	const struct dataset_env *env;
	struct json_value *schema;
	struct pyrandom names;     /* of json-unique's properties */
	bool *is_constrained;
	struct arena arena;
	struct buf text;
};

static int read_schema(struct structured *s, struct err *e)
{
	struct str text = str_of(usual_schema);
	const char *path = s->o->json_schema_path;
	struct constraint *c;
	struct str mapped = { 0 };
	int rc;

	if (path && file_map(path, &mapped, e) < 0)
		return err_wrap(e, "--json-schema-path %s", path);
	rc = json_parse(&s->arena, path ? mapped : text, &s->schema, e);
	c = rc < 0 ? NULL : constraint_compile(CONSTRAINT_JSON, path ? mapped : text, NULL, e);
	constraint_free(c);
	if (path)
		file_unmap(mapped);
	return c ? 0 : err_wrap(e, "%s", path ? path : "the schema");
}

/* A random UUID (version 4). */
static void add_uuid(struct pyrandom *g, struct buf *out)
{
	uint64_t high = pyrandom_bits(g, 64), low = pyrandom_bits(g, 64);

	high = (high & ~0xf000ull) | 0x4000;
	low = (low & ~(3ull << 62)) | 1ull << 63;
	buf_printf(out, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
		   high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48,
		   low & 0xffffffffffff);
}

static void put_new_property(struct structured *s, struct json_writer *w)
{
	struct buf name = { 0 };

	buf_add_text(&name, "__optional_field_");
	add_uuid(&s->names, &name);
	json_key_str(w, buf_str(&name));
	json_begin_object(w);
	json_member_text(w, "type", "string");
	json_member_text(w, "description", "An unique optional field to avoid cached schemas");
	json_end_object(w);
	buf_release(&name);
}

/* The schema with one more property at its top; other members keep their places. */
static void put_unique(struct structured *s, struct json_writer *w)
{
	bool has_properties = false;

	json_begin_object(w);
	for (size_t i = 0; i <= s->schema->count; i++) {
		bool is_last = i == s->schema->count;
		bool is_it = !is_last && str_is(s->schema->key[i], "properties");

		if (is_last && has_properties)
			break;
		if (!is_last && !is_it) {
			json_key_str(w, s->schema->key[i]);
			json_put_value(w, &s->schema->item[i]);
			continue;
		}
		has_properties = true;
		json_member_object(w, "properties");
		for (size_t k = 0; is_it && k < s->schema->item[i].count; k++) {
			json_key_str(w, s->schema->item[i].key[k]);
			json_put_value(w, &s->schema->item[i].item[k]);
		}
		put_new_property(s, w);
		json_end_object(w);
	}
	json_end_object(w);
}

static struct str schema_text(struct structured *s)
{
	struct json_writer w = json_writer(&s->text);

	buf_reset(&s->text);
	if (s->is_unique)
		put_unique(s, &w);
	else
		json_put_value(&w, s->schema);
	return buf_str(&s->text);
}

/* {"KIND": value}: the value of kind is JSON for schemas and choices, else a text. */
static void put_member(struct json_writer *w, const char *key, const char *kind, struct str value)
{
	json_key(w, key);
	if (strcmp(kind, "json") == 0 || strcmp(kind, "choice") == 0)
		json_put_raw(w, value);
	else
		json_put_str(w, value);
}

static void put_response_format(struct json_writer *w, struct str schema)
{
	json_member_object(w, "response_format");
	json_member_text(w, "type", "json_schema");
	json_member_object(w, "json_schema");
	json_member_text(w, "name", "answer");
	json_member_raw(w, "schema", schema);
	json_end_object(w);
	json_end_object(w);
}

static struct str overrides(const struct structured *s, struct arena *a, const char *kind,
			    struct str value)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	char key[32];

	json_begin_object(&w);
	if (s->form == FORM_NEW) {
		json_member_object(&w, "structured_outputs");
		put_member(&w, kind, kind, value);
		json_end_object(&w);
	} else if (s->form == FORM_GUIDED) {
		snprintf(key, sizeof(key), "guided_%s", kind);
		put_member(&w, key, kind, value);
	} else {
		put_response_format(&w, value);
	}
	json_end_object(&w);
	return arena_take(a, &text);
}

static struct str constraint_of(struct arena *a, const char *kind, struct str value)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	json_begin_object(&w);
	put_member(&w, kind, kind, value);
	json_end_object(&w);
	return arena_take(a, &text);
}

/* Draws the common first ids of all prompts as upstream does. */
static int draw_prefix(struct structured *s, const struct dataset_env *env, struct err *e)
{
	struct random_gen g;
	int rc;

	s->tokenizer = env->tokenizer;
	if (s->o->random_prefix_len < 1)
		return 0;
	if (random_gen_open(&g, env, RANDOM_IDS_UNDECLARED, e) < 0)
		return -1;
	g.is_ids = true;
	rc = random_prefix_draw(&g, s->o->random_prefix_len, &s->prefix, e);
	random_gen_release(&g);
	return rc;
}

static int put_prefix(const struct structured *s, struct arena *a, struct str *prompt,
		      struct err *e)
{
	struct ids ids = { 0 };
	struct buf text = { 0 };
	int rc = 0;

	ids_add(&ids, s->prefix.id, s->prefix.count);
	if (tokenizer_encode(s->tokenizer, *prompt, false, &ids) < 0)
		rc = tokenizer_refuse(s->tokenizer, *prompt, e);
	else if (tokenizer_decode(s->tokenizer, ids.id, ids.count, false, &text) < 0)
		rc = err_set(e, ERR_LIMIT, "the text of a prompt of %zu tokens is too long", ids.count);
	else
		*prompt = arena_str(a, buf_str(&text));
	buf_release(&text);
	ids_release(&ids);
	return rc;
}

/* The schema is a text that contains JSON, and is sent as that text. */
static struct str quoted(struct arena *a, struct str text)
{
	struct buf out = { 0 };

	json_quote(&out, text, false);
	return arena_take(a, &out);
}

/* A row's messages: as they are for chat APIs, else in the model's chat template. */
static int draft_row(struct structured *s, size_t i, struct arena *a, struct draft *d,
		     struct err *e)
{
	const struct structured_row *row = &s->rows.v[i % s->rows.n];
	const struct dataset_env *env = s->env;

	buf_reset(&s->text);
	if (!env->is_chat_backend && !env->render)
		return err_set(e, ERR_USAGE, "xgrammar_bench prompts are messages in the model's "
			       "chat template, which cannot be applied here; --backend openai-chat "
			       "sends the messages themselves");
	if (!env->is_chat_backend &&
	    env->render(env->render_self, row->messages, STR(""), &s->text, e) < 0)
		return -1;
	d->sample.prompt = arena_str(a, env->is_chat_backend ? row->contents : buf_str(&s->text));
	if (env->is_chat_backend)
		d->sample.messages = row->messages;
	d->sample.output_len = s->o->structured_output_len;
	d->sample.expected = row->completion;
	d->sample.constraint = constraint_of(a, "json", row->schema);
	if (s->is_constrained[i])
		d->sample.overrides = overrides(s, a, "json", s->form == FORM_RESPONSE ?
						row->schema : quoted(a, row->schema));
	if (s->prefix.count && !env->is_chat_backend &&
	    put_prefix(s, a, &d->sample.prompt, e) < 0)
		return -1;
	return 1;
}

static int draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct structured *s = self;
	const char *kind = s->plain ? s->plain->kind : "json";
	struct str value;

	if (s->is_bench)
		return draft_row(s, i, a, d, e);
	value = s->plain ? str_of(s->plain->text) : arena_str(a, schema_text(s));
	d->sample.prompt = s->plain ? str_of(s->plain->prompt) :
		str_of(arena_printf(a, "Generate an example of a brief user profile given the "
				    "following schema: %.*s", (int)value.n, value.p));
	d->sample.output_len = s->o->structured_output_len;
	/* Also set for unconstrained requests, which show what the model does alone. */
	d->sample.constraint = constraint_of(a, kind, value);
	if (s->is_constrained[i])
		d->sample.overrides = overrides(s, a, kind, value);
	if (s->prefix.count && put_prefix(s, a, &d->sample.prompt, e) < 0)
		return -1;
	return 1;
}

static int find_kind(struct structured *s, struct workload *w, struct err *e)
{
	const char *name = s->o->structured_dataset;

	s->is_bench = strcmp(name, BENCH) == 0;
	if (s->is_bench && structured_rows_read(s->o, s->env, w, &s->rows, e) < 0)
		return -1;
	if (s->rows.left_out)
		dataset_note(w, "%zu of %zu rows were skipped: their schemas use features that "
			     "xgrammar does not support, by the newest rules of vLLM's "
			     "benchmark", s->rows.left_out,
			     s->rows.left_out + s->rows.n);
	if (s->is_bench)
		return 0;

	s->is_unique = strcmp(name, "json-unique") == 0;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (strcmp(name, plain[i].name) == 0)
			s->plain = &plain[i];
	return s->plain ? 0 : read_schema(s, e);
}

static int find_form(struct structured *s, const struct dataset_env *env, struct err *e)
{
	const char *name = s->o->constraint_form;

	if (strcmp(name, "guided") == 0 ||
	    (strcmp(name, "auto") == 0 && env->is_guided_server))
		s->form = FORM_GUIDED;
	else if (strcmp(name, "response_format") == 0)
		s->form = FORM_RESPONSE;
	if (s->form == FORM_RESPONSE && s->plain)
		return err_set(e, ERR_USAGE, "--constraint-form response_format carries JSON schemas "
			       "alone, and --structured-dataset is %s; use structured_outputs",
			       s->o->structured_dataset);
	return 0;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	if (env->num_prompts < 1)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 ": at least 1 is needed",
			       env->num_prompts);
	if (o->path && strcmp(o->structured_dataset, BENCH) != 0)
		return err_set(e, ERR_USAGE, "--dataset-path %.200s: only --structured-dataset " BENCH
			       " reads a dataset, not %s", o->path, o->structured_dataset);
	if (!(o->structured_output_ratio >= 0 && o->structured_output_ratio <= 1))
		return err_set(e, ERR_USAGE, "--structured-output-ratio %g: expected 0 to 1",
			       o->structured_output_ratio);
	return 0;
}

static void choose(struct structured *s, size_t n, struct compat_rng *rng)
{
	size_t k = (size_t)floor((double)n * s->o->structured_output_ratio);
	size_t *row = mem_array(k ? k : 1, sizeof(*row));

	pyrandom_sample(&rng->py, n, row, k);
	s->is_constrained = mem_array(n, sizeof(*s->is_constrained));
	for (size_t i = 0; i < k; i++)
		s->is_constrained[row[i]] = true;
	free(row);
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct structured s = { .o = o, .env = env };
	struct take take = {
		.self = &s, .rows = (size_t)env->num_prompts, .draft = draft,
		.is_output_unchecked = true,
	};
	int rc = find_kind(&s, w, e);

	if (rc == 0)
		rc = find_form(&s, env, e);
	if (rc == 0)
		rc = draw_prefix(&s, env, e);
	if (rc == 0) {
		pyrandom_seed(&s.names, (int64_t)env->seed);
		choose(&s, (size_t)env->num_prompts, rng);
		rc = dataset_take(&take, o, env, rng, w, e);
	}
	if (rc == 0 && s.is_unique && json_get(s.schema, "items"))
		dataset_note(w, "the property that makes each schema unique is next to \"items\" of an "
			     "array, as in vLLM's benchmark, and constrains nothing");
	structured_rows_release(&s.rows);
	free(s.is_constrained);
	ids_release(&s.prefix);
	buf_release(&s.text);
	arena_release(&s.arena);
	return rc;
}

static const char *const options[] = {
	"structured-dataset", "json-schema-path", "structured-output-ratio", "structured-output-len",
	"constraint-form", "random-prefix-len", NULL,
};

const struct dataset dataset_structured = {
	.options = options, .name = "structured",
	.summary = "prompts whose answers must follow a schema, a pattern, a choice or a grammar",
	.needs_tokenizer = true, .is_told_version = true,
	.check = check, .build = build,
};
