// SPDX-License-Identifier: Apache-2.0
// over-time.tsx: the run over time: tokens, requests, KV cache and GPUs as strips.
import type { ReactNode } from 'react';
import { useGet } from '../../common/routes';
import type { View } from '../../common/series';
import { Strips } from '../../common/strips';
import { Failure, Loading } from '../../parts/states';
import { useUrlState, type Codec } from '../../url';

/** "0.5,1.25": from and to, in seconds after the start. */
export const viewCodec: Codec<View | null> = {
	read: (text) => {
		const [from, to, ...more] = (text ?? '').split(',').map((w) => (w.trim() === '' ? NaN : Number(w)));
		return more.length === 0 && Number.isFinite(from) && to > from ? [from, to] : null;
	},
	write: (view) => (view ? view.map((t) => Number(t.toPrecision(6))).join(',') : null),
};

export function OverTime({ id }: { id: number }): ReactNode {
	const answer = useGet('GET /api/data/experiments/{id}/series', `/api/data/experiments/${id}/series`);
	const [view, setView] = useUrlState('t', viewCodec);
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!answer.data)
		return <Loading what="Loading the time series" />;
	const { tracks, failed_s: failed, missing } = answer.data;
	return (
		<section className="card" aria-label="Over time">
			<h2>Over time</h2>
			{tracks.length + failed.length > 0
				&& <Strips series={answer.data} view={view} onView={(v) => setView(v, { replace: true })} />}
			{missing.length > 0 && <p className="dim small-text">{missing.join(' ')}</p>}
		</section>
	);
}
