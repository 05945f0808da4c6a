// SPDX-License-Identifier: Apache-2.0
// traces.tsx: profiler traces as a list.
import { useState, type ReactNode } from 'react';
import type { Trace } from '../../lib/api';
import { change } from '../api';
import { Dialog } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Link } from '../parts/link';
import { toast, toastError } from '../parts/toast';
import { refresh, useCanChange } from '../query';
import { NOTHING, when } from '../show';
import { usePageTarget } from '../state';
import { openInPerfetto } from './perfetto';

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** 1234567 as "1.23 MB". */
export function bytesText(n: number): string {
	let size = n, k = 0;
	while (size >= 1000 && k < UNITS.length - 1) {
		size /= 1000;
		k++;
	}
	return `${Number(size.toPrecision(3))} ${UNITS[k]}`;
}

const STATE: Record<Trace['state'], string> =
	{ here: '', missing: 'file is missing', expired: 'was removed by age or quota',
		left_out: 'was not in the backup' };

function Actions({ t, isReadOnly }: { t: Trace; isReadOnly: boolean }): ReactNode {
	const [isAsked, setAsked] = useState(false);
	if (t.state !== 'here')
		return <span className="tag warn">{STATE[t.state]}</span>;
	const remove = (): void => {
		setAsked(false);
		change('DELETE', `/api/traces/${t.id}`).then(() => {
			toast('The trace was removed.');
			refresh();
		}).catch(toastError);
	};
	return (
		<span className="row tight">
			<a className="button small" href={`/api/export/traces/${t.id}`} download={t.name}>
				<Icon name="download" />Download
			</a>
			<button type="button" className="small" title="Opens ui.perfetto.dev and hands it the trace"
				onClick={() => openInPerfetto(t).catch(toastError)}>
				<Icon name="external" />Open in Perfetto
			</button>
			{!isReadOnly && (
				<button type="button" className="small icon quiet" aria-label={`Remove ${t.name}`}
					onClick={() => setAsked(true)}><Icon name="trash" /></button>
			)}
			{isAsked && (
				<Dialog title={`Remove ${t.name}?`} onClose={() => setAsked(false)} foot={<>
					<button type="button" className="quiet" onClick={() => setAsked(false)} autoFocus>Cancel</button>
					<button type="button" className="danger" onClick={remove}>Remove the trace</button>
				</>}>
					<p>This removes its {bytesText(t.bytes)} from the store for everybody. It cannot be undone.</p>
				</Dialog>
			)}
		</span>
	);
}

export function TraceTable({ traces, hasRun = true }: { traces: Trace[]; hasRun?: boolean }): ReactNode {
	const target = usePageTarget();
	const isReadOnly = !useCanChange();
	return (
		<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of traces">
			<table className="plain-table">
				<thead><tr>
					<th scope="col">Trace</th>
					{hasRun && <th scope="col">Run</th>}
					{hasRun && <th scope="col">Model</th>}
					{hasRun && <th scope="col">Commit</th>}
					<th scope="col" className="num">Size</th>
					<th scope="col">Received</th>
					<th scope="col"><span className="unseen">What to do</span></th>
				</tr></thead>
				<tbody>{traces.map((t) => (
					<tr key={t.id}>
						<th scope="row" className="break">{t.name}</th>
						{hasRun && <td>{t.run === null ? NOTHING
							: <Link to={target(`/runs/${t.run}`)}>{t.run_id ?? t.run}</Link>}</td>}
						{hasRun && <td>{t.model ?? NOTHING}</td>}
						{hasRun && <td>{t.commit ? <code>{t.commit.slice(0, 12)}</code> : NOTHING}</td>}
						<td className="num" data-value={t.bytes}>{bytesText(t.bytes)}</td>
						<td className="num">{when(t.at)}</td>
						<td><Actions t={t} isReadOnly={isReadOnly} /></td>
					</tr>
				))}</tbody>
			</table>
		</div>
	);
}
