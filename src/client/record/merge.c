/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - records of several hosts become one.
 *
 * Shards move as they are, so chains stay valid; rows are copied, main rows of
 * all parts first, and parents follow their rows.
 */
#include "client/record/file.h"

#include "client/record/series.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define CLOCK_STEP_NS 1000000     /* within one host: a clock that moved this far is told */
#define STARTS_APART_NS 1000000000 /* between hosts: starts further apart are told */

static bool is_main(const struct request_row *row)
{
	return row->phase == PHASE_MAIN;
}

/* New places of the rows of all parts, one after the other. */
static uint32_t *place_rows(const struct record *part, size_t n, uint32_t n_rows)
{
	uint32_t *place = mem_array(n_rows, sizeof(*place)), next = 0;

	for (int wants_main = 1; wants_main >= 0; wants_main--) {
		uint32_t *p = place;

		for (size_t k = 0; k < n; k++)
			for (uint32_t i = 0; i < part[k].n_rows; i++, p++)
				if (is_main(&part[k].row[i]) == wants_main)
					*p = next++;
	}
	return place;
}

/* sessions: conversations of the parts before, numbered on; counts this part's in. */
static void move_part(struct record *into, struct record *part, const uint32_t *place,
		      uint32_t *sessions)
{
	uint16_t first_shard = (uint16_t)into->n_shards;
	uint32_t first_session = *sessions;
	double later_s = (double)(part->start_ns - into->start_ns) / 1e9;

	for (uint32_t i = 0; i < part->n_rows; i++) {
		struct request_row *row = &into->row[place[i]];

		*row = part->row[i];
		if (row->phase == PHASE_MAIN && row->parent == RECORD_NONE)
			row->due_s += later_s; /* due times count from the first host's start */
		if (row->session != RECORD_NONE) {
			row->session += first_session;
			*sessions = row->session >= *sessions ? row->session + 1 : *sessions;
		}
		row->shard = (uint16_t)(row->shard + first_shard);
		if (row->parent != RECORD_NONE)
			row->parent = place[row->parent];
		if (row->history != RECORD_NONE)
			row->history = place[row->history];
	}
	for (uint32_t i = 0; i < part->n_shards; i++) {
		into->shard[into->n_shards++] = part->shard[i];
		part->shard[i] = (struct record_shard){ 0 };
	}
	series_move(into, part);
	if (part->stop_ns > into->stop_ns)
		into->stop_ns = part->stop_ns;
	into->is_interrupted |= part->is_interrupted;
	if (!into->meta && part->meta)
		into->meta = arena_text(&into->arena, str_of(part->meta));
}

static void move_info(struct record_info *into, struct record_info *part, uint32_t first_shard)
{
	into->host = mem_grow(into->host, into->n_hosts + part->n_hosts, sizeof(*into->host));
	for (uint32_t i = 0; i < part->n_hosts; i++) {
		into->host[into->n_hosts] = part->host[i];
		into->host[into->n_hosts++].first_shard += first_shard;
	}
	into->is_complete &= part->is_complete;
	into->n_missing += part->n_missing;
	into->blocks_skipped += part->blocks_skipped;
	into->bytes_ignored += part->bytes_ignored;
}

/*
 * Clocks of different hosts cannot be compared from files alone; what can be
 * seen is a clock that moved during the run, and shards of one run that began
 * at different times by their own clocks.
 */
static void compare_clocks(const struct record_info *info, const int64_t *start, size_t n,
			   struct buf *warnings)
{
	int64_t low = 0, high = 0;

	for (uint32_t i = 0; i < info->n_hosts; i++) {
		int64_t step = record_host_step_ns(&info->host[i]);

		if (step > CLOCK_STEP_NS || step < -CLOCK_STEP_NS)
			buf_printf(warnings, "The clock of host %s moved by %.3f ms during the run.\n",
				   info->host[i].name, (double)step / 1e6);
	}
	for (size_t k = 0; k < n; k++) {
		if (!start[k])
			continue;
		low = !low || start[k] < low ? start[k] : low;
		high = start[k] > high ? start[k] : high;
	}
	if (high - low > STARTS_APART_NS)
		buf_printf(warnings, "The hosts began %.3f s apart by their own clocks: they started at "
			   "different times, or their clocks disagree.\n", (double)(high - low) / 1e9);
}

int record_merge(struct record *into, struct record_info *into_info, struct record *part,
		 struct record_info *part_info, size_t n, struct buf *warnings, struct err *e)
{
	uint64_t n_rows = 0, n_shards = 0;
	uint32_t *place, *p, sessions = 0;
	int64_t *start;

	for (size_t k = 0; k < n; k++) {
		n_rows += part[k].n_rows;
		n_shards += part[k].n_shards;
	}
	if (n_rows > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "the records have %llu requests together; the limit is %u",
			       (unsigned long long)n_rows, REQUESTS_MAX);
	if (n_shards > RECORD_SHARDS_MAX)
		return err_set(e, ERR_LIMIT, "the records have %llu shards together; the limit is %d",
			       (unsigned long long)n_shards, RECORD_SHARDS_MAX);
	*into = (struct record){ .row = mem_array(n_rows, sizeof(*into->row)),
				 .n_rows = (uint32_t)n_rows, .rows_cap = (uint32_t)n_rows,
				 .shard = mem_array(n_shards, sizeof(*into->shard)) };
	*into_info = (struct record_info){ .is_complete = true };
	for (size_t k = 0; k < n; k++)
		if (part[k].start_ns && (!into->start_ns || part[k].start_ns < into->start_ns))
			into->start_ns = part[k].start_ns;
	place = p = place_rows(part, n, (uint32_t)n_rows);
	start = mem_array(n, sizeof(*start));
	for (size_t k = 0; k < n; k++) {
		start[k] = part[k].start_ns;
		move_info(into_info, &part_info[k], into->n_shards);
		move_part(into, &part[k], p, &sessions);
		p += part[k].n_rows;
		record_release(&part[k]);
		record_info_release(&part_info[k]);
	}
	compare_clocks(into_info, start, n, warnings);
	free(start);
	free(place);
	return 0;
}
