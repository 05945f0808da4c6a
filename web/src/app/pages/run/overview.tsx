// SPDX-License-Identifier: Apache-2.0
// overview.tsx: a run at a glance: its verdict, its main metrics, and how to reproduce it.
import type { ReactNode } from 'react';
import type { Run } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { CopyLine } from '../../common/copy';
import { Explain } from '../../common/explain';
import { percent, withUnits } from '../../common/interval';
import { bytesText } from '../../common/traces';
import { Num } from '../../common/twin';
import { Icon } from '../../parts/icon';
import { exactCell, NOTHING, showCell } from '../../show';
import { useApply, type ColumnOption } from '../../query';
import { isInvalid, type Invalid } from '../runs/view';
import { telemetryOf } from './config';
import { Conversations } from './conversations';
import { Distributions } from './distributions';
import { OverTime } from './over-time';
import {
	differenceOf, othersOf, ROWS_READ, SAME_IN_REPEATS, sameConfiguration, type Difference, type Others,
} from './repeats';
import { foundOf, Search } from './search';
import { errorText, failureOf, fineText, REMEDIES, spoilsText } from './verdict';

/** The first six that the run has. */
const MAIN = ['capacity_request_rate', 'capacity_concurrency', 'output_throughput', 'tokens_per_s_per_gpu', 'tokens_per_s_per_user', 'median_ttft_ms',
	'p99_ttft_ms', 'median_tpot_ms', 'median_e2el_ms', 'request_throughput', 'tokens_per_second',
	'requests_per_second', 'avg_latency', 'startup_time'];
const MAIN_SHOWN = 6;
const STATISTICS = ['mean', 'median', 'std', 'p90', 'p95', 'p99'];
const HEADS: Record<string, string> = { mean: 'Mean', median: 'Median', std: 'Std. dev.', p90: 'P90',
	p95: 'P95', p99: 'P99' };
const TIMES = ['ttft', 'tpot', 'itl', 'e2el'];

/** Which metrics of the run are INVALID. */
function invalidOf(run: Run): Invalid {
	const { verdict } = run.values, list = run.values['trust.invalid'];
	return new Map(verdict === 'INVALID' ? [[run.id, typeof list === 'string' ? list : null]] : []);
}

const spoiled = (run: Run, column: string): object => (isInvalid(invalidOf(run), run.id, column)
	? { 'data-spoiled': true, title: 'INVALID in this run: do not use' } : {});

/**
 * Difference from the median of other runs; a color and an arrow only if it is outside of all of
 * them.
 */
function Against({ column, difference, better }: {
	column: string; difference: Difference; better: ColumnOption['better'] | undefined;
}): ReactNode {
	const { effect, median, n, isOutside } = difference;
	const isBetter = better ? (effect > 0) === (better === 'higher') : null;
	const tone = isOutside && isBetter !== null ? isBetter ? 'good-text' : 'bad-text' : 'dim';
	return (
		<p className={`small-text num ${tone}`} data-against={column} data-effect={effect}
			title={`Median of ${n}: ${median}${isOutside ? '; outside of all of them' : ''}`}>
			{isOutside && (effect > 0 ? '↑ ' : '↓ ')}{percent(effect)}
			{isOutside && isBetter !== null && (isBetter ? ' better' : ' worse')}
		</p>
	);
}

interface FigureProps { column: string; run: Run; columns: Columns; others: Others | null }

function Figure({ column, run, columns, others }: FigureProps): ReactNode {
	const difference = others && differenceOf(run, others, column);
	const v = run.values[column], m = columns.measure(column);
	return (
		<div className="figure">
			<p className="dim">{m.label}</p>
			<p className="big-number" data-column={column} {...spoiled(run, column)}>
				{typeof v === 'number' ? <Num v={v} /> : showCell(column, v)}
				{m.unit && <span className="unit">{m.unit}</span>}
			</p>
			{difference && <Against column={column} difference={difference}
				better={columns.of(column)?.better} />}
		</div>
	);
}

/** Six metrics, each with its difference from the run's repeats or from other runs of its configuration. */
function Main({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	const main = MAIN.filter((c) => typeof run.values[c] === 'number').slice(0, MAIN_SHOWN);
	const error = errorText(run.values);
	const asked = [...main, ...SAME_IN_REPEATS, 'verdict', 'trust.invalid'].filter((c) => columns.of(c));
	const answer = useApply({ filter: sameConfiguration(run, columns.all), columns: asked, limit: ROWS_READ,
		sort: [{ column: 'timestamp', descending: true }] }, columns.isReady && main.length > 0);
	const others = answer.data ? othersOf(run, answer.data.items) : null;
	if (!main.length)
		return null;
	return (
		<section className="card" aria-label="Main metrics">
			<div className="figures-row">{main.map((c) => (
				<Figure key={c} column={c} run={run} columns={columns} others={others} />
			))}</div>
			{others && main.some((c) => differenceOf(run, others, c)) && <p className="dim small-text" data-others={others.rows.length}>
				Percentages compare with the median of {others.words}.</p>}
			{error && <p className="dim small-text" data-error-budget="">{error}</p>}
		</section>
	);
}

const hasReasons = (run: Run): boolean => run.reasons.some((r) => r.text);

function Badges({ run }: { run: Run }): ReactNode {
	const isSaid = failureOf(run.document)?.reason;
	const list = run.badges.filter((b) => !(isSaid && b.code === 'status') && !(hasReasons(run) && b.code === 'verdict'));
	if (!list.length)
		return null;
	return (
		<ul className="badges" aria-label="Quality of the data">
			{list.map((b) => (
				<li key={b.code} className={`badge ${b.level}`}>
					<Icon name={b.level === 'good' ? 'check' : 'warning'} /><span>{b.text}</span>
				</li>
			))}
			{!hasReasons(run) && typeof run.values.verdict === 'string' && <li><Explain topic="run" /></li>}
		</ul>
	);
}

/** The reasons of the run's verdict: what not to use, and what helps. */
function Reasons({ run }: { run: Run }): ReactNode {
	if (!hasReasons(run))
		return null;
	const given = run.reasons.filter((r) => r.text);
	const fine = fineText(given);
	return (
		<section className="card" aria-label="Verdict">
			<div className="card-head"><h2>Why this run is {showCell('verdict', run.values.verdict)}</h2>
				<Explain topic="run" /></div>
			<ul className="reasons">{given.map((r, i) => (
				<li key={i} data-code={r.code}>
					{r.level && <span className={`tag ${r.level === 'INVALID' ? 'bad' : 'warn'}`}>{r.level}</span>}
					<span className="reason-text">{r.text}</span>
					{r.spoils.length > 0 && <strong className="spoils">{spoilsText(r.spoils)}</strong>}
					{r.code && REMEDIES[r.code] && <span className="dim">What helps: {REMEDIES[r.code]}.</span>}
				</li>
			))}</ul>
			{fine && <p className="dim">{fine}</p>}
		</section>
	);
}

/** Why a run failed, and the end of its server's log. */
function Failure({ run }: { run: Run }): ReactNode {
	const failed = failureOf(run.document);
	if (!failed)
		return null;
	const isPartial = run.values.status === 'partial';
	return (
		<section className="card" aria-label="Failure">
			<div className="card-head">
				{isPartial ? <h2 className="warn-text">Some requests failed</h2>
					: <h2 className="bad-text">Failed{failed.stage && ` at stage “${failed.stage}”`}{failed.category && `: ${failed.category}`}</h2>}
				{!isPartial && <Explain topic="failure" />}
			</div>
			{failed.reason && <p className="break">{failed.reason}</p>}
			{failed.log.length > 0 ? <>
				<p className="dim">Last lines of the server’s log
					{failed.left > 0 && ` (${failed.left} earlier lines are in the document)`}</p>
				<pre className="document log-tail" tabIndex={0} aria-label="Log of the server">
					{failed.log.join('\n')}</pre>
			</> : <p className="dim">No server log was recorded.</p>}
		</section>
	);
}

function Times({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	const has = (c: string): boolean => typeof run.values[c] === 'number';
	const rows = TIMES.filter((t) => STATISTICS.some((s) => has(`${s}_${t}_ms`)));
	const shown = STATISTICS.filter((s) => TIMES.some((t) => has(`${s}_${t}_ms`)));
	if (!rows.length)
		return null;
	return (
		<section className="card" aria-label="Latency">
			<h2>Latency (ms)</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of latencies">
				<table className="plain-table">
					<thead><tr><th scope="col"><span className="unseen">Metric</span></th>
						{shown.map((s) => <th key={s} scope="col" className="num">{HEADS[s]}</th>)}</tr></thead>
					<tbody>{rows.map((t) => (
						<tr key={t}>
							<th scope="row">{columns.measure(`mean_${t}_ms`).label.replace(/^mean /i, '')}</th>
							{shown.map((s) => {
								const v = run.values[`${s}_${t}_ms`];
								return <td key={s} className="num" {...spoiled(run, `${s}_${t}_ms`)}>
									{typeof v === 'number' ? <Num v={v} /> : NOTHING}</td>;
							})}
						</tr>
					))}</tbody>
				</table>
			</div>
		</section>
	);
}

/** Shown above, or only useful to the program. The document has them. */
const NOT_LISTED = ['configuration', 'name', 'status', 'verdict', 'run_id', 'error_stage', 'error_category',
	'error_reason'];

/** What a load is counted in, which says of which kind it is. */
const LOAD_UNITS: Record<string, string> = { concurrency: 'requests at once', 'request rate': 'requests/s',
	'batch size': 'requests in a batch' };

/** All other values of the run itself. */
function Rest({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	const isTime = new RegExp(`^(${STATISTICS.join('|')}|p\\d+)_(${TIMES.join('|')})_ms$`);
	const list = Object.keys(run.values).filter((c) => !c.includes('.') && !MAIN.includes(c)
		&& !isTime.test(c) && !NOT_LISTED.includes(c) && run.values[c] !== null
		&& !(c === 'rtfx' && run.values[c] === 0) // no audio was transcribed
		&& !(c === 'gpus' && (run.values['gpus_used'] !== undefined || !run.values[c])) // 0: not known
		&& !(c === 'load_kind' && LOAD_UNITS[String(run.values['load_kind'])])
		&& !(c.startsWith('p50_') && typeof run.values[c.replace('p50_', 'median_')] === 'number')).sort();
	const unitOf = (c: string): string | null | undefined => {
		const unit = c === 'load' ? LOAD_UNITS[String(run.values['load_kind'])] : columns.measure(c).unit;
		return run.values[c] === 1 ? unit?.replace(/^requests(?= |$)/, 'request') : unit;
	};
	return (
		<section className="card" aria-label="Details">
			<h2>Details</h2>
			<dl className="facts">{list.map((c) => (
				<div key={c}>
					<dt title={c}>{withUnits(columns.measure(c).label)}</dt>
					<dd className="num" title={exactCell(c, run.values[c])} data-column={c}>
						{showCell(c, run.values[c])}
						{unitOf(c) && typeof run.values[c] === 'number' && <span className="dim"> {unitOf(c)}</span>}
					</dd>
				</div>
			))}</dl>
		</section>
	);
}

function Machine({ run }: { run: Run }): ReactNode {
	const list = telemetryOf(run.document);
	if (!list.length)
		return null;
	return (
		<section className="card" aria-label="System metrics">
			<h2>System metrics</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of system metrics">
				<table className="plain-table">
					<thead><tr><th scope="col">Metric</th>
						{['Min', 'Mean', 'Max'].map((h) => <th key={h} scope="col" className="num">{h}</th>)}
					</tr></thead>
					<tbody>{list.map((t) => (
						<tr key={t.name}><th scope="row">{t.name}</th>
							{[t.min, t.mean, t.max].map((v, i) => <td key={i} className="num">{t.unit === null ? <Num v={v} />
								: <span title={`${v} ${t.unit}`}>{bytesText(v)}{t.unit === 'bytes/s' && '/s'}</span>}</td>)}
						</tr>
					))}</tbody>
				</table>
			</div>
		</section>
	);
}

export function Overview({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	/* A search has the curves of its levels; a run that failed before its load has none. */
	const hasCurves = foundOf(run.document) === null
		&& !(run.values.status === 'failed' && typeof run.values.completed !== 'number');
	return (
		<>
			<Badges run={run} />
			<Failure run={run} />
			<Reasons run={run} />
			<Main run={run} columns={columns} />
			<Search document={run.document} />
			{hasCurves && <OverTime id={run.id} />}
			{hasCurves && <Distributions id={run.id} />}
			<Times run={run} columns={columns} />
			<Conversations run={run} />
			{run.reproduce.length > 0 && (
				<section className="card" aria-label="Reproduce">
					<h2>Reproduce</h2>
					{run.reproduce.map((line, i) => (
						<CopyLine key={i} text={line} label={`command ${i + 1}`} />
					))}
				</section>
			)}
			<Machine run={run} />
			<Rest run={run} columns={columns} />
		</>
	);
}
