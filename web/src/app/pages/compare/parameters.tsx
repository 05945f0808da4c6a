// SPDX-License-Identifier: Apache-2.0
// parameters.tsx: the parameters in which the groups differ, and no others.
import { useState, type ReactNode } from 'react';
import type { Compare, CompareParameter, CompareValue } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { Link } from '../../parts/link';
import { whole } from '../../../lib/format';
import { count, exactCell, showValue } from '../../show';
import { usePageTarget } from '../../state';

/** The API gives at most this many of a group. */
const VALUES_KNOWN_MAX = 20;
const VALUES_SHOWN = 4;
/** "and 1 more" would take the room of that one. */
const shownOf = (n: number): number => (n === VALUES_SHOWN + 1 ? n : Math.min(n, VALUES_SHOWN));
/** Up to this share of a group's runs is a stray one among many, and no difference between groups. */
const STRAY_SHARE = 0.02;

/** The first digits of a commit. */
const shortText = (text: string): string => (/^[0-9a-f]{16,}$/i.test(text) ? text.slice(0, 10) : text);

/** As many values as runs: a name of the run, by which nothing is compared. */
const isName = (values: CompareValue[] | undefined): boolean => (values?.length ?? 0) > VALUES_SHOWN
	&& values!.every((v) => v.count === 1);

/** Values that not all groups have are those of a few runs. */
function isStray(p: CompareParameter, groups: Compare['groups'], shown: number[]): boolean {
	const isIn = (v: CompareValue, g: number): boolean =>
		(p.values[g] ?? []).some((o) => String(o.value) === String(v.value));
	return shown.every((g) => (p.values[g] ?? []).length < VALUES_KNOWN_MAX
		&& (p.values[g] ?? []).filter((v) => !shown.every((h) => isIn(v, h)))
			.reduce((sum, v) => sum + v.count, 0) <= STRAY_SHARE * groups[g].n);
}

function Values({ column, values }: { column: string; values: CompareValue[] }): ReactNode {
	const most = shownOf(values.length), rest = values.length - most;
	if ((column === 'name' || isName(values)) && values.length > VALUES_SHOWN)
		return <span className="dim" title={values.map((v) => exactCell(column, v.value)).join('\n')}>
			{values.length}{column === 'name' ? ' names' : ' values'}{values.length === VALUES_KNOWN_MAX
				&& ' or more'}</span>;
	return (
		<>
			{values.slice(0, most).map((v, i) => (
				<span key={i} className="value" title={exactCell(column, v.value)}>
					{shortText(showValue(column, v.value))}
					{values.length > 1 && <span className="dim num"> ×{whole(v.count)}</span>}
				</span>
			))}
			{rest > 0 && <span className="dim">and {rest} more</span>}
			{values.length === 0 && <span className="dim">–</span>}
		</>
	);
}

const textOf = (values: CompareValue[] | undefined): string =>
	JSON.stringify((values ?? []).map((v) => v.value).map(String).sort());

/** Whether the groups that are shown differ in it: not by a stray run, nor by what each run is called. */
export const differsBetween = (p: CompareParameter, groups: Compare['groups'], shown: number[]): boolean =>
	p.differs === 'between' && shown.some((g) => textOf(p.values[g]) !== textOf(p.values[shown[0]]))
	&& !isStray(p, groups, shown) && (p.column === 'name' || !shown.every((g) => isName(p.values[g])));

/** Without a later column that divides the groups as an earlier one does, such as gpu_model and server.gpu. */
export function withoutTwins(list: CompareParameter[], shown: number[]): CompareParameter[] {
	const seen = new Set<string>();
	return list.filter((p) => {
		const text = JSON.stringify(shown.map((g) => (p.values[g] ?? []).map((v) => [String(v.value), v.count])
			.sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1))));
		return !seen.has(text) && seen.add(text);
	});
}

interface Props {
	answer: Compare; columns: Columns;
	/** The groups that are shown, such as the two that are compared; without: all. */
	groups?: number[];
}

export function Parameters({ answer, columns, groups }: Props): ReactNode {
	const target = usePageTarget();
	const [isAll, setAll] = useState(false);
	const shown = groups && groups.length > 1 ? groups : answer.groups.map((_, i) => i);
	const isBetween = (p: CompareParameter): boolean => differsBetween(p, answer.groups, shown);
	const between = withoutTwins(answer.parameters.filter(isBetween), shown);
	const within = answer.parameters.filter((p) => !isBetween(p) && !between.includes(p)
		&& shown.some((g) => (p.values[g]?.length ?? 0) > 1));
	const ordered = isAll ? [...between, ...within] : between;
	return (
		<section className="card" aria-label="Differing parameters">
			<div className="card-head">
				<h2>{between.length ? `${count(between.length, 'parameter')} ${between.length === 1 ? 'differs' : 'differ'} `
					+ 'between groups' : 'No parameter differs between groups'}</h2>
				{within.length > 0 && <button type="button" className="small push" aria-pressed={isAll}
					onClick={() => setAll(!isAll)}>{within.length} more {within.length === 1 ? 'varies' : 'vary'} within
					groups</button>}
			</div>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Parameters of all groups">
				<table className="plain-table">
					<thead><tr>
						<th scope="col">Parameter</th>
						{shown.map((i) => <th key={i} scope="col">{answer.groups[i].name}</th>)}
					</tr></thead>
					<tbody>
						{ordered.map((p) => (
							<tr key={p.column}>
								<th scope="row" title={p.column}>{columns.measure(p.column).label}
									{!isBetween(p) && <span className="tag">varies within group</span>}</th>
								{shown.map((i) => (
									<td key={i}><Values column={p.column} values={p.values[i] ?? []} /></td>
								))}
							</tr>
						))}
						<tr>
							<th scope="row">Runs</th>
							{shown.map((i) => [i, answer.groups[i]] as const).map(([i, g]) => (
								<td key={i}>{g.ids.slice(0, 6).map((id) => (
									<Link key={id} className="run-link" to={target(`/runs/${id}`)}>{id}</Link>
								))}{g.n > 6 && <span className="dim"> and {whole(g.n - 6)} more</span>}</td>
							))}
						</tr>
					</tbody>
				</table>
			</div>
		</section>
	);
}
