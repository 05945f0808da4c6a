/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c - model, tokenizer, dataset: what has to be known before anything is planned. */
#include "run/stage.h"

#include "base/mem.h"
#include "data/dataset.h"
#include "data/request_keys.h"
#include "engine/args.h"
#include "json/read.h"
#include "run/chat.h"
#include "run/draw.h"
#include "token/remote.h"

#define GUIDED_UNTIL 11000 /* vLLM 0.11 is the first release with structured_outputs alone */

int stage_find_model(struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct point *p = s->point;

	if (!o->model && s->early)
		return 0; /* the server names it */
	if (!o->model)
		return remote_discover_model(&s->remote, s->hooks, &p->model_name, &p->model_id, e);
	p->model_id = mem_text(o->model);
	p->model_name = mem_text(o->served_model_name && *o->served_model_name
				 ? o->served_model_name : o->model);
	return 0;
}

/* The server's own tokenizer, when no file of the model's is to be had. */
static int borrow_tokenizer(struct stage *s, const struct err *why)
{
	struct point *p = s->point;
	struct remote_target target;
	struct buf note = { 0 };

	if (remote_target_init(&target, &s->remote, "", NULL) == 0) {
		struct token_server server = { target.url.data, p->model_name, target.opts };

		p->tokenizer = tokenizer_of_server(p->tokenizer_id, &server, NULL);
	}
	remote_target_release(&target);
	if (!p->tokenizer)
		return -1;
	buf_printf(&note, "%s; the server's own tokenizer is used, over /tokenize", why->text);
	stage_warn(s, note.data);
	buf_release(&note);
	return 0;
}

static void show_bytes(void *self, const char *file, int64_t done, int64_t total)
{
	const struct stage *s = self;

	if (s->hooks->bytes)
		s->hooks->bytes(s->hooks->self, file, (uint64_t)done, (uint64_t)total);
}

static void warn_of_cache(void *self, const char *text)
{
	stage_warn(self, text);
}

/* Modes that give the same ids as hf, but not all else that their names promise. */
static void warn_of_mode(const struct stage *s)
{
	const char *mode = s->opts->tokenizer_mode;

	if (strcmp(mode, "slow") == 0)
		stage_warn(s, "--tokenizer-mode slow is an older choice; hf gives the same ids");
	else if (strcmp(mode, "custom") == 0)
		stage_warn(s, "--tokenizer-mode custom: a Python class cannot be loaded; the model's own "
			"files are read, as with auto");
	else if (strcmp(mode, "deepseek_v32") == 0)
		stage_warn(s, "--tokenizer-mode deepseek_v32 gives the ids of hf; its chat encoding is a "
			"program without a template");
}

int stage_load_tokenizer(struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct point *p = s->point;
	struct tokenizer_load_opts opts = {
		.mode = o->tokenizer_mode,
		.cancel = s->hooks->cancel, .progress = show_bytes, .note = warn_of_cache,
		.self = s,
	};
	struct err why = { 0 };

	if (o->skip_tokenizer_init)
		return 0;
	warn_of_mode(s);
	if (!o->tokenizer && !p->model_id) {
		err_set(&why, ERR_RUN, "the server names the model, and with it the tokenizer");
		return stage_stand_in(s, &why, e);
	}
	p->tokenizer_id = mem_text(o->tokenizer ? o->tokenizer : p->model_id);
	p->tokenizer = tokenizer_load(p->tokenizer_id, &opts, &why);
	if (p->tokenizer && s->early)
		s->early->has_tokenizer = true;
	if (p->tokenizer)
		return 0;
	if (!o->tokenizer && (why.code == ERR_IO || why.code == ERR_NET)) {
		if (s->early)
			return stage_stand_in(s, &why, e);
		if (stage_may_ask_server(s) && borrow_tokenizer(s, &why) == 0)
			return 0;
	}
	*e = why;
	if (!o->tokenizer)
		err_wrap(e, "no tokenizer for model %s (name one with --tokenizer, or use "
			 "--skip-tokenizer-init)", p->model_id);
	return -1;
}

static void dataset_progress(void *self, size_t done, size_t total)
{
	struct stage *s = self;

	if (s->hooks->progress)
		s->hooks->progress(s->hooks->self, STAGE_DATASET, done, total, NULL);
}

int stage_check_dataset(const struct dataset *d, const struct dataset_opts *data,
			 const struct serve_opts *o, struct err *e)
{
	return run_draw_check(d, data, o->skip_tokenizer_init, e);
}

static int find_chat_template(void *self, struct arena *a, struct chat_wrap *out, struct err *e)
{
	struct stage *s = self;
	struct point *p = s->point;
	struct buf notes = { 0 };

	if (run_chat_find(s->opts, s->derived, p->tokenizer,
			  stage_may_ask_server(s) ? &s->remote : NULL, p->model_name, a, out,
			  e) < 0) {
		if (!s->early || e->code != ERR_RUN)
			return -1;
		stage_wait(s, e);
		*out = (struct chat_wrap){ .source = CHAT_SERVER };
		return 0;
	}
	run_chat_notes(out, s->derived->is_chat, p->tokenizer, &notes);
	if (notes.len)
		stage_warn(s, notes.data);
	buf_release(&notes);
	return 0;
}

/* Whether it is a vLLM that knows guided_*, and no structured_outputs yet. */
static bool is_guided_server(const struct stage *s, const struct dataset *d)
{
	struct remote_target t;
	struct fetch_reply reply = { 0 };
	struct json_value *about;
	struct arena a = { 0 };
	bool is_old = false;

	if (!d->is_told_version || !stage_may_ask_server(s))
		return false;
	if (remote_target_init(&t, &s->remote, "/version", NULL) == 0 &&
	    fetch(t.url.data, NULL, &t.opts, &reply, NULL) == 0 && reply.status == 200 &&
	    json_parse(&a, buf_str(&reply.body), &about, NULL) == 0) {
		unsigned version = engine_version(json_text(json_get(about, "version"),
							    STR("")).p);

		is_old = version && version < GUIDED_UNTIL;
	}
	remote_target_release(&t);
	fetch_reply_release(&reply);
	arena_release(&a);
	return is_old;
}

/* --priority-classes: after all that the dataset draws. */
static int deal_priorities(struct stage *s, struct err *e)
{
	struct priority_classes classes;

	if (!s->opts->priority_classes)
		return 0;
	return priority_classes_parse("priority-classes", s->opts->priority_classes, &classes, e) < 0 ?
	       -1 : priority_deal("priority-classes", &classes, &s->rng.py, &s->point->workload, e);
}

int stage_build_dataset(struct stage *s, const struct dataset *d, struct err *e)
{
	const struct serve_opts *o = s->opts;
	struct run_renderer renderer = {
		.tokenizer = s->point->tokenizer,
		.server = stage_may_ask_server(s) ? &s->remote : NULL,
		.model = s->point->model_name,
		.kwargs = str_of(o->chat_template_kwargs.text),
		.by = s->early ? stage_render_stand_in : NULL, .by_self = s,
	};
	struct run_draw draw = {
		.env = {
			.num_prompts = o->num_prompts, .seed = (uint64_t)o->seed,
			.tokenizer = s->point->tokenizer, .tokenizer_name = s->point->tokenizer_id,
			.request_id_prefix = o->request_id_prefix,
			.backend = o->backend, .is_chat_backend = s->derived->is_chat,
			.is_guided_server = is_guided_server(s, d),
			.render = run_render, .render_self = &renderer,
			.progress = dataset_progress, .download = show_bytes,
			.note = warn_of_cache, .self = s,
			.cancel = s->hooks->cancel,
		},
		.has_no_tokenizer = o->skip_tokenizer_init,
		.find_chat = find_chat_template, .warn = warn_of_cache, .self = s,
	};
	struct err why = { 0 };
	int rc;

	renderer.wrap = &draw.chat;
	rc = run_draw(&draw, d, &o->data, &s->rng, &s->point->workload, &why);
	s->point->chat_template = draw.chat_template;
	if (rc < 0 && stage_may_pass(s, d, draw.is_building, &why)) {
		workload_release(&s->point->workload);
		return 0;
	}
	if (rc < 0) {
		*e = why;
		return -1;
	}
	if (deal_priorities(s, e) < 0)
		return -1;
	stage_made(s);
	return 0;
}

int stage_salt(struct stage *s, const struct dataset *d, struct err *e)
{
	struct point *p = s->point;
	struct buf text = { 0 };
	struct err why = { 0 };
	const char *key;

	if (salt_parse(s->opts->prompt_salt, &p->salt, &key, e) < 0)
		return -1;
	if (p->salt == SALT_NONE)
		return 0;
	if (key)
		snprintf(p->salt_key, sizeof(p->salt_key), "%s", key);
	else
		salt_draw_key(p->salt_key);
	salt_init(&s->salt, p->salt, p->salt_key, p->tokenizer);
	s->salt.keeps_length = p->salt == SALT_FRESH && d->is_rewritten_by_server;
	if (p->salt == SALT_FRESH && salt_check(&s->salt, &p->workload, &why) < 0) {
		p->salt = SALT_NONE;
		s->salt = (struct salt){ 0 };
		buf_printf(&text, "the prompts are the same at every point, and the server may have "
			   "cached them: %s", why.text);
		stage_warn(s, text.data);
		buf_release(&text);
		return 0;
	}
	return salt_workload(&s->salt, &s->point->workload, e);
}

void stage_align(struct stage *s, const struct dataset *d)
{
	struct remote_alignment *out = &s->point->alignment;
	struct buf text = { 0 };

	remote_align(&s->remote, s->point->model_id, d->is_rewritten_by_server,
		     &s->point->workload, s->hooks, out);
	if (!d->is_rewritten_by_server && out->disagreeing) {
		buf_printf(&text, "the server's tokenizer gives another length than ours for %u of "
			   "%u prompts; prompt lengths are the server's where it reports usage",
			   out->disagreeing, out->checked);
		stage_warn(s, text.data);
	}
	buf_release(&text);
}
