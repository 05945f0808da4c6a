/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - records of several hosts, or of several processes with one plan, become one.
 *
 * Shards move as they are, so chains stay valid; rows are copied, main rows of
 * all parts first, and parents follow their rows.
 */
#include "client/record/file.h"

#include <assert.h>

#include "client/record/block.h"
#include "client/record/disk.h"
#include "client/record/series.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define CLOCK_STEP_NS 1000000     /* within one host: larger clock steps are reported */
#define STARTS_APART_NS 1000000000 /* between hosts: starts further apart are reported */

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

/* There is room for them. */
static void move_shards(struct record *into, struct record *part)
{
	disk_settle(part->disk);
	for (uint32_t i = 0; i < part->n_shards; i++) {
		into->shard[into->n_shards++] = part->shard[i];
		part->shard[i] = (struct record_shard){ 0 };
	}
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
	move_shards(into, part);
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
 * Clocks of different hosts cannot be compared from files alone; what can be detected is a clock
 * that moved during the run, and shards of one run that began at different times by their own
 * clocks.
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

/* ---- one plan ---- */

static int check_places(const struct record *into, const struct record *part,
			const struct record_info *info, struct err *e)
{
	for (uint32_t i = 0; i < part->n_rows; i++) {
		uint32_t at = info->row_index ? info->row_index[i] : i;

		if (at >= into->n_rows || !is_main(&into->row[at]) || !is_main(&part->row[i]) ||
		    into->row[at].sent_ns)
			return err_set(e, ERR_PARSE, "request %u is in two parts of the record, or not in "
				       "the plan of the first part", at);
	}
	return 0;
}

void record_empty(struct record *r, uint32_t n_rows, int64_t start_ns)
{
	*r = (struct record){ .row = mem_array(n_rows, sizeof(*r->row)), .n_rows = n_rows,
			      .rows_cap = n_rows, .start_ns = start_ns, .stop_ns = start_ns };
	for (uint32_t i = 0; i < n_rows; i++)
		r->row[i] = (struct request_row){ .phase = PHASE_MAIN, .state = REQ_UNSENT,
			.sample = RECORD_NONE, .parent = RECORD_NONE, .history = RECORD_NONE,
			.session = RECORD_NONE, .lora = UINT16_MAX };
}

static void move_stamps(struct request_row *row, int64_t later_ns)
{
	for (size_t k = 0; k < record_n_columns; k++) {
		char *p = (char *)row + record_columns[k].offset;
		int64_t ns;

		if (record_columns[k].type != COLUMN_i64 || strcmp(record_columns[k].unit, "ns") != 0)
			continue;
		memcpy(&ns, p, sizeof(ns));
		if (!ns) /* it did not happen */
			continue;
		ns += later_ns;
		memcpy(p, &ns, sizeof(ns));
	}
}

int record_rejoin(struct record *into, struct record_info *into_info, struct record *part,
		  struct record_info *part_info, struct err *e)
{
	const uint32_t *index = part_info->row_index;
	int64_t later_ns = into->start_ns - part->start_ns;
	uint32_t first_shard = into->n_shards;

	assert(into->start_ns);
	if (into->n_shards + part->n_shards > RECORD_SHARDS_MAX)
		return err_set(e, ERR_LIMIT, "the processes have more than %d loops together",
			       RECORD_SHARDS_MAX);
	if (check_places(into, part, part_info, e) < 0)
		return -1;
	for (uint32_t i = 0; i < part->n_rows; i++) {
		struct request_row *row = &into->row[index ? index[i] : i];

		*row = part->row[i];
		move_stamps(row, later_ns);
		row->shard = (uint16_t)(row->shard + first_shard);
		if (index && row->parent != RECORD_NONE)
			row->parent = index[row->parent];
		if (index && row->history != RECORD_NONE)
			row->history = index[row->history];
	}
	disk_settle(into->disk);
	into->shard = mem_grow(into->shard, into->n_shards + part->n_shards, sizeof(*into->shard));
	move_shards(into, part);
	series_move(into, part);
	if (part->n_rows && part->stop_ns + later_ns > into->stop_ns)
		into->stop_ns = part->stop_ns + later_ns;
	into->is_interrupted |= part->is_interrupted;
	part_info->n_missing = 0; /* they are in the other parts */
	move_info(into_info, part_info, first_shard);
	record_release(part);
	record_info_release(part_info);
	return 0;
}
