/* SPDX-License-Identifier: Apache-2.0 */
/*
 * none.c - replaces unpack.c and codec.c in a program without libarchive and the libraries of
 * Parquet's pages (make client): packed files are refused.
 */
#include "input/table/codec.h"
#include "input/table/table_internal.h"

#define WHY "the program of make client does not read packed files; unpack it first, or build the " \
	"whole program (make)"

int codec_unpack(enum codec codec, struct str packed, size_t size, struct buf *out, struct err *e)
{
	(void)codec, (void)packed, (void)size, (void)out;
	return err_set(e, ERR_USAGE, WHY);
}

int codec_unpack_file(enum codec codec, struct str packed, size_t limit, struct buf *out,
		      struct err *e)
{
	(void)codec, (void)packed, (void)limit, (void)out;
	return err_set(e, ERR_USAGE, WHY);
}

int table_unpack(const char *path, struct str packed, const struct table_opts *o, struct str *all,
		 struct buf *name, struct err *e)
{
	(void)packed, (void)o, (void)all, (void)name;
	return err_set(e, ERR_USAGE, "%s: " WHY, path);
}
