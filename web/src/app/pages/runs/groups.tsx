// SPDX-License-Identifier: Apache-2.0
// groups.tsx: the whole filter as a tree to edit: groups of all, any or none, and conditions.
import { useId, useState, type ReactNode } from 'react';
import {
	checkWhole, EVERYTHING, isCondition, tidy, type And, type Condition, type Filter,
	type Group,
} from '../../filter';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import type { ColumnOption } from '../../query';
import { parseBound, parseValues, writeBound, writeValues } from './view';

type Options = Map<string, ColumnOption>;
type Operator = 'in' | 'range' | 'text' | 'missing' | 'present';
type Kind = 'and' | 'or' | 'not';

const OPERATORS: [Operator, string][] = [['in', 'is one of'], ['range', 'is between'],
	['text', 'contains'], ['missing', 'is missing'], ['present', 'is present']];

function operatorOf(c: Condition): Operator {
	if ('in' in c)
		return 'in';
	if ('range' in c)
		return 'range';
	return 'text' in c ? 'text' : c.missing ? 'missing' : 'present';
}

function blank(column: string, operator: Operator): Condition {
	switch (operator) {
	case 'in': return { column, in: [] };
	case 'range': return { column, range: {} };
	case 'text': return { column, text: '' };
	case 'missing': return { column, missing: true };
	case 'present': return { column, missing: false };
	}
}

function Typed({ label, value, hint, onDone }: {
	label: string; value: string; hint: string; onDone: (text: string) => void;
}): ReactNode {
	const [text, setText] = useState(value);
	return <input type="text" aria-label={label} placeholder={hint} value={text}
		onChange={(event) => {
			setText(event.target.value);
			onDone(event.target.value);
		}} />;
}

function Operand({ c, options, onChange }: {
	c: Condition; options: Options; onChange: (next: Condition) => void;
}): ReactNode {
	const { column } = c;
	const kind = options.get(column)?.kind;
	if ('in' in c)
		return <Typed label="Values" hint="2, 4, missing" value={writeValues(c.in, kind)}
			onDone={(text) => onChange({ column, in: parseValues(text, kind) })} />;
	if ('text' in c)
		return <Typed label="Text" hint="text" value={c.text}
			onDone={(text) => onChange({ column, text })} />;
	if (!('range' in c))
		return null;
	const end = (which: 'min' | 'max', text: string): void => {
		const range = { ...c.range };
		const bound = parseBound(column, text);
		delete range[which];
		if (bound !== undefined)
			range[which] = bound;
		onChange({ column, range });
	};
	return (
		<>
			<Typed label="At least" hint="from" value={writeBound(column, c.range.min)}
				onDone={(text) => end('min', text)} />
			<Typed label="At most" hint="to" value={writeBound(column, c.range.max)}
				onDone={(text) => end('max', text)} />
		</>
	);
}

function ConditionRow({ c, options, list, onChange, onDrop }: {
	c: Condition; options: Options; list: string; onChange: (next: Condition) => void;
	onDrop: () => void;
}): ReactNode {
	return (
		<li className="condition">
			<input type="text" list={list} value={c.column} aria-label="Column"
				placeholder="parameter" spellCheck={false}
				onChange={(event) => onChange({ ...c, column: event.target.value })} />
			<select value={operatorOf(c)} aria-label="How"
				onChange={(event) => onChange(blank(c.column, event.target.value as Operator))}>
				{OPERATORS.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
			</select>
			<Operand key={`${c.column}/${operatorOf(c)}`} c={c} options={options} onChange={onChange} />
			<button type="button" className="quiet small icon" aria-label="Remove the filter"
				onClick={onDrop}><Icon name="trash" /></button>
		</li>
	);
}

const kindOf = (g: Group): Kind => ('and' in g ? 'and' : 'or' in g ? 'or' : 'not');
/** "not" holds one part; the editor shows "none of" many: not(or(...)). */
function partsOf(g: Group): Filter[] {
	if ('and' in g)
		return g.and;
	if ('or' in g)
		return g.or;
	return !isCondition(g.not) && 'or' in g.not ? g.not.or : [g.not];
}
function group(kind: Kind, parts: Filter[]): Group {
	if (kind === 'and')
		return { and: parts };
	return kind === 'or' ? { or: parts } : { not: { or: parts } };
}

function GroupBox({ g, options, list, isTop, onChange, onDrop }: {
	g: Group; options: Options; list: string; isTop: boolean; onChange: (next: Group) => void;
	onDrop: () => void;
}): ReactNode {
	const kind = kindOf(g), parts = partsOf(g);
	const put = (at: number, next: Filter | null): void => onChange(group(kind,
		parts.flatMap((part, i) => (i !== at ? [part] : next ? [next] : []))));
	return (
		<fieldset className={`group ${kind}`}>
			<div className="group-head">
				{isTop ? <span className="dim">Match all</span> : (
					<select value={kind} aria-label="Kind of group"
						onChange={(event) => onChange(group(event.target.value as Kind, parts))}>
						<option value="and">Match all</option>
						<option value="or">Match any</option>
						<option value="not">Match none</option>
					</select>
				)}
				{!isTop && <button type="button" className="quiet small icon"
					aria-label="Remove the group" onClick={onDrop}><Icon name="trash" /></button>}
			</div>
			<ul className="group-parts">
				{parts.map((part, i) => (isCondition(part) ? (
					<ConditionRow key={i} c={part} options={options} list={list}
						onChange={(next) => put(i, next)} onDrop={() => put(i, null)} />
				) : (
					<li key={i}><GroupBox g={part} options={options} list={list} isTop={false}
						onChange={(next) => put(i, next)} onDrop={() => put(i, null)} /></li>
				)))}
			</ul>
			<div className="row">
				<button type="button" className="quiet small" onClick={() =>
					onChange(group(kind, [...parts, { column: '', in: [] }]))}>
					<Icon name="plus" />Filter
				</button>
				<button type="button" className="quiet small" onClick={() =>
					onChange(group(kind, [...parts, { or: [{ column: '', in: [] }] }]))}>
					<Icon name="plus" />Group
				</button>
			</div>
		</fieldset>
	);
}

/** Unfinished conditions are left out. */
function finished(f: Filter): Filter | null {
	if (isCondition(f))
		return f.column === '' || ('text' in f && f.text === '')
			|| ('range' in f && f.range.min === undefined && f.range.max === undefined) ? null : f;
	const parts = partsOf(f).map(finished).filter((part): part is Filter => part !== null);
	return group(kindOf(f), parts);
}

interface Props {
	filter: And;
	options: Options;
	onFilter: (next: And) => void;
	onClose: () => void;
}

export function Groups({ filter, options, onFilter, onClose }: Props): ReactNode {
	const [draft, setDraft] = useState<Group>(filter.and.length ? filter
		: { and: [{ column: '', in: [] }] });
	const list = useId();
	const done = (): void => {
		const made = finished(draft);
		const clean = made && tidy(made);
		onFilter(clean ? checkWhole(clean) : EVERYTHING);
		onClose();
	};
	return (
		<Dialog title="Filter builder" look="wide" onClose={onClose} foot={<>
			<button type="button" className="quiet" onClick={onClose}>Cancel</button>
			<button type="button" className="primary" onClick={done}>Apply</button>
		</>}>
			<datalist id={list}>
				{[...options.keys()].map((column) => <option key={column} value={column} />)}
				<option value="*" />
			</datalist>
			<GroupBox g={draft} options={options} list={list} isTop onChange={setDraft}
				onDrop={onClose} />
			<p className="dim hint">Separate values by commas. <code>missing</code> matches runs without a value.
				The column <code>*</code> with “contains” searches every text.</p>
		</Dialog>
	);
}
