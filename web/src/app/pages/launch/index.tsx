// SPDX-License-Identifier: Apache-2.0
// launch: write an experiment or repeat a run, see what it would do, run it, watch it.
import { useEffect, useState, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Job, JobStarted, Run } from '../../../lib/api';
import { ApiError, get, post } from '../../api';
import { useGet } from '../../common/routes';
import { Num } from '../../common/twin';
import { Empty, Failure } from '../../parts/states';
import { toastError } from '../../parts/toast';
import { useHealth, type Item } from '../../query';
import { when } from '../../show';
import { Link } from '../../parts/link';
import { usePageTarget } from '../../state';
import { setParams, textCodec, useUrlState } from '../../url';
import { Editor } from './editor';
import { Help } from './help';
import { byOf, JobView, StateTag } from './job';
import { Judged, useOutcome } from './outcome';
import { PlanView } from './plan';
import { repeatOf, textOf, valueToChange } from './repeat';
import type { Check, Example, Schema } from './types';
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

/** The typed text, once typing has paused. */
function useSettled(value: string): string {
	const [settled, setSettled] = useState(value);
	useEffect(() => {
		const timer = setTimeout(() => setSettled(value), PAUSE_MS);
		return () => clearTimeout(timer);
	}, [value]);
	return settled;
}

/** In the list, a job of one run shows that run's result. */
function JobRun({ item }: { item: Item | undefined }): ReactNode {
	const v = item?.values['output_throughput'];
	if (!item)
		return null;
	return (
		<span className="job-run">
			{typeof v === 'number' && <Num v={v} unit="output tokens/s" />}<Judged item={item} />
		</span>
	);
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
	const outcome = useOutcome(runs.flatMap((j) => (j.run_ids.length === 1 ? j.run_ids : [])));
	const runOf = (j: Job): Item | undefined => outcome.data?.items.find((i) =>
		i.values['run_id'] === j.run_ids[0]);
	if (!runs.length)
		return null;
	return (
		<section className="card" aria-label="Recent jobs">
			<h2>Recent jobs</h2>
			<ul className="jobs">{runs.map((j) => (
				<li key={j.job_id}>
					<button type="button" className="quiet" aria-pressed={j.job_id === now}
						onClick={() => onJob(j.job_id)}>
						<span className="grow">{(j.detail as { name?: string } | null)?.name ?? j.job_id}</span>
						<JobRun item={runOf(j)} />
						<span className="dim num">{when(j.created)}{byOf(j) && ` by ${byOf(j)}`}</span>
						<StateTag state={j.state} />
					</button>
				</li>
			))}</ul>
		</section>
	);
}

/** Launching may be disabled on the dashboard; undefined: not known yet. */
function useCanLaunch(): boolean | undefined {
	const health = useHealth().data as { can_launch?: boolean } | undefined;
	return health && health.can_launch !== false;
}

const WAIT_TIMES = 30, WAIT_MS = 1000;

/** Another check of this user, or of two others, is running: this one is tried again. */
function isWaiting(times: number, why: Error): boolean {
	return why instanceof ApiError && (why.status === 429 ? times < WAIT_TIMES : why.status === 0 && times < 2);
}

interface From { id: string; name: string; runId: number }

/**
 * Loads the configuration that repeats the run of `from`, once; then removes it from the address.
 */
function useRepeated(from: string, onText: (text: string, of: From) => void): void {
	const answer = useQuery({
		queryKey: ['repeat', from], enabled: from !== '',
		queryFn: async ({ signal }) => {
			const [run, schema] = await Promise.all([
				get<Run>(`/api/data/experiments/${encodeURIComponent(from)}`, signal),
				get<Schema>('/api/launch/schema', signal)]);
			return { run, text: textOf(repeatOf(run, schema)) };
		},
	});
	useEffect(() => {
		if (answer.isError)
			toastError(answer.error);
		if (!answer.data || from === '')
			return;
		const { run, text: config } = answer.data;
		onText(config, { id: from, runId: run.id, name: String(run.values['name'] ?? `run ${run.id}`) });
		setParams({ from: null }, { replace: true });
	}, [answer.data, answer.isError]);
}

interface WriteProps { onJob: (id: string) => void }

function Write({ onJob }: WriteProps): ReactNode {
	const [example, setExample] = useUrlState('example', text);
	const [from] = useUrlState('from', text);
	const [config, setConfig] = useState(() => (from === '' ? kept() : ''));
	const [repeated, setRepeated] = useState<From | null>(null);
	const [selected, setSelected] = useState<[number, number] | null>(null);
	const target = usePageTarget();
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
	useRepeated(from, (next, run) => {
		change(next);
		setRepeated(run);
		setSelected(valueToChange(next));
	});
	const choose = (name: string): void => {
		const found = list.find((x) => x.name === name);
		setExample(name);
		setRepeated(null);
		if (found)
			change(found.config);
	};
	useEffect(() => {
		const wanted = list.find((x) => x.name === (example || 'quickstart.yaml'));
		if (config.trim() === '' && from === '' && wanted)
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
						<label className="pick"><span>Template</span>
							<select value={list.find((x) => x.config === config)?.name ?? ''}
								onChange={(e) => choose(e.target.value)}>
								<option value="">Select…</option>
								{list.map((x) => <option key={x.name} value={x.name}>{x.name}</option>)}
							</select>
						</label>
						<button type="button" className="primary push" disabled={!isGood || isStarting}
							onClick={start}>Run</button>
					</div>
					{repeated && <p className="dim repeated" role="status">This repeats <Link
						to={target(`/runs/${repeated.runId}`)}>{repeated.name}</Link>
						{selected ? '. The value most often changed is selected.' : '.'}</p>}
					<Editor text={config} onText={change} select={selected} findings={isEmpty ? [] : check.data?.findings ?? []} />
					{canLaunch === false && <p className="warn-text small-text">Launching is disabled on this
						dashboard (--no-launch); configurations are not checked.</p>}
					<p className="dim small-text" role="status">{isEmpty ? 'Write a configuration or select a template.'
						: canLaunch === false ? '' : check.isFetching || settled !== config ? 'Checking…'
							: check.data?.ok ? 'Configuration is valid.' : ''}</p>
					{check.isError && <Failure error={check.error} onRetry={() => void check.refetch()} />}
				</section>
				<section className="card" aria-label="Reference"><h2>Reference</h2><Help /></section>
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
						<p>Launching is disabled.</p></Empty></section>
				) : health.data && health.data.role !== 'launch' ? (
					<section className="card"><Empty title="Your token cannot launch experiments" icon="warning">
						<p>Launching needs a token with the role launch.</p></Empty></section>
				) : <Write onJob={setJob} />}
			<Jobs now={job} onJob={setJob} />
		</div>
	);
}
