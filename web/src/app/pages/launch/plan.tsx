// SPDX-License-Identifier: Apache-2.0
// plan.tsx: what a configuration would do when run.
import type { ReactNode } from 'react';
import { count } from '../../show';
import { secondsText, type Plan } from './types';

const SHOWN = 50;

export function PlanView({ plan }: { plan: Plan }): ReactNode {
	const list = plan.experiments;
	return (
		<section className="card" aria-label="Plan">
			<div className="card-head">
				<h2>{plan.suite ? `Suite ${plan.suite}` : 'Plan'}</h2>
				<span className="dim">{count(list.length, 'experiment')}, {plan.total_s === null || plan.n_unknown === list.length ? 'time unknown'
					: `about ${secondsText(plan.total_s)}`}</span>
			</div>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Experiments">
				<table className="plain-table planned">
					<thead><tr><th scope="col">Experiment</th><th scope="col">Servers</th>
						<th scope="col">Load</th><th scope="col">Time</th></tr></thead>
					<tbody>{list.slice(0, SHOWN).map((x) => (
						<tr key={x.document + x.name}>
							<th scope="row">{x.name}<br /><span className="dim light">{x.mode}, GPUs: {x.gpus}</span>
								{x.is_kept && <span className="tag">already measured</span>}</th>
							<td>{x.servers.map((s) => <code key={s.name} className="command">
								{s.command ?? `${s.name} is already running`}</code>)}</td>
							<td>{x.benchmark && <code className="command">{x.benchmark}</code>}</td>
							<td title={x.time?.basis}>{secondsText(x.time?.total_s ?? null)}</td>
						</tr>
					))}</tbody>
				</table>
			</div>
			{list.length > SHOWN && <p className="dim">{list.length - SHOWN} more.</p>}
		</section>
	);
}
