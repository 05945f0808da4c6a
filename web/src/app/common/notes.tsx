// SPDX-License-Identifier: Apache-2.0
// notes.tsx: what the server has to say about an analysis.
import type { ReactNode } from 'react';
import { Icon } from '../parts/icon';

export function Notes({ notes }: { notes: string[] | undefined }): ReactNode {
	if (!notes?.length)
		return null;
	return (
		<ul className="notes">
			{notes.map((n) => <li key={n}><Icon name="warning" /><span>{n}</span></li>)}
		</ul>
	);
}
