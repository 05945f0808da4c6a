// SPDX-License-Identifier: Apache-2.0
// page.tsx: filter panel, summary, table, and actions for the matching runs.
import { useCallback, useMemo, useRef, useState, type ReactNode } from 'react';
import { useQueries } from '@tanstack/react-query';
import type { Constant } from '../../../lib/api';
import { ApiError, post, type Cell } from '../../api';
import {
	asked, EVERYTHING, isEverything, onlyValue, whole, withoutPart, type And,
} from '../../filter';
import { BoardMenu } from '../../common/board-menu';
import { Explain } from '../../common/explain';
import { RunningLines } from '../../common/running';
import { useTags } from '../../common/tags';
import { useKeys } from '../../keys';
import { PAGES } from '../../pages';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { Empty, Failure } from '../../parts/states';
import { toast, toastError } from '../../parts/toast';
import {
	useApply, useHealth, useOptions, useRows, type Applied, type ApplyBody, type ColumnOption,
	type Facet, type Item, type Sort,
} from '../../query';
import { useFilter, usePageTarget, useSelection, useShown } from '../../state';
import { count, exactCell, measured } from '../../show';
import { useUrlState } from '../../url';
import { Bulk } from './bulk';
import { Chips } from './chips';
import { ColumnPicker } from './columns';
import { Export } from './export';
import { Fullness } from './fullness';
import { Groups } from './groups';
import { shortNames, shortValue } from './names';
import { Panel } from './panel';
import { Quick } from './quick';
import { Strip } from './strip';
import { Table } from './table';
import {
	byName, columnsCodec, differing, differingCodec, DIFFERING_MAX, goneOf, groupCodec, isJudged, isParameter,
	labelOf,
	LEAD_COLUMNS, linesOf,
	nextSort, PAGE_ROWS, ROWS_MAX, runsText, sortCodec, statisticsCodec, type Gone,
	type Invalid,
} from './view';

const INVALID_MAX = 1000;
const REPEATS_MAX = 200;

type Open = 'none' | 'columns' | 'groups' | 'panel';

function firstDown(option: ColumnOption | undefined): boolean {
	return option?.kind === 'number' && option.better !== 'lower';
}

function Nothing({ all, onClear }: { all: number; onClear: () => void }): ReactNode {
	const target = usePageTarget();
	if (all > 0) {
		return (
			<Empty title="No runs match" icon="filter">
				<p>Remove a filter or clear all.</p>
				<p><button type="button" onClick={onClear}>Clear all</button></p>
			</Empty>
		);
	}
	return (
		<Empty title="No runs yet" icon="upload">
			<p>Upload result files, or import them from a shell:</p>
			<p><code>profllm ingest results/</code></p>
			{PAGES.some((p) => p.name === 'upload') && <p>
				<Link className="button primary" to={target('/upload')}>Upload files</Link></p>}
		</Empty>
	);
}

/** The server's message, and a remedy if a column of the link no longer exists. */
function Refused({ error, onLeaveOut, onRetry }: {
	error: unknown; onLeaveOut: (gone: Gone) => void; onRetry: () => void;
}): ReactNode {
	const gone = error instanceof ApiError ? goneOf(error.pointer) : null;
	return (
		<Failure error={error} onRetry={onRetry}>
			{gone && <button type="button" className="primary" onClick={() => onLeaveOut(gone)}>
				Remove it</button>}
		</Failure>
	);
}

async function copyAddress(): Promise<void> {
	await navigator.clipboard.writeText(location.href);
	toast('Link copied');
}

function Tools({ open, onOpen, isDiffering, onDiffering, isFolded, onFolded, children }: {
	open: Open; onOpen: (what: Open) => void; isDiffering: boolean;
	onDiffering: (next: boolean) => void; isFolded: boolean; onFolded: (next: boolean) => void;
	children: ReactNode;
}): ReactNode {
	return (
		<div className="tools">
			<button type="button" className="panel-button" onClick={() => onOpen('panel')}>
				<Icon name="filter" />Filters</button>
			<span className="spread" />
			<button type="button" className="quiet" aria-pressed={isFolded}
				title="Show the repeats of one configuration as one row, with medians"
				onClick={() => onFolded(!isFolded)}><Icon name="menu" /><span>Group repeats</span></button>
			<button type="button" className="quiet" aria-pressed={isDiffering}
				title="Hide columns that have the same value in all runs of the filter"
				onClick={() => onDiffering(!isDiffering)}><Icon name="compare" /><span>Hide constant columns</span>
			</button>
			<button type="button" className="quiet" aria-expanded={open === 'columns'}
				onClick={() => onOpen('columns')}><Icon name="columns" /><span>Columns</span></button>
			{children}
			<button type="button" className="quiet" title="Copy a link to exactly this view"
				onClick={() => copyAddress().catch(toastError)}><Icon name="link" /><span>Copy link</span></button>
			<BoardMenu block={{ kind: 'table', caption: 'Runs' }} />
		</div>
	);
}

/** How many runs have each verdict, status and workload. */
function useCounts(filter: And, shown: ReturnType<typeof useShown>[0],
	options: Map<string, ColumnOption>): Facet[] | undefined {
	const columns = ['verdict', 'status', ...(options.has('workload') ? ['workload'] : [])];
	return useApply({ filter: whole(filter), shown, limit: 0, facets: columns, facet_values: 20 },
		options.size > 0).data?.facets;
}

/** The INVALID metrics of INVALID runs. */
function useInvalid(filter: And, shown: ReturnType<typeof useShown>[0]): Invalid {
	const answer = useApply({ filter: { and: [...(filter.and.length ? [{ and: filter.and }] : []),
		{ column: 'verdict', in: ['INVALID'] }] }, shown, limit: INVALID_MAX, columns: ['trust.invalid'] });
	return useMemo(() => new Map((answer.data?.items ?? []).map(({ id, values }) => {
		const list = values['trust.invalid'];
		return [id, typeof list === 'string' ? list : null];
	})), [answer.data]);
}

/** The repeats of rows that are open, newest first. */
function useRepeats(items: Item[], filter: And, shown: ReturnType<typeof useShown>[0],
	columns: string[] | undefined) {
	const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
	const listed = items.filter((i) => open.has(i.id) && (i.n ?? 1) > 1 && i.configuration != null);
	const rows = useQueries({ queries: listed.map((row) => {
		const body: ApplyBody = { filter: { and: [...filter.and.length ? [{ and: filter.and }] : [],
			{ column: 'configuration', in: [row.configuration!] }] }, shown, limit: REPEATS_MAX,
		sort: [{ column: 'timestamp', descending: true }],
		columns: [...new Set([...LEAD_COLUMNS, ...columns ?? []])] };
		return { queryKey: ['/api/filters/apply', body], queryFn: () =>
			post<Applied>('/api/filters/apply', body) };
	}), combine: (answers) => new Map(answers.map((a, i) => [listed[i].id, a.data?.items ?? []])) });
	const toggle = useCallback((id: number) => setOpen((now) => {
		const next = new Set(now);
		if (!next.delete(id))
			next.add(id);
		return next;
	}), []);
	return { open, rows, toggle };
}

/** The columns of the table: the chosen ones, without those that are the same everywhere. */
function useColumns(filter: And, shown: ReturnType<typeof useShown>[0], chosen: string[],
	usual: string[], isDiffering: boolean, wantsDiffering: boolean, options: Map<string, ColumnOption>) {
	const columns = useMemo(() => (chosen.length ? chosen : usual)
		.filter((c) => !LEAD_COLUMNS.includes(c)), [chosen, usual]);
	const candidates = useMemo(() => [...new Set([...columns, ...[...options.values()]
		.filter((o) => !o.is_constant).map((o) => o.column)])].slice(0, DIFFERING_MAX),
	[columns, options]);
	const facets = useApply({ filter: whole(filter), shown, limit: 0, facet_values: 1,
		facets: candidates }, (isDiffering || wantsDiffering) && candidates.length > 0);
	const differ = useMemo(() => facets.data && differing(facets.data.facets), [facets.data]);
	const listed = useMemo(() => (isDiffering && differ ? columns.filter((c) => differ.has(c))
		: columns), [columns, differ, isDiffering]);
	return { columns, differ, listed };
}

const TILE_CHARS_MAX = 40;

/** What all runs of the filter have in common, and whether their figures may be ranked. */
function Common({ constants, total, workloads, runs, rows }: {
	constants: Constant[]; total: number; workloads: number; runs: number; rows: number;
}): ReactNode {
	if (!constants.length && workloads < 2 && rows === runs)
		return null;
	const text = constants.map((c) => shortValue(c.column, c.value));
	const rest = total - text.length;
	return (
		<p className="common dim" title={constants.map((c) =>
			`${c.label}: ${exactCell(c.column, c.value)}`).join('\n')}>
			{rows < runs && <>{runsText(runs)} in {count(rows, 'row')} · </>}
			{text.length > 0 && <>Same in all runs: {text.join(', ')}
				{rest > 0 && ` and ${count(rest, 'other column')}`}</>}
			{text.length > 0 && workloads > 1 && ' · '}
			{workloads > 1 && `${workloads} workloads: filter by one to rank its runs`}{' '}<Explain topic="table" />
		</p>
	);
}

export function RunsPage(): ReactNode {
	const [filter, setFilter] = useFilter();
	const [shown, setShown] = useShown();
	const [sort, setSort] = useUrlState('sort', sortCodec);
	const [chosen, setChosen] = useUrlState('cols', columnsCodec);
	const [stats, setStats] = useUrlState('stats', statisticsCodec);
	const [isDiffering, setDiffering] = useUrlState('diff', differingCodec);
	const [group, setGroup] = useUrlState('group', groupCodec);
	const isFolded = group === 'configuration';
	const [open, setOpen] = useState<Open>('none');
	const health = useHealth(), canChange = health.data?.can_change ?? false;
	const canDelete = canChange && health.data?.role === 'launch';
	const selection = useSelection(), tags = useTags();
	const target = usePageTarget();
	const search = useRef<HTMLInputElement>(null);
	const given = useOptions();
	const options = useMemo(() => byName(given.data?.items ?? []), [given.data]);
	const asks = useMemo(() => (chosen.length ? [...new Set([...LEAD_COLUMNS, ...chosen])] : null),
		[chosen]);
	const rows = useRows(filter, shown, sort, asks, PAGE_ROWS, isFolded);
	const first = rows.data?.pages[0];
	const usual = useMemo(() => first?.columns ?? [], [first]);
	const { columns, differ, listed } = useColumns(filter, shown, chosen, usual, isDiffering,
		open === 'columns', options);
	const items = useMemo(() => rows.data?.pages.flatMap((p) => p.items) ?? [], [rows.data]);
	const counts = useCounts(filter, shown, options);
	const hasVerdict = shown !== 'usual' || isJudged(counts, first?.total ?? 0, options);
	const tableColumns = useMemo(() => (hasVerdict ? ['verdict', ...listed] : listed), [hasVerdict, listed]);
	const invalid = useInvalid(filter, shown);
	const workloads = counts?.find((f) => f.column === 'workload')?.distinct ?? 0;
	const repeats = useRepeats(items, filter, shown, first?.columns);
	const lines = useMemo(() => linesOf(items, repeats.rows), [items, repeats.rows]);
	const names = useMemo(() => shortNames(items.map(({ id, values }) =>
		({ id, values, name: values.name, kind: values.mode })),
	listed.filter((c) => isParameter(options.get(c)))), [items, listed, options]);
	const nameOf = useCallback((row: Item) => shortNames([row, ...items].map(({ id, values }) =>
		({ id, values, name: values.name, kind: values.mode })), [], TILE_CHARS_MAX).get(row.id) ?? '', [items]);
	const label = useCallback((c: string) => labelOf(c, options), [options]);
	const close = (): void => setOpen('none');
	const { fetchNextPage } = rows;
	const next = useCallback(() => void fetchNextPage(), [fetchNextPage]);
	const runTarget = useCallback((id: number) => target(`/runs/${id}`), [target]);
	useKeys([{ key: '/', text: 'search columns to filter by', act: (event) => {
		event.preventDefault();
		if (search.current?.offsetParent)
			search.current.focus();
		else
			setOpen('panel');
	} }]);
	const onSort = (column: string, isAdded: boolean): void =>
		setSort((now: Sort[]) => nextSort(now, column, isAdded, firstDown(options.get(column))));
	const onValue = (column: string, value: Cell): void => setFilter(onlyValue(filter, column, value));
	const leaveOut = ({ part, at }: Gone): void => {
		if (part === 'filter')
			setFilter(withoutPart(filter, at));
		else if (part === 'sort')
			setSort(sort.filter((_, i) => i !== at));
		else
			setChosen(chosen.filter((c) => c !== asks?.[at]));
	};
	const panel = <Panel filter={filter} shown={shown} search={search} onFilter={setFilter}
		onShown={setShown} />;
	return (
		<div className="runs">
			<aside className="side" aria-label="Filters">{panel}</aside>
			<div className="runs-main">
				<h1 className="unseen">Runs</h1>
				<RunningLines />
				<Strip filter={filter} shown={shown} total={first?.total} all={given.data?.runs}
					facets={counts} isBusy={rows.isFetching} options={options} chosen={stats}
					nameOf={nameOf} runTarget={runTarget} onFilter={setFilter} onChosen={setStats} />
				<div className="bar">
					<Chips filter={filter} label={label} onFilter={setFilter}
						onEdit={() => setOpen('groups')} />
					<Tools open={open} onOpen={setOpen} isDiffering={isDiffering}
						onDiffering={setDiffering} isFolded={isFolded}
						onFolded={(on) => setGroup(on ? 'configuration' : 'none')}>
						<Export body={{ filter: asked(filter), shown, sort }} columns={[
							...LEAD_COLUMNS.slice(0, 3), ...listed]} />
					</Tools>
				</div>
				<Quick filter={filter} hasVerdicts={(options.get('verdict')?.distinct ?? 0) > 0}
					onFilter={setFilter} />
				<Common runs={first?.total ?? 0} rows={first?.folded ?? first?.total ?? 0} constants={first?.constants ?? []} total={first?.constants_total ?? 0}
					workloads={workloads} />
				{rows.isError ? <Refused error={rows.error} onLeaveOut={leaveOut}
					onRetry={() => void rows.refetch()} />
					: first && first.total === 0 ? (
						<Nothing all={isEverything(filter) ? 0 : 1} onClear={() => setFilter(EVERYTHING)} />
					) : <Table items={lines} open={repeats.open} onOpen={repeats.toggle}
						total={first?.folded ?? first?.total ?? 0} columns={tableColumns} options={options}
						names={names} tagsOf={tags.of}
						isRanked={workloads === 1} invalid={invalid} sort={sort} selection={selection} hasNext={rows.hasNextPage && items.length < ROWS_MAX} onNext={next}
						isFetching={rows.isFetching} runTarget={runTarget} onSort={onSort}
						onValue={onValue} resetKey={JSON.stringify([filter, shown, sort, group])} />}
				<p className="unseen" role="status">{first && runsText(first.total)}</p>
				<footer className="runs-foot dim num">
					{first && <span title="How long the server took to answer">
						Answered in {measured(Number(first.query_ms.toPrecision(2)))} ms</span>}
					<Fullness />
				</footer>
				{selection.ids.length > 0 && <Bulk selection={selection} hasExcluded={shown !== 'usual'}
					canChange={canChange} canDelete={canDelete} columns={[...LEAD_COLUMNS.slice(0, 3), ...listed]} />}
			</div>
			{open === 'panel' && <Dialog title="Filters" look="side" onClose={close}>{panel}</Dialog>}
			{open === 'groups' && <Groups filter={filter} options={options} onFilter={setFilter}
				onClose={close} />}
			{open === 'columns' && <ColumnPicker title="Columns" chosen={columns} options={options}
				differing={differ}
				onChosen={setChosen} onClose={close} />}
		</div>
	);
}
