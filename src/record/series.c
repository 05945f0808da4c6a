/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - see series.h. */
#include "record/series.h"

#include "record/record.h"

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

void series_move(struct record *into, struct record *from)
{
	for (size_t i = 0; i < from->n_series; i++) {
		struct record_series *s = from->series[i];
		struct record_series *to = record_series_add(into, s->name, s->unit, s->labels);

		to->point = s->point;
		to->n = s->n;
		to->cap = s->cap;
		s->point = NULL;
	}
	for (size_t i = 0; i < from->n_notes; i++)
		record_note_add(into, from->note[i].at_ns, from->note[i].kind, from->note[i].text);
}

void series_thin(struct record_series *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i += 2)
		s->point[kept++] = s->point[i];
	s->n = kept;
}
