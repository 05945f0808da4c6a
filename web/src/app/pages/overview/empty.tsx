// SPDX-License-Identifier: Apache-2.0
// empty.tsx: the first steps, while the store holds no run.
import type { ReactNode } from 'react';
import { CopyLine } from '../../common/copy';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { useHealth } from '../../query';
import { TrySample } from './sample';

/** A dashboard that is read-only or cannot launch offers no first experiment. */
export function FirstSteps(): ReactNode {
	const health = useHealth().data, canLaunch = health?.can_launch && !health.is_read_only;
	return (
		<div className="welcome">
			<p className="answer">No runs yet{health?.can_change ? '. Ways to begin:' : '.'}</p>
			<div className="first-steps">
				{health?.can_change && <TrySample />}
				{canLaunch && (
					<section className="card stack" aria-label="Run a first experiment">
						<h2>Run a first experiment</h2>
						<p className="dim">A simulated engine is started and measured. It takes a few seconds and needs
							no GPU and no model.</p>
						<p><Link className="button primary" to="/launch?example=quickstart.yaml">
							Open Launch</Link></p>
					</section>
				)}
				<section className="card stack" aria-label="Import results">
					<h2>Import results</h2>
					<p className="dim">Results of <code>profllm run</code>, <code>profllm bench</code> and
						{' '}<code>vllm bench</code>, from a shell:</p>
					<CopyLine text="profllm ingest results/" label="command" />
					{health?.can_change !== false && <p><Link className="button" to="/upload">
						<Icon name="upload" />Drop files in the browser</Link></p>}
				</section>
			</div>
		</div>
	);
}
