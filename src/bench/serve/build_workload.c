/* SPDX-License-Identifier: Apache-2.0 */
/* build_workload.c - see build_workload.h. */
#include "bench/serve/build_workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bench/options/serve_opts_internal.h"
#include "bench/serve/prepare.h"
#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "input/data/repeat.h"
#include "input/data/request_keys.h"
#include "input/sets/datasets.h"
#include "input/token/remote.h"

/* ---- chat templates ---- */

static int ask_server(const struct remote *server, const char *model,
		      const struct tokenizer *tokenizer, struct str kwargs, struct arena *a,
		      struct chat_wrap *out, struct err *e)
{
	struct remote_target target;
	int rc = remote_target_init(&target, server, "", e);

	if (rc == 0) {
		struct token_server s = { target.url.data, model, target.opts };

		rc = chat_from_server(&s, tokenizer, kwargs, a, out, e);
	}
	remote_target_release(&target);
	return rc;
}

static int unknown(const struct tokenizer *tokenizer, bool has_kwargs, bool is_chat,
		   const struct err *why, struct err *e)
{
	const char *bare = is_chat ? "the chat endpoint applies it" : "prompts are sent unchanged";

	return err_set(e, ERR_RUN, "the chat template of %s is %s, and the server cannot apply it "
		       "(%s): give the text before and after a user message with --chat-prefix and "
		       "--chat-suffix, or use --skip-chat-template (%s)", tokenizer_name(tokenizer),
		       has_kwargs ? "unknown with --chat-template-kwargs" : "unknown", why->text, bare);
}

int run_chat_find(const struct serve_opts *o, const struct serve_derived *d,
		  const struct tokenizer *tokenizer, const struct remote *server,
		  const char *model, struct arena *a, struct chat_wrap *out, struct err *e)
{
	const struct str kwargs = str_of(o->chat_template_kwargs.text);
	const char *path = tokenizer ? tokenizer_path(tokenizer) : NULL;
	struct err why = { 0 };
	int rc;

	*out = d->chat;
	if (out->source == CHAT_FLAGS || !tokenizer ||
	    !(tokenizer_remote(tokenizer) || tokenizer_has_chat_template(tokenizer)))
		return 0;
	rc = path && !kwargs.n ? chat_from_files(path, a, out, e) : 0;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (!server)
		err_set(&why, ERR_RUN, "a dry run sends nothing to it");
	else if (ask_server(server, model, tokenizer, kwargs, a, out, &why) == 0)
		return 0;
	if (why.code == ERR_CANCELLED)
		return err_set(e, ERR_CANCELLED, "%s", why.text);
	return unknown(tokenizer, kwargs.n > 0, d->is_chat, &why, e);
}

void run_chat_notes(const struct chat_wrap *w, bool is_chat, const struct tokenizer *tokenizer,
		    struct buf *out)
{
	if (w->source == CHAT_NONE)
		return;
	if (is_chat)
		buf_add_text(out, "prompts are put through the chat template twice, here and by the "
			     "chat endpoint, as vLLM does; --skip-chat-template leaves it to the "
			     "server");
	else if (tokenizer && chat_doubles_bos(w, tokenizer))
		buf_add_text(out, "prompts begin with the BOS token of the chat template and get "
			     "another from the tokenizer, as in vLLM; both are counted");
}

/* ---- whole messages ---- */

/* The text of a message with that role and plain text; false: it is another. */
static bool plain_text(const struct json_value *message, const char *role, struct str *out)
{
	const struct json_value *content = json_get(message, "content");

	if (!str_is(json_text(json_get(message, "role"), STR("")), role) || !content ||
	    content->kind != JSON_STRING)
		return false;
	*out = content->text;
	return true;
}

/* Appends the rendering if the wrap alone is enough for it; false: it is not. */
static bool render_known(const struct chat_wrap *w, struct str messages, struct arena *a,
			 struct buf *text)
{
	struct str system, user;
	struct json_value *v;

	if (w->source == CHAT_NONE || json_parse(a, messages, &v, NULL) < 0 ||
	    v->kind != JSON_ARRAY)
		return false;
	if (v->count == 1 && plain_text(v->item, "user", &user)) {
		chat_apply(w, user, text);
		return true;
	}
	if (!w->has_system || v->count != 2 || !plain_text(v->item, "system", &system) ||
	    !plain_text(v->item + 1, "user", &user))
		return false;
	chat_apply_system(w, system, user, text);
	return true;
}

static int render_by_server(const struct run_renderer *r, struct str messages, struct str tools,
			    struct buf *text, struct err *e)
{
	struct remote_target target;
	struct ids ids = { 0 };
	int rc = remote_target_init(&target, r->server, "", e);

	if (rc == 0) {
		struct token_server s = { target.url.data, r->model, target.opts };

		rc = token_server_render_messages(&s, messages, tools, r->kwargs, &ids, e);
	}
	if (rc == 0 && tokenizer_decode(r->tokenizer, ids.id, ids.count, false, text) < 0)
		rc = err_set(e, ERR_LIMIT, "a rendered conversation is too long");
	ids_release(&ids);
	remote_target_release(&target);
	return rc;
}

int run_render(void *self, struct str messages, struct str tools, struct buf *text, struct err *e)
{
	const struct run_renderer *r = self;
	struct arena scratch = { 0 };
	bool is_done = !tools.n && !r->kwargs.n && render_known(r->wrap, messages, &scratch, text);

	arena_release(&scratch);
	if (is_done)
		return 0;
	if (r->by)
		return r->by(r->by_self, messages, tools, text, e);
	if (r->server)
		return render_by_server(r, messages, tools, text, e);
	return err_set(e, ERR_RUN, "the chat template of %s is unknown for such messages, and a "
		       "dry run does not ask the server", tokenizer_name(r->tokenizer));
}

/* ---- one set of a mix: options as JSON in place of a command line ---- */

/* The row of a dataset's option; -1: not an option, or one of the run's. */
static int row_of(const char *name)
{
	for (size_t i = 0; i < serve_opt_set.n; i++) {
		const struct opt *o = &serve_opt_set.row[i];
		bool is_own = (o->offset >= offsetof(struct serve_opts, data) &&
			       o->offset < offsetof(struct serve_opts, data) +
					   sizeof(struct dataset_opts)) ||
			      o->offset == offsetof(struct serve_opts, dataset_name) ||
			      o->offset == offsetof(struct serve_opts, input_len) ||
			      o->offset == offsetof(struct serve_opts, output_len);

		if (is_own && strcmp(o->name, name) == 0)
			return (int)i;
	}
	return -1;
}

/* The name with only this kind of dash. */
static void name_with(char stroke, struct str key, struct buf *name)
{
	buf_reset(name);
	json_unescape(name, key);
	for (size_t i = 0; i < name->len; i++)
		if (name->data[i] == '_' || name->data[i] == '-')
			name->data[i] = stroke;
}

/* Moves a key of the requests themselves (request_keys.h) to *own, an object. */
static bool is_own(struct str key, struct json_slice value, struct json_writer *own)
{
	struct buf name = { 0 };
	bool is_known;

	name_with('_', key, &name);
	is_known = request_keys_know(buf_str(&name));
	if (is_known) {
		if (value.kind == JSON_STRING)
			value.raw = (struct str){ value.raw.p - 1, value.raw.n + 2 };
		json_key_str(own, buf_str(&name));
		json_put_raw(own, value.raw);
	}
	buf_release(&name);
	return is_known;
}

static int read_own(struct buf *text, struct arena *a, struct dataset_component *out,
		    struct err *e)
{
	struct json_scan scan = { arena_str(a, buf_str(text)), 0 };
	struct json_slice object;

	buf_release(text);
	out->own.output_len = -1;
	if (json_next(&scan, &object, e) < 0 ||
	    request_keys_read(object, a, &out->own, &out->has_priority, e) < 0) {
		e->code = ERR_USAGE;
		return err_wrap(e, "--mix");
	}
	out->has_length = out->own.output_len >= 0;
	return 0;
}

static int assign(struct str key, struct json_slice value, struct serve_opts *o,
		  struct opt_result *given, struct arena *a, struct err *e)
{
	struct buf name = { 0 }, text = { 0 };
	int row, rc;

	name_with('-', key, &name);
	row = row_of(name.len ? name.data : "");
	if (value.kind == JSON_STRING)
		json_unescape(&text, value.raw);
	else
		buf_add_str(&text, value.raw);
	if (row < 0)
		rc = err_set(e, ERR_USAGE, "--mix: \"%.100s\" is neither an option of a dataset "
			     "nor a key of its requests (extra_body, headers, priority, temperature...)",
			     name.len ? name.data : "");
	else
		rc = opt_assign(&serve_opt_set, o, name.data, buf_str(&text), a, e);
	if (rc == 0)
		given->given[row / 64] |= 1ull << row % 64;
	else if (row >= 0)
		err_wrap(e, "--mix");
	buf_release(&name);
	buf_release(&text);
	return rc;
}

static int read_members(struct json_slice object, struct serve_opts *o, struct opt_result *given,
			struct dataset_component *out, struct arena *a, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer own = json_writer(&text);
	struct json_iter it;
	int rc = 0;
	struct json_slice value;
	struct str key;

	if (object.kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "--mix: expected a list of objects, got %.*s in it",
			       (int)(object.raw.n < 60 ? object.raw.n : 60), object.raw.p);
	it = json_iter(object);
	json_begin_object(&own);
	while (rc == 0 && json_each(&it, &key, &value) == 1) {
		if (!str_is(key, "weight"))
			rc = is_own(key, value, &own) ? 0 : assign(key, value, o, given, a, e);
		else if (!json_to_f64(value, &out->weight) || !(out->weight > 0) ||
			 isinf(out->weight))
			rc = err_set(e, ERR_USAGE, "--mix: \"weight\" must be a number above 0, got %s%.*s",
				     value.kind == JSON_STRING ? "the text " : "",
				     (int)(value.raw.n < 60 ? value.raw.n : 60), value.raw.p);
	}
	json_end_object(&own);
	if (rc == 0)
		return read_own(&text, a, out, e);
	buf_release(&text);
	return -1;
}

/*
 * {"weight": 2, "dataset-name": "sharegpt", "dataset-path": ..., ...}: options of bench serve
 * by name, "-" and "_" alike; weight (default 1) is above 0. What belongs to the run and not
 * to a dataset is refused. Keys of data/request_keys.h hold for all requests of the set. Memory
 * in a; notes on options without effect go to notes.
 */
static int read_component(struct json_slice object, struct arena *a, struct dataset_component *out,
			  struct buf *notes, struct err *e)
{
	struct serve_opts *o = arena_alloc(a, sizeof(*o));
	struct opt_result given = { 0 };
	const struct serve_check c = { o, &given, a, NULL, e };
	int rc;

	*o = *(const struct serve_opts *)serve_opt_set.defaults;
	*out = (struct dataset_component){ .weight = 1 };
	rc = read_members(object, o, &given, out, a, e);
	if (rc == 0 && strcmp(o->dataset_name, "mix") == 0)
		rc = err_set(e, ERR_USAGE, "--mix: a part of a mix cannot be a mix");
	if (rc == 0 && (o->data.repeat_count != 1 || o->data.repeat_order ||
			strcmp(o->data.warmup_pass, "none") != 0))
		rc = err_set(e, ERR_USAGE, "--mix: \"repeat-count\", \"repeat-order\" and \"warmup-pass\" "
			     "hold for all of a mix; give them on the command line");
	if (rc == 0)
		rc = serve_check_dataset(&c);
	if (rc == 0)
		rc = serve_check_range_ratio(&c);
	if (rc == 0) {
		out->dataset = dataset_find(o->dataset_name);
		out->opts = o->data;
		buf_add_str(notes, buf_str(&given.notes));
	}
	buf_release(&given.notes);
	return rc;
}

/* ---- a dataset becomes requests ---- */

int run_draw_check(const struct dataset *d, const struct dataset_opts *o, bool has_no_tokenizer,
		   struct err *e)
{
	if (d->needs_path && !o->path)
		return err_set(e, ERR_USAGE, "--dataset-name %s needs --dataset-path", d->name);
	if (d->needs_tokenizer && has_no_tokenizer)
		return err_set(e, ERR_USAGE, "--dataset-name %s needs a tokenizer and cannot be used "
			       "with --skip-tokenizer-init", d->name);
	return 0;
}

static int find_chat(struct run_draw *draw, const struct dataset *d, const struct dataset_opts *o,
		     struct chat_wrap *out, struct err *e)
{
	*out = (struct chat_wrap){ 0 };
	if (!d->is_templated || (d->is_templated_for && !d->is_templated_for(o)) ||
	    (d->is_chat_plain && o->enable_multimodal_chat))
		return 0;
	draw->chat_template = "skipped";
	if (o->skip_chat_template && !d->is_always_templated)
		return 0;
	if (draw->find_chat(draw->self, draw->arena, out, e) < 0)
		return -1;
	draw->chat_template = chat_source_name(out->source);
	return 0;
}

static void warn_lines(const struct run_draw *draw, struct str lines)
{
	struct arena a = { 0 };

	while (lines.n)
		draw->warn(draw->self, arena_text(&a, str_cut(&lines, '\n')));
	arena_release(&a);
}

/* One set of a mix: its options, and its own chat template where it has one. */
static int make_component(void *self, struct json_slice object, struct arena *a,
			  struct dataset_component *out, struct err *e)
{
	struct run_draw *draw = self;
	struct chat_wrap *chat = arena_alloc(a, sizeof(*chat));
	struct buf notes = { 0 };
	int rc = read_component(object, a, out, &notes, e);

	if (rc == 0)
		warn_lines(draw, buf_str(&notes));
	buf_release(&notes);
	if (rc < 0 || run_draw_check(out->dataset, &out->opts, draw->has_no_tokenizer, e) < 0 ||
	    find_chat(draw, out->dataset, &out->opts, chat, e) < 0)
		return -1;
	out->chat = chat;
	return 0;
}

int run_draw(struct run_draw *draw, const struct dataset *d, const struct dataset_opts *o,
	     struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct dataset_env *env = &draw->env;

	draw->arena = &w->arena;
	env->chat = &draw->chat;
	env->component = make_component;
	env->component_self = draw;
	if (find_chat(draw, d, o, &draw->chat, e) < 0 ||
	    (d->check && d->check(o, env, e) < 0))
		return -1;
	draw->is_building = true;
	if (d->build(o, env, rng, w, e) < 0 || dataset_drop_long(w, o, e) < 0)
		return -1;
	w->dataset = d->name;
	if (w->n == 0)
		return err_set(e, ERR_RUN, "No requests provided.");
	if (dataset_repeat(w, o, rng, e) < 0)
		return -1;
	warn_lines(draw, w->notes);
	return 0;
}

/* ---- for people and programs ---- */

#define PRIORITIES_SHOWN 16 /* in the summary */

static void put_json(struct json_writer *w, const char *key, struct str json)
{
	if (json.n == 0)
		return;
	json_member_foreign(w, key, json);
}

static void put_file(struct json_writer *w, const struct sample *s)
{
	struct buf base64 = { 0 };

	base64_encode(s->file, &base64);
	json_member_object(w, "file");
	json_member_str(w, "name", str_of(s->file_name));
	json_member_str(w, "bytes_base64", buf_str(&base64));
	json_member_f64(w, "seconds", s->audio_s);
	json_end_object(w);
	buf_release(&base64);
}

static void put_index(struct json_writer *w, const char *key, uint32_t entry)
{
	json_key(w, key);
	if (entry == PLAN_NONE)
		json_put_null(w);
	else
		json_put_int(w, entry);
}

/* after and history are indices of other lines; due_s then counts from the end of `after`. */
static void put_turn(struct json_writer *w, const struct plan_entry *entry)
{
	put_index(w, "session", entry->session);
	put_index(w, "turn", entry->turn);
	put_index(w, "after", entry->after);
	put_index(w, "history", entry->history);
}

static void dump_entry(const struct plan_entry *entry, uint32_t index, struct str id,
		       const struct sample *s, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_int(&w, "index", index);
	json_key(&w, "request_id");
	if (id.n)
		json_put_str(&w, id);
	else
		json_put_null(&w);
	json_member_f64(&w, "due_s", entry->due_s);
	json_key(&w, "prompt");
	if (s->kind == PROMPT_TEXT)
		json_put_str(&w, s->prompt);
	else
		json_put_foreign(&w, s->prompt);
	json_member_int(&w, "prompt_len", s->prompt_len);
	json_key(&w, "output_len");
	if (s->output_len < 0)
		json_put_null(&w);
	else
		json_put_int(&w, s->output_len);
	if (!isnan(s->timestamp_s))
		json_member_f64(&w, "timestamp_s", s->timestamp_s);
	put_json(&w, "messages", s->messages);
	put_json(&w, "media", s->media);
	put_json(&w, "overrides", s->overrides);
	put_json(&w, "headers", s->headers);
	put_json(&w, "constraint", s->constraint);
	if (s->expected.n)
		json_member_str(&w, "expected", s->expected);
	if (s->file.n)
		put_file(&w, s);
	if (entry->session != PLAN_NONE)
		put_turn(&w, entry);
	if (entry->lora != PLAN_NO_LORA)
		json_member_int(&w, "lora", entry->lora);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

void dump_workload(const struct workload *w, const struct plan *plan, const char *id_prefix,
		   struct buf *out)
{
	struct buf id = { 0 };

	out->limit = WORKLOAD_DUMP_BYTES_MAX;
	for (uint32_t i = 0; i < plan->n; i++) {
		buf_reset(&id);
		prepare_request_id(id_prefix, plan, i, w, &id);
		dump_entry(&plan->entry[i], i, buf_str(&id), &w->v[plan->entry[i].sample], out);
	}
	buf_release(&id);
}

static void row(struct buf *out, const char *label, double *sorted, size_t n)
{
	stats_sort(sorted, n);
	buf_printf(out, "%-28s%10.0f%10.1f%10.0f%10.0f%10.0f\n", label, sorted[0],
		   stats_mean(sorted, n), stats_percentile(sorted, n, 50),
		   stats_percentile(sorted, n, 99), sorted[n - 1]);
}

static int by_priority(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* "Priorities: 0: 5 requests, 1: 5 requests". */
static void add_priorities(const struct workload *w, const struct plan *plan, struct buf *out)
{
	int64_t *v = mem_array(plan->n, sizeof(*v));
	unsigned shown = 0;

	for (size_t i = 0; i < plan->n; i++)
		v[i] = w->v[plan->entry[i].sample].priority;
	qsort(v, plan->n, sizeof(*v), by_priority);
	buf_add_text(out, "Priorities:");
	for (size_t i = 0, same; i < plan->n && shown < PRIORITIES_SHOWN; i += same, shown++) {
		for (same = 1; i + same < plan->n && v[i + same] == v[i];)
			same++;
		buf_printf(out, "%s %" PRId64 ": %zu request%s", shown ? "," : "", v[i], same,
			   same > 1 ? "s" : "");
	}
	buf_add_text(out, shown == PRIORITIES_SHOWN ? ", ...\n" : "\n");
	free(v);
}

/* Appends properties that individual requests have. */
static void add_own(const struct workload *w, const struct plan *plan, struct buf *out)
{
	size_t bodies = 0, heads = 0;

	for (size_t i = 0; i < plan->n; i++) {
		const struct sample *s = &w->v[plan->entry[i].sample];

		bodies += s->overrides.n > 0;
		heads += s->headers.n > 0;
	}
	if (bodies || heads)
		buf_printf(out, "Requests with keys of their own: %zu in the body, %zu in headers\n",
			   bodies, heads);
	if (w->has_priorities)
		add_priorities(w, plan, out);
}

void dump_summary(const struct workload *w, const struct plan *plan, struct buf *out)
{
	size_t n = plan->n, with_output = 0;
	double *prompt = mem_array(n, sizeof(*prompt)), *output = mem_array(n, sizeof(*output));
	uint64_t prompt_sum = 0, output_sum = 0;
	double last = plan->n_roots ? plan->entry[plan->n_roots - 1].due_s : 0;

	for (size_t i = 0; i < n; i++) {
		const struct sample *s = &w->v[plan->entry[i].sample];

		prompt[i] = s->prompt_len;
		prompt_sum += s->prompt_len;
		if (s->output_len >= 0) {
			output[with_output++] = (double)s->output_len;
			output_sum += (uint64_t)s->output_len;
		}
	}
	buf_printf(out, "Workload: %zu request%s from dataset %s; %llu prompt tokens, %llu output "
		   "tokens\n", n, n == 1 ? "" : "s", w->dataset,
		   (unsigned long long)prompt_sum, (unsigned long long)output_sum);
	buf_printf(out, "%-28s%10s%10s%10s%10s%10s\n", "", "min", "mean", "median", "p99", "max");
	row(out, "Prompt length (tokens)", prompt, n);
	if (with_output)
		row(out, "Output length (tokens)", output, with_output);
	if (w->repeats)
		buf_printf(out, "Repeated: %zu of them (%s, %u of each); ideal prefix reuse %.2f %%\n",
			   w->n - w->repeats->n, w->repeats->order, w->repeats->count,
			   100 * dataset_ideal_reuse(w, false));
	if (last > 0)
		buf_printf(out, "Arrivals: first due at %.3f s, last at %.3f s, %.3f %s/s\n",
			   plan->entry[0].due_s, last, (double)plan->n_roots / last,
			   plan->n == plan->n_roots ? "requests" : "conversations");
	else
		buf_add_text(out, "Arrivals: all due at once\n");
	add_own(w, plan, out);
	free(prompt);
	free(output);
}
