// SPDX-License-Identifier: Apache-2.0
// pick.tsx: choosing one column, or several, from hundreds: a button that opens a list with a
// search box. Arrows, Page up and Page down move, Enter chooses, Escape closes; the list is a
// listbox whose active option the search box names, so that a screen reader reads it.
import {
	useEffect, useId, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode,
} from 'react';
import { count } from '../show';
import { isEverything, whole } from '../filter';
import { Icon } from '../parts/icon';
import { useApply, type ColumnOption } from '../query';
import { useFilter, useShown } from '../state';
import type { Columns } from './columns';
import { FormulaChoice, isFormula, useFormula } from './formula';
import { choicesOf } from './metrics';

const LISTED_MAX = 400; /* beyond, a word narrows the list */
const ASKED_MAX = 400; /* QUERY_FACETS_MAX of src/results/index/index.h */
const PAGE = 8;

/** The columns that have a value in some run of the filter; null: all of them, or not known yet. */
function usePresent(options: ColumnOption[]): ReadonlySet<string> | null {
	const [filter] = useFilter(), [shown] = useShown();
	const asked = useMemo(() => options.slice(0, ASKED_MAX).map((o) => o.column), [options]);
	const answer = useApply({ filter: whole(filter), shown, limit: 0, facets: asked, facet_values: 1,
		bins: 1 }, asked.length > 0 && (!isEverything(filter) || shown !== 'usual'));
	return useMemo(() => answer.data ? new Set([
		...options.slice(ASKED_MAX).map((o) => o.column),
		...answer.data.facets.filter((f) => f.distinct > 0 || f.others > 0).map((f) => f.column)]) : null,
	[answer.data, options]);
}

interface ListProps {
	label: string;
	value: string;
	options: ColumnOption[];
	columns: Columns;
	none?: string | undefined;
	onPick: (column: string) => void;
	onClose: () => void;
}

/** What is open: the search box and the list below it. */
function Choices({ label, value, options, columns, none, onPick, onClose }: ListProps): ReactNode {
	const id = useId();
	const box = useRef<HTMLDivElement>(null), input = useRef<HTMLInputElement>(null);
	const [word, setWord] = useState('');
	const present = usePresent(options);
	const { groups, hidden } = useMemo(() => choicesOf(options, (c) => columns.measure(c).label, word,
		present, value), [options, columns, word, present, value]);
	const flat = useMemo(() => [...(none !== undefined && word === '' ? [''] : []),
		...groups.flatMap((g) => g.items.map((c) => c.column))].slice(0, LISTED_MAX), [groups, none, word]);
	const place = useMemo(() => new Map(flat.map((c, i) => [c, i])), [flat]);
	const [moved, setMoved] = useState<string | null>(null);
	const active = moved !== null && place.has(moved) ? moved : word === '' && place.has(value)
		? value : flat[0];
	const at = active === undefined ? -1 : place.get(active)!;
	useLayoutEffect(() => {
		input.current!.focus();
		const panel = box.current!, { left, right } = panel.getBoundingClientRect();
		if (right > innerWidth - 8)
			panel.style.translate = `${Math.max(innerWidth - 8 - right, 8 - left)}px 0`;
	}, []);
	useLayoutEffect(() => {
		box.current!.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
	}, [active]);
	const canCompute = options === columns.numbers, isOwn = canCompute && isFormula(word);
	const own = useFormula(isOwn ? word : '');
	const move = (to: number): void => setMoved(flat[Math.min(flat.length - 1, Math.max(0, to))] ?? null);
	const pressed = (event: KeyboardEvent): void => {
		const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE };
		if (steps[event.key]) {
			move(at + steps[event.key]);
		} else if (event.key === 'Enter' && isOwn) {
			if (own.isGood)
				onPick(own.formula);
		} else if (event.key === 'Enter') {
			if (active !== undefined)
				onPick(active);
		} else if (event.key === 'Escape') {
			onClose();
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	};
	const option = (column: string, text: string, unit: string | null): ReactNode => (
		<div key={column} role="option" id={`${id}-${place.get(column)}`} data-column={column}
			aria-selected={column === active} className={column === value ? 'choice now' : 'choice'}
			title={column} onPointerMove={() => setMoved(column)} onClick={() => onPick(column)}>
			<span className="choice-label">{text}{unit && !text.toLowerCase().includes(unit.toLowerCase())
				&& <span className="unit">{unit}</span>}</span>
			{column !== '' && <span className="choice-name">{column}</span>}
		</div>
	);
	return (
		<div className="choices" ref={box} onKeyDown={pressed}>
			<div className="choices-search">
				<Icon name="search" />
				<input ref={input} type="text" role="combobox" aria-expanded="true" aria-autocomplete="list"
					aria-label={`Search: ${label}`} aria-controls={`${id}-list`} autoComplete="off"
					aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined} spellCheck={false}
					placeholder={`Search ${count(options.length, 'column')}${canCompute ? ', or =a / b' : ''}`} value={word}
					onChange={(event) => {
						setWord(event.target.value);
						setMoved(null);
					}} />
			</div>
			<div className="choices-list" role="listbox" id={`${id}-list`} aria-label={label} tabIndex={-1}>
				{none !== undefined && word === '' && option('', none, null)}
				{groups.map((g) => {
					const items = g.items.filter((c) => place.has(c.column));
					return items.length > 0 && (
						<div key={g.label} role="group" aria-label={g.label}>
							<div className="choices-group" aria-hidden="true">{g.label}</div>
							{items.map((c) => option(c.column, c.label, c.unit))}
						</div>
					);
				})}
			</div>
			{isOwn && <FormulaChoice text={word} action="Use this formula" onUse={onPick} />}
			{flat.length === 0 && !isOwn && <p className="choices-note" role="status">
				No column has “{word}” in its name.</p>}
			{hidden > 0 && <p className="choices-note">
				{count(hidden, 'column')} hidden: no run of the filter has a value.</p>}
		</div>
	);
}

/** A button with its list; closed by Escape, by a choice and by a click elsewhere. */
function Opener({ id, look, labelledBy, name, children, ...list }: Omit<ListProps, 'onClose'> & {
	id?: string; look: string; labelledBy?: string | undefined; name?: string | undefined;
	children: ReactNode;
}): ReactNode {
	const [isOpen, setOpen] = useState(false);
	const root = useRef<HTMLSpanElement>(null), button = useRef<HTMLButtonElement>(null);
	useEffect(() => {
		if (!isOpen)
			return;
		const outside = (event: Event): void => {
			if (event.target instanceof Node && !root.current?.contains(event.target))
				setOpen(false);
		};
		addEventListener('pointerdown', outside);
		addEventListener('focusin', outside);
		return () => {
			removeEventListener('pointerdown', outside);
			removeEventListener('focusin', outside);
		};
	}, [isOpen]);
	const close = (): void => {
		setOpen(false);
		button.current?.focus();
	};
	return (
		<span className="opener" ref={root}>
			<button type="button" ref={button} id={id} className={look} aria-haspopup="listbox"
				aria-expanded={isOpen} aria-labelledby={labelledBy} aria-label={name}
				onClick={() => setOpen(!isOpen)}
				onKeyDown={(event) => {
					if (event.key === 'ArrowDown' && !isOpen) {
						event.preventDefault();
						setOpen(true);
					}
				}}>{children}</button>
			{isOpen && <Choices {...list} onClose={close} onPick={(column) => {
				close();
				list.onPick(column);
			}} />}
		</span>
	);
}

interface PickProps {
	label: string;
	value: string;
	onPick: (column: string) => void;
	columns: Columns;
	options: ColumnOption[];
	/** Text for choosing no column. */
	none?: string;
	id?: string;
}

export function Pick({ label, value, onPick, columns, options, none, id }: PickProps): ReactNode {
	const own = useId(), at = id ?? own;
	return (
		<span className="pick">
			{label && <label id={`${at}-label`} htmlFor={at}>{label}</label>}
			<Opener id={at} look="pick-button" label={label || 'Column'} value={value} options={options}
				columns={columns} none={none} onPick={onPick}
				labelledBy={label ? `${at}-label ${at}-value` : undefined}
				name={label ? undefined : `Column: ${columns.measure(value).label}`}>
				<span id={`${at}-value`} className="pick-value" title={value}>
					{value === '' ? none ?? 'Select' : columns.measure(value).label}</span>
				<Icon name="down" />
			</Opener>
		</span>
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
				<Opener look="pick-button add" label={`${label}: ${add}`} name={`${label}: ${add}`} value=""
					options={rest} columns={columns} onPick={(column) => onPick([...values, column])}>
					<Icon name="plus" /><span className="pick-value">{add}</span>
				</Opener>
			)}
		</div>
	);
}
