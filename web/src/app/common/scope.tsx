// SPDX-License-Identifier: Apache-2.0
// scope.tsx: the runs that a page is about: the filter in words; each part can be removed by a
// click.
import type { ReactNode } from 'react';
import type { Cell } from '../api';
import {
	countConditions, EVERYTHING, isCondition, isEverything, withoutPart, type Bound, type Condition, type Filter,
} from '../filter';
import { Icon } from '../parts/icon';
import { Link } from '../parts/link';
import { Empty } from '../parts/states';
import { useHealth } from '../query';
import { count, showCell, showValue } from '../show';
import { useFilter, useIncludeInvalid, usePageTarget } from '../state';
import { useIsBlock } from './block';
import { useColumns, type Columns } from './columns';

const VALUES_SHOWN = 3;

function valuesText(column: string, values: Cell[]): string {
	const shown = values.slice(0, VALUES_SHOWN).map((v) => showValue(column, v)).join(', ');
	return values.length > VALUES_SHOWN ? `${shown} and ${values.length - VALUES_SHOWN} more` : shown;
}

function rangeText(column: string, range: { min?: Bound; max?: Bound }): string {
	const { min, max } = range;
	const show = (v: Bound): string => showCell(column, v);
	if (min !== undefined && max !== undefined)
		return `${show(min)} to ${show(max)}`;
	return min !== undefined ? `at least ${show(min)}` : max !== undefined ? `at most ${show(max)}`
		: 'any number';
}

export function conditionText(c: Condition): string {
	if ('in' in c)
		return valuesText(c.column, c.in);
	if ('range' in c)
		return rangeText(c.column, c.range);
	if ('text' in c)
		return `contains “${c.text}”`;
	return c.missing ? 'missing' : 'there';
}

export function partText(part: Filter, columns: Columns): string {
	if (isCondition(part)) {
		const name = part.column === '*' ? 'Anything' : columns.measure(part.column).label;
		return `${name}: ${conditionText(part)}`;
	}
	return `Group of ${count(countConditions(part), 'condition')}`;
}

/** Analyses leave out runs that failed and metrics that are INVALID, unless this is on. */
export function IncludeInvalid(): ReactNode {
	const [isAll, setAll] = useIncludeInvalid();
	return (
		<button type="button" className="small" aria-pressed={isAll} onClick={() => setAll(!isAll)}
			title="Show also runs that failed, and metrics that are INVALID">Include invalid</button>
	);
}

/** Instead of a page's content: the store is empty, or the filter leaves nothing. */
export function NoRuns(): ReactNode {
	const [, setFilter] = useFilter();
	const target = usePageTarget(), isBlock = useIsBlock();
	if (useHealth().data?.runs === 0) {
		return (
			<Empty title="No runs yet" icon="upload">
				<p><Link className="button" to={target('/overview')}>Ways to begin</Link></p>
			</Empty>
		);
	}
	return (
		<Empty title="No runs match" icon="filter">
			{!isBlock && <p><button type="button" onClick={() => setFilter(EVERYTHING)}>Clear the filter</button></p>}
		</Empty>
	);
}

interface Props { total?: number | undefined; note?: ReactNode; children?: ReactNode }

/** total: of runs that the page shows, if known. */
export function Scope({ total, note, children }: Props): ReactNode {
	const [filter, setFilter] = useFilter();
	const columns = useColumns();
	const target = usePageTarget();
	return (
		<div className="scope" aria-label="Runs that are shown" role="group">
			{total !== undefined && <span className="num"><strong>{count(total, 'run')}</strong></span>}
			{isEverything(filter) && <span className="dim">{total === undefined ? 'All runs' : 'all there are'}</span>}
			{filter.and.map((part, i) => (
				<button key={i} type="button" className="small chosen" title="Click takes it away"
					onClick={() => setFilter(withoutPart(filter, i))}>
					<span>{partText(part, columns)}</span><Icon name="cross" />
				</button>
			))}
			<Link className="button small" to={target('/runs')}><Icon name="filter" />Filter</Link>
			<IncludeInvalid />
			{note && <span className="dim">{note}</span>}
			{children}
		</div>
	);
}
