/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - see series.h. */
#include "client/record/series.h"

#include "client/record/record.h"

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
	size_t kept = s->n > 0;

	for (size_t from = 1; from < s->n; from += 4) {
		size_t to = from + 4 < s->n ? from + 4 : s->n, low = from, high = from;

		for (size_t i = from; i < to; i++) {
			low = s->point[i].value < s->point[low].value ? i : low;
			high = s->point[i].value >= s->point[high].value ? i : high;
		}
		s->point[kept++] = s->point[low < high ? low : high];
		if (low != high)
			s->point[kept++] = s->point[low < high ? high : low];
	}
	s->n = kept;
}
