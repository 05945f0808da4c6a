// SPDX-License-Identifier: Apache-2.0
// table.tsx: runs by columns. Only the visible part is drawn, in both directions; rows are fetched
// page after page while scrolling. The head and the first column stay.
//
// The grid is one stop for the tab key; j, k and the arrows move inside it.
import {
	memo, useEffect, useMemo, useRef, useState, type CSSProperties, type KeyboardEvent,
	type MouseEvent, type ReactNode,
} from 'react';
import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual';
import { whole } from '../../../lib/format';
import type { Cell } from '../../api';
import { useKeys } from '../../keys';
import { Link } from '../../parts/link';
import type { ColumnOption, Sort } from '../../query';
import { age, exactCell, exactTime, isTime, zonedTime } from '../../show';
import type { Selection } from '../../state';
import { navigate } from '../../url';
import {
	cellText, headOf, idsOf, isInvalid, isNumber, labelOf, metricFirst, placeOf, ranksOf, sharesMinute, spreadText,
	type Invalid, type Line, type Ranks,
} from './view';
import { Icon } from '../../parts/icon';

const ROW = 34;
const HEAD = 48;
const LEAD = 248, LEAD_SMALL = 190, LEAD_TAGS = 90, LEAD_FOLDS = 42; /* for arrows and ×3 */
const NARROW: Record<string, number> = { verdict: 84, timestamp: 118 };
const DATE_SECONDS = 160; /* a whole date with its seconds */
const VERDICT_TAGGED = 112; /* with a word such as failed next to the mark */
const SMALL = 600; /* px of the grid */
const TIGHT = 900; /* below it the usual parameters leave no room for a metric */
const AHEAD = 40; /* rows before the end at which the next page is asked for */

interface Props {
	items: Line[];
	total: number;
	/** Rows whose repeats are listed below them. */
	open: ReadonlySet<number>;
	onOpen: (id: number) => void;
	columns: string[];
	options: Map<string, ColumnOption>;
	names: Map<number, string>;
	/** Tags that people put on some runs. */
	tagsOf: (ids: readonly number[]) => string[];
	sort: Sort[];
	selection: Selection;
	resetKey: string;
	/** All runs are of one workload, so that their figures may be ranked. */
	isRanked: boolean;
	invalid: Invalid;
	hasNext: boolean;
	isFetching: boolean;
	runTarget: (id: number) => string;
	onNext: () => void;
	onSort: (column: string, isAdded: boolean) => void;
	onValue: (column: string, value: Cell) => void;
}

const GROWTH_MAX = 1.7;
const TEXT_MAX = 176;
const SAMPLE = 100; /* rows by which widths are chosen */

/** longest: characters of the longest text in the first rows. */
function widthOf(column: string, options: Map<string, ColumnOption>, longest: number,
	hasSpread: boolean): number {
	if (NARROW[column])
		return NARROW[column];
	const option = options.get(column);
	const words = headOf(column, options).split(/(?<=[ /_])/), text = words.join('');
	/* Two lines, broken where the browser may. */
	const half = words.reduce((n, w) => (n + w.length <= Math.max(text.length / 2 + 2, w.length)
		? n + w.length : n), 0);
	const head = (text.length <= 12 ? text.length : Math.max(half, text.length - half)) * 9 + 34;
	const body = isTime(column) ? 118 : isNumber(option) ? (hasSpread ? 130 : 84)
		: option?.kind === 'bool' ? 80 : Math.min(TEXT_MAX, Math.max(72, longest * 8.2 + 28));
	return Math.round(Math.max(body, Math.min(head, 250)));
}

/** Widths of the columns; extra room goes to those with texts. */
function widthsOf(columns: string[], options: Map<string, ColumnOption>, room: number,
	longest: number[], spread: boolean[]): number[] {
	const least = columns.map((c, i) => widthOf(c, options, longest[i], spread[i]));
	const isWide = columns.map((c) => !isNumber(options.get(c)) && !isTime(c) && !NARROW[c]);
	const sum = (list: number[]): number => list.reduce((a, b) => a + b, 0);
	const texts = sum(least.filter((_, i) => isWide[i]));
	const growth = texts ? Math.min(GROWTH_MAX, 1 + Math.max(0, room - sum(least)) / texts) : 1;
	return least.map((w, i) => (isWide[i] ? Math.floor(w * growth) : w));
}

const VERDICTS: Record<string, string> = { VALID: 'good', DEGRADED: 'warn', INVALID: 'bad' };

/** The verdict as a mark of its own form; a status other than completed, and flags, as words. */
function Verdict({ item }: { item: Line }): ReactNode {
	const { verdict, status } = item.values;
	const look = typeof verdict === 'string' ? VERDICTS[verdict.toUpperCase()] : undefined;
	return (
		<>
			{look && <><span className={`dot ${look}`} aria-hidden="true" />
				<span className="unseen">{String(verdict)}</span></>}
			{typeof status === 'string' && status !== 'completed' && (
				<span className={`tag ${status === 'failed' ? 'bad' : 'warn'}`}>{status}</span>)}
			{item.flags.map((f) => <span key={f} className="tag">{f}</span>)}
		</>
	);
}

function verdictTitle({ values, flags }: Line): string {
	const { verdict, status } = values;
	return [verdict, status === 'completed' ? null : status, ...flags]
		.filter((word) => typeof word === 'string').join(', ') || 'No verdict was recorded';
}

const ROUND_S = 30;

/** Seconds since 1970, twice a minute: for ages. */
function useNow(): number {
	const [now, setNow] = useState(() => Date.now() / 1000);
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now() / 1000), ROUND_S * 1000);
		return () => clearInterval(timer);
	}, []);
	return now;
}

interface RowProps {
	item: Line;
	name: string;
	isOpen: boolean;
	/** One text per line, so that it stays the same while they do. */
	tags: string;
	/** Some row has an arrow: the names of the others begin below those with one. */
	hasFolds: boolean;
	onOpen: (id: number) => void;
	ranks: Ranks;
	invalid: Invalid;
	now: number;
	hasSeconds: boolean;
	index: number;
	top: number;
	width: number;
	lead: number;
	columns: string[];
	seen: VirtualItem[];
	options: Map<string, ColumnOption>;
	isNow: boolean;
	nowColumn: number;
	isSelected: boolean;
	target: string;
	onToggle: (item: Line) => void;
}

function CellBox({ p, column, at, left, width }: {
	p: RowProps; column: string; at: number; left: number; width: number;
}): ReactNode {
	const { item, index, options } = p;
	const value = item.values[column];
	const isDate = isTime(column) && typeof value === 'number';
	const rank = item.isMember ? undefined : p.ranks.get(column)?.get(item.id);
	const spread = spreadText(item, column), isSpoiled = isInvalid(p.invalid, item.id, column);
	const look = ['cell', isNumber(options.get(column), column) ? 'num' : '', rank ? 'barred' : '',
		rank?.isBest ? 'best' : '', isSpoiled && isNumber(options.get(column), column) ? 'spoiled' : '', p.isNow && p.nowColumn === at + 1 ? 'here' : '']
		.filter(Boolean).join(' ');
	const title = column === 'verdict' ? verdictTitle(item)
		: `${labelOf(column, options)}: ${isDate ? zonedTime(value) : exactCell(column, value)}`
			+ (spread ? `\nMedian of ${item.n} runs, ${spread} half the range` : '')
			+ (rank?.isBest ? '\nOne of the best three of this workload' : '')
			+ (isSpoiled ? '\nINVALID in this run' : '');
	return (
		<div role="gridcell" aria-colindex={at + 2} className={look} id={`cell-${index}-${at + 1}`}
			data-column={column} data-row={index} title={title}
			data-value={isDate ? exactTime(value) : exactCell(column, value)}
			style={{ left, width, ...(rank && { '--share': rank.share }) } as CSSProperties}>
			{column === 'verdict' ? <Verdict item={item} />
				: isDate ? age(value, p.now, p.hasSeconds) : cellText(column, value)}
			{spread && <span className="spread-of dim">{` ${spread}`}</span>}</div>
	);
}

const Row = memo(function Row(p: RowProps): ReactNode {
	const { item, index, columns, name } = p;
	const full = typeof item.values.name === 'string' && item.values.name ? item.values.name : name;
	return (
		<div role="row" aria-rowindex={index + 2} aria-selected={p.isSelected} data-id={item.id}
			className={`grid-row${p.isNow ? ' now' : ''}${p.isSelected ? ' selected' : ''}${
				item.isMember ? ' member' : ''}`}
			style={{ width: p.width, height: ROW, transform: `translateY(${p.top}px)` }}>
			<div role="rowheader" aria-colindex={1} className="cell lead" id={`cell-${index}-0`}
				style={{ width: p.lead }}>
				<input type="checkbox" tabIndex={-1} checked={p.isSelected}
					aria-label={`Select ${full}`} onChange={() => p.onToggle(item)} />
				{(item.n ?? 1) > 1 && <button type="button" className="quiet icon fold" tabIndex={-1}
					aria-expanded={p.isOpen} aria-label={`${item.n} repeats of ${full}`}
					title={`${item.n} runs of this configuration: e shows them`}
					onClick={() => p.onOpen(item.id)}><Icon name={p.isOpen ? 'down' : 'right'} /></button>}
				{p.hasFolds && !item.isMember && (item.n ?? 1) === 1 && <span className="fold-space" />}
				<Link to={p.target} tabIndex={-1} title={`${full}\n${String(item.values.run_id ?? '')}`}
					aria-label={item.isMember ? `${full}, run ${item.id}` : full}>{item.isMember ? `run ${item.id}` : name}</Link>
				{(item.n ?? 1) > 1 && <span className="times num dim">×{item.n}</span>}
				{p.tags && <span className="row-tags" title={`Tags: ${p.tags.replaceAll('\n', ', ')}`}>{p.tags.split('\n')
					.map((tag) => <span key={tag} className="tag run-tag">{tag}</span>)}</span>}
			</div>
			{p.seen.map((v) => <CellBox key={columns[v.index]} p={p} column={columns[v.index]}
				at={v.index} left={v.start} width={v.size} />)}
		</div>
	);
});

function Head({ columns, seen, options, sort, lead, allSelected, onAll, onSort }: {
	columns: string[]; seen: VirtualItem[]; options: Map<string, ColumnOption>; sort: Sort[];
	lead: number; allSelected: boolean; onAll: () => void;
	onSort: (column: string, isAdded: boolean) => void;
}): ReactNode {
	const cell = (column: string, at: number, style: { left?: number; width: number }): ReactNode => {
		const place = sort.findIndex((s) => s.column === column);
		const order = place < 0 ? 'none' : sort[place].descending ? 'descending' : 'ascending';
		const label = column === 'name' ? 'Run' : headOf(column, options);
		const unit = placeOf(column, options);
		return (
			<div key={column} role="columnheader" aria-colindex={at + 1} aria-sort={order} style={style}
				className={`cell ${at === 0 ? 'lead' : ''} ${isNumber(options.get(column), column) ? 'num' : ''}`}>
				{at === 0 && <input type="checkbox" tabIndex={-1} checked={allSelected} onChange={onAll}
					aria-label="Select the runs that are loaded" />}
				<button type="button" className="head-button" tabIndex={-1} title={`${column}\n${labelOf(column, options)}\n`
					+ 'Click sorts, with shift after the others'}
					onClick={(event) => onSort(column, event.shiftKey)}>
					<span className="head-label">{label}</span>
					<span className="head-place dim">{unit && !label.includes(unit) ? unit : ''}</span>
					{place >= 0 && <span className="head-order" aria-hidden="true">
						{sort[place].descending ? '↓' : '↑'}{sort.length > 1 && place + 1}</span>}
				</button>
			</div>
		);
	};
	return (
		<div role="row" aria-rowindex={1} className="grid-row head" style={{ height: HEAD }}>
			{cell('name', 0, { width: lead })}
			{seen.map((v) => cell(columns[v.index], v.index + 1, { left: v.start, width: v.size }))}
		</div>
	);
}

function useWidth(element: HTMLElement | null): number {
	const [width, setWidth] = useState(1000);
	useEffect(() => {
		if (!element)
			return;
		const watch = new ResizeObserver(() => setWidth(element.clientWidth));
		watch.observe(element);
		return () => watch.disconnect();
	}, [element]);
	return width;
}

/** The first of repeats is in its folded row and below it. */
const keyOf = (item: Line | undefined, at: number): string | number =>
	(item ? (item.isMember ? `m${item.id}` : item.id) : at);

export function Table(props: Props): ReactNode {
	const { items, options, selection, hasNext, isFetching, onNext } = props;
	const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
	const room = useWidth(scroller);
	const columns = useMemo(() => (room < TIGHT ? metricFirst(props.columns, options) : props.columns),
		[room < TIGHT, props.columns, options]);
	const hasFolds = useMemo(() => items.some((i) => (i.n ?? 1) > 1), [items]);
	const hasTags = useMemo(() => items.some((i) => props.tagsOf(idsOf(i)).length > 0), [items, props.tagsOf]);
	const lead = (room < SMALL ? LEAD_SMALL : LEAD) + (hasFolds ? LEAD_FOLDS : 0)
		+ (hasTags && room >= SMALL ? LEAD_TAGS : 0);
	const [at, setAt] = useState(-1);
	const [nowColumn, setColumn] = useState(0);
	const sample = items.length > SAMPLE ? SAMPLE : items.length;
	const longest = useMemo(() => columns.map((c) => items.slice(0, sample).reduce((most, { values }) =>
		Math.max(most, cellText(c, values[c]).length), 0)),
	// Later pages do not move columns.
	[columns, items[0]?.id, sample]);
	const spread = useMemo(() => columns.map((c) => items.slice(0, sample)
		.some((i) => spreadText(i, c) !== '')), [columns, items[0]?.id, sample]);
	const isTagged = useMemo(() => items.some((i) => i.flags.length > 0
		|| (typeof i.values.status === 'string' && i.values.status !== 'completed')), [items]);
	const now = useNow();
	const hasSeconds = useMemo(() => sharesMinute(items.map((i) => i.values.timestamp)), [items]);
	const hasOld = useMemo(() => items.some(({ values: { timestamp: t } }) =>
		typeof t === 'number' && /^\d{4}-/.test(age(t, now))), [items, now]);
	const widths = useMemo(() => widthsOf(columns, options, room - lead, longest, spread)
		.map((w, i) => (columns[i] === 'verdict' && isTagged ? VERDICT_TAGGED
			: columns[i] === 'timestamp' && hasSeconds && hasOld ? DATE_SECONDS : w)),
	[columns, options, room, lead, longest, spread, isTagged, hasSeconds, hasOld]);
	const rows = useVirtualizer({ count: items.length, getScrollElement: () => scroller,
		estimateSize: () => ROW, overscan: 8, scrollPaddingStart: HEAD,
		getItemKey: (i) => keyOf(items[i], i) });
	const cols = useVirtualizer({ count: columns.length, getScrollElement: () => scroller,
		estimateSize: (i) => widths[i] ?? 100, horizontal: true, overscan: 2, paddingStart: lead,
		scrollPaddingStart: lead, getItemKey: (i) => columns[i] ?? i });
	useEffect(() => cols.measure(), [cols, widths, lead]);
	useEffect(() => {
		scroller?.scrollTo({ top: 0 });
		setAt(-1);
	}, [scroller, props.resetKey]);
	const ranks = useMemo(() => ranksOf(props.isRanked ? items.filter((i) => !i.isMember) : [], columns, options,
		props.invalid, items.filter((i) => !i.isMember).length === props.total),
	[props.isRanked, items, columns, options, props.invalid, props.total]);
	const seenRows = rows.getVirtualItems(), seen = cols.getVirtualItems();
	const last = seenRows.at(-1)?.index ?? 0;
	useEffect(() => {
		if (hasNext && !isFetching && last >= items.length - AHEAD)
			onNext();
	}, [hasNext, isFetching, last, items.length, onNext]);
	const move = (by: number): void => {
		if (!items.length)
			return;
		const next = Math.min(items.length - 1, Math.max(0, at + by));
		setAt(next);
		rows.scrollToIndex(next);
	};
	const toggle = useRef((item: Line): void => void item);
	toggle.current = (item) => {
		const ids = idsOf(item);
		selection.set(ids.every(selection.has) ? selection.ids.filter((id) => !ids.includes(id))
			: [...selection.ids, ...ids]);
	};
	const isElsewhere = (event: Event): boolean => event.target instanceof Element
		&& event.target.closest('button, a, label, .menu-panel') !== null;
	const open = (): void => {
		if (items[at])
			navigate(props.runTarget(items[at].id));
	};
	const filterHere = (): void => {
		const value = items[at] && nowColumn > 0 ? items[at].values[columns[nowColumn - 1]] : undefined;
		if (items[at] && nowColumn > 0)
			props.onValue(columns[nowColumn - 1], value ?? null);
	};
	useKeys([
		{ key: 'j', text: 'next run', act: () => move(1) },
		{ key: 'k', text: 'run before', act: () => move(-1) },
		{ key: 'x', text: 'select the run, or not', act: () => items[at] && toggle.current(items[at]) },
		{ key: 'e', text: 'show the repeats of a row, or not', act: () => {
			if ((items[at]?.n ?? 1) > 1)
				props.onOpen(items[at].id);
		} },
		{ key: 'Enter', text: 'open the run', act: (event) => isElsewhere(event) || open() },
		{ key: 'f', text: 'filter by the value one is on (arrows go there)', act: filterHere },
	]);
	const arrows = (event: KeyboardEvent): void => {
		const way = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
		if (!way || event.target !== scroller)
			return;
		event.preventDefault();
		if (way[0] || at < 0)
			move(way[0] || 1);
		if (way[1]) {
			const next = Math.min(columns.length, Math.max(0, nowColumn + way[1]));
			setColumn(next);
			if (next > 0)
				cols.scrollToIndex(next - 1);
		}
	};
	const clicked = (event: MouseEvent): void => {
		const cell = (event.target as Element).closest<HTMLElement>('[data-column]');
		if (!cell || getSelection()?.toString())
			return;
		const column = cell.dataset.column!;
		props.onValue(column, items[Number(cell.dataset.row)]?.values[column] ?? null);
	};
	const allIds = useMemo(() => items.flatMap(idsOf), [items]);
	const onToggle = useMemo(() => (item: Line) => toggle.current(item), []);
	const allSelected = items.length > 0 && allIds.every(selection.has);
	const width = Math.max(cols.getTotalSize(), lead);
	const isHere = at >= 0 && seenRows.some((v) => v.index === at);
	return (
		<div role="grid" aria-label="Runs" aria-rowcount={props.total + 1} aria-multiselectable="true"
			aria-colcount={columns.length + 1} tabIndex={0}
			className={selection.ids.length ? 'grid has-chosen' : 'grid'} ref={setScroller}
			aria-activedescendant={isHere ? `cell-${at}-${nowColumn}` : undefined}
			aria-busy={isFetching} onKeyDown={arrows}>
			<div role="rowgroup" className="grid-head" style={{ width }}>
				<Head columns={columns} seen={seen} options={options} sort={props.sort} lead={lead}
					allSelected={allSelected} onSort={props.onSort}
					onAll={() => (allSelected ? selection.clear() : selection.set(allIds))} />
			</div>
			<div role="rowgroup" className="grid-body" onClick={clicked}
				style={{ width, height: rows.getTotalSize() }}>
				{seenRows.map((v) => {
					const item = items[v.index];
					return item && <Row key={keyOf(item, v.index)} item={item}
						isOpen={props.open.has(item.id)} hasFolds={hasFolds} onOpen={props.onOpen} index={v.index} top={v.start} width={width}
						name={props.names.get(item.id) ?? ''} tags={props.tagsOf(idsOf(item)).join('\n')} ranks={ranks} invalid={props.invalid} now={now} hasSeconds={hasSeconds}
						lead={lead} columns={columns} seen={seen} options={options} isNow={v.index === at}
						nowColumn={nowColumn} isSelected={idsOf(item).every(selection.has)}
						target={props.runTarget(item.id)} onToggle={onToggle} />;
				})}
			</div>
			{!hasNext && !isFetching && items.filter((i) => !i.isMember).length < props.total && <p className="grid-more dim">
				The first {whole(items.length)} runs. Filter to see others, or export all.</p>}
			{isFetching && hasNext && <p className="grid-more dim">Loading more runs…</p>}
		</div>
	);
}
