// SPDX-License-Identifier: Apache-2.0
// overview: which configuration is best at each load, what changed, what needs attention.
import type { ReactNode } from 'react';
import { whole } from '../../../lib/format';
import type { Overview, OverviewChange, OverviewVersion } from '../../../lib/api';
import { useIsBlock } from '../../common/block';
import { BoardMenu } from '../../common/board-menu';
import { useColumns, type Columns } from '../../common/columns';
import { Explain } from '../../common/explain';
import { percent } from '../../common/interval';
import { Amount } from '../../common/amount';
import { PriceFields, Unpriced } from '../../common/prices';
import { useRead } from '../../common/routes';
import { Running } from '../../common/running';
import { isEverything } from '../../filter';
import { Link } from '../../parts/link';
import { Menu } from '../../parts/menu';
import { Empty, Failure, Loading } from '../../parts/states';
import { age, count, zonedTime } from '../../show';
import { useFilter, usePageTarget } from '../../state';
import { choiceCodec, textCodec, useUrlState } from '../../url';
import { toneOf } from '../compare/words';
import { shortCommit } from '../trends/model';
import { FirstSteps } from './empty';
import { SampleNote } from './sample';
import {
	needCodec, questionOf, RANKS, sidesOf, versionSides, type Need,
} from './model';
import { BestTable } from './table';
import '../../common/pages.css';
import './overview.css';

const text = textCodec('');
const rankCodec = choiceCodec(RANKS.map(([name]) => name), 'auto');

/** "Llama-3.1-8B-Instruct · random · 256/12": the picker's entries, those with more first. */
const entryOf = (w: Overview['workloads'][number]): string =>
	`${w.label} (${count(w.configurations, 'configuration')}, ${count(w.runs, 'run')})`;

function ChangeLine({ c, columns }: { c: OverviewChange; columns: Columns }): ReactNode {
	const tone = c.verdict === 'better' ? 'good' : c.verdict === 'worse' ? 'bad' : 'warn';
	const target = usePageTarget();
	return (
		<li>
			<div>
				<Link to={target('/trends', { m: c.metric })} data-value={c.effect}>
					<strong className={`${tone}-text num`}>{c.effect < 0 ? '▼' : '▲'} {percent(c.effect)}</strong>
					{c.commit !== null && <span> at <code>{shortCommit(c.commit)}</code></span>}</Link>
				<p className="dim small-text">{c.name || columns.measure(c.metric).label}, {c.verdict}
					{c.series_total > 1 && ` · ${c.series} of ${count(c.series_total, 'series', 'series')}`}</p>
			</div>
			<Link className="push" to={target('/compare', { groups: sidesOf(c), m: c.metric })}>Before / after</Link>
		</li>
	);
}

const VERSION_NOTES_SHOWN = 2; // Compare has all of them

/** A suite's newest version against the previous one; opens Compare for both. */
function VersionLine({ v }: { v: OverviewVersion }): ReactNode {
	const target = usePageTarget();
	const tone = v.verdict === null ? 'plain' : toneOf(v.verdict);
	return (
		<li data-versions={`${v.newer} ${v.older}`}>
			<div>
				<Link to={target('/compare', { groups: versionSides(v), m: v.metric })}>
					{v.newer} against {v.older}</Link>
				{v.effect !== null && <strong className={`${tone}-text num`} data-value={v.effect}>
					{' '}{tone !== 'plain' && (v.effect < 0 ? '▼ ' : '▲ ')}{percent(v.effect)}</strong>}
				<p className="dim small-text">{v.name}: {v.text}{v.verdict !== null && `, ${v.metric_name}`}</p>
				{v.notes.slice(0, VERSION_NOTES_SHOWN).map((note) => <p key={note} className="dim small-text">{note}</p>)}
			</div>
		</li>
	);
}

const only = (column: string, value: string | null): string =>
	`/runs?f=${encodeURIComponent(JSON.stringify({ and: [{ column, in: [value] }] }))}`;

function CountLine({ label, n, to }: { label: string; n: number; to: string }): ReactNode {
	return <li><span>{label}</span>{n > 0 ? <Link className="push num" to={to} data-value={n}
		aria-label={`${label}: ${n}`}>{n}</Link> : <span className="push num dim" data-value={n}>0</span>}</li>;
}

function Cards({ answer, columns }: { answer: Overview; columns: Columns }): ReactNode {
	const { changes, versions, attention, latest } = answer;
	return (
		<div className="overview-cards">
			<section className="card" aria-label="Changed">
				<div className="card-head"><h2>Changed</h2>{changes.length > 0 ? <Explain topic="change" />
					: versions.length > 0 && <Explain topic="compare" />}</div>
				{changes.length + versions.length > 0 && <ul className="lines">
					{changes.map((c) => <ChangeLine key={`${c.metric} ${c.commit} ${c.name}`} c={c} columns={columns} />)}
					{versions.map((v) => <VersionLine key={`${v.by} ${v.name}`} v={v} />)}</ul>}
				{changes.length === 0 && <p className="dim">No unreviewed change. <Link to="/trends">Trends</Link> draws every
						metric over commits and time.</p>}
			</section>
			<section className="card" aria-label="To look at">
				<div className="card-head"><h2>To look at</h2><Explain topic="run" /></div>
				<ul className="lines">
					<CountLine label="INVALID runs" n={attention.invalid} to={only('verdict', 'INVALID')} />
					<CountLine label="DEGRADED runs" n={attention.degraded} to={only('verdict', 'DEGRADED')} />
					<CountLine label="Failed runs" n={attention.failed} to={only('status', 'failed')} />
				</ul>
			</section>
			<section className="card" aria-label="Latest">
				<h2>Latest</h2>
				<ul className="lines">{latest.map((l) => (
					<li key={`${l.suite} ${l.time}`}>
						<div><Link to={only('suite', l.suite)}>{l.suite ?? 'Single results'}</Link>
							<p className="dim small-text" title={l.time === null ? undefined : zonedTime(l.time)}>
								{count(l.runs, 'run')}, {l.time === null ? 'time not recorded'
									: age(l.time, Date.now() / 1000)}</p>
						</div>
					</li>
				))}</ul>
			</section>
		</div>
	);
}

function Others({ answer }: { answer: Overview }): ReactNode {
	const target = usePageTarget();
	const others = answer.workloads.filter((w) => w.key !== answer.workload).slice(0, 8);
	if (!others.length)
		return null;
	return (
		<section className="card" aria-label="Other workloads">
			<h2>Other workloads</h2>
			<ul className="workloads">{others.map((w) => (
				<li key={w.key}><Link to={target('/overview', { w: w.key })}>{w.label}</Link>
					<p className="dim small-text">{count(w.configurations, 'configuration')}, {count(w.runs, 'run')}</p>
				</li>
			))}</ul>
		</section>
	);
}

/** What the address asks, and the answer. */
function useOverview() {
	const [workload, setWorkload] = useUrlState('w', text);
	const [rank, setRank] = useUrlState('rank', rankCodec);
	const [need, setNeed] = useUrlState('need', needCodec);
	const answer = useRead('POST /api/analysis/overview', questionOf(workload, rank, need));
	return { setWorkload, rank, setRank, need, setNeed, answer };
}

function View({ columns }: { columns: Columns }): ReactNode {
	const { setWorkload, rank, setRank, need, setNeed, answer } = useOverview();
	const [filter] = useFilter(), isBlock = useIsBlock();
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!answer.data)
		return <Loading />;
	const { data } = answer, change = (part: Partial<Need>): void => setNeed((now) => ({ ...now, ...part }));
	if (data.runs === 0)
		return <FirstSteps />;
	return (
		<>
			{!isBlock && <SampleNote columns={columns} />}
			<section className="card overview-best" role={isBlock ? 'group' : undefined} aria-label="Best configurations"
				aria-busy={answer.isFetching}>
				{!isBlock && <div className="tools">
					<label className="pick"><span>Workload</span>
						<select value={data.workload} onChange={(e) => setWorkload(e.target.value)}>
							{data.workloads.map((w) => <option key={w.key} value={w.key}>{entryOf(w)}</option>)}
						</select></label>
					<label className="pick"><span>Rank</span>
						<select value={rank} onChange={(e) => setRank(e.target.value as typeof rank)}>
							{RANKS.map(([name, label]) => <option key={name} value={name}>{label}</option>)}
						</select></label>
					<div className="need" role="group" aria-label="Need">
						<Amount label="Need tokens/s/user ≥" unit="" value={need.user} onValue={(user) => change({ user })} />
						<Amount label="P99 TTFT ≤" unit="ms" value={need.ttft} onValue={(ttft) => change({ ttft })} />
					</div>
					{data.rows_by === 'gpu_model' && (
						<Menu label="Prices" title="What an hour of each GPU costs">
							{() => <PriceFields gpus={data.rows.map((r) => r.name)} />}</Menu>
					)}
					<BoardMenu block={{ kind: 'chart', caption: 'Best configurations' }} params={{ w: data.workload }} />
				</div>}
				{data.sentence && <p className="answer" role="status"><span className="said">{data.sentence}</span> <Explain topic="winner" /></p>}
				{rank === 'usd' && <Unpriced gpus={data.unpriced} />}
				{data.rows.length ? <BestTable answer={data} rank={rank} columns={columns}
					hasNeed={need.user !== null || need.ttft !== null} />
					: <Empty title="No configuration to rank"><p>No run of this workload has the metrics and meets
						what is needed.</p></Empty>}
				{data.runs < data.matching && <p className="dim small-text">The newest {count(data.runs, 'run')} of
					{' '}{whole(data.matching)}.</p>}
				{!isBlock && !isEverything(filter) && <p className="dim small-text">The filter of the other pages does not apply
					here.</p>}
			</section>
			{!isBlock && <Cards answer={data} columns={columns} />}
			{!isBlock && <Others answer={data} />}
		</>
	);
}

export default function OverviewPage(): ReactNode {
	const columns = useColumns(), isBlock = useIsBlock();
	useOverview(); // is asked for at the same time as the columns, which View waits for
	return (
		<div className="page">
			{!isBlock && <h1 className="unseen">Overview</h1>}
			{!isBlock && <Running />}
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: !columns.isReady ? <Loading /> : <View columns={columns} />}
		</div>
	);
}
