/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - records on disk: saved whole, streamed while load runs, loaded, merged.
 *
 * The format is docs/record-format.md: self-describing columns, blocks with
 * checksums, readable after a crash up to the last whole block. Nothing here
 * knows what the meta JSON says.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/str.h"

#define RECORD_HOST_BYTES 256

/* The process that ran these shards, and its clocks (ns); stop anchors may be 0 (cut off). */
struct record_host {
	char name[RECORD_HOST_BYTES];
	uint32_t number;               /* of this process among the hosts of the run */
	uint32_t first_shard, n_shards;
	int64_t start_real_ns, start_mono_ns, stop_real_ns, stop_mono_ns;
};

/* What a file contains in addition to the record. Zeroed is valid; release frees the hosts. */
struct record_info {
	struct record_host *host;      /* heap */
	uint32_t n_hosts;
	bool is_complete;              /* the END block was there */
	uint32_t n_missing;            /* rows that were planned but are not in the file */
	uint32_t blocks_skipped;       /* of unknown type */
	uint64_t bytes_ignored;        /* after END, or of a last block that was cut off */
	uint32_t *row_index;           /* heap: each row's place in the plan; NULL: all present */
};

void record_info_release(struct record_info *info);
/* One host, this one, with its clocks read now as start anchors. */
void record_info_here(struct record_info *info, uint32_t number, uint32_t n_shards);
/* Reads the clocks of a single host again, as stop anchors. */
void record_info_stop(struct record_info *info);
/* How far CLOCK_REALTIME moved against CLOCK_MONOTONIC from start to stop; 0 if unknown. */
int64_t record_host_step_ns(const struct record_host *h);

/*
 * Saves the whole record, atomically (temp file, fsync, rename). info: hosts to write; NULL for
 * this one. ERR_IO names the path; an existing file is then untouched.
 */
int record_file_save(const struct record *r, const struct record_info *info, const char *path,
		     struct err *e);

/*
 * Rebuilds a record. Rows that the file lacks (crash) are left out, the others keep their order.
 * The slabs hold only what was loaded: nothing can be appended. ERR_PARSE names path, byte and what
 * is wrong. On success the caller releases both; on failure there is nothing to release.
 */
int record_file_load(struct record *r, struct record_info *info, const char *path,
		     struct err *e);
/* The same from memory; errors call it name. */
int record_file_parse(struct record *r, struct record_info *info, struct str bytes,
		      const char *name, struct err *e);

/*
 * Joins records of several hosts: takes the memory of all n parts and leaves them zeroed. The meta
 * is the first one's: hosts of one run share options, so sample, LoRA and endpoint indices mean the
 * same in all. Due times count from the first start, sessions are renumbered. Clocks that disagree
 * give lines in warnings. ERR_LIMIT: too many rows or shards; the parts are then unchanged.
 */
int record_merge(struct record *into, struct record_info *into_info, struct record *part,
		 struct record_info *part_info, size_t n, struct buf *warnings, struct err *e);

/*
 * Adds the part of the same plan that another process recorded (load_opts.elsewhere): its main rows
 * replace those that into lacks, its shards are appended, and its stamps are shifted so that both
 * began at the same instant. Takes the part's memory and leaves it and its info zeroed. ERR_PARSE:
 * its rows are not of that plan; ERR_LIMIT: too many shards; then nothing has changed. record_empty
 * makes a record that lacks all rows.
 */
void record_empty(struct record *r, uint32_t n_rows, int64_t start_ns);
int record_rejoin(struct record *into, struct record_info *into_info, struct record *part,
		  struct record_info *part_info, struct err *e);

/* ---- while load runs ---- */

struct record_stream;

/*
 * Creates path (truncating) and starts a thread that appends finished rows every RECORD_STREAM_NS.
 * All rows must have been added before: r->row may not move until close. Series, notes, unfinished
 * rows and the current meta are written at close. NULL and e when the file cannot be created. Not
 * for use by two threads.
 */
#define RECORD_STREAM_NS 100000000
struct record_stream *record_stream_open(const struct record *r, const struct record_info *info,
					 const char *path, struct err *e);
/* Ends the thread; rows may change again, and close writes the missing ones. Accepts NULL. */
void record_stream_stop(struct record_stream *s);
/*
 * Writes the rest and END, syncs, stops the thread and frees. Call when no thread writes to the
 * shards. The first write error is reported here; the record in memory is complete in any case.
 * Accepts NULL.
 */
int record_stream_close(struct record_stream *s, struct err *e);
