// SPDX-License-Identifier: Apache-2.0
// launch: write an experiment, see what it would do, start it, watch it.
import { useEffect, useState, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Job, JobStarted } from '../../../lib/api';
import { ApiError, post } from '../../api';
import { useGet } from '../../common/routes';
import { Empty, Failure } from '../../parts/states';
import { toastError } from '../../parts/toast';
import { useHealth } from '../../query';
import { when } from '../../show';
import { textCodec, useUrlState } from '../../url';
import { Editor } from './editor';
import { Help } from './help';
import { JobView, StateTag } from './job';
import { PlanView } from './plan';
import type { Check, Example } from './types';
import '../../common/pages.css';
import './launch.css';

const text = textCodec('');
const PAUSE_MS = 600, JOBS_MS = 5000, JOBS_SHOWN = 12;
const KEY = 'profllm-launch';

function kept(): string {
	try {
		return sessionStorage.getItem(KEY) ?? '';
	} catch {
		return ''; // storage is forbidden: the text lives as long as the page
	}
}

function keep(config: string): void {
	try {
		sessionStorage.setItem(KEY, config);
	} catch {
		// as above
	}
}

/** What was typed, once nothing more is typed for a while. */
function useSettled(value: string): string {
	const [settled, setSettled] = useState(value);
	useEffect(() => {
		const timer = setTimeout(() => setSettled(value), PAUSE_MS);
		return () => clearTimeout(timer);
	}, [value]);
	return settled;
}

function Jobs({ now, onJob }: { now: string; onJob: (id: string) => void }): ReactNode {
	const answer = useQuery({
		queryKey: ['/api/jobs'], refetchInterval: JOBS_MS,
		queryFn: async ({ signal }) => {
			const got = await fetch('/api/jobs?limit=50', { signal });
			return got.ok ? (await got.json() as { items: Job[] }).items : [];
		},
	});
	const runs = (answer.data ?? []).filter((j) => j.kind === 'run').slice(0, JOBS_SHOWN);
	if (!runs.length)
		return null;
	return (
		<section className="card" aria-label="Started experiments">
			<h2>Started experiments</h2>
			<ul className="jobs">{runs.map((j) => (
				<li key={j.job_id}>
					<button type="button" className="quiet" aria-pressed={j.job_id === now}
						onClick={() => onJob(j.job_id)}>
						<span className="grow">{(j.detail as { name?: string } | null)?.name ?? j.job_id}</span>
						<span className="dim num">{when(j.created)}</span><StateTag state={j.state} />
					</button>
				</li>
			))}</ul>
		</section>
	);
}

/** A dashboard may be told to start nothing; undefined: not known yet. */
function useCanLaunch(): boolean | undefined {
	const health = useHealth().data as { can_launch?: boolean } | undefined;
	return health && health.can_launch !== false;
}

const WAIT_TIMES = 30, WAIT_MS = 1000;

/** Another check of this user, or of two others, is under way: this one has its turn soon. */
function isWaiting(times: number, why: Error): boolean {
	return why instanceof ApiError && (why.status === 429 ? times < WAIT_TIMES : why.status === 0 && times < 2);
}

interface WriteProps { onJob: (id: string) => void }

function Write({ onJob }: WriteProps): ReactNode {
	const [config, setConfig] = useState(kept);
	const [example, setExample] = useUrlState('example', text);
	const [isStarting, setStarting] = useState(false);
	const examples = useGet('GET /api/launch/examples', '/api/launch/examples');
	const list = (examples.data?.items ?? []) as unknown as Example[];
	const settled = useSettled(config), isEmpty = settled.trim() === '', canLaunch = useCanLaunch();
	const check = useQuery({
		queryKey: ['launch check', settled], enabled: !isEmpty && canLaunch === true, staleTime: Infinity,
		retry: isWaiting, retryDelay: WAIT_MS,
		queryFn: ({ signal }) => post<Check>('/api/launch/check', { config: settled }, signal),
	});
	const change = (next: string): void => {
		keep(next);
		setConfig(next);
	};
	const choose = (name: string): void => {
		const found = list.find((x) => x.name === name);
		setExample(name);
		if (found)
			change(found.config);
	};
	useEffect(() => {
		const wanted = list.find((x) => x.name === (example || 'quickstart.yaml'));
		if (config.trim() === '' && wanted)
			change(wanted.config);
	}, [examples.data]);
	const start = (): void => {
		setStarting(true);
		post<JobStarted>('/api/launch', { config }).then((job) => onJob(job.job_id))
			.catch(toastError).finally(() => setStarting(false));
	};
	const isGood = canLaunch === true && !isEmpty && settled === config && check.data?.ok === true;
	return (
		<>
			<div className="launch">
				<section className="card" aria-label="Configuration">
					<div className="card-head">
						<h2>Configuration</h2>
						<label className="pick"><span>Start from</span>
							<select value={list.find((x) => x.config === config)?.name ?? ''}
								onChange={(e) => choose(e.target.value)}>
								<option value="">an example</option>
								{list.map((x) => <option key={x.name} value={x.name}>{x.name}</option>)}
							</select>
						</label>
						<button type="button" className="primary push" disabled={!isGood || isStarting}
							onClick={start}>Start</button>
					</div>
					<Editor text={config} onText={change} findings={isEmpty ? [] : check.data?.findings ?? []} />
					{canLaunch === false && <p className="warn-text small-text">This dashboard starts and checks
						nothing (--no-launch).</p>}
					<p className="dim small-text" role="status">{isEmpty ? 'Write a configuration or choose an example.'
						: canLaunch === false ? '' : check.isFetching || settled !== config ? 'Checking…'
							: check.data?.ok ? 'It is good as it stands.' : ''}</p>
					{check.isError && <Failure error={check.error} onRetry={() => void check.refetch()} />}
				</section>
				<section className="card" aria-label="Keys"><h2>What can be set</h2><Help /></section>
			</div>
			{check.data?.plan && !isEmpty && <PlanView plan={check.data.plan} />}
		</>
	);
}

export default function Launch(): ReactNode {
	const [job, setJob] = useUrlState('job', text);
	const health = useHealth();
	return (
		<div className="page">
			<div className="page-head"><h1>Launch</h1>
				{job && <div className="row"><button type="button" onClick={() => setJob('')}>
					New experiment</button></div>}
			</div>
			{job ? <JobView id={job} />
				: health.data?.is_read_only ? (
					<section className="card"><Empty title="This dashboard is read-only" icon="warning">
						<p>No experiment can be started from it.</p></Empty></section>
				) : health.data && health.data.role !== 'launch' ? (
					<section className="card"><Empty title="Your token may not start experiments" icon="warning">
						<p>Starting one needs a token of role launch.</p></Empty></section>
				) : <Write onJob={setJob} />}
			<Jobs now={job} onJob={setJob} />
		</div>
	);
}
