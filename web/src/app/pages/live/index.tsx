// SPDX-License-Identifier: Apache-2.0
// live: one run while it is measured (`--dashboard URL`): its progress and its growing curves, and
// at the end a link to its result.
import { useState, type ReactNode } from 'react';
import type { LiveRun } from '../../../lib/api';
import { LOST, useLiveRun } from '../../common/running';
import type { View } from '../../common/series';
import { Strips } from '../../common/strips';
import { Num } from '../../common/twin';
import { Link } from '../../parts/link';
import { Failure, Loading } from '../../parts/states';
import { age, measured, zonedTime } from '../../show';
import type { PageProps } from '../../pages';
import '../../common/pages.css';

const STATES: Record<LiveRun['state'], [word: string, tone: string]> =
	{ running: ['running', 'good'], done: ['ended', ''], lost: ['lost', 'warn'] };

function Figure({ label, value, unit }: { label: string; value: number | null; unit?: string }): ReactNode {
	return (
		<div className="figure">
			<p className="dim">{label}</p>
			<p className="big-number"><Num v={value} />{unit && value !== null && <span className="unit">{unit}</span>}</p>
		</div>
	);
}

function End({ run }: { run: LiveRun }): ReactNode {
	if (run.state === 'running')
		return null;
	return (
		<div className="card" role="status">
			{run.state === 'lost' && <p className="warn-text">{LOST}</p>}
			{run.failure && <p className="warn-text">{run.failure}</p>}
			{run.run !== null ? <p>The run has ended and is in the store. <Link className="button primary"
				to={`/runs/${run.run}`}>Open the result</Link></p>
				: run.state === 'done' && <p>The run has ended without one result. <Link to="/runs">Runs</Link> lists what is
					in the store.</p>}
		</div>
	);
}

export default function Live({ id }: PageProps): ReactNode {
	const { data: run, error, refetch } = useLiveRun(id);
	const [view, setView] = useState<View | null>(null);
	if (error)
		return <><h1 className="unseen">Running</h1><Failure error={error} onRetry={() => void refetch()} /></>;
	if (!run)
		return <Loading what="Loading the run" />;
	const [word, tone] = STATES[run.state];
	return (
		<div className="page">
			<div className="page-head run-head">
				<div>
					<p><Link to="/runs">Runs</Link></p>
					<h1>{run.name} <span className={`tag ${tone}`}>{word}</span></h1>
					<p className="dim">{[run.kind, run.stage, run.who && `by ${run.who}`].filter(Boolean).join(' · ')}
						{' · '}<span title={zonedTime(run.started_s)}>began {age(run.started_s, Date.now() / 1000)}</span></p>
				</div>
			</div>
			<End run={run} />
			<section className="card" aria-label="Progress">
				{run.total !== null && <progress className="live-progress" max={run.total || 1} value={run.done}
					aria-label={`${measured(run.done)} of ${measured(run.total)} requests`} />}
				<div className="figures-row">
					<Figure label={run.total === null ? 'Requests' : `Requests of ${measured(run.total)}`} value={run.done} />
					<Figure label="Failed" value={run.failed} />
					<Figure label="Output tokens/s" value={run.tokens_per_s} unit="tokens/s" />
					<Figure label="TTFT" value={run.ttft_ms} unit="ms" />
					<Figure label="Elapsed" value={run.elapsed_s} unit="s" />
				</div>
			</section>
			<section className="card" aria-label="Over time">
				<h2>Over time</h2>
				{run.series.tracks.length + run.series.failed_s.length > 0
					? <Strips series={run.series} view={view} onView={setView} isLive={run.state === 'running'} />
					: <p className="dim">No sample has arrived yet.</p>}
				{run.series.missing.length > 0 && <p className="dim small-text">{run.series.missing.join(' ')}</p>}
			</section>
		</div>
	);
}
