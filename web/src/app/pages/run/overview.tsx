// SPDX-License-Identifier: Apache-2.0
// overview.tsx: the run in a glance: its verdict, its main metrics, and how to reproduce it.
import type { ReactNode } from 'react';
import type { Run } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { CopyLine } from '../../common/copy';
import { Num } from '../../common/twin';
import { Icon } from '../../parts/icon';
import { exactCell, NOTHING, showCell } from '../../show';
import { isInvalid, type Invalid } from '../runs/view';
import { telemetryOf } from './config';
import { Conversations } from './conversations';
import { failureOf, fineText, REMEDIES, spoilsText } from './verdict';

const MAIN = ['output_throughput', 'request_throughput', 'median_ttft_ms', 'median_tpot_ms',
	'median_e2el_ms', 'failed_requests', 'requests_per_second', 'tokens_per_second', 'avg_latency',
	'startup_time'];
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

function Figure({ column, run, columns }: { column: string; run: Run; columns: Columns }): ReactNode {
	const v = run.values[column], m = columns.measure(column);
	return (
		<div className="figure">
			<p className="dim">{m.label}</p>
			<p className="big-number" data-column={column} {...spoiled(run, column)}>
				{typeof v === 'number' ? <Num v={v} /> : showCell(column, v)}
				{m.unit && <span className="unit">{m.unit}</span>}
			</p>
		</div>
	);
}

function Badges({ run }: { run: Run }): ReactNode {
	if (!run.badges.length)
		return null;
	return (
		<ul className="badges" aria-label="Quality of the data">
			{run.badges.map((b) => (
				<li key={b.code} className={`badge ${b.level}`}>
					<Icon name={b.level === 'good' ? 'check' : 'warning'} /><span>{b.text}</span>
				</li>
			))}
		</ul>
	);
}

/** Why the run has its verdict, in its own sentences: what not to use, and what helps. */
function Reasons({ run }: { run: Run }): ReactNode {
	const given = run.reasons.filter((r) => r.text);
	if (!given.length)
		return null;
	const fine = fineText(given);
	return (
		<section className="card" aria-label="Verdict">
			<h2>Why this run is {showCell('verdict', run.values.verdict)}</h2>
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
	return (
		<section className="card" aria-label="Failure">
			<h2>Failed{failed.stage && ` at stage “${failed.stage}”`}{failed.category && `: ${failed.category}`}</h2>
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
	const has = (c: string): boolean => run.values[c] !== undefined;
	const rows = TIMES.filter((t) => STATISTICS.some((s) => has(`${s}_${t}_ms`)));
	if (!rows.length)
		return null;
	return (
		<section className="card" aria-label="Latency">
			<h2>Latency (ms)</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of latencies">
				<table className="plain-table">
					<thead><tr><th scope="col"><span className="unseen">Metric</span></th>
						{STATISTICS.map((s) => <th key={s} scope="col" className="num">{HEADS[s]}</th>)}</tr></thead>
					<tbody>{rows.map((t) => (
						<tr key={t}>
							<th scope="row">{columns.measure(`mean_${t}_ms`).label.replace(/^mean /i, '')}</th>
							{STATISTICS.map((s) => {
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

/** All other values of the run itself. */
function Rest({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	const isTime = new RegExp(`^(${STATISTICS.join('|')}|p\\d+)_(${TIMES.join('|')})_ms$`);
	const list = Object.keys(run.values).filter((c) => !c.includes('.') && !MAIN.includes(c)
		&& !isTime.test(c)).sort();
	return (
		<section className="card" aria-label="Details">
			<h2>Details</h2>
			<dl className="facts">{list.map((c) => (
				<div key={c}>
					<dt title={c}>{columns.measure(c).label}</dt>
					<dd className="num" title={exactCell(c, run.values[c])} data-column={c}>
						{showCell(c, run.values[c])}
						{columns.measure(c).unit && typeof run.values[c] === 'number'
							&& <span className="dim"> {columns.measure(c).unit}</span>}
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
							<td className="num"><Num v={t.min} /></td><td className="num"><Num v={t.mean} /></td>
							<td className="num"><Num v={t.max} /></td></tr>
					))}</tbody>
				</table>
			</div>
		</section>
	);
}

export function Overview({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	const main = MAIN.filter((c) => typeof run.values[c] === 'number').slice(0, 6);
	return (
		<>
			<Badges run={run} />
			<Failure run={run} />
			<Reasons run={run} />
			{main.length > 0 && (
				<section className="card figures-row" aria-label="Main metrics">
					{main.map((c) => <Figure key={c} column={c} run={run} columns={columns} />)}
				</section>
			)}
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
