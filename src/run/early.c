/* SPDX-License-Identifier: Apache-2.0 */
/* early.c - see early.h: what is different as long as there is no server. */
#include "run/early.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "run/stage.h"
#include "token/tokenizer.h"

void stage_part(struct stage *s, enum point_part part)
{
	if (s->early)
		s->early->part = part;
}

void stage_wait(struct stage *s, const struct err *why)
{
	if (s->early->waits.code == ERR_NONE)
		s->early->waits = *why;
}

int stage_stand_in(struct stage *s, const struct err *why, struct err *e)
{
	stage_wait(s, why);
	s->early->has_tokenizer = false;
	s->point->tokenizer = tokenizer_load(TOKENIZER_SIM, NULL, e);
	return s->point->tokenizer ? 0 : -1;
}

int stage_render_stand_in(void *stage, struct str messages, struct str tools, struct buf *text,
			  struct err *e)
{
	struct err why = { 0 };

	(void)tools;
	(void)e;
	err_set(&why, ERR_RUN, "the server renders whole conversations");
	stage_wait(stage, &why);
	buf_add_str(text, messages);
	return 0;
}

/*
 * Texts have other lengths in tokens of the stand-in, and what is too long or too short for
 * it need not be. Sets without a file are of the lengths that were asked for.
 */
bool stage_may_pass(const struct stage *s, const struct dataset *d, bool is_building,
		    const struct err *e)
{
	if (!s->early || s->early->has_tokenizer || s->opts->skip_tokenizer_init || !is_building)
		return false;
	return e->code == ERR_RUN || e->code == ERR_LIMIT ||
	       (e->code == ERR_USAGE && !d->forbids_path);
}

void stage_made(struct stage *s)
{
	if (!s->early)
		return;
	s->early->n_requests = s->point->workload.n;
	s->early->rng = s->rng;
}

int stage_check_record(const struct stage *s, struct err *e)
{
	const char *path = s->opts->record_path;
	char *folder;
	int rc = 0;

	if (!path)
		return 0;
	folder = file_beside(path, ".");
	if (file_is_dir(path))
		rc = err_set(e, ERR_USAGE, "--record: %s is a folder, not a file", path);
	else if (!file_is_dir(folder))
		rc = err_set(e, ERR_USAGE, "--record: cannot write %s: there is no such folder", path);
	else if (access(file_exists(path) ? path : folder, W_OK) < 0)
		rc = err_set(e, ERR_USAGE, "--record: cannot write %s: %s", path, strerror(errno));
	free(folder);
	return rc;
}

/* A salt is part of the prompts by now, and what the server counts are prompts without. */
bool stage_is_whole(const struct stage *s)
{
	return s->early->waits.code == ERR_NONE && s->point->salt == SALT_NONE;
}

bool stage_take_early(struct stage *s)
{
	struct point_early *early = s->hooks->early;
	struct point *p = s->point, *from = early ? &early->point : NULL;
	struct str rest;

	if (s->early || !early || !early->is_whole)
		return false;
	early->is_whole = false;
	p->tokenizer = from->tokenizer;
	p->tokenizer_id = from->tokenizer_id;
	p->chat_template = from->chat_template;
	p->workload = from->workload;
	from->tokenizer = NULL;
	from->tokenizer_id = NULL;
	from->workload = (struct workload){ 0 };
	s->rng = early->rng;
	rest = buf_str(&early->notes);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		char *text = mem_copy(line.p, line.n);

		stage_warn(s, text);
		free(text);
	}
	return true;
}

void point_early_release(struct point_early *p)
{
	point_release(&p->point);
	buf_release(&p->notes);
	arena_release(&p->arena);
	*p = (struct point_early){ 0 };
}
