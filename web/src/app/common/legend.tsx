// SPDX-License-Identifier: Apache-2.0
// legend.tsx: the groups of a drawing as buttons that show and hide them.
import type { ReactNode } from 'react';
import { cssColour } from '../colour';
import { Mark } from './mark';

export interface Entry { id: string; name: string; isShown: boolean; n?: number }

interface Props {
	label: string;
	entries: Entry[];
	onToggle: (id: string) => void;
	/** Whether the drawing has forms as well as colours. */
	hasForms?: boolean;
}

export function Legend({ label, entries, onToggle, hasForms = false }: Props): ReactNode {
	if (entries.length < 2)
		return null;
	return (
		<ul className="legend" aria-label={label}>
			{entries.map((e, i) => (
				<li key={e.id}>
					<button type="button" className="quiet small" aria-pressed={e.isShown}
						title={e.isShown ? 'Click hides it' : 'Click shows it'}
						onClick={() => onToggle(e.id)}>
						<Mark form={hasForms ? i % 4 : 0} colour={cssColour(e.id)} isShown={e.isShown} />
						<span>{e.name}</span>
						{e.n !== undefined && <span className="dim num">{e.n}</span>}
					</button>
				</li>
			))}
		</ul>
	);
}
