// SPDX-License-Identifier: Apache-2.0
// metrics.tsx: the one number that matters, large; and the metrics of a group against the baseline.
import { useMemo, type ReactNode } from 'react';
import type { Compare, Comparison, CompareMetric } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { Interval, intervalText, percent } from '../../common/interval';
import { Pick } from '../../common/pick';
import { Num } from '../../common/twin';
import { textCodec, useUrlState } from '../../url';
import { countsText, headlineOf, toneOf, type Tone } from './words';

const text = textCodec('');
export const TONE_CLASS: Record<Tone, string> = { good: 'good-text', bad: 'bad-text', plain: '' };
/** Metrics that people ask for first; the others are one click away. */
const FIRST = /^(request_throughput|output_throughput|total_token_throughput|request_goodput|(median|p95|p99)_(ttft|tpot|itl|e2el)_ms|failed_requests|j_per_token|system\.(j_per_token|peak_gpu_memory_gb))$/;

export const isMain = (column: string): boolean => FIRST.test(column);

export const sizeText = (p: number): string => (p < 0.001 ? 'p < 0.001' : `p = ${p.toFixed(3)}`);

function HeadlineChange({ c, m }: { c: Comparison; m: CompareMetric | undefined }): ReactNode {
	if (!m)
		return <div className="headline-delta"><p className="dim">{c.side}</p><p>{c.reason}</p></div>;
	const tone = toneOf(m.verdict), q = m.q ?? null;
	const isShown = m.verdict !== 'not_comparable';
	return (
		<div className={`headline-delta ${tone}`}>
			<p className="dim">{c.side}</p>
			{isShown && (
				<p className={`big-number ${TONE_CLASS[tone]}`} data-value={m.effect ?? ''}>{percent(m.effect)}</p>
			)}
			<p className={TONE_CLASS[tone]}><strong>{m.words}</strong></p>
			{isShown && (
				<p className="dim small-text">
					{intervalText(m.interval) && <>{Math.round(c.level * 100)} % interval {intervalText(m.interval)}. </>}
					{countsText(m) && <>{countsText(m)}. </>}{q !== null && <>{sizeText(q)}.</>}
				</p>
			)}
			{m.reason && <p className="warn-text small-text">{m.reason}</p>}
		</div>
	);
}

interface HeadlineProps { answer: Compare; columns: Columns; primary: string; onPrimary: (m: string) => void }

export function Headline({ answer, columns, primary, onPrimary }: HeadlineProps): ReactNode {
	const known = answer.comparisons.find((c) => c.metrics.length)?.metrics ?? [];
	const m = headlineOf(known, primary);
	const options = useMemo(() => columns.numbers.filter((c) =>
		known.some((other) => other.metric === c.column)), [columns, known]);
	if (!m)
		return null;
	return (
		<section className="card headline" aria-label="Main metric">
			<div className="card-head">
				<Pick label="Primary metric" value={primary} onPick={onPrimary} columns={columns} options={options}
					none="none (all are adjusted)" />
				<span className="dim">{columns.measure(m.metric).label} against {answer.comparisons[0].baseline}</span>
			</div>
			<div className="headline-row">
				{answer.comparisons.map((c) => (
					<HeadlineChange key={c.group} c={c} m={c.metrics.find((o) => o.metric === m.metric)} />
				))}
			</div>
		</section>
	);
}

interface RowProps {
	m: CompareMetric; columns: Columns; reach: number; isChosen: boolean; onChoose: () => void;
}

/** The sentence spells out what the cells say. */
function Row({ m, columns, reach, isChosen, onChoose }: RowProps): ReactNode {
	const tone = toneOf(m.verdict), isShown = m.verdict !== 'not_comparable';
	return (
		<tr title={m.sentence}>
			<th scope="row">
				<button type="button" className="small quiet" aria-pressed={isChosen} onClick={onChoose}
					title={`${m.metric}: list its configurations`}>{columns.measure(m.metric).label}</button>
				{m.unit && <span className="dim"> {m.unit}</span>}
			</th>
			<td className="num"><Num v={m.baseline} /></td>
			<td className="num"><Num v={m.value} /></td>
			<td className="delta">
				{isShown && (
					<>
						<span className={`num delta-number ${TONE_CLASS[tone]}`} data-value={m.effect ?? ''}>
							{percent(m.effect)}</span>
						<Interval effect={m.effect} interval={m.interval} reach={reach} tone={tone} />
						<p className="dim small-text">{intervalText(m.interval) || 'no interval'}</p>
					</>
				)}
			</td>
			<td className="num" title={countsText(m)}>{m.higher} : {m.lower}</td>
			<td><span className={TONE_CLASS[tone]}>{m.words}</span>{m.is_primary && <span className="tag">primary</span>}
				{m.reason && <p className="dim small-text">{m.reason}</p>}</td>
		</tr>
	);
}

interface FiguresProps {
	c: Comparison; shown: CompareMetric[]; columns: Columns; reach: number; chosen: string;
	onChoose: (metric: string) => void;
}

export function Figures({ c, shown, columns, reach, chosen, onChoose }: FiguresProps): ReactNode {
	return (
		<div className="scroll-x" tabIndex={0} role="region" aria-label={`Metrics of ${c.side}`}>
			<table className="plain-table figures">
				<thead><tr>
					<th scope="col">Metric</th>
					<th scope="col" className="num">{c.baseline}</th>
					<th scope="col" className="num">{c.side}</th>
					<th scope="col">Change</th>
					<th scope="col" className="num">Higher : lower</th>
					<th scope="col">Verdict</th>
				</tr></thead>
				<tbody>{shown.map((m) => (
					<Row key={m.metric} m={m} columns={columns} reach={reach} isChosen={m.metric === chosen}
						onChoose={() => onChoose(m.metric)} />
				))}</tbody>
			</table>
		</div>
	);
}

/** The primary metric, as the address has it. */
export function usePrimary(): [string, (m: string) => void] {
	return useUrlState('m', text);
}
