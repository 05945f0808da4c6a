// SPDX-License-Identifier: Apache-2.0
// job.tsx: a started experiment: its log and live values, and its result.
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import type { Job as Answer } from '../../../lib/api';
import { change } from '../../api';
import { useJob } from '../../common/job';
import { useGet } from '../../common/routes';
import { Spark } from '../../common/spark';
import { Failure, Loading } from '../../parts/states';
import { toastError } from '../../parts/toast';
import { refresh, useHealth } from '../../query';
import { when } from '../../show';
import { Outcome } from './outcome';
import { linesOf, sampleOf, type Sample } from './types';

const TONE: Record<string, string> = { done: 'good', failed: 'bad', cancelled: 'warn' };
const LOG_CHARS = 400_000, SAMPLES = 1200, LINES_SHOWN = 12;

export const isOver = (state: string): boolean => state !== 'waiting' && state !== 'running';

/** The name of the token that launched it; undefined or null: it is not known. */
export const byOf = (job: Answer): string | null | undefined =>
	(job.detail as { by?: string | null } | null)?.by;

export function StateTag({ state }: { state: string }): ReactNode {
	return <span className={`tag ${TONE[state] ?? ''}`} data-state={state}>
		{state === 'running' && <span className="spinner small" aria-hidden="true" />}{state}</span>;
}

interface Live { log: string; samples: Sample[]; progress: Record<string, unknown> | null }

const NOTHING_YET: Live = { log: '', samples: [], progress: null };

/** Complete even when opened late: the stream repeats everything from the beginning. */
function useLive(id: string, onState: () => void, onEnd: () => void): Live {
	const [live, setLive] = useState(NOTHING_YET);
	useEffect(() => setLive(NOTHING_YET), [id]);
	useJob(id, {
		log: (data) => setLive((now) => ({ ...now,
			log: (now.log + ((data as { text?: string }).text ?? '')).slice(-LOG_CHARS) })),
		telemetry: (data) => setLive((now) => ({ ...now,
			samples: [...now.samples, sampleOf(data, now.samples.length)].slice(-SAMPLES) })),
		progress: (data) => setLive((now) => ({ ...now,
			progress: { ...now.progress, ...data as Record<string, unknown> } })),
		job: onState,
	}, onEnd);
	return live;
}

function Log({ text }: { text: string }): ReactNode {
	const box = useRef<HTMLPreElement>(null), isAtEnd = useRef(true);
	useEffect(() => {
		if (box.current && isAtEnd.current)
			box.current.scrollTop = box.current.scrollHeight;
	}, [text]);
	return (
		<pre className="log" ref={box} tabIndex={0} role="log" aria-label="Log" onScroll={(e) => {
			const b = e.currentTarget;
			isAtEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 40;
		}}>{text || 'Nothing yet.'}</pre>
	);
}

function Progress({ progress }: { progress: Record<string, unknown> }): ReactNode {
	const { what, done, total, member, number, of } = progress;
	const isCounted = typeof done === 'number' && typeof total === 'number' && total > 0;
	const words = [typeof member === 'string' && typeof of === 'number' && of > 1
		? `${member}, ${String(number)} of ${of}` : '', typeof what === 'string' ? what : '',
	isCounted ? `${done} of ${total}` : ''].filter(Boolean);
	return (
		<>
			{isCounted && <progress value={done} max={total} aria-label="Progress" />}
			<p className="dim small-text">{words.join(', ')}</p>
		</>
	);
}

function Ended({ job }: { job: Answer }): ReactNode {
	const reason = (job.detail as { reason?: string | null } | null)?.reason;
	return (
		<>
			{reason && reason !== job.state && <p className={job.state === 'failed' ? 'bad-text' : 'dim'}>{reason}</p>}
			<Outcome runIds={job.run_ids} />
		</>
	);
}

export function JobView({ id }: { id: string }): ReactNode {
	const answer = useGet('GET /api/jobs/{id}', `/api/jobs/${encodeURIComponent(id)}`);
	const health = useHealth().data;
	const canCancel = health?.role === 'launch' && !health.is_read_only;
	const live = useLive(id, () => void answer.refetch(), () => {
		void answer.refetch();
		refresh();
	});
	const lines = useMemo(() => linesOf(live.samples), [live.samples]);
	const job = answer.data;
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!job)
		return <Loading />;
	const name = (job.detail as { name?: string } | null)?.name, by = byOf(job);
	return (
		<section className="card" aria-label="Experiment">
			<div className="card-head">
				<h2>{name ?? job.job_id}</h2><StateTag state={job.state} />
				<span className="dim num">launched {when(job.created)}{by && ` by ${by}`}</span>
				{!isOver(job.state) && canCancel && (
					<button type="button" className="danger small push" onClick={() =>
						change('POST', `/api/jobs/${job.job_id}/cancel`).then(() => answer.refetch())
							.catch(toastError)}>Cancel</button>
				)}
			</div>
			{job.state === 'waiting' && <p className="dim">This experiment starts when those before it have ended: the
				dashboard runs as many at once as its option --launch says (1 by default).</p>}
			{isOver(job.state) && <Ended job={job} />}
			{live.progress && !isOver(job.state) && <Progress progress={live.progress} />}
			{lines.length > 0 && isOver(job.state) && <p className="dim small-text">While it ran; the numbers are the last
				values.</p>}
			{lines.length > 0 && (
				<div className="sparks">{lines.slice(0, LINES_SHOWN).map((l) =>
					<Spark key={l.name} label={l.label} unit={l.unit} points={l.points} />)}</div>
			)}
			<Log text={live.log} />
		</section>
	);
}
