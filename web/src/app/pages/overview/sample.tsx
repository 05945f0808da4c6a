// SPDX-License-Identifier: Apache-2.0
// sample.tsx: runs to try the dashboard on: 200 measurements of simulated engines that come with the
// program (tools/sample-data.sh made them), uploaded as any other file and removed by their tag.
import { useState, type ReactNode } from 'react';
import { post, send } from '../../api';
import type { Columns } from '../../common/columns';
import { toast, toastError } from '../../parts/toast';
import { refresh, useHealth } from '../../query';
import { count } from '../../show';
import file from './sample.json?url';

const TAG = 'tags.sample';
export const SAMPLE = { and: [{ column: TAG, in: [true] }] };

async function upload(): Promise<void> {
	const form = new FormData();
	form.append('file', await (await send(file)).blob(), 'sample.json');
	await send('/api/upload/json', { method: 'POST', body: form });
}

/** A button that works until what it does is done. */
function Doing({ label, busy, act }: { label: string; busy: string; act: () => Promise<void> }): ReactNode {
	const [isBusy, setBusy] = useState(false);
	const start = (): void => {
		setBusy(true);
		act().then(refresh).catch(toastError).finally(() => setBusy(false));
	};
	return <button type="button" disabled={isBusy} onClick={start}>{isBusy ? busy : label}</button>;
}

export function TrySample(): ReactNode {
	return (
		<section className="card stack" aria-label="Try it with sample data">
			<h2>Try it with sample data</h2>
			<p className="dim">200 runs of simulated engines: five kinds of GPU, and 20 commits of which one is
				slower. One click removes them again.</p>
			<p><Doing label="Load sample data" busy="Loading…" act={upload} /></p>
		</section>
	);
}

/** While sample data are among the runs. */
export function SampleNote({ columns }: { columns: Columns }): ReactNode {
	const canDelete = useHealth().data?.role === 'launch', values = columns.of(TAG)?.values ?? [];
	const runs = values.find((v) => v.value === true)?.count ?? 0;
	if (!runs)
		return null;
	const remove = async (): Promise<void> => {
		const done = await post<{ changed: number }>('/api/data/bulk',
			{ ids: null, filter: SAMPLE, action: 'delete' });
		toast(`${count(done.changed, 'run')} removed.`);
	};
	return (
		<p className="sample-note"><span>{count(runs, 'run')} of sample data: simulated engines, not real ones.
		</span>{canDelete && <Doing label="Remove sample data" busy="Removing…" act={remove} />}</p>
	);
}
