// SPDX-License-Identifier: Apache-2.0
// notes.tsx: the server's notes on an analysis.
import type { ReactNode } from 'react';
import { Icon } from '../parts/icon';
import { useColumns, type Columns } from './columns';
import { Explain } from './explain';

/** The note with columns named as on the rest of the page. */
export function labelled(note: string, columns: Pick<Columns, 'of' | 'measure'>): string {
	return note.replace(/\w+(\.\w+)*/g, (word) => (columns.of(word) && /[_.]/.test(word)
		? columns.measure(word).label : word));
}

/** A sentence begins with a capital letter, the name of a column does not. */
export const begun = (note: string): string => (/^[a-z]+( |:)/.test(note) ? note[0].toUpperCase() + note.slice(1) : note);

export function Notes({ notes }: { notes: string[] | undefined }): ReactNode {
	const columns = useColumns();
	if (!notes?.length)
		return null;
	const judged = notes.find((n) => /INVALID|DEGRADED/.test(n));
	return (
		<ul className="notes">
			{notes.map((n) => <li key={n}><Icon name="warning" /><span>{begun(labelled(n, columns))}
				{n === judged && <> <Explain topic="run" /></>}</span></li>)}
		</ul>
	);
}
