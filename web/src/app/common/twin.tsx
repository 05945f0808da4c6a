// SPDX-License-Identifier: Apache-2.0
// twin.tsx: a chart's numbers as a table: for screen readers, copying, and exact values.
import { useState, type ReactNode } from 'react';
import { Icon } from '../parts/icon';
import { count, measured, NOTHING } from '../show';

const ROWS_SHOWN = 200;

/** A number as people read it; the exact one is in the title and in data-value. */
export function Num({ v, unit }: { v: number | null | undefined; unit?: string | null }): ReactNode {
	if (v === null || v === undefined)
		return <span className="dim">{NOTHING}</span>;
	return (
		<span className="num" data-value={v} title={`${v}${unit ? ` ${unit}` : ''}`}>
			{measured(v)}{unit && <span className="dim"> {unit}</span>}
		</span>
	);
}

export interface Head { text: string; isNumber?: boolean }

interface Props {
	title: string;
	heads: Head[];
	/** Rows of long tables are made when they are shown. */
	rows: (ReactNode[] | (() => ReactNode[]))[];
	/** Shown from the start. */
	isOpen?: boolean;
}

export function Twin({ title, heads, rows, isOpen = false }: Props): ReactNode {
	const [most, setMost] = useState(ROWS_SHOWN);
	return (
		<details className="twin" open={isOpen}>
			<summary><Icon name="right" />{title}</summary>
			<div className="scroll-x" tabIndex={0} role="group" aria-label={title}>
				<table className="plain-table">
					<thead>
						<tr>{heads.map((h) => (
							<th key={h.text} scope="col" className={h.isNumber ? 'num' : undefined}>{h.text}</th>
						))}</tr>
					</thead>
					<tbody>
						{rows.slice(0, most).map((row, i) => (
							<tr key={i}>{(typeof row === 'function' ? row() : row).map((cell, k) => (
								<td key={k} className={heads[k].isNumber ? 'num' : undefined}>{cell}</td>
							))}</tr>
						))}
					</tbody>
				</table>
			</div>
			{rows.length > most && (
				<button type="button" className="small" onClick={() => setMost(most * 5)}>
					{`Show more of ${count(rows.length, 'row')}`}
				</button>
			)}
		</details>
	);
}
