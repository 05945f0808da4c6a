// SPDX-License-Identifier: Apache-2.0
// facts.ts: what identifies a run among those of the filter: the columns in which they differ, asked
// for when a point is pointed at or pinned.
import { useCallback, useMemo } from 'react';
import { useQueries } from '@tanstack/react-query';
import type { Run } from '../../../lib/api';
import { get, type Values } from '../../api';
import type { Columns } from '../../common/columns';
import { whole } from '../../filter';
import { client, useApply } from '../../query';
import { isTime, showCell, zonedTime } from '../../show';
import { useFilter, useShown } from '../../state';

export interface Facts { name: string; rows: [string, string][] }

const NAMES = ['run_id', 'name', 'status', 'verdict'];

/** The columns of a table of runs, without those in the chart. */
export function factsOf(id: number, values: Values, list: string[], columns: Pick<Columns,
	'measure'>): Facts {
	const rows = list.filter((c) => !NAMES.includes(c)).flatMap((c): [string, string][] => {
		const v = values[c], { label, unit } = columns.measure(c);
		if (v === undefined || v === null || v === '')
			return [];
		if (isTime(c) && typeof v === 'number')
			return [['Date', zonedTime(v)]];
		const hasUnit = unit && !label.toLowerCase().includes(unit.toLowerCase());
		return [[label, `${showCell(c, v)}${hasUnit ? ` ${unit}` : ''}`]];
	});
	const { status, verdict, name } = values;
	const judged = [verdict, status === 'completed' ? null : status].filter((w) => typeof w === 'string'
		&& w);
	return { name: typeof name === 'string' && name ? name : `Run ${id}`,
		rows: judged.length ? [...rows, ['Verdict', judged.join(', ')]] : rows };
}

const question = (id: number) => ({ queryKey: [`/api/data/experiments/${id}`],
	queryFn: () => get<Run>(`/api/data/experiments/${id}`) });

/** The pinned runs that are loaded; and a function to load any other one. */
export function useFacts(pins: number[], own: string[], columns: Columns, isAsked: boolean): {
	known: Map<number, Facts>; ask: (id: number) => Promise<Facts>;
} {
	const [filter] = useFilter(), [shown] = useShown();
	const table = useApply({ filter: whole(filter), shown, limit: 1 }, isAsked);
	const list = useMemo(() => (table.data?.columns ?? []).filter((c) => !own.includes(c)),
		[table.data, own.join()]);
	const runs = useQueries({ queries: pins.map(question) });
	const known = new Map(runs.flatMap(({ data }) => (data
		? [[data.id, factsOf(data.id, data.values, list, columns)] as const] : [])));
	const ask = useCallback(async (id: number) =>
		factsOf(id, (await client.fetchQuery(question(id))).values, list, columns), [list, columns]);
	return { known, ask };
}
