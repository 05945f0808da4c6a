// SPDX-License-Identifier: Apache-2.0
// legend.tsx: the groups of a drawing as buttons that show and hide them, in the order of their colours.
import { useState, type ReactNode } from 'react';
import { whole } from '../../lib/format';
import { cssColour, placeOf } from '../colour';
import { Mark } from './mark';

/** place: of its colour and shape, unless its name has one; colour: of a ramp. */
export interface Entry {
	id: string; name: string; isShown: boolean; n?: number; place?: number; colour?: string;
}

const FOLDED = 12;

interface Props {
	label: string;
	entries: Entry[];
	onToggle: (id: string) => void;
	/** Shows this one and hides all others; once more: shows all. */
	onOnly?: (id: string) => void;
	/** The pointer is on this one; null: on none. */
	onPoint?: (id: string | null) => void;
	/** Whether the drawing has shapes as well as colours. */
	hasForms?: boolean;
}

export function Legend(props: Props): ReactNode {
	const { label, entries, onToggle, onOnly, onPoint, hasForms = false } = props;
	const [isWhole, setWhole] = useState(false);
	if (entries.length < 2)
		return null;
	const seen = entries.filter((e, i) => isWhole || i < FOLDED || e.isShown);
	return (
		<ul className="legend" aria-label={label}>
			{seen.map((e) => (
				<li key={e.id} onPointerEnter={() => onPoint?.(e.id)} onPointerLeave={() => onPoint?.(null)}>
					<button type="button" className="quiet small" aria-pressed={e.isShown}
						title={`Click ${e.isShown ? 'hides' : 'shows'} it${onOnly ? '; with Alt: only this one' : ''}`}
						onClick={(event) => (event.altKey && onOnly ? onOnly(e.id) : onToggle(e.id))}>
						<Mark form={hasForms ? e.place ?? placeOf(e.id) : 0} isShown={e.isShown}
							colour={e.colour ?? cssColour(e.place ?? e.id)} />
						<span>{e.name}</span>
						{e.n !== undefined && <span className="dim num">{whole(e.n)}</span>}
					</button>
					{onOnly && <button type="button" className="text only" aria-label={`Only ${e.name}`}
						onClick={() => onOnly(e.id)}>Only</button>}
				</li>
			))}
			{entries.length > FOLDED && (
				<li><button type="button" className="small" aria-expanded={isWhole}
					onClick={() => setWhole(!isWhole)}>
					{isWhole ? 'Show less' : `${entries.length - FOLDED} more`}</button></li>
			)}
		</ul>
	);
}
