// SPDX-License-Identifier: Apache-2.0
// columns.tsx: choosing columns and their order.
import { useMemo, useState, type ReactNode } from 'react';
import { FormulaChoice, isFormula } from '../../common/formula';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import type { ColumnOption } from '../../query';
import { labelOf, sections } from './view';

interface Props {
	title: string;
	chosen: string[];
	options: Map<string, ColumnOption>;
	isAllowed?: (o: ColumnOption) => boolean;
	most?: number;
	differing?: Set<string> | undefined;
	onChosen: (next: string[]) => void;
	onClose: () => void;
}

function Chosen({ list, label, onList }: {
	list: string[]; label: (c: string) => string; onList: (next: string[]) => void;
}): ReactNode {
	const move = (at: number, by: number): void => {
		const next = [...list];
		const [one] = next.splice(at, 1);
		next.splice(at + by, 0, one);
		onList(next);
	};
	return (
		<ol className="picked" aria-label="Selected columns">
			{list.map((column, i) => (
				<li key={column} title={column}>
					<span className="picked-name">{label(column)}</span>
					<button type="button" className="quiet small icon" disabled={i === 0}
						aria-label={`${label(column)} earlier`} onClick={() => move(i, -1)}>
						<Icon name="up" /></button>
					<button type="button" className="quiet small icon" disabled={i === list.length - 1}
						aria-label={`${label(column)} later`} onClick={() => move(i, 1)}>
						<Icon name="down" /></button>
					<button type="button" className="quiet small icon"
						aria-label={`Remove ${label(column)}`}
						onClick={() => onList(list.filter((c) => c !== column))}>
						<Icon name="cross" /></button>
				</li>
			))}
		</ol>
	);
}

export function ColumnPicker(props: Props): ReactNode {
	const { chosen, options, isAllowed, most = 400, differing } = props;
	const [list, setList] = useState(chosen);
	const [word, setWord] = useState('');
	const label = (column: string): string => labelOf(column, options);
	const groups = useMemo(() => sections([...options.values()].filter((o) =>
		!isAllowed || isAllowed(o))), [options, isAllowed]);
	const wanted = word.toLowerCase();
	const isFound = (o: ColumnOption): boolean =>
		`${o.column} ${label(o.column)}`.toLowerCase().includes(wanted);
	const done = (): void => {
		props.onChosen(list);
		props.onClose();
	};
	return (
		<Dialog title={props.title} look="wide" onClose={props.onClose} foot={<>
			<button type="button" className="quiet" onClick={() => {
				props.onChosen([]);
				props.onClose();
			}}>Reset to default</button>
			{differing && <button type="button" className="quiet" onClick={() => setList([
				...list.filter((c) => differing.has(c)),
				...[...differing].filter((c) => !list.includes(c))].slice(0, most))}>
				All that differ</button>}
			<button type="button" className="primary" disabled={list.length === 0} onClick={done}>
				Show {list.length}
			</button>
		</>}>
			<div className="picker">
				<div className="picker-all">
					<input type="search" value={word} aria-label="Search columns" placeholder="Search columns, or =a / b"
						onChange={(event) => setWord(event.target.value)} />
					{isFormula(word) && <FormulaChoice text={word} action="Add column" onUse={(formula) => {
						setWord('');
						setList((now) => [...now.filter((c) => c !== formula), formula].slice(0, most));
					}} />}
					{groups.map(({ name, label: title, items }) => {
						const shown = items.filter(isFound);
						return shown.length > 0 && (
							<fieldset key={name}>
								<legend className="panel-title">{title}</legend>
								{shown.map((o) => (
									<label key={o.column} className="check" title={o.column}>
										<input type="checkbox" checked={list.includes(o.column)}
											disabled={!list.includes(o.column) && list.length >= most}
											onChange={() => setList(list.includes(o.column)
												? list.filter((c) => c !== o.column) : [...list, o.column])} />
										<span>{label(o.column)}</span>
										{o.unit && <span className="dim">{o.unit}</span>}
									</label>
								))}
							</fieldset>
						);
					})}
				</div>
				<Chosen list={list} label={label} onList={setList} />
			</div>
		</Dialog>
	);
}
