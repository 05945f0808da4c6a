// SPDX-License-Identifier: Apache-2.0
// outcome.tsx: the result of a job: the verdict and the headline metrics of each of its runs, read
// from the store.
import type { ReactNode } from 'react';
import type { UseQueryResult } from '@tanstack/react-query';
import type { Cell } from '../../api';
import { useColumns, type Columns } from '../../common/columns';
import { Explain } from '../../common/explain';
import { Num } from '../../common/twin';
import { Link } from '../../parts/link';
import { useApply, type Applied, type Item } from '../../query';
import { count, NOTHING, showCell } from '../../show';
import { usePageTarget } from '../../state';
import { isInvalid, type Invalid } from '../runs/view';

/** In this order, those that any of the runs has. */
export const HEADLINE = ['output_throughput', 'median_ttft_ms', 'p99_ttft_ms', 'median_tpot_ms', 'tokens_per_second',
	'avg_latency', 'startup_time'];
const RUNS_SHOWN = 50;
const TONE: Record<string, string> = { VALID: 'good', DEGRADED: 'warn', INVALID: 'bad', failed: 'bad',
	partial: 'warn' };

/** Runs by their run_id; only the first ones of a suite. */
export function useOutcome(runIds: string[]): UseQueryResult<Applied> {
	const wanted = runIds.slice(0, RUNS_SHOWN), columns = useColumns();
	return useApply({ filter: { column: 'run_id', in: wanted as Cell[] }, shown: 'all', limit: RUNS_SHOWN,
		sort: [{ column: 'timestamp', descending: false }],
		columns: ['run_id', 'name', 'status', 'verdict', 'trust.invalid', ...HEADLINE]
			.filter((c) => columns.of(c)) }, wanted.length > 0 && columns.of('run_id') !== undefined);
}

/** The verdict, or the status of a run without one. */
export function Judged({ item }: { item: Item }): ReactNode {
	const { verdict, status } = item.values;
	const words = [status === 'completed' ? null : status, verdict].filter((w) => typeof w === 'string');
	return <>{words.map((w) => <span key={w} className={`tag ${TONE[w] ?? ''}`}>{w}</span>)}</>;
}

function Value({ item, column }: { item: Item; column: string }): ReactNode {
	const v = item.values[column], list = item.values['trust.invalid'];
	const invalid: Invalid = new Map(item.values['verdict'] === 'INVALID'
		? [[item.id, typeof list === 'string' ? list : null]] : []);
	return <td className="num" data-column={column} {...(isInvalid(invalid, item.id, column)
		? { 'data-spoiled': true, title: 'INVALID in this run: do not use' } : {})}>
		{typeof v === 'number' ? <Num v={v} /> : NOTHING}</td>;
}

function heads(items: Item[], columns: Columns): { column: string; text: string }[] {
	return HEADLINE.filter((c) => items.some((i) => typeof i.values[c] === 'number')).map((column) => {
		const { label, unit } = columns.measure(column);
		return { column, text: unit ? `${label} (${unit})` : label };
	});
}

export function Outcome({ runIds }: { runIds: string[] }): ReactNode {
	const answer = useOutcome(runIds), columns = useColumns(), target = usePageTarget();
	const items = answer.data?.items ?? [];
	if (!runIds.length || !items.length || !columns.isReady)
		return null;
	const shown = heads(items, columns);
	return (
		<div className="scroll-x outcome" tabIndex={0} role="region" aria-label="Results">
			<table className="plain-table">
				<thead><tr><th scope="col">Run</th><th scope="col">Verdict</th>
					{shown.map((h) => <th key={h.column} scope="col" className="num">{h.text}</th>)}</tr></thead>
				<tbody>{items.map((item) => (
					<tr key={item.id}>
						<th scope="row"><Link to={target(`/runs/${item.id}`)}>
							{showCell('name', item.values['name'] ?? item.values['run_id'])}</Link></th>
						<td><Judged item={item} /></td>
						{shown.map((h) => <Value key={h.column} item={item} column={h.column} />)}
					</tr>
				))}</tbody>
			</table>
			<p className="small-text"><Explain topic="run" /></p>
			{runIds.length > RUNS_SHOWN && <p className="dim">
				{count(runIds.length - RUNS_SHOWN, 'more run')} of this job in Runs.</p>}
		</div>
	);
}
