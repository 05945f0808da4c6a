// SPDX-License-Identifier: Apache-2.0
// notes.tsx: what the server has to say about an analysis.
import type { ReactNode } from 'react';
import { Icon } from '../parts/icon';
import { useColumns, type Columns } from './columns';
import { Explain } from './explain';

/** The names of columns as the rest of the page has them. */
export function labelled(note: string, columns: Pick<Columns, 'of' | 'measure'>): string {
	return note.replace(/\w+(\.\w+)*/g, (word) => (columns.of(word) && /[_.]/.test(word)
		? columns.measure(word).label : word));
}

export function Notes({ notes }: { notes: string[] | undefined }): ReactNode {
	const columns = useColumns();
	if (!notes?.length)
		return null;
	const judged = notes.find((n) => /INVALID|DEGRADED/.test(n));
	return (
		<ul className="notes">
			{notes.map((n) => <li key={n}><Icon name="warning" /><span>{labelled(n, columns)}
				{n === judged && <> <Explain topic="run" /></>}</span></li>)}
		</ul>
	);
}
