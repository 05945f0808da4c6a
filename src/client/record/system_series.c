/* SPDX-License-Identifier: Apache-2.0 */
/* system_series.c - see system_series.h. */
#include "client/record/system_series.h"

const char *system_series_name(enum system_series id)
{
#define X(id, name, unit) name,
	static const char *const names[] = { SYSTEM_SERIES(X) };
#undef X

	return names[id];
}

const char *system_series_unit(enum system_series id)
{
#define X(id, name, unit) unit,
	static const char *const units[] = { SYSTEM_SERIES(X) };
#undef X

	return units[id];
}
