// SPDX-License-Identifier: Apache-2.0
// table.tsx: the best configuration of each row at each load. Every number opens its run.
import type { ReactNode } from 'react';
import type { Overview, OverviewCell, OverviewLoad } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { Link } from '../../parts/link';
import { measured } from '../../show';
import { usePageTarget } from '../../state';
import { invalidFilter, leftOutText, LOAD_NAMES, rankText, type Rank } from './model';

const VERSION_SHOWN = 16; // characters

interface FigureProps { v: number | null; unit: string; name: string; cell: OverviewCell; isMain: boolean }

function Figure({ v, unit, name, cell, isMain }: FigureProps): ReactNode {
	const target = usePageTarget();
	if (v === null)
		return null;
	return (
		<Link className={isMain ? 'main' : ''} to={target(`/runs/${cell.id}`)} data-value={v}
			title={`${name}: ${v}${cell.ids.length > 1 ? `, median of ${cell.ids.length} runs; opens the nearest of them`
				: ''}`}>{measured(v)}<span className="dim"> {unit}</span></Link>
	);
}

interface CellProps {
	cell: OverviewCell | null; rank: Rank | 'auto'; by: string; left: ReactNode; hasNeed: boolean;
	hasVersions: boolean; // the cells of the table are of several
}

function Cell({ cell, rank, by, left, hasNeed, hasVersions }: CellProps): ReactNode {
	if (!cell)
		return hasNeed ? <span className="dim" title="No run at this load meets the need">need not met</span>
			: <span className="dim" title="No run at this load has the metric of this column">no value</span>;
	const isTail = rank === 'ttft', ttft = isTail ? cell.p99_ttft_ms : cell.median_ttft_ms;
	return (
		<>
			<span className="numbers num">
				{cell.is_best && <span className="tag best">best</span>}
				<Figure v={cell.tokens_per_s_per_user} unit="/user" name="Output tokens/s per user" cell={cell}
					isMain={by === 'fastest per user'} />
				<Figure v={cell.tokens_per_s_per_gpu} unit="/GPU" name="Output tokens/s per GPU" cell={cell}
					isMain={by === 'most per GPU' || by === 'most per kW'} />
				<Figure v={cell.usd_per_m_output} unit="$/M" name="$ per million output tokens" cell={cell}
					isMain={by === 'cheapest'} />
			</span>
			<span className="facts-line">
				{cell.configuration && <span>{cell.configuration}</span>}
				{hasVersions && cell.version !== null && <span title={`Version of the engine: ${cell.version}`}>
					{cell.version.slice(0, VERSION_SHOWN)}{cell.version.length > VERSION_SHOWN && '…'}</span>}
				{ttft !== null && <span className="num" data-value={ttft}
					title={`${isTail ? 'P99' : 'Median'} TTFT: ${ttft} ms`}>
					{isTail && 'P99 '}TTFT {measured(ttft)} ms</span>}
				{cell.is_degraded && <span className="warn-text" title="Open the run to see what is doubtful">
					DEGRADED</span>}
				{left}
			</span>
		</>
	);
}

function LeftOut({ answer, row, load, cell }: {
	answer: Overview; row: string; load: OverviewLoad; cell: OverviewCell;
}): ReactNode {
	const f = JSON.stringify(invalidFilter(answer, row, load));
	return (
		<span><Link to={`/runs?f=${encodeURIComponent(f)}`} title="INVALID runs do not take part. Open them.">
			{leftOutText(cell)}{cell.would_lead && <span className="warn-text"> (would lead)</span>}</Link></span>
	);
}

interface Props { answer: Overview; rank: Rank | 'auto'; columns: Columns; hasNeed: boolean }

export function BestTable({ answer, rank, columns, hasNeed }: Props): ReactNode {
	const { loads, rows } = answer, target = usePageTarget();
	const what = answer.rows_by === null ? 'Configuration' : columns.measure(answer.rows_by).label;
	const versions = new Set(rows.flatMap((row) => row.cells.flatMap((cell) => cell?.version ?? [])));
	const needs = new Map(answer.at_need.map((n) => [n.name, n]));
	const heads = loads.map((load) => ({ load, by: rankText(rank, load, loads.length === 1),
		name: loads.length === 1 ? load.label : `${LOAD_NAMES[load.name]}: ${load.label}` }));
	return (
		<table className="best-table" role="table">
			<caption className="unseen">{answer.rows_by === null ? 'Best configurations'
				: `Best configuration of each ${what}`} at each load</caption>
			<thead role="rowgroup"><tr role="row">
				<th scope="col" role="columnheader">{what}</th>
				{heads.map((h) => <th key={h.load.name} scope="col" role="columnheader" className="num">
					{h.name}<span className="dim">, {h.by}</span></th>)}
				{needs.size > 0 && <th scope="col" role="columnheader" className="num">At need</th>}
			</tr></thead>
			<tbody role="rowgroup">{rows.map((row) => {
				const need = needs.get(row.name);
				return (
					<tr key={row.name} role="row">
						<th scope="row" role="rowheader">{row.name}</th>
						{heads.map(({ load, by, name }, i) => {
							const cell = row.cells[i] ?? null;
							return (
								<td key={load.name} role="cell" data-load={name} className={cell?.is_best ? 'is-best' : ''}>
									<Cell cell={cell} rank={rank} by={by} hasNeed={hasNeed} hasVersions={versions.size > 1}
										left={cell && cell.invalid > 0
											&& <LeftOut answer={answer} row={row.name} load={load} cell={cell} />} />
								</td>
							);
						})}
						{needs.size > 0 && <td role="cell" data-load="At need">{need
							? <span className="numbers num"><Link to={target(`/runs/${need.id}`)}
								data-value={need.tokens_per_s_per_gpu}>{measured(need.tokens_per_s_per_gpu)}
								<span className="dim"> /GPU</span></Link></span>
							: <span className="dim">not reached</span>}</td>}
					</tr>
				);
			})}</tbody>
		</table>
	);
}
