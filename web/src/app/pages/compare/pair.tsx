// SPDX-License-Identifier: Apache-2.0
// pair.tsx: the runs of one configuration on both sides; the distributions of the first of each, and both
// over time.
import type { ReactNode } from 'react';
import type { Comparison } from '../../../lib/api';
import { Link } from '../../parts/link';
import { usePageTarget } from '../../state';
import { Cdf } from './cdf';
import type { Configured } from './configured';
import { OverTime } from './over-time';

function Runs({ name, ids }: { name: string; ids: number[] }): ReactNode {
	const target = usePageTarget();
	return (
		<p><span className="dim">{name}: </span>{ids.map((id) => (
			<Link key={id} className="run-link" to={target(`/runs/${id}`)}>run {id}</Link>))}</p>
	);
}

interface Props { c: Comparison; known: Configured; baseline: number }

export function Pair({ c, known, baseline }: Props): ReactNode {
	const [a, b] = [known.ids[baseline] ?? [], known.ids[c.group] ?? []], target = usePageTarget();
	return (
		<div className="pair">
			<p className="dim small-text">{known.name}</p>
			<Runs name={c.baseline} ids={a} />
			<Runs name={c.side} ids={b} />
			{a.length > 0 && b.length > 0 && <p><Link to={target('/compare', { groups: JSON.stringify([
				{ name: c.baseline, ids: a }, { name: c.side, ids: b }]) })}>Compare these runs alone</Link></p>}
			{a.length > 0 && b.length > 0 && <div className="overlays">
				<Cdf runs={[a[0], b[0]]} names={[c.baseline, c.side]} />
				<OverTime runs={[a[0], b[0]]} names={[c.baseline, c.side]} />
			</div>}
		</div>
	);
}
