// SPDX-License-Identifier: Apache-2.0
// facet.tsx: one parameter of the panel: its values with their numbers of rows, or its histogram.
import { useState, type ReactNode } from 'react';
import { whole } from '../../../lib/format';
import type { Cell } from '../../api';
import { asked, conditionOn, onlyValue, toggleValue, withCondition, withRange, type And,
} from '../../filter';
import { Icon } from '../../parts/icon';
import { useApply, type ColumnOption, type Facet as FacetAnswer } from '../../query';
import { exactCell, showValue } from '../../show';
import type { Shown } from '../../state';
import { Range } from './range';
import { binsOf, endsOf, facetRows, isSpread, SEARCH_FROM, type FacetRow } from './view';

interface Props {
	option: ColumnOption;
	label: string;
	facet: FacetAnswer | undefined;
	filter: And;
	shown: Shown;
	isOpen: boolean;
	onOpen: () => void;
	onFilter: (next: And, how?: { replace?: boolean }) => void;
}

const LISTED = 8;
const SEARCHED_MAX = 1000;

function ValueRow({ column, row, onToggle, onOnly }: {
	column: string; row: FacetRow; onToggle: (v: Cell) => void; onOnly: (v: Cell) => void;
}): ReactNode {
	const text = showValue(column, row.value);
	const look = row.value === null ? 'value missing' : 'value';
	return (
		<li className={row.count === 0 && !row.isSelected ? `${look} none` : look}>
			<label title={exactCell(column, row.value)}>
				<input type="checkbox" checked={row.isSelected} onChange={() => onToggle(row.value)} />
				<span className="value-text">{text}</span>
				<span className="value-count num" data-count={row.count}>{whole(row.count)}</span>
			</label>
			<button type="button" className="only text" onClick={() => onOnly(row.value)}
				aria-label={`only ${text}`}>only</button>
		</li>
	);
}

function Values(props: Props): ReactNode {
	const { option, label, facet, filter, shown, onFilter } = props;
	const { column } = option;
	const [word, setWord] = useState('');
	const [isLong, setLong] = useState(false);
	const isMany = option.distinct > SEARCH_FROM;
	const wide = useApply({ filter: asked(filter), shown, limit: 0, facets: [column],
		facet_values: SEARCHED_MAX }, isMany && (word !== '' || isLong));
	const rows = facetRows(option, wide.data?.facets[0] ?? facet, filter);
	const wanted = word.toLowerCase();
	const found = rows.filter((r) => r.isSelected
		|| showValue(column, r.value).toLowerCase().includes(wanted));
	const most = word || isLong ? SEARCHED_MAX : LISTED;
	const listed = found.filter((r, i) => i < most || r.isSelected);
	const hidden = Math.max(found.length - listed.length, word || isLong ? 0
		: option.distinct - listed.filter((r) => r.value !== null).length);
	return (
		<>
			{isMany && <input type="search" className="value-search" value={word}
				aria-label={`Values of ${label}`} placeholder={`Search ${whole(option.distinct)} values`}
				onChange={(event) => setWord(event.target.value)} />}
			<ul className="values">
				{listed.map((row) => (
					<ValueRow key={String(row.value) + typeof row.value} column={column} row={row}
						onToggle={(v) => onFilter(toggleValue(filter, column, v))}
						onOnly={(v) => onFilter(onlyValue(filter, column, v))} />
				))}
			</ul>
			{word && option.kind === 'text' && (
				<button type="button" className="text more" onClick={() => {
					onFilter(withCondition(filter, column, { column, text: word }));
					setWord('');
				}}>Every value with “{word}”</button>
			)}
			{hidden > 0 && !word && (
				<button type="button" className="text more" onClick={() => setLong(true)}>
					{whole(hidden)} more
				</button>
			)}
			{isLong && !word && found.length > LISTED && (
				<button type="button" className="text more" onClick={() => setLong(false)}>Show less</button>
			)}
		</>
	);
}

function Spread({ option, label, facet, filter, onFilter }: Props): ReactNode {
	const { column } = option;
	const now = conditionOn(filter, column);
	const range = now && 'range' in now ? now : undefined;
	const ends = endsOf(option);
	if (!ends)
		return <p className="dim">These runs have no numbers here.</p>;
	return <Range column={column} label={label} min={ends[0]} max={ends[1]} now={range}
		bins={binsOf(facet)}
		onChange={(low, high) => onFilter(withRange(filter, column, low, high), { replace: true })} />;
}

export function Facet(props: Props): ReactNode {
	const { option, label, filter, isOpen, onOpen, onFilter } = props;
	const now = conditionOn(filter, option.column);
	const hasSpread = isSpread(option) && !(now && 'in' in now);
	return (
		<section className={`facet ${now ? 'active' : ''}`} data-facet={option.column}>
			<div className="facet-head">
				<button type="button" className="facet-name" aria-expanded={isOpen} onClick={onOpen}
					title={option.column}>
					<Icon name={isOpen ? 'down' : 'right'} />
					<span className="facet-label">{label}</span>
					{option.unit && <span className="dim">{option.unit}</span>}
					{!isOpen && <span className="facet-distinct num">{whole(option.distinct)}</span>}
				</button>
				{now && (
					<button type="button" className="quiet small icon" aria-label={`Clear ${label}`}
						onClick={() => onFilter(withCondition(filter, option.column, null))}>
						<Icon name="cross" />
					</button>
				)}
			</div>
			{isOpen && (
				<div className="facet-body">
					{hasSpread ? <Spread {...props} /> : <Values {...props} />}
				</div>
			)}
		</section>
	);
}
