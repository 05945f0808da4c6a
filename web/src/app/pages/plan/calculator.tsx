// SPDX-License-Identifier: Apache-2.0
// calculator: at a given speed in tokens/s per user: the throughput of a GPU and the cost of a
// million tokens, for each color of the performance chart, read from its frontier.
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
import { measured, NOTHING } from '../../show';
import { textCodec, useUrlState, type Codec } from '../../url';
import { againstFirst } from '../charts/view';
import type { ViewProps } from './index';
import { calculatedText, type Off } from './sentences';

const speedCodec: Codec<number | null> = {
	read: (text) => (Number(text) > 0 && Number.isFinite(Number(text)) ? Number(text) : null),
	write: (speed) => (speed === null ? null : String(speed)),
};
const text = textCodec('');

type Read = Pick<Curves, 'reading'>;

/**
 * Colors with what is read off both frontiers; most tokens first, those out of range last. A color
 * whose slowest configuration is faster than asked has that one's values: it gives what is needed.
 */
export function readOff(output: Read, cost: Read | undefined, at: number): Off[] {
	const isFaster = (r: Read['reading'][number]): boolean => r.low !== null && at < r.low;
	const usd = new Map(cost?.reading.map((r) => [r.color, isFaster(r) ? r.y : r.between]));
	return output.reading.map((r) => ({ color: r.color, tokens: isFaster(r) ? r.y : r.between,
		usd: usd.get(r.color) ?? null, isMeasured: isFaster(r), low: r.low, high: r.high }))
		.sort((a, b) => (b.tokens ?? -1) - (a.tokens ?? -1));
}

/**
 * A speed at which as many colors as possible were measured: the middle of their overlap, with as
 * few digits as possible; null: no color has a frontier.
 */
export function usualSpeed(reach: readonly Pick<Off, 'low' | 'high'>[]): number | null {
	const known = reach.flatMap((r) => (r.low !== null && r.high !== null ? [{ low: r.low, high: r.high }] : []));
	const at = known.map((r) => r.low), held = (x: number): number =>
		known.filter((r) => r.low <= x && x <= r.high).length;
	if (!at.length)
		return null;
	const low = at.reduce((a, b) => (held(b) > held(a) || (held(b) === held(a) && b < a) ? b : a));
	const high = Math.min(...known.filter((r) => r.low <= low && low <= r.high).map((r) => r.high));
	const middle = (low + high) / 2;
	return [2, 3, 4, 6].map((digits) => Number(middle.toPrecision(digits))).find((v) => held(v) === held(low)) ?? middle;
}

const reachText = (r: Off): string => (r.low === null || r.high === null ? ''
	: `measured ${r.low === r.high ? `at ${measured(r.low)} only` : `from ${measured(r.low)} to ${measured(r.high)}`}`);

const Value = ({ r, v }: { r: Off; v: number | null }): ReactNode =>
	(v === null ? <span className="dim">{NOTHING}</span> : <>{!r.isMeasured && '~'}<Num v={v} /></>);

export function Calculator({ columns, workload }: ViewProps): ReactNode {
	const [speed, setSpeed] = useUrlState('speed', speedCodec);
	const [chosen, setBaseline] = useUrlState('base', text);
	const [filter] = useFilter();
	const at = speed ?? usualSpeed(workload.reading) ?? workload.at;
	const question = { filter: asked(filter), workload: workload.workload, at };
	const output = useRead('POST /api/analysis/curves', question, at !== null);
	const cost = useRead('POST /api/analysis/curves', { ...question, y: 'usd_per_m_output' }, at !== null);
	if (output.isError)
		return <Failure error={output.error} onRetry={() => void output.refetch()} />;
	if (at === null)
		return <Empty title="No suitable runs"><p>The calculator needs runs with tokens/s/user and a number of GPUs.</p></Empty>;
	if (!output.data)
		return <Loading />;
	const rows = readOff(output.data, cost.data, at), base = rows.find((r) => r.color === chosen) ?? rows.at(0);
	const isPriced = rows.some((r) => r.usd !== null);
	return (
		<section className="card" aria-label="Calculator">
			<div className="tools">
				<Amount label="Tokens/s/user" unit="" value={question.at} onValue={setSpeed} />
				{rows.length > 1 && <label className="pick"><span>Baseline</span>
					<select value={base?.color ?? ''} onChange={(e) => setBaseline(e.target.value)}>
						{rows.map((r) => <option key={r.color} value={r.color}>{r.color || 'All runs'}</option>)}
					</select></label>}
			</div>
			{rows.some((r) => r.tokens !== null) && <p className="answer" role="status">
				{calculatedText(rows, at)} <Explain topic="winner" /></p>}
			<Unpriced gpus={output.data.unpriced} />
			<div className="scroll-x" tabIndex={0} role="region" aria-label="What each gives at this speed">
				<table className="plain-table calculated">
					<thead><tr><th scope="col">{workload.color === null ? 'Runs' : columns.measure(workload.color).label}</th>
						<th scope="col" className="num">Output tokens/s/GPU</th>
						<th scope="col" className="num">Against baseline</th>
						{isPriced && <><th scope="col" className="num">$/M output tokens</th>
							<th scope="col" className="num">Against baseline</th></>}</tr></thead>
					<tbody>{rows.map((r) => (
						<tr key={r.color}>
							<th scope="row">{r.color || 'All runs'}</th>
							<td className="num">{r.tokens === null && reachText(r)
								? <span className="dim">{reachText(r)}</span> : <Value r={r} v={r.tokens} />}
							{r.isMeasured && <span className="dim"> at {measured(r.low ?? NaN)}</span>}</td>
							<td className="num dim">{r !== base && againstFirst(r.tokens ?? NaN, base?.tokens ?? NaN)}</td>
							{isPriced && <><td className="num"><Value r={r} v={r.usd} /></td>
								<td className="num dim">{r !== base && againstFirst(r.usd ?? NaN, base?.usd ?? NaN)}</td></>}
						</tr>
					))}</tbody>
				</table>
			</div>
			{rows.every((r) => r.tokens === null) && <p role="status">No {workload.color === null ? 'run' : 'row'} was
				measured at {measured(at)} tokens/s/user. Enter a speed within a measured range, or measure more loads.</p>}
			<p className="dim small-text">~: interpolated between measured configurations of the frontier. Where the slowest one is
				faster than this, its own values are given, with its speed. Above the measured speeds no value is given.
				{' '}{NOTHING}: the {isPriced && 'price or the '}number of GPUs is not known.</p>
			<Notes notes={output.data.notes} />
		</section>
	);
}
