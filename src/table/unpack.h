/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/unpack.h - compressed files and archives, by way of a file without a name.
 * Private to table/.
 */
#pragma once
#include "table/format.h"

/* Whether the ending or the first bytes say so. */
bool table_is_packed(const char *name, struct str head);

/*
 * Unpacks the file (packed: its bytes), or the one data file in the archive, into $TMPDIR (default
 * /tmp) and maps it: *all is to be given to file_unmap, nothing is left on the disk then. "!member" is appended
 * to name for a file in an archive. Errors: ERR_PARSE (damaged, several files), ERR_IO
 * (the disk is full), ERR_LIMIT (TABLE_UNPACKED_BYTES_MAX), ERR_CANCELLED.
 */
int table_unpack(const char *path, struct str packed, const struct table_opts *o, struct str *all,
	struct buf *name, struct err *e);
