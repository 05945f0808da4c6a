// SPDX-License-Identifier: Apache-2.0
// running.tsx: runs that report to this dashboard while they are measured (`--dashboard URL`):
// their progress, their curves so far, and where their results are.
import { useState, type ReactNode } from 'react';
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { LiveItem, LiveList, LiveRun } from '../../lib/api';
import { get } from '../api';
import { Strips } from './strips';
import type { View } from './series';
import { Link } from '../parts/link';
import { count, measured } from '../show';

const SAMPLE_MS = 1000, SOON_MS = 2000, LATER_MS = 15_000;
export const LOST = 'Nothing was received for a minute. The run may have ended, or its machine cannot reach this '
	+ 'dashboard.';

const isRunning = (item: LiveItem): boolean => item.state === 'running';

/** "stage · 56 of 60 requests, 2 failed · 1,204 tokens/s · 12 s". */
export function progressText(item: LiveItem): string {
	const total = item.total === null ? count(item.done, 'request')
		: `${measured(item.done)} of ${count(item.total, 'request')}`;
	return [item.stage && isRunning(item) ? item.stage : '',
		`${total}${item.failed ? `, ${measured(item.failed)} failed` : ''}`,
		item.tokens_per_s !== null && isRunning(item) ? `${measured(item.tokens_per_s)} tokens/s` : '',
		`${Math.round(item.elapsed_s)} s`].filter((w) => w !== '').join(' · ');
}

/** A run with its curves; asked again about as often as it sends samples, until it has ended. */
export function useLiveRun(id: string): UseQueryResult<LiveRun> {
	return useQuery({
		queryKey: ['/api/live', id],
		queryFn: ({ signal }) => get<LiveRun>(`/api/live/${encodeURIComponent(id)}`, signal),
		refetchInterval: (query) => (query.state.data?.state === 'done' || query.state.error ? false : SAMPLE_MS),
	});
}

function Curves({ id, isLive }: { id: string; isLive: boolean }): ReactNode {
	const [view, setView] = useState<View | null>(null);
	const { data } = useLiveRun(id);
	return data && data.series.tracks.length > 0
		? <Strips series={data.series} view={view} onView={setView} isLive={isLive} /> : null;
}

/** Links to its page while it is measured, then to its result. */
function Way({ item }: { item: LiveItem }): ReactNode {
	return item.run !== null ? <Link className="push" to={`/runs/${item.run}`}>Open the result</Link>
		: <Link className="push" to={`/live/${item.id}`}>{isRunning(item) ? 'Follow' : 'Curves'}</Link>;
}

function Item({ item }: { item: LiveItem }): ReactNode {
	const [isOpen, setOpen] = useState(isRunning(item));
	return (
		<li data-live={item.id}>
			<div className="grow">
				<details open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
					<summary><strong>{item.name}</strong> <span className="dim">{progressText(item)}</span></summary>
					{isOpen && <Curves id={item.id} isLive={isRunning(item)} />}
				</details>
				{item.state === 'lost' && <p className="warn-text small-text">{LOST}</p>}
				{item.failure && <p className="warn-text small-text">{item.failure}</p>}
			</div>
			<Way item={item} />
		</li>
	);
}

function useLive(): LiveItem[] {
	return useQuery({
		queryKey: ['/api/live'],
		queryFn: ({ signal }) => get<LiveList>('/api/live', signal),
		refetchInterval: (query) => (query.state.data?.items.some(isRunning) ? SOON_MS : LATER_MS),
	}).data?.items ?? [];
}

/** Renders nothing while no run reports. */
export function Running(): ReactNode {
	const items = useLive();
	if (!items.length)
		return null;
	return (
		<section className="card" aria-label="Running now">
			<h2>{items.some(isRunning) ? 'Running now' : 'Measured in the last hour'}</h2>
			<ul className="lines">{items.map((item) => <Item key={item.id} item={item} />)}</ul>
		</section>
	);
}

/** One line for each run that is measured now, above the table of those in the store. */
export function RunningLines(): ReactNode {
	const items = useLive().filter(isRunning);
	return items.length > 0 && (
		<section className="running-lines" aria-label="Running now">
			<ul className="lines">{items.map((item) => (
				<li key={item.id} data-live={item.id}>
					<span className="tag good">running</span>
					<Link to={`/live/${item.id}`}><strong>{item.name}</strong></Link>
					<span className="dim num">{progressText(item)}</span>
				</li>
			))}</ul>
		</section>
	);
}
