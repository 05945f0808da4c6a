// SPDX-License-Identifier: Apache-2.0
// metrics.tsx: the primary metric, large; the metrics of a group against the baseline as a forest
// plot; and the basis of the verdicts.
import { useMemo, type ReactNode } from 'react';
import type { Compare, Comparison, CompareMetric } from '../../../lib/api';
import { useIsBlock } from '../../common/block';
import type { Columns } from '../../common/columns';
import { Explain } from '../../common/explain';
import { intervalText, percent, withUnits, type Tone } from '../../common/interval';
import { labelled } from '../../common/notes';
import { Pick } from '../../common/pick';
import { Num, Twin } from '../../common/twin';
import { measured } from '../../show';
import { flagCodec, textCodec, useUrlState } from '../../url';
import { mainlyAt, type Configured } from './configured';
import { ForestAxis, ForestRow, rangeOf } from '../../common/forest';
import { answerOf, commonReason, headlineOf, sharedReasons, shortReason, sidesOf, toneOf } from './words';

const text = textCodec(''), onlyEqual = flagCodec();
export const TONE_CLASS: Record<Tone, string> = { good: 'good-text', bad: 'bad-text', plain: '' };
/** Metrics that are shown first; the others are one click away. */
const FIRST = /^(request_throughput|output_throughput|total_token_throughput|request_goodput|(median|p95|p99)_(ttft|tpot|itl|e2el)_ms|failed_requests|j_per_token|system\.(j_per_token|peak_gpu_memory_gb))$/;

export const isMain = (column: string): boolean => FIRST.test(column);

export const sizeText = (p: number): string => (p < 0.001 ? 'p < 0.001' : `p = ${p.toFixed(3)}`);

interface ChangeProps {
	c: Comparison; m: CompareMetric | undefined; columns: Columns; isChosen: boolean; onChoose: () => void;
}

function HeadlineChange({ c, m, columns, isChosen, onChoose }: ChangeProps): ReactNode {
	const tone = m ? toneOf(m.verdict) : 'plain';
	return (
		<button type="button" className="headline-delta" aria-pressed={isChosen} onClick={onChoose}
			title={`Show ${c.side} against ${c.baseline}`}>
			<span className="dim">{c.side}</span>
			{m && m.verdict !== 'not_comparable' && (
				<span className={`big-number ${TONE_CLASS[tone]}`} data-value={m.effect ?? ''}>
					{tone !== 'plain' && <span className="arrow">{(m.effect ?? 0) < 0 ? '▼' : '▲'}</span>}
					{percent(m.effect)}</span>
			)}
			<strong className={TONE_CLASS[tone]}>{m ? m.words : 'not compared'}</strong>
			{c.refused && c.reason && <span className="dim small-text">{labelled(shortReason(c.reason), columns)}</span>}
		</button>
	);
}

interface HeadlineProps {
	answer: Compare; chosen: Comparison; by: Map<string, Configured>; columns: Columns; primary: string;
	onPrimary: (m: string) => void; onSide: (group: number) => void;
}

export function Headline(props: HeadlineProps): ReactNode {
	const { answer, chosen, by, columns, primary, onPrimary, onSide } = props;
	const known = answer.comparisons.find((c) => c.metrics.length)?.metrics ?? [];
	const m = headlineOf(known, primary);
	const isBlock = useIsBlock(), [isOnly, setOnly] = useUrlState('comparable', onlyEqual);
	const options = useMemo(() => columns.numbers.filter((c) =>
		known.some((other) => other.metric === c.column)), [columns, known]);
	if (!m)
		return null;
	const own = chosen.metrics.find((o) => o.metric === m.metric);
	return (
		<section className="card headline" role={isBlock ? 'group' : undefined} aria-label="Main metric">
			<p className="answer" role="status">{own ? withUnits(answerOf(chosen, own,
				mainlyAt(answer.matched_by, by, own, -(own.better || 1)))) : labelled(`${chosen.reason ?? ''}.`, columns)}
				{' '}<Explain topic="compare" />
				{own?.verdict === 'not_comparable' && !isOnly && !isBlock && <> <button type="button" className="small"
					onClick={() => setOnly(true)}>Compare only equal work</button></>}</p>
			<div className="tools">
				{!isBlock && <Pick label="Primary metric" value={primary} onPick={onPrimary} columns={columns}
					options={options} none="none (all are adjusted)" />}
				<span className="dim">{columns.measure(m.metric).label} against {answer.comparisons[0].baseline}</span>
			</div>
			<div className="headline-row" role="group" aria-label="Groups against the baseline">
				{answer.comparisons.map((c) => (
					<HeadlineChange key={c.group} c={c} columns={columns}
						m={c.metrics.find((o) => o.metric === m.metric)}
						isChosen={answer.comparisons.length > 1 && c.group === chosen.group}
						onChoose={() => onSide(c.group)} />
				))}
			</div>
			{answer.comparisons.length > 1 && <Matrix answer={answer} columns={columns} />}
		</section>
	);
}

/** Every main metric of every group: changes of the geometric means. */
function Matrix({ answer, columns }: { answer: Compare; columns: Columns }): ReactNode {
	const names = [...new Set(answer.comparisons.flatMap((c) => c.metrics.map((m) => m.metric)))].filter(isMain);
	return (
		<Twin title={`All groups against ${answer.comparisons[0].baseline}`} heads={[{ text: 'Metric' },
			...answer.comparisons.map((c) => ({ text: c.side, isNumber: true }))]}
		rows={names.map((name) => [columns.measure(name).label, ...answer.comparisons.map((c) => {
			const m = c.metrics.find((o) => o.metric === name);
			return !m ? '–' : m.verdict === 'not_comparable' ? <span className="dim">not comparable</span>
				: <span className={TONE_CLASS[toneOf(m.verdict)]} data-value={m.effect ?? ''}>{percent(m.effect)}</span>;
		})])} />
	);
}

function Counts({ m }: { m: CompareMetric }): ReactNode {
	const s = sidesOf(m);
	return s ? <>{[s.better, s.same, s.worse].map((n, i) =>
		<td key={i} className="num aside">{n}</td>)}</>
		: <td className="num dim aside" colSpan={3}>{m.higher} higher, {m.lower} lower</td>;
}

interface RowProps {
	m: CompareMetric; columns: Columns; range: ReturnType<typeof rangeOf>; isChosen: boolean; onChoose: () => void;
	/** Several configurations: how many got better and worse. */
	isCounted: boolean;
	/** Reasons that a line below gives once for several rows. */
	common: string[];
}

/** The sentence repeats the cells. */
function Row({ m, columns, range, isChosen, onChoose, isCounted, common }: RowProps): ReactNode {
	const tone = toneOf(m.verdict), isShown = m.verdict !== 'not_comparable';
	return (
		<tr title={m.sentence}>
			<th scope="row">
				<button type="button" className="small quiet" aria-pressed={isChosen} onClick={onChoose}
					title={`${m.metric}: show its configurations`}>{columns.measure(m.metric).label}</button>
				{m.unit && <span className="dim"> {m.unit}</span>}
			</th>
			<td className="num aside"><Num v={m.baseline} /></td>
			<td className="num aside"><Num v={m.value} /></td>
			{isCounted && <Counts m={m} />}
			<td className={`num delta-number ${TONE_CLASS[tone]}`} data-value={isShown ? m.effect ?? '' : ''}>
				{isShown && percent(m.effect)}</td>
			<td className="forest-cell" title={intervalText(m.interval)}>{isShown && <ForestRow e={m} range={range} tone={tone} />}</td>
			<td><span className={TONE_CLASS[tone]}>{m.words}</span>{m.is_primary && <span className="tag">primary</span>}
				{m.reason && !common.includes(m.reason) && <p className="dim small-text">
					{m.reason.replace(/ of it$/, '')}</p>}</td>
		</tr>
	);
}

interface FiguresProps {
	c: Comparison; shown: CompareMetric[]; columns: Columns; chosen: string; onChoose: (metric: string) => void;
}

export function Figures({ c, shown, columns, chosen, onChoose }: FiguresProps): ReactNode {
	const range = rangeOf(shown.filter((m) => m.verdict !== 'not_comparable'));
	const isCounted = shown.some((m) => m.n_configurations > 1), common = commonReason(shown);
	const shared = useMemo(() => sharedReasons(shown), [shown]);
	return (
		<div className="scroll-x" tabIndex={0} role="group" aria-label={`Metrics of ${c.side}`}>
			<table className={`plain-table figures ${isCounted ? 'counted' : ''}`}>
				<thead><tr>
					<th scope="col">Metric</th>
					<th scope="col" className="num aside">{c.baseline}</th>
					<th scope="col" className="num aside">{c.side}</th>
					{isCounted && ['Better', 'Same', 'Worse'].map((head) =>
						<th key={head} scope="col" className="num aside">{head}</th>)}
					<th scope="col" className="num">Change</th>
					<th scope="col" className="forest-cell"><ForestAxis range={range} /></th>
					<th scope="col">Verdict</th>
				</tr></thead>
				<tbody>{shown.map((m) => (
					<Row key={m.metric} m={m} columns={columns} range={range} isChosen={m.metric === chosen}
						onChoose={() => onChoose(m.metric)} isCounted={isCounted}
						common={[...common ? [common] : [], ...shared.keys()]} />
				))}</tbody>
			</table>
			{[...shared].map(([reason, list]) => <p key={reason} className="dim small-text" data-shared-reason="">
				{list.map((m) => columns.measure(m.metric).label).join(', ')}: {reason.replace(/ of it$/, '')}.</p>)}
			{common && <p className="dim small-text" data-common-reason="">All metrics: {common.replace(/ of it$/, '')}.</p>}
		</div>
	);
}

const RULES: Record<string, string> = { sessions: 'server sessions', configurations: 'configurations' };

/** The statistics of each verdict. */
export function Statistics({ shown, columns }: Pick<FiguresProps, 'shown' | 'columns'>): ReactNode {
	return (
		<Twin title="Statistics" heads={[{ text: 'Metric' }, { text: 'Interval' }, { text: 'p' },
			{ text: 'Adjusted p' }, { text: 'Interval from' }, { text: 'Samples', isNumber: true },
			{ text: 'Sessions' }, { text: 'Rank test' }, { text: 'Spread', isNumber: true }]}
		rows={shown.map((m) => [columns.measure(m.metric).label, intervalText(m.interval) || 'none',
			m.p === null ? '–' : sizeText(m.p), m.q === null ? '–' : sizeText(m.q),
			m.rule === null ? 'none' : RULES[m.rule] ?? m.rule, String(m.n_clusters), m.sessions.join(' : '),
			m.p_ranks === null ? '–' : sizeText(m.p_ranks),
			m.spread === null ? '–' : `${measured(100 * m.spread)} %`])} />
	);
}

/** The primary metric from the address. */
export function usePrimary(): [string, (m: string) => void] {
	return useUrlState('m', text);
}
