/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_file.h - a workload as one file, to be replayed byte for byte.
 *
 * Layout, in the machine's byte order: struct workload_file_head; the description (JSON, not
 * part of the content); then the content, which begins at a multiple of 8: n records of fixed
 * size, then all texts in the order of the records. The content hash is the SHA-256 of the
 * SHA-256 sums of its blocks of WORKLOAD_FILE_BLOCK bytes, so that it is made and checked by
 * blocks, in bounded memory, on all cores. Request ids are kept without the run's prefix.
 *
 * The same workload gives the same content and hash on every machine of one byte order.
 *
 * Layout 1 has requests that only differ in their prompts; layout 2 has headers, priorities,
 * expected answers and constraints, too; layout 3 is layout 2 whose content begins with sessions
 * (data/workload_sessions.h). A file has the lowest layout that holds its workload, so that the
 * hashes of older files stay what they are.
 */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

#include "client/plan/workload.h"
#include "core/base/codec.h"
#include "core/base/err.h"

#define WORKLOAD_FILE_BLOCK (16u << 20)

struct workload_file_head {
	char magic[8];           /* "PROFLLMW" */
	uint32_t layout;         /* 1, 2 or 3 */
	uint32_t description_bytes;
	uint64_t n;              /* requests */
	uint64_t content_bytes;
	uint8_t hash[DIGEST_BYTES];
};

/*
 * Writes w atomically (base/file.h); prefix is removed from its request ids. description: JSON
 * object about its origin. hash (DIGEST_HEX) receives the content hash in hexadecimal. cancel may
 * be NULL. ERR_IO, ERR_LIMIT, ERR_CANCELLED: no file is left.
 */
int workload_file_write(const char *path, const struct workload *w, struct str prefix,
			struct str description, const atomic_bool *cancel, char *hash,
			struct err *e);

/*
 * Maps a file, checks all of it, and adds its first `most` requests or sessions (or all) to the
 * empty w; request ids get the prefix; texts stay in the mapping, which w owns from then on.
 * description points into it. ERR_IO; ERR_PARSE: not such a file, another layout, damaged.
 */
int workload_file_read(const char *path, size_t most, const char *prefix, struct workload *w,
		       struct str *description, char *hash, struct err *e);
