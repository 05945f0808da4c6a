// SPDX-License-Identifier: Apache-2.0
// panel.tsx: every parameter as a filter, with the number of rows for each value.
//
// The server orders parameters by how much they split the runs; the first of them are open at the
// beginning. Their order stays while the panel is shown, so that nothing moves under the pointer.
// Open ones are requested in one query.
import { useMemo, useState, type ReactNode, type RefObject } from 'react';
import { whole } from '../../../lib/format';
import { SET_ROLES } from '../../common/columns';
import { asked, isCondition, withCondition, type And } from '../../filter';
import { Icon } from '../../parts/icon';
import { Failure, Loading } from '../../parts/states';
import { useApply, useOptions, type ColumnOption } from '../../query';
import type { Shown } from '../../state';
import { count } from '../../show';
import { Facet } from './facet';
import { byName, headOf, labelOf, sections } from './view';

interface Props {
	filter: And;
	shown: Shown;
	search: RefObject<HTMLInputElement | null>;
	onFilter: (next: And, how?: { replace?: boolean }) => void;
	onShown: (next: Shown) => void;
}

const FIRST = 8; /* parameters above the groups */
const FIRST_OPEN = 4;
const VALUES = 50;
const FOUND_MAX = 40;
const SHOWN: [Shown, string][] = [['usual', 'Active runs'], ['excluded', 'Excluded runs'],
	['archived', 'Archived runs'], ['all', 'All runs']];

const NOISE_VALUES = 20;

/** Columns in which the runs differ, one for each way to split them, and those in use. */
export function suggestions(items: ColumnOption[], filter: And): string[] {
	const all = items.filter((o) => SET_ROLES.includes(o.role) && !o.is_constant
		&& !['load', 'load_kind'].includes(o.column) && (o.kind !== 'text' || o.distinct <= 200));
	const first = all.filter((o) => o.differs && !o.same_as);
	return [...new Set([...first, ...all.filter((o) => !o.same_as)].map((o) => o.column).slice(0, FIRST)
		.concat(filter.and.filter(isCondition).map((c) => c.column)))];
}

/** Only found by search: internals of the client, and numbers that differ in nearly every run. */
export function isListed(o: ColumnOption): boolean {
	return o.role !== 'harness' && !(o.role === 'provenance' && o.kind === 'number'
		&& o.distinct > NOISE_VALUES);
}

function found(items: ColumnOption[], word: string, label: (c: string) => string): ColumnOption[] {
	const words = word.toLowerCase().split(/\s+/).filter((w) => w !== '');
	return items.filter((o) => {
		const text = `${o.column} ${o.column.replace(/[_.]/g, ' ')} ${label(o.column)}`.toLowerCase();
		return words.every((w) => text.includes(w));
	});
}

export function Panel(props: Props): ReactNode {
	const options = useOptions();
	if (options.isError)
		return <Failure error={options.error} onRetry={() => void options.refetch()} />;
	if (!options.data)
		return <Loading what="Columns" />;
	return <Ready {...props} items={options.data.items} />;
}

function Ready({ filter, shown, search, onFilter, onShown, items }: Props & {
	items: ColumnOption[];
}): ReactNode {
	const options = useMemo(() => byName(items), [items]);
	const label = (column: string): string => labelOf(column, options);
	const [suggested] = useState(() => suggestions(items, filter));
	const first = suggested.map((c) => options.get(c)).filter((o) => o !== undefined);
	const [word, setWord] = useState('');
	const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set([
		...filter.and.filter(isCondition).map((c) => c.column),
		...first.slice(0, FIRST_OPEN).map((o) => o.column)]));
	const [openGroups, setOpenGroups] = useState<ReadonlySet<string>>(new Set());
	const [hasConstant, setConstant] = useState(false);
	const groups = useMemo(() => sections(items.filter((o) => isListed(o) && (hasConstant || !o.is_constant))),
		[items, hasConstant]);
	const constants = items.filter((o) => o.is_constant).length;
	const hits = word ? found(items, word, label) : [];
	const seen = new Set<string>();
	const asking = [...open].filter((c) => options.has(c)).slice(0, 100);
	const facets = useApply({ filter: asked(filter), shown, limit: 0, facets: asking,
		facet_values: VALUES }, asking.length > 0);
	const answers = new Map((facets.data?.facets ?? []).map((f) => [f.column, f]));
	const toggle = (set: ReadonlySet<string>, name: string): Set<string> => {
		const next = new Set(set);
		if (!next.delete(name))
			next.add(name);
		return next;
	};
	const facet = (option: ColumnOption): ReactNode => {
		if (seen.has(option.column))
			return null;
		seen.add(option.column);
		return <Facet key={option.column} option={option} label={headOf(option.column, options)}
			facet={answers.get(option.column)} filter={filter} shown={shown}
			isOpen={open.has(option.column)} onFilter={onFilter}
			onOpen={() => setOpen(toggle(open, option.column))} />;
	};
	return (
		<div className="panel">
			<div className="panel-search">
				<Icon name="search" />
				<input type="search" ref={search} value={word} aria-label="Search columns"
					placeholder={`Search ${whole(items.length)} columns`} aria-keyshortcuts="/"
					onChange={(event) => setWord(event.target.value)}
					onKeyDown={(event) => {
						if (event.key === 'Escape' && !word)
							event.currentTarget.blur();
						if (event.key === 'Enter' && hits.length)
							setOpen(new Set([...open, hits[0].column]));
					}} />
				{!word && <kbd aria-hidden="true">/</kbd>}
			</div>
			<div className="panel-list" aria-busy={facets.isFetching}>
				{word ? (
					<section aria-label="Found">
						<h2 className="panel-title">{count(hits.length, 'column')}</h2>
						{hits.slice(0, FOUND_MAX).map(facet)}
						{hits.length === 0 && <p className="panel-none">
							No column has “{word}” in its name.</p>}
						<button type="button" className="panel-any" onClick={() => {
							onFilter(withCondition(filter, '*', { column: '*', text: word }));
							setWord('');
						}}><Icon name="search" /><span>Runs with “{word}” in any text</span></button>
					</section>
				) : (
					<>
						<section aria-label="Suggested">
							<h2 className="panel-title">Suggested</h2>{first.map(facet)}</section>
						{groups.map((g) => (
							<section key={g.name} aria-label={g.label}>
								<button type="button" className="panel-group"
									aria-expanded={openGroups.has(g.name)}
									onClick={() => setOpenGroups(toggle(openGroups, g.name))}>
									<Icon name={openGroups.has(g.name) ? 'down' : 'right'} />
									<span>{g.label}</span>
									<span className="facet-distinct num">{g.items.length}</span>
								</button>
								{openGroups.has(g.name) && g.items.map(facet)}
							</section>
						))}
						{constants > 0 && <label className="panel-check">
							<input type="checkbox" checked={hasConstant}
								onChange={(event) => setConstant(event.target.checked)} />
							<span>Show {count(constants, 'constant column')}</span>
						</label>}
					</>
				)}
			</div>
			<label className="panel-foot">
				<span>Show</span>
				<select value={shown} onChange={(event) => onShown(event.target.value as Shown)}>
					{SHOWN.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
				</select>
			</label>
		</div>
	);
}
