// SPDX-License-Identifier: Apache-2.0
// parts.tsx: the content of a block: a page's chart, the first rows of a table, a number, text.
import { Suspense, useMemo, type ReactNode } from 'react';
import type { Apply, Distribution } from '../../../lib/api';
import type { Cell } from '../../api';
import { titleOf } from '../../charts/axis';
import { useColumns } from '../../common/columns';
import { Markdown } from '../../common/markdown';
import { both, useAnswer, useRead } from '../../common/routes';
import { addressOf, type Block } from '../../common/saved';
import { asked } from '../../filter';
import { PAGES, placeOf } from '../../pages';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, exactCell, measured, showCell } from '../../show';
import { useFilter, usePageTarget, useShown } from '../../state';
import { textCodec, useSearch, useUrlState } from '../../url';
import { shortNames } from '../runs/names';
import { columnsCodec, groupCodec, headOf, metricFirst, sortCodec } from '../runs/view';

const ROWS = 20, MEDIAN = 3, SMALL_PX = 640;
/** Of ten runs one has a verdict, or the column is empty for all that people see. */
const JUDGED_ONE_OF = 10;
const text = textCodec('');

/** The page itself, which leaves out its controls in a block. */
function ChartPart({ path }: { path: string }): ReactNode {
	const { page, id } = placeOf(path);
	if (!page || !PAGES.includes(page) || page.name === 'boards')
		return <Empty title={`This version has no page ${path}`} />;
	const View = page.view;
	return <Suspense fallback={<Loading />}><View id={id} /></Suspense>;
}

function CellText({ column, value }: { column: string; value: Cell | undefined }): ReactNode {
	if (value === undefined || value === null)
		return '';
	return <span title={exactCell(column, value)} data-value={typeof value === 'number' ? value : undefined}>
		{showCell(column, value)}</span>;
}

/** Columns that repeat what the row's link shows. */
const SAID = ['run_id', 'name', 'status'];

function TablePart(): ReactNode {
	const [filter] = useFilter(), [shown] = useShown();
	const [sort] = useUrlState('sort', sortCodec);
	const [chosen] = useUrlState('cols', columnsCodec);
	const [group] = useUrlState('group', groupCodec);
	const columns = useColumns(), target = usePageTarget();
	const answer = useAnswer<Apply>('/api/filters/apply', { filter: asked(filter), shown, sort, limit: ROWS,
		group: group === 'none' ? null : group,
		columns: chosen.length ? [...new Set(['run_id', 'name', ...chosen])] : null });
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!answer.data)
		return <Loading />;
	const { items, total, folded } = answer.data;
	const isJudged = items.some((row) => row.values.status === 'failed') || items.filter((row) =>
		typeof row.values.verdict === 'string').length * JUDGED_ONE_OF >= items.length;
	const listed = answer.data.columns.filter((c) => !SAID.includes(c) && (c !== 'verdict' || isJudged));
	const options = new Map(columns.all.map((c) => [c.column, c]));
	const names = innerWidth < SMALL_PX ? metricFirst(listed, options) : listed;
	if (!total)
		return <Empty title="No runs match" icon="filter" />;
	const short = shortNames(items.map((row) => ({ id: row.id, name: row.values.name, kind: undefined,
		values: row.values })), names);
	const isNumber = (c: string): boolean => items.some((row) => typeof row.values[c] === 'number');
	return (
		<>
			<div className="scroll-x" tabIndex={0} role="group" aria-label="Runs">
				<table className="plain-table board-runs">
					<thead><tr><th scope="col">Run</th>{names.map((c) => (
						<th key={c} scope="col" className={isNumber(c) ? 'num' : undefined}>{titleOf(headOf(c, options),
							columns.measure(c).unit)}</th>
					))}</tr></thead>
					<tbody>{items.map((row) => (
						<tr key={row.id}>
							<th scope="row"><Link to={target(`/runs/${row.id}`)}>
								<span title={String(row.values.name ?? '')}>{short.get(row.id)}</span></Link>
								{(row.n ?? 1) > 1 && <span className="dim"> ×{row.n}</span>}</th>
							{names.map((c) => (
								<td key={c} className={isNumber(c) ? 'num' : undefined}>
									{c === 'verdict' && typeof row.values['verdict'] !== 'string' && row.values['status'] === 'failed'
										? <span className="tag bad">failed</span>
										: <CellText column={c} value={row.values[c]} />}</td>
							))}
						</tr>
					))}</tbody>
				</table>
			</div>
			{(folded ?? total) > items.length && <p className="dim small-text">The first {items.length} of {count(folded ?? total,
				folded === undefined || folded === total ? 'run' : 'configuration')}.</p>}
		</>
	);
}

/**
 * The median of a metric over the runs of the address, without what is INVALID; of several workloads over
 * the one that charts show, which is named: a median over unlike runs means nothing.
 */
function NumberPart(): ReactNode {
	const [filter] = useFilter(), [metric] = useUrlState('m', text), [w] = useUrlState('w', text);
	const columns = useColumns(), target = usePageTarget(), m = columns.measure(metric);
	const of = useMemo(() => (w ? both(filter, [{ column: 'workload', in: [w] }]) : asked(filter)), [filter, w]);
	const answer = useRead('POST /api/analysis/distribution', { filter: of, metric,
		group: columns.of('workload') ? ['workload'] : [] }, metric !== '' && columns.isReady);
	const usual = useRead('POST /api/analysis/curves', { filter: asked(filter) },
		(answer.data?.groups.length ?? 0) > 1);
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!answer.data || usual.isLoading)
		return <Loading />;
	const { groups } = answer.data, most = [...groups].sort((a, b) => b.n - a.n)[0];
	const drawn = groups.find((g) => g.key['workload'] === usual.data?.workload);
	const group: Distribution['groups'][number] | undefined = drawn ?? most, workload = group?.key['workload'];
	const v = group?.quantiles[MEDIAN];
	if (v === undefined)
		return <p className="dim">No run has {m.label}.</p>;
	return (
		<p className="number-block">
			<Link className="big-number" to={target('/runs')} title={`${v}${m.unit ? ` ${m.unit}` : ''}: show the runs`}
				data-value={v}>{measured(v)}{m.unit && <span className="unit">{m.unit}</span>}</Link>
			<span className="dim">{group.n === 1 ? m.label : `Median ${m.label} of ${count(group.n, 'run')}`}
				{typeof workload === 'string' && `: ${workload}`}{groups.length > 1 && `, the workload with the most ${drawn ? 'configurations' : 'runs'}`}</span>
		</p>
	);
}

export function Content({ block }: { block: Block }): ReactNode {
	switch (block.kind) {
	case 'heading': return null;
	case 'text': return <Markdown text={block.text ?? ''} />;
	case 'table': return <TablePart />;
	case 'number': return <NumberPart />;
	case 'chart': return <ChartPart path={block.path ?? ''} />;
	}
}

/** How many runs the address has and when the newest began, to detect new ones. */
export function Newest(): ReactNode {
	const [filter] = useFilter(), [shown] = useShown(), [w] = useUrlState('w', text);
	const more = w ? [{ column: 'workload', in: [w] }] : [];
	const answer = useAnswer<Apply>('/api/filters/apply', { filter: both(filter, more), shown, limit: 1,
		columns: ['timestamp'], sort: [{ column: 'timestamp', descending: true }] });
	const at = answer.data?.items[0]?.values.timestamp;
	if (!answer.data)
		return null;
	return <>{count(answer.data.total, 'run')}{typeof at === 'number' && `, newest ${showCell('timestamp', at)}`}</>;
}

/** To the page of the block, where it has its controls. */
export function Source({ block }: { block: Block }): ReactNode {
	const search = useSearch(), path = block.path ?? '/runs';
	const label = placeOf(path).page?.label ?? path;
	return <Link to={addressOf({ path, query: search.replace(/^\?/, '') })}>Open in {label}</Link>;
}
