// SPDX-License-Identifier: Apache-2.0
// export.tsx: the filtered runs as a file.
import type { ReactNode } from 'react';
import { send } from '../../api';
import type { Filter } from '../../filter';
import { Icon } from '../../parts/icon';
import { Menu } from '../../parts/menu';
import { toastError } from '../../parts/toast';
import { exportTarget, type ExportBody } from './view';

const KINDS: [ExportBody['format'], string][] = [['csv', 'CSV'], ['jsonl', 'JSON lines']];

/** A filter that is too long for a link is sent as a body, and the answer saved as a file here. */
async function fetched(body: ExportBody): Promise<void> {
	const answer = await send('/api/export/csv', { method: 'POST', body: JSON.stringify(body),
		headers: { 'Content-Type': 'application/json' } });
	const link = document.createElement('a');
	link.href = URL.createObjectURL(await answer.blob());
	link.download = `runs.${body.format}`;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function Choice({ body, label, onDone }: {
	body: ExportBody; label: string; onDone: () => void;
}): ReactNode {
	const target = exportTarget(body);
	const inside = <><Icon name="download" /><span>{label}</span></>;
	if (target)
		return <a className="menu-item" href={target} download onClick={onDone}>{inside}</a>;
	return (
		<button type="button" className="menu-item" onClick={() => {
			fetched(body).catch(toastError);
			onDone();
		}}>{inside}</button>
	);
}

/** Some runs, found when one asks for their file. */
export function ExportRuns({ filter, columns, onDone }: {
	filter: () => Promise<Filter>; columns: string[]; onDone: () => void;
}): ReactNode {
	return KINDS.map(([format, label]) => (
		<button key={format} type="button" className="menu-item" onClick={() => {
			filter().then((runs) => fetched({ filter: runs, shown: 'all', sort: [], columns, format }))
				.catch(toastError);
			onDone();
		}}><Icon name="download" /><span>{label}</span></button>
	));
}

export function Export({ body, columns }: {
	body: Omit<ExportBody, 'format' | 'columns'>; columns: string[];
}): ReactNode {
	return (
		<Menu label="Export" icon="download" look="quiet" align="end">
			{(close) => <>
				<p className="menu-label">Columns shown</p>
				{KINDS.map(([format, label]) => <Choice key={format} label={label} onDone={close}
					body={{ ...body, format, columns }} />)}
				<hr className="menu-line" />
				<p className="menu-label">All columns</p>
				{KINDS.map(([format, label]) => <Choice key={format} label={label} onDone={close}
					body={{ ...body, format, columns: null }} />)}
			</>}
		</Menu>
	);
}
