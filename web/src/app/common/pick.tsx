// SPDX-License-Identifier: Apache-2.0
// pick.tsx: choosing one column, or several, from hundreds: the browser's own list with its typing.
import { useId, useMemo, type ReactNode } from 'react';
import { Icon } from '../parts/icon';
import { columnLabel } from '../show';
import type { Columns } from './columns';
import type { ColumnOption } from '../query';

const FIRST = ['metric', 'run', 'server', 'benchmark'];

function grouped(options: ColumnOption[]): [string, ColumnOption[]][] {
	const by = new Map<string, ColumnOption[]>();
	for (const c of options)
		by.set(c.group, [...by.get(c.group) ?? [], c]);
	const place = (g: string): number => (FIRST.includes(g) ? FIRST.indexOf(g) : FIRST.length);
	return [...by].sort(([a], [b]) => place(a) - place(b) || a.localeCompare(b));
}

interface ListProps { options: ColumnOption[]; columns: Columns; missing?: string | undefined }

function Choices({ options, columns, missing }: ListProps): ReactNode {
	const groups = useMemo(() => grouped(options), [options]);
	return (
		<>
			{missing && !options.some((c) => c.column === missing)
				&& <option value={missing}>{columnLabel(missing)}</option>}
			{groups.map(([group, list]) => (
				<optgroup key={group} label={group}>
					{list.map((c) => (
						<option key={c.column} value={c.column}>{columns.measure(c.column).label}</option>
					))}
				</optgroup>
			))}
		</>
	);
}

interface PickProps {
	label: string;
	value: string;
	onPick: (column: string) => void;
	columns: Columns;
	options: ColumnOption[];
	/** What stands for no column. */
	none?: string;
	id?: string;
}

export function Pick({ label, value, onPick, columns, options, none, id }: PickProps): ReactNode {
	const own = useId();
	return (
		<label className="pick" htmlFor={id ?? own}>
			{label && <span>{label}</span>}
			<select id={id ?? own} aria-label={label ? undefined : 'Column'} value={value} onChange={(e) => onPick(e.target.value)}>
				{none !== undefined && <option value="">{none}</option>}
				<Choices options={options} columns={columns} missing={value || undefined} />
			</select>
		</label>
	);
}

interface PickManyProps {
	label: string;
	values: string[];
	onPick: (columns: string[]) => void;
	columns: Columns;
	options: ColumnOption[];
	max?: number;
	add?: string;
}

export function PickMany(props: PickManyProps): ReactNode {
	const { label, values, onPick, columns, options, max = 6, add = 'Add column' } = props;
	const rest = useMemo(() => options.filter((c) => !values.includes(c.column)), [options, values]);
	const id = useId();
	return (
		<div className="pick many" role="group" aria-labelledby={id}>
			<span id={id}>{label}</span>
			{values.map((column) => (
				<button key={column} type="button" className="small chosen"
					aria-label={`${label}: remove ${columns.measure(column).label}`}
					title={`${column}: click removes it`}
					onClick={() => onPick(values.filter((c) => c !== column))}>
					<span>{columns.measure(column).label}</span><Icon name="cross" />
				</button>
			))}
			{values.length < max && rest.length > 0 && (
				<select aria-label={`${label}: ${add}`} value="" className="add"
					onChange={(e) => onPick([...values, e.target.value])}>
					<option value="">{add}</option>
					<Choices options={rest} columns={columns} />
				</select>
			)}
		</div>
	);
}
