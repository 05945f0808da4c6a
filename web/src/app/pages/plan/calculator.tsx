// SPDX-License-Identifier: Apache-2.0
// calculator: at so many tokens/s for each user: what a GPU gives and what a million tokens cost, of
// each color of the performance chart, read off its frontier.
import type { ReactNode } from 'react';
import type { Curves } from '../../../lib/api';
import { Amount } from '../../common/amount';
import { Explain } from '../../common/explain';
import { Notes } from '../../common/notes';
import { Unpriced } from '../../common/prices';
import { useRead } from '../../common/routes';
import { Num } from '../../common/twin';
import { Empty, Failure, Loading } from '../../parts/states';
import { useFilter } from '../../state';
import { asked } from '../../filter';
import { NOTHING } from '../../show';
import { textCodec, useUrlState, type Codec } from '../../url';
import { againstFirst } from '../charts/view';
import type { ViewProps } from './index';

const speedCodec: Codec<number | null> = {
	read: (text) => (Number(text) > 0 && Number.isFinite(Number(text)) ? Number(text) : null),
	write: (speed) => (speed === null ? null : String(speed)),
};
const text = textCodec('');

/** Colors with what is read off both frontiers; most tokens first, those out of range last. */
export function readOff(output: Curves, cost: Curves | undefined): { color: string; tokens: number | null;
	usd: number | null }[] {
	const usd = new Map(cost?.reading.map((r) => [r.color, r.between]));
	return output.reading.map((r) => ({ color: r.color, tokens: r.between, usd: usd.get(r.color) ?? null }))
		.sort((a, b) => (b.tokens ?? -1) - (a.tokens ?? -1));
}

const Read = ({ v }: { v: number | null }): ReactNode =>
	(v === null ? <span className="dim">{NOTHING}</span> : <>~<Num v={v} /></>);

export function Calculator({ workload }: ViewProps): ReactNode {
	const [speed, setSpeed] = useUrlState('speed', speedCodec);
	const [chosen, setBaseline] = useUrlState('base', text);
	const [filter] = useFilter();
	const question = { filter: asked(filter), workload: workload.workload, at: speed ?? workload.at };
	const output = useRead('POST /api/analysis/curves', question, workload.at !== null || speed !== null);
	const cost = useRead('POST /api/analysis/curves', { ...question, y: 'usd_per_m_output' },
		workload.at !== null || speed !== null);
	if (output.isError)
		return <Failure error={output.error} onRetry={() => void output.refetch()} />;
	if (workload.at === null && speed === null)
		return <Empty title="No suitable runs"><p>The calculator needs runs with tokens/s/user and a number of GPUs.</p></Empty>;
	if (!output.data)
		return <Loading />;
	const rows = readOff(output.data, cost.data), base = rows.find((r) => r.color === chosen) ?? rows.at(0);
	return (
		<section className="card" aria-label="Calculator">
			<div className="tools">
				<Amount label="Tokens/s/user" unit="" value={question.at} onValue={setSpeed} />
				{rows.length > 1 && <label className="pick"><span>Baseline</span>
					<select value={base?.color ?? ''} onChange={(e) => setBaseline(e.target.value)}>
						{rows.map((r) => <option key={r.color} value={r.color}>{r.color || 'All runs'}</option>)}
					</select></label>}
			</div>
			<Unpriced gpus={output.data.unpriced} />
			<div className="scroll-x" tabIndex={0} role="region" aria-label="What each gives at this speed">
				<table className="plain-table calculated">
					<thead><tr><th scope="col">{workload.color === null ? 'Runs' : 'GPU or other color'}</th>
						<th scope="col" className="num">Output tokens/s/GPU</th>
						<th scope="col" className="num">to baseline</th>
						<th scope="col" className="num">$/M output tokens</th>
						<th scope="col" className="num">to baseline</th></tr></thead>
					<tbody>{rows.map((r) => (
						<tr key={r.color}>
							<th scope="row">{r.color || 'All runs'}</th>
							<td className="num"><Read v={r.tokens} /></td>
							<td className="num dim">{r !== base && againstFirst(r.tokens ?? NaN, base?.tokens ?? NaN)}</td>
							<td className="num"><Read v={r.usd} /></td>
							<td className="num dim">{r !== base && againstFirst(r.usd ?? NaN, base?.usd ?? NaN)}</td>
						</tr>
					))}</tbody>
				</table>
			</div>
			<p className="dim small-text">~: between measured configurations of the frontier. {NOTHING}: outside what was
				measured, or without a price. <Explain topic="winner" /></p>
			<Notes notes={output.data.notes} />
		</section>
	);
}
