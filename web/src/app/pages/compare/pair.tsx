// SPDX-License-Identifier: Apache-2.0
// pair.tsx: the runs of one configuration on both sides; the distributions of the first of each, and both
// over time.
import type { ReactNode } from 'react';
import type { Comparison } from '../../../lib/api';
import { whole } from '../../../lib/format';
import { Link } from '../../parts/link';
import { usePageTarget } from '../../state';
import { Cdf } from './cdf';
import type { Configured } from './configured';
import { OverTime } from './over-time';

/** n: of runs of the configuration, of which the API gives the numbers of some. */
function Runs({ name, ids, n }: { name: string; ids: number[]; n: number }): ReactNode {
	const target = usePageTarget();
	return (
		<p><span className="dim">{name}: </span>{ids.map((id) => (
			<Link key={id} className="run-link" to={target(`/runs/${id}`)}>run {id}</Link>))}
		{n > ids.length && <span className="dim"> and {whole(n - ids.length)} more</span>}</p>
	);
}

interface Props { c: Comparison; known: Configured; baseline: number; runs: readonly [number, number] }

/** runs: how many the baseline and the other group have. */
export function Pair({ c, known, baseline, runs }: Props): ReactNode {
	const [a, b] = [known.ids[baseline] ?? [], known.ids[c.group] ?? []], target = usePageTarget();
	return (
		<div className="pair">
			<p className="dim small-text">{known.name}</p>
			<Runs name={c.baseline} ids={a} n={runs[0]} />
			<Runs name={c.side} ids={b} n={runs[1]} />
			{a.length > 0 && b.length > 0 && <p><Link to={target('/compare', { groups: JSON.stringify([
				{ name: c.baseline, ids: a }, { name: c.side, ids: b }]) })}>Compare {runs[0] > a.length || runs[1] > b.length ? 'the runs listed' : 'these runs'} alone</Link></p>}
			{a.length > 0 && b.length > 0 && <div className="overlays">
				<Cdf runs={[a[0], b[0]]} names={[c.baseline, c.side]} />
				<OverTime runs={[a[0], b[0]]} names={[c.baseline, c.side]} />
			</div>}
		</div>
	);
}
