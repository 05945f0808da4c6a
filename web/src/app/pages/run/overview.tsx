// SPDX-License-Identifier: Apache-2.0
// overview.tsx: the run in a glance: main figures, whether to believe them, how to run it again.
import type { ReactNode } from 'react';
import type { Run } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { CopyLine } from '../../common/copy';
import { Num } from '../../common/twin';
import { Icon } from '../../parts/icon';
import { exactCell, NOTHING, showCell } from '../../show';
import { telemetryOf } from './config';
import { Conversations } from './conversations';

const MAIN = ['output_throughput', 'request_throughput', 'median_ttft_ms', 'median_tpot_ms',
	'median_e2el_ms', 'failed_requests', 'requests_per_second', 'tokens_per_second', 'avg_latency',
	'startup_time'];
const STATISTICS = ['mean', 'median', 'std', 'p90', 'p95', 'p99'];
const TIMES = ['ttft', 'tpot', 'itl', 'e2el'];

function Figure({ column, run, columns }: { column: string; run: Run; columns: Columns }): ReactNode {
	const v = run.values[column], m = columns.measure(column);
	return (
		<div className="figure">
			<p className="dim">{m.label}</p>
			<p className="big-number" data-column={column}>
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

/** Why the run judged itself as it did, in its own sentences, and which metrics they are about. */
function Reasons({ run }: { run: Run }): ReactNode {
	const told = run.reasons.filter((r) => r.text);
	if (!told.length)
		return null;
	return (
		<section className="card" aria-label="Why">
			<h2>Why the run judged itself {showCell('verdict', run.values.verdict)}</h2>
			<ul className="reasons">{told.map((r, i) => (
				<li key={i} data-code={r.code}>
					{r.level && <span className={`tag ${r.level === 'INVALID' ? 'bad' : 'warn'}`}>{r.level}</span>}
					<span>{r.text}</span>
					{r.spoils.length > 0 && <span className="dim">Not to be trusted: {r.spoils.join(', ')}</span>}
				</li>
			))}</ul>
		</section>
	);
}

function Times({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	const has = (c: string): boolean => run.values[c] !== undefined;
	const rows = TIMES.filter((t) => STATISTICS.some((s) => has(`${s}_${t}_ms`)));
	if (!rows.length)
		return null;
	return (
		<section className="card" aria-label="Times">
			<h2>Times (ms)</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of times">
				<table className="plain-table">
					<thead><tr><th scope="col"><span className="unseen">Time</span></th>
						{STATISTICS.map((s) => <th key={s} scope="col" className="num">{s}</th>)}</tr></thead>
					<tbody>{rows.map((t) => (
						<tr key={t}>
							<th scope="row">{columns.measure(`mean_${t}_ms`).label.replace(/^mean /i, '')}</th>
							{STATISTICS.map((s) => {
								const v = run.values[`${s}_${t}_ms`];
								return <td key={s} className="num">
									{typeof v === 'number' ? <Num v={v} /> : NOTHING}</td>;
							})}
						</tr>
					))}</tbody>
				</table>
			</div>
		</section>
	);
}

/** All other figures of the run itself. */
function Rest({ run, columns }: { run: Run; columns: Columns }): ReactNode {
	const isTime = new RegExp(`^(${STATISTICS.join('|')}|p\\d+)_(${TIMES.join('|')})_ms$`);
	const list = Object.keys(run.values).filter((c) => !c.includes('.') && !MAIN.includes(c)
		&& !isTime.test(c)).sort();
	return (
		<section className="card" aria-label="Everything else of the run">
			<h2>More of this run</h2>
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
		<section className="card" aria-label="The machine under load">
			<h2>The machine under load</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of the machine under load">
				<table className="plain-table">
					<thead><tr><th scope="col">Watched</th>
						{['least', 'mean', 'most'].map((h) => <th key={h} scope="col" className="num">{h}</th>)}
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
			<Reasons run={run} />
			{main.length > 0 && (
				<section className="card figures-row" aria-label="Main figures">
					{main.map((c) => <Figure key={c} column={c} run={run} columns={columns} />)}
				</section>
			)}
			<Times run={run} columns={columns} />
			<Conversations run={run} />
			{run.reproduce.length > 0 && (
				<section className="card" aria-label="Run it again">
					<h2>Run it again</h2>
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
