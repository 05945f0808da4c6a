// SPDX-License-Identifier: Apache-2.0
// traces: all profiler traces of the store.
import { useState, type ReactNode } from 'react';
import { useGet } from '../../common/routes';
import { TraceTable } from '../../common/traces';
import { Empty, Failure, Loading } from '../../parts/states';
import { count } from '../../show';
import '../../common/pages.css';

const PAGE = 100;

export default function Traces(): ReactNode {
	const [cursors, setCursors] = useState<string[]>([]);
	const cursor = cursors[cursors.length - 1];
	const answer = useGet('GET /api/traces', `/api/traces?limit=${PAGE}`
		+ (cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''));
	const next = answer.data?.next;
	return (
		<div className="page">
			<div className="page-head"><h1>Traces</h1>
				{answer.data && <span className="dim num">{count(answer.data.total, 'trace')}</span>}
			</div>
			<section className="card" aria-label="Traces">
				{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
					: !answer.data ? <Loading />
						: !answer.data.items.length ? (
							<Empty title="No traces yet" icon="search">
								<p>A trace comes with the upload of its run, with <code>profllm ingest</code>, or is
									attached on the run’s page.</p>
							</Empty>
						) : <TraceTable traces={answer.data.items} />}
				{(cursors.length > 0 || next) && (
					<div className="actions">
						<button type="button" disabled={!cursors.length}
							onClick={() => setCursors(cursors.slice(0, -1))}>Newer</button>
						<button type="button" disabled={!next}
							onClick={() => next && setCursors([...cursors, next])}>Older</button>
					</div>
				)}
			</section>
		</div>
	);
}
