/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c - see draw.h. */
#include "run/draw.h"

#include "data/repeat.h"
#include "run/component.h"

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
	int rc = run_component(object, a, out, &notes, e);

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
