// SPDX-License-Identifier: Apache-2.0
// compare: how groups of runs differ in parameters and metrics, over the configurations that both
// have.
import { useMemo, type ReactNode } from 'react';
import type { Compare as Answer, CompareGroup } from '../../../lib/api';
import { ApiError } from '../../api';
import { useIsBlock } from '../../common/block';
import { BoardMenu } from '../../common/board-menu';
import { SET_ROLES, useColumns, type Columns } from '../../common/columns';
import type { ColumnOption } from '../../query';
import { Explain } from '../../common/explain';
import { Notes } from '../../common/notes';
import { Pick } from '../../common/pick';
import { useRead } from '../../common/routes';
import { IncludeInvalid, NoRuns, Scope } from '../../common/scope';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { useApply } from '../../query';
import { count } from '../../show';
import { useFilter, usePageTarget, useSelection, useShown } from '../../state';
import { isEverything, whole } from '../../filter';
import { flagCodec, listCodec, numberCodec, textCodec, useUrlState } from '../../url';
import {
	GROUPS_MAX, keptCodec, leftOutText, nearColumns, ofChosen, ofKept, ofRepeats, ofRuns, ofValues, repeatsOf,
	type Kept,
} from './groups';
import { ComparisonCard } from './comparison';
import { baselineOf, configuredOf, inShort } from './configured';
import { Headline, usePrimary } from './metrics';
import { Parameters } from './parameters';
import { bestBaseline, noticesOf, shownComparison } from './words';
import '../../common/pages.css';
import './compare.css';

const text = textCodec('');
/** -1: the address names no group. */
const none = numberCodec(-1);
const ignored = listCodec();
const off = flagCodec();
const NOTICES_SHOWN = 3;

interface Groups {
	groups: CompareGroup[]; splits: string[]; isWaiting: boolean; note: string | null; error: unknown;
}

/** The chosen runs by the configurations that an answer has of them. */
function repeatsIn(ids: number[], answer: Answer | undefined): number[][] {
	const of = new Map(answer?.groups.flatMap((o) => o.ids.map((id, i) => [id, o.configurations[i]] as const)));
	return answer ? repeatsOf(ids, ids.map((id) => of.get(id) ?? null)) : [];
}

/** Groups the runs as the address says. */
function useGroups(columns: Columns): Groups {
	const [filter] = useFilter();
	const [shown] = useShown();
	const { ids } = useSelection();
	const [kept] = useUrlState('groups', keptCodec);
	const [split] = useUrlState('by', text);
	const isChosen = ids.length > 1 && kept.length === 0;
	/* More runs than groups: their repeats have to be known before any of them is asked for. */
	const isMany = ids.length > GROUPS_MAX;
	const all = useRead('POST /api/data/compare', { groups: [{ ids }], metrics: [] }, isChosen && isMany);
	const lists = useMemo(() => (isMany ? repeatsIn(ids, all.data) : ids.map((id) => [id])), [isMany, ids, all.data]);
	const runs = useMemo(() => lists.slice(0, GROUPS_MAX).map(([id]) => id), [lists]);
	const apart = useRead('POST /api/data/compare', { groups: ofRuns(runs), metrics: [] },
		isChosen && runs.length > 1);
	const isFacet = !isChosen && kept.length < 2 && split !== '';
	const facet = useApply({ filter: whole(filter), shown, limit: 1, columns: [], facets: [split],
		facet_values: GROUPS_MAX }, isFacet);
	return useMemo(() => {
		const usual = columns.groups.map((c) => c.column);
		if (kept.length)
			return { groups: ofKept(kept), splits: [], isWaiting: false, note: null, error: null };
		if (isChosen) {
			const differing = apart.data?.parameters.map((p) => p.column) ?? [];
			const by = apart.data?.parameters.find((p) => p.column === split);
			const groups = by ? ofChosen(lists.slice(0, GROUPS_MAX), by)
				: ofRepeats(isMany ? lists : repeatsIn(ids, apart.data), runs, apart.data?.parameters ?? []);
			return { groups, splits: differing, isWaiting: apart.isPending && !all.error,
				note: leftOutText(ids, lists), error: all.error ?? apart.error };
		}
		const values = facet.data?.facets[0]?.values ?? [];
		return { groups: split ? ofValues(filter, split, values.map((v) => v.value)) : [],
			splits: usual, isWaiting: isFacet && facet.isPending, note: null,
			error: isFacet ? facet.error : null };
	}, [kept, isChosen, isFacet, isMany, all.error, lists, runs, apart.data, apart.error, apart.isPending, facet.data,
		facet.error, facet.isPending, filter, ids, split, columns]);
}

function Tools({ columns, g, base }: { columns: Columns; g: Groups; base: number }): ReactNode {
	const [filter] = useFilter();
	const { ids } = useSelection();
	const [split, setSplit] = useUrlState('by', text);
	const [kept, setKept] = useUrlState('groups', keptCodec);
	const [, setBase] = useUrlState('base', none);
	const keep = (add: Kept): void => setKept([...kept, add].slice(0, GROUPS_MAX));
	const options = columns.all.filter((c) => g.splits.includes(c.column));
	return (
		<div className="tools">
			{kept.length === 0 && (
				<Pick label="Compare by" value={split} onPick={setSplit} columns={columns} options={options}
					none={ids.length > 1 ? 'selected runs' : 'select a column'} />
			)}
			{g.groups.length > 1 && (
				<label className="pick">
					<span>Baseline</span>
					<select value={base} onChange={(e) => setBase(Number(e.target.value))}>
						{g.groups.map((group, i) => <option key={i} value={i}>{group.name}</option>)}
					</select>
				</label>
			)}
			<div className="row tight">
				{ids.length > 0 && (
					<button type="button" className="small" onClick={() =>
						keep({ name: ids.length === 1 ? `Run ${ids[0]}` : count(ids.length, 'selected run'), ids })}>
						<Icon name="plus" />Add selection as group
					</button>
				)}
				{!isEverything(filter) && (
					<button type="button" className="small" onClick={() =>
						keep({ name: `Filter ${kept.length + 1}`, filter })}>
						<Icon name="plus" />Add filter as group
					</button>
				)}
				{kept.map((k, i) => (
					<span key={i} className="kept">
						<input aria-label={`Name of group ${i + 1}`} value={k.name} onChange={(e) =>
							setKept(kept.map((o, n) => (n === i ? { ...o, name: e.target.value } : o)),
								{ replace: true })} />
						<button type="button" className="small icon quiet" aria-label={`Remove ${k.name}`}
							onClick={() => setKept(kept.filter((_, n) => n !== i))}><Icon name="cross" /></button>
					</span>
				))}
			</div>
		</div>
	);
}

function MatchedColumns({ list, columns, onLeave }: {
	list: string[]; columns: Columns; onLeave: (column: string) => void;
}): ReactNode {
	return list.map((column) => (
		<button key={column} type="button" className="small chosen" title={`${column}: click removes it from the match`}
			onClick={() => onLeave(column)}>
			<span>{columns.measure(column).label}</span><Icon name="cross" /></button>
	));
}

/** The columns that configurations are matched on; a click removes one. */
function MatchedBy({ answer, columns }: { answer: Answer; columns: Columns }): ReactNode {
	const [ignore, setIgnore] = useUrlState('ignore', ignored);
	const [isOnly, setOnly] = useUrlState('comparable', off);
	const isDoubtful = answer.comparisons.some((c) => c.metrics.some((m) => m.not_comparable > 0));
	if (!answer.comparisons.length)
		return null;
	return (
		<div className="scope" role="group" aria-label="Matched columns">
			<span className="dim">Match on</span>
			{answer.matched_by.length === 0 && <span>nothing: all runs of a group are repeats</span>}
			<MatchedColumns list={answer.matched_by} columns={columns}
				onLeave={(column) => setIgnore([...ignore, column])} />
			{ignore.map((column) => (
				<button key={column} type="button" className="small" title={`${column}: click adds it to the match again`}
					onClick={() => setIgnore(ignore.filter((c) => c !== column))}>
					not {columns.measure(column).label}</button>
			))}
			{(isDoubtful || isOnly) && (
				<button type="button" className="small" aria-pressed={isOnly} onClick={() => setOnly(!isOnly)}
					title="Use only configurations in which both sides did the same work">
					Compare only equal work</button>
			)}
		</div>
	);
}

/** All notes of the answer in one place: the first lines, the others folded. */
function Notices({ lines }: { lines: string[] }): ReactNode {
	if (!lines.length)
		return null;
	return (
		<div role="group" aria-label="Notices">
			<Notes notes={lines.slice(0, NOTICES_SHOWN)} />
			{lines.length > NOTICES_SHOWN && (
				<details className="more-notes">
					<summary>{count(lines.length - NOTICES_SHOWN, 'more notice')}</summary>
					<Notes notes={lines.slice(NOTICES_SHOWN)} />
				</details>
			)}
		</div>
	);
}

function Result({ answer, columns }: { answer: Answer; columns: Columns }): ReactNode {
	const [primary, setPrimary] = usePrimary(), isBlock = useIsBlock();
	const [side, setSide] = useUrlState('side', none);
	const given = shownComparison(answer.comparisons, side);
	const by = useMemo(() => configuredOf(answer, given ? [baselineOf(answer), given.group] : []),
		[answer, given]);
	const chosen = useMemo(() => given && inShort(given, by), [given, by]);
	return (
		<>
			{chosen && <Headline answer={answer} chosen={chosen} by={by} columns={columns} primary={primary}
				onPrimary={setPrimary} onSide={setSide} />}
			{chosen ? <Notices lines={noticesOf(answer, chosen)} /> : <section className="card"><Empty title="Nothing to compare"
				icon="compare"><p>No two of these groups have a metric in common.{answer.notes.length > 0
				&& ` ${answer.notes.join('; ')}.`} <Explain topic="compare" /></p></Empty></section>}
			{!isBlock && <MatchedBy answer={answer} columns={columns} />}
			{chosen && <ComparisonCard key={chosen.group} answer={answer} c={chosen} columns={columns} primary={primary}
				by={by} />}
			{!isBlock && <Parameters answer={answer} columns={columns}
				{...(chosen && { groups: [baselineOf(answer), chosen.group] })} />}
		</>
	);
}

/** The refusal as a sentence, and what can be done about it. */
function sentenceOf(message: string): string {
	const text = message.replace(/^\/groups: /, '');
	return `${text[0].toUpperCase()}${text.slice(1)}.${/INVALID/.test(text)
		? ' Choose another baseline, or turn on “Include invalid” to see its numbers anyway.' : ''}`;
}

/** Nothing can be compared: why not, and in what the groups differ. */
function Refused({ error, groups, columns }: {
	error: unknown; groups: CompareGroup[]; columns: Columns;
}): ReactNode {
	const answer = useRead('POST /api/data/compare', { groups, metrics: [] });
	const [ignore, setIgnore] = useUrlState('ignore', ignored);
	const matched = answer.data?.matched_by.filter((c) => !ignore.includes(c)) ?? [];
	const isGroups = error instanceof ApiError && error.pointer === '/groups';
	return (
		<>
			{isGroups ? <Empty title="These groups cannot be compared" icon="compare">
				<p>{sentenceOf(error.message)} <Explain topic="compare" /></p></Empty> : <Failure error={error} />}
			{ignore.length > 0 && (
				<button type="button" className="small" onClick={() => setIgnore([])}>Match on all columns</button>
			)}
			{answer.data && (
				<>
					{matched.length > 0 && <div className="scope" role="group" aria-label="Matched columns">
						<span className="dim">Match on</span>
						<MatchedColumns list={matched} columns={columns}
							onLeave={(column) => setIgnore([...ignore, column])} />
					</div>}
					<Parameters answer={answer.data} columns={columns} />
				</>
			)}
		</>
	);
}

/** A column that makes no groups: why, and which ones were probably meant. */
function Unsplit({ split, groups, columns }: {
	split: string; groups: CompareGroup[]; columns: Columns;
}): ReactNode {
	const target = usePageTarget();
	const isKnown = columns.of(split) !== undefined;
	const near = isKnown ? suggested(columns).map((c) => c.column)
		: nearColumns(split, columns.groups.map((c) => c.column));
	const label = isKnown ? columns.measure(split).label : split;
	return (
		<Empty title={`Nothing to compare by ${label}`} icon="compare">
			<p>{!isKnown ? `There is no column “${split}”.`
				: groups.length ? `All runs that have a value here have the same: ${groups[0].name}.`
					: 'No run has a value in this column.'}{near.length > 0 && (isKnown ? ' Other columns:' : ' Did you mean:')}</p>
			<p className="row centre">{near.map((c) => (
				<Link key={c} className="button small" to={target('/compare', { by: c })}>
					{isKnown ? columns.measure(c).label : c}</Link>
			))}</p>
		</Empty>
	);
}

const SUGGESTED_MAX = 8;

/** Columns to compare by: what was set, suites, commits and tags; not how a run ended, or its number. */
const suggested = (columns: Columns): ColumnOption[] =>
	columns.groups.filter((c) => !c.same_as && (SET_ROLES.includes(c.role) || c.group === 'tags'
		|| ['suite', 'provenance.engine_commit'].includes(c.column))).slice(0, SUGGESTED_MAX);

function Start({ columns }: { columns: Columns }): ReactNode {
	const target = usePageTarget();
	if (!columns.groups.length)
		return <NoRuns />;
	return (
		<Empty title="Select what to compare" icon="compare">
			<p>Select at least two runs on <Link to={target('/runs')}>Runs</Link> (key x) and press c, or
				compare the runs of the filter by a column:</p>
			<p className="row centre">{suggested(columns).map((c) => (
				<Link key={c.column} className="button small" to={target('/compare', { by: c.column })}>
					{columns.measure(c.column).label}
				</Link>
			))}</p>
		</Empty>
	);
}

export default function Compare(): ReactNode {
	const columns = useColumns(), g = useGroups(columns);
	const [base] = useUrlState('base', none);
	const [split] = useUrlState('by', text);
	const { ids, clear } = useSelection();
	const isEnough = g.groups.length > 1;
	const [primary] = usePrimary();
	const [ignore] = useUrlState('ignore', ignored);
	const [isOnly] = useUrlState('comparable', off);
	const isBlock = useIsBlock();
	const asked = { groups: g.groups, metrics: null, primary: primary || null, ignore, comparable_only: isOnly };
	const given = Math.min(Math.max(0, base), Math.max(0, g.groups.length - 1));
	const isAsked = isEnough && !g.isWaiting;
	const at = useRead('POST /api/data/compare', { ...asked, baseline: given }, isAsked);
	/* Where the first group has nothing in common with any other one, another pair may have. */
	const isOpen = isAsked && at.isError && base < 0;
	const apart = useRead('POST /api/data/compare', { groups: g.groups, metrics: [], ignore }, isOpen);
	const other = isOpen && apart.data ? bestBaseline(apart.data) : -1;
	const instead = useRead('POST /api/data/compare', { ...asked, baseline: Math.max(0, other) }, other > 0);
	const answer = other > 0 ? instead : at;
	return (
		<div className="page">
			{!isBlock && <div className="page-head"><h1>Compare</h1>
				{ids.length > 1 ? <span className="scope dim">{count(ids.length, 'selected run')}
					<IncludeInvalid /></span> : <Scope />}
			</div>}
			{!isBlock && <section className="card" aria-label="Groups">
				<div className="row">
					<Tools columns={columns} g={g} base={other > 0 ? other : given} />
					{isEnough && <BoardMenu block={{ kind: 'chart', caption: `Comparison by ${split
						? columns.measure(split).label : 'selected runs'}` }} />}
				</div>
				{g.note && <p className="dim small-text">{g.note}</p>}
			</section>}
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: isBlock && columns.isReady && answer.data ? <Result answer={answer.data} columns={columns} />
				: g.isWaiting || !columns.isReady ? <Loading />
				: split && !isEnough && ids.length < 2 ? <section className="card">
					<Unsplit split={split} groups={g.groups} columns={columns} /></section>
				: g.error ? <Failure error={g.error}>{ids.length > 1 && <button type="button" onClick={clear}>
						Clear the selection</button>}</Failure>
					: !isEnough ? <section className="card"><Start columns={columns} /></section>
						: isOpen && apart.isPending ? <Loading />
							: answer.isError ? <Refused error={answer.error} groups={g.groups} columns={columns} />
								: answer.data ? <Result answer={answer.data} columns={columns} /> : <Loading />}
		</div>
	);
}
