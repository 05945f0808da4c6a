// SPDX-License-Identifier: Apache-2.0
// legend.tsx: the groups of a drawing as buttons that show and hide them.
import { useState, type ReactNode } from 'react';
import { cssColour } from '../colour';
import { Mark } from './mark';

export interface Entry { id: string; name: string; isShown: boolean; n?: number }

const FOLDED = 10;

interface Props {
	label: string;
	entries: Entry[];
	onToggle: (id: string) => void;
	/** Whether the drawing has forms as well as colours. */
	hasForms?: boolean;
}

export function Legend({ label, entries, onToggle, hasForms = false }: Props): ReactNode {
	const [isWhole, setWhole] = useState(false);
	if (entries.length < 2)
		return null;
	const seen = entries.map((e, i) => ({ e, i }))
		.filter(({ e, i }) => isWhole || i < FOLDED || e.isShown);
	return (
		<ul className="legend" aria-label={label}>
			{seen.map(({ e, i }) => (
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
			{entries.length > FOLDED && (
				<li><button type="button" className="small" aria-expanded={isWhole}
					onClick={() => setWhole(!isWhole)}>
					{isWhole ? 'Fewer' : `All ${entries.length}`}</button></li>
			)}
		</ul>
	);
}
