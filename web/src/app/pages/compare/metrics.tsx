// SPDX-License-Identifier: Apache-2.0
// metrics.tsx: the one number that matters, large; and all figures with their differences.
import { useMemo, useState, type ReactNode } from 'react';
import type { Compare, CompareDelta, CompareMetric } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { Interval, intervalText, percent, reachOf } from '../../common/interval';
import { Pick } from '../../common/pick';
import { Num } from '../../common/twin';
import { count } from '../../show';
import { textCodec, useUrlState } from '../../url';
import { headlineOf, toneOf, verdictText, type Tone } from './words';

const text = textCodec('');
const TONE_CLASS: Record<Tone, string> = { good: 'good-text', bad: 'bad-text', plain: '' };
/** Metrics that people ask for first; the others are one click away. */
const FIRST = /^(request_throughput|output_throughput|total_token_throughput|request_goodput|(median|p95|p99)_(ttft|tpot|itl|e2el)_ms|failed_requests|j_per_token|system\.(j_per_token|peak_gpu_memory_gb))$/;

export const isMain = (column: string): boolean => FIRST.test(column);

function HeadlineDelta({ d, name, m }: { d: CompareDelta; name: string; m: CompareMetric }): ReactNode {
	const tone = toneOf(d.verdict), { guard } = d;
	return (
		<div className={`headline-delta ${tone}`}>
			<p className="dim">{name}</p>
			<p className={`big-number ${TONE_CLASS[tone]}`} data-value={d.effect ?? ''}>{percent(d.effect)}</p>
			<p className={TONE_CLASS[tone]}><strong>{verdictText(d)}</strong></p>
			<p className="dim small-text">
				{intervalText(d.interval) && <>95 % interval {intervalText(d.interval)}. </>}
				{d.p_adjusted !== null && <>p = {d.p_adjusted < 0.001 ? '<0.001' : d.p_adjusted.toFixed(3)}. </>}
				{m.groups[d.group]?.n !== undefined && <>n = {m.groups[d.group].n}.</>}
			</p>
			{guard && <p className="warn-text small-text">{guard}</p>}
		</div>
	);
}

export function Headline({ answer, columns }: { answer: Compare; columns: Columns }): ReactNode {
	const [wanted, setWanted] = useUrlState('m', text);
	const m = headlineOf(answer.metrics, wanted);
	const options = useMemo(() => columns.numbers.filter((c) =>
		answer.metrics.some((other) => other.column === c.column)), [columns, answer]);
	if (!m)
		return null;
	const own = new Set(m.deltas.map((d) => d.group));
	const base = answer.groups.findIndex((_, i) => !own.has(i));
	return (
		<section className="card headline" aria-label="Main figure">
			<div className="card-head">
				<Pick label="Main figure" value={m.column} onPick={setWanted} columns={columns}
					options={options} />
			</div>
			<div className="headline-row">
				{base >= 0 && (
					<div className="headline-delta">
						<p className="dim">{answer.groups[base].name}</p>
						<p className="big-number"><Num v={m.groups[base]?.median} />
							{m.unit && <span className="unit">{m.unit}</span>}</p>
						<p>median, the others are against it</p>
						<p className="dim small-text">{count(answer.groups[base].n, 'run')}.</p>
					</div>
				)}
				{m.deltas.map((d) => (
					<HeadlineDelta key={d.group} d={d} m={m} name={answer.groups[d.group]?.name ?? ''} />
				))}
			</div>
		</section>
	);
}

function Delta({ d, reach }: { d: CompareDelta; reach: number }): ReactNode {
	const tone = toneOf(d.verdict), { guard } = d;
	return (
		<td className="delta" title={[d.method, intervalText(d.interval), guard].filter(Boolean).join('; ')}>
			<span className={`num delta-number ${TONE_CLASS[tone]}`} data-value={d.effect ?? ''}>
				{percent(d.effect)}</span>
			<Interval effect={d.effect} interval={d.interval} reach={reach} tone={tone} />
			<p className={`small-text ${TONE_CLASS[tone] || 'dim'}`}>{verdictText(d)}
				{guard && <span className="warn-text"> ({guard})</span>}</p>
		</td>
	);
}

function Row({ m, answer, columns, reach }: {
	m: CompareMetric; answer: Compare; columns: Columns; reach: number;
}): ReactNode {
	const by = new Map(m.deltas.map((d) => [d.group, d]));
	return (
		<tr>
			<th scope="row" title={m.column}>{columns.measure(m.column).label}
				{m.unit && <span className="dim"> {m.unit}</span>}</th>
			{answer.groups.map((_, i) => {
				const d = by.get(i), f = m.groups[i];
				return [
					<td key={`v${i}`} className="num" title={f ? `n ${f.n}, mean ${f.mean ?? '–'}, std ${f.std ?? '–'}`
						: undefined}><Num v={f?.median} /></td>,
					d ? <Delta key={`d${i}`} d={d} reach={reach} /> : null,
				];
			})}
		</tr>
	);
}

export function Metrics({ answer, columns }: { answer: Compare; columns: Columns }): ReactNode {
	const [isAll, setAll] = useState(false);
	const main = answer.metrics.filter((m) => isMain(m.column));
	const shown = isAll || !main.length ? answer.metrics : main;
	const reach = reachOf(shown.flatMap((m) => m.deltas));
	const own = new Set(answer.metrics[0]?.deltas.map((d) => d.group) ?? []);
	return (
		<section className="card" aria-label="All figures">
			<div className="card-head">
				<h2>Figures</h2>
				<span className="dim">Medians; bars span 95 % intervals, ±{Math.round(reach * 100)} % wide</span>
				{main.length > 0 && main.length < answer.metrics.length && (
					<button type="button" className="small push" aria-pressed={isAll}
						onClick={() => setAll(!isAll)}>All {answer.metrics.length} figures</button>
				)}
			</div>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Figures of all groups">
				<table className="plain-table figures">
					<thead><tr>
						<th scope="col">Figure</th>
						{answer.groups.map((g, i) => [
							<th key={`v${i}`} scope="col" className="num">{g.name}
								<span className="dim"> n {g.n}</span></th>,
							own.has(i) ? <th key={`d${i}`} scope="col">Difference</th> : null,
						])}
					</tr></thead>
					<tbody>{shown.map((m) => (
						<Row key={m.column} m={m} answer={answer} columns={columns} reach={reach} />
					))}</tbody>
				</table>
			</div>
		</section>
	);
}
