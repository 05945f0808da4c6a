/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - see series.h. */
#include "record/series.h"

const char *series_name(enum series_id id)
{
#define X(id, name, unit) name,
	static const char *const names[] = { SERVER_SERIES(X) };
#undef X

	return names[id];
}

const char *series_unit(enum series_id id)
{
#define X(id, name, unit) unit,
	static const char *const units[] = { SERVER_SERIES(X) };
#undef X

	return units[id];
}
