// SPDX-License-Identifier: Apache-2.0
// running.tsx: runs that report to this dashboard while they are measured (`--dashboard URL`): how far
// they are, their curves so far, and where their results are.
import { useState, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { LiveItem, LiveList, LiveRun } from '../../../lib/api';
import { get } from '../../api';
import { Strips } from '../../common/strips';
import type { View } from '../../common/series';
import { Link } from '../../parts/link';
import { count, measured } from '../../show';

const SOON_MS = 2000, LATER_MS = 15_000;

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

function Curves({ id, isLive }: { id: string; isLive: boolean }): ReactNode {
	const [view, setView] = useState<View | null>(null);
	const { data } = useQuery({
		queryKey: ['/api/live', id], refetchInterval: isLive ? SOON_MS : false,
		queryFn: ({ signal }) => get<LiveRun>(`/api/live/${id}`, signal),
	});
	return data && data.series.tracks.length > 0
		? <Strips series={data.series} view={view} onView={setView} isLive={isLive} /> : null;
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
				{item.state === 'lost' && <p className="warn-text small-text">Nothing was received for a minute. The
					run may have ended, or its machine cannot reach this dashboard.</p>}
				{item.failure && <p className="warn-text small-text">{item.failure}</p>}
			</div>
			{item.run !== null && <Link className="push" to={`/runs/${item.run}`}>Open the result</Link>}
		</li>
	);
}

/** Nothing, while no run reports. */
export function Running(): ReactNode {
	const { data } = useQuery({
		queryKey: ['/api/live'],
		queryFn: ({ signal }) => get<LiveList>('/api/live', signal),
		refetchInterval: (query) => (query.state.data?.items.some(isRunning) ? SOON_MS : LATER_MS),
	});
	if (!data?.items.length)
		return null;
	return (
		<section className="card" aria-label="Running now">
			<h2>{data.items.some(isRunning) ? 'Running now' : 'Measured in the last hour'}</h2>
			<ul className="lines">{data.items.map((item) => <Item key={item.id} item={item} />)}</ul>
		</section>
	);
}
