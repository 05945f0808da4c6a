/* SPDX-License-Identifier: Apache-2.0 */
/* postgres_none.c - replaces postgres.c in a program built with PG=0, without libpq. */
#include "results/store/store_internal.h"

static int open_(const char *place, bool is_read_only, struct db **out, struct err *e)
{
	(void)place, (void)is_read_only, (void)out;
	return err_set(e, ERR_USAGE, "a store on PostgreSQL needs a program with libpq; this one was"
		       " built with PG=0");
}

const struct db_hooks db_postgres = { .name = "postgresql", .open = open_ };
