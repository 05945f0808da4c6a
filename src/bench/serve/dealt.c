/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dealt.c - a run that several processes make together (host/ranks/ranks.h).
 *
 * Every rank builds the whole plan from the same options and seed, so that prompts, ids and due
 * times are those of a single process, and sends its share of the roots: every n-th one, of
 * conversations every n-th session. Afterwards rank 0 merges the records in the order of the plan
 * and continues as if it had sent everything.
 */
#include "bench/serve/point_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/serve/score.h"
#include "core/base/mem.h"

/* Rank 0 gets these from each rank in addition to its record. */
struct dealt_facts { struct load_stats load; int64_t clock_step_ns; };
_Static_assert(sizeof(struct dealt_facts) <= RANK_FACTS_BYTES, "facts fit a message");

static uint32_t number_of(const struct plan *plan, uint32_t root)
{
	uint32_t session = plan->entry[root].session;

	return session == PLAN_NONE ? root : session;
}

void dealt_begin(struct stage *s)
{
	const struct ranks *r = s->hooks->ranks;
	const struct plan *plan = &s->point->plan;

	if (!r || s->elsewhere)
		return;
	s->elsewhere = arena_alloc(&s->dealt, (plan->n_roots + 1) * sizeof(*s->elsewhere));
	s->point->processes = (unsigned)r->n;
	for (uint32_t i = 0; i < plan->n_roots; i++)
		s->elsewhere[i] = number_of(plan, i) % (uint32_t)r->n != (uint32_t)r->rank;
}

int64_t dealt_start(struct stage *s)
{
	int64_t at;

	s->is_start_agreed = true;
	if (ranks_start(s->hooks->ranks, &at, &s->start_err) == 0)
		return at;
	if (!s->start_err.code) /* rank 0 has the reason */
		err_set(&s->start_err, ERR_RUN, "another rank could not start");
	return 0;
}

int dealt_started(struct stage *s, int rc, struct err *e)
{
	if (s->hooks->ranks && !s->is_start_agreed) /* the others wait for this rank */
		rc = ranks_agree(s->hooks->ranks, rc, e);
	if (rc == 0 && s->start_err.code) {
		*e = s->start_err;
		rc = -1;
	}
	s->is_start_agreed = false;
	return rc;
}

void dealt_tick(struct stage *s)
{
	struct load_totals own = load_progress_total(s->progress);

	if (s->hooks->ranks)
		ranks_tick(s->hooks->ranks, own.done, own.failed, own.tokens);
}

static void wait_tick(void *self)
{
	stage_tick(self);
}

/* The file with a part of the record on this machine, until rank 0 has it. */
static char *part_path(const struct stage *s, int rank)
{
	const char *folder = getenv("TMPDIR");
	struct buf path = { 0 };

	if (s->point->record_path && s->hooks->ranks->rank)
		buf_add_text(&path, s->point->record_path); /* it is written while load runs */
	else if (s->point->record_path)
		buf_printf(&path, "%s.from%d", s->point->record_path, rank);
	else
		buf_printf(&path, "%s/profllm-%ld.part%d", folder && *folder ? folder : "/tmp",
			   (long)getpid(), rank);
	return buf_take(&path);
}

static int deliver(struct stage *s, struct err *e)
{
	struct point *p = s->point;
	char *path = part_path(s, s->hooks->ranks->rank);
	int rc;

	record_stream_close(p->stream, NULL);
	p->stream = NULL;
	rc = record_file_save(&p->record, &p->info, path, e);
	if (ranks_deliver(s->hooks->ranks, rc == 0 ? path : "/dev/null", rc == 0 ? e : NULL) == 0)
		unlink(path); /* otherwise bench score reads it */
	free(path);
	return rc;
}

/* -1: the rank's requests are missing. */
static int join_part(struct stage *s, int from, struct err *e)
{
	struct ranks *r = s->hooks->ranks;
	struct point *p = s->point;
	struct record part;
	struct record_info info;
	struct dealt_facts facts;
	char *path = part_path(s, from);
	int rc = ranks_take(r, from, path, e);

	if (rc == 0)
		rc = record_file_load(&part, &info, path, e);
	if (rc == 0 && record_rejoin(&p->record, &p->info, &part, &info, e) < 0) {
		record_release(&part);
		record_info_release(&info);
		rc = -1;
	}
	if (rc == 0) {
		memcpy(&facts, r->peer[from].facts, sizeof(facts));
		load_stats_add(&p->load, &facts.load);
		if (llabs(facts.clock_step_ns) > llabs(p->clock_step_ns))
			p->clock_step_ns = facts.clock_step_ns;
	}
	unlink(path);
	free(path);
	return rc;
}

static void mark_lost(struct stage *s, int rank)
{
	const struct ranks *r = s->hooks->ranks;
	const struct plan *plan = &s->point->plan;

	for (uint32_t i = 0; i < plan->n; i++) {
		struct request_row *row = &s->point->record.row[i];

		if (number_of(plan, plan_root(plan, i)) % (uint32_t)r->n != (uint32_t)rank)
			continue;
		row->state = REQ_CANCELLED;
		row->fail = FAIL_CANCELLED;
		s->point->n_lost++;
	}
}

/* Prints what the user should know about the ranks and their clocks. */
static void say_peers(const struct stage *s)
{
	const struct ranks *r = s->hooks->ranks;
	int64_t *most_ns = &s->point->clock_error_ns;

	for (int i = 1; i < r->n; i++) {
		const struct rank_peer *p = &r->peer[i];
		int64_t wrong_ns = p->error_ns + p->drift_ns;

		*most_ns = wrong_ns > *most_ns ? wrong_ns : *most_ns;
		if (p->silence_ns > RANK_PAUSE_NS && !p->is_lost)
			stage_warn(s, "rank %d on %s did not report for %.1f s: it was stopped, or its "
				   "machine was too busy to run it", i, p->host,
				   (double)p->silence_ns / 1e9);
		if (llabs(p->offset_ns) > RANK_OFFSET_NS)
			stage_warn(s, "the clock of rank %d on %s is %+.3f ms from rank 0's; its times "
				   "were moved by that", i, p->host, (double)p->offset_ns / 1e6);
	}
}

int dealt_gather(struct stage *s, struct err *e)
{
	struct ranks *r = s->hooks->ranks;
	struct point *p = s->point;

	if (!r)
		return 0;
	ranks_check_clocks(r);
	if (r->rank)
		return deliver(s, e);
	record_stream_close(p->stream, NULL);
	p->stream = NULL;
	for (int i = 1; i < r->n; i++) {
		struct err why = { 0 };

		if (!r->peer[i].is_lost && join_part(s, i, &why) == 0)
			continue;
		mark_lost(s, i);
		stage_warn(s, "rank %d on %s was lost%s%s; its requests are missing from the result", i,
			   r->peer[i].host, why.code ? ": " : " while load ran", why.text);
	}
	say_peers(s);
	p->is_interrupted = p->record.is_interrupted;
	if (!p->record_path)
		return 0;
	score_meta(s->opts, s->derived, p);
	return record_file_save(&p->record, &p->info, p->record_path, e);
}

void dealt_ended(struct stage *s)
{
	struct ranks *r = s->hooks->ranks;
	struct dealt_facts facts = { s->point->load, s->point->clock_step_ns };

	if (r && r->rank)
		ranks_ended(r, &facts, sizeof(facts));
	else if (r)
		ranks_wait(r, wait_tick, s);
}
