/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/parquet_schema.h - a footer's list of schema elements as a tree of JSON. Private to
 * table/.
 */
#pragma once
#include "table/parquet_file.h"
#include "table/thrift.h"

/* Reads the list that is field f of t; fills f's leaves and top. -1 with e set, see there. */
int parquet_schema_read(struct parquet_file *file, struct thrift *t,
			const struct thrift_field *f, const char *const *columns,
			struct err *e);
