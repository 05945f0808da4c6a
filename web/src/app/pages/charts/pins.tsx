// SPDX-License-Identifier: Apache-2.0
// pins.tsx: up to four points of a chart in a row, with text that can be selected.
import type { ReactNode } from 'react';
import type { Measure } from '../../charts/scatter';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { toast, toastError } from '../../parts/toast';
import { count } from '../../show';
import { useSelection, usePageTarget } from '../../state';
import { againstFirst, pinText } from './view';

export const PINS_MAX = 4;

/** A pinned point: its runs, its place, and what identifies it. */
export interface Pinned {
	id: number; ids: number[]; name: string; x: number; y: number; rows: [string, string][];
}

interface Props { pins: Pinned[]; x: Measure; y: Measure; onRemove: (id: number) => void }

function Pin({ spot, first, at, x, y, onRemove }: Omit<Props, 'pins'> & {
	spot: Pinned; first: Pinned; at: number;
}): ReactNode {
	const target = usePageTarget(), selection = useSelection();
	const { ids } = spot, isIn = ids.every((id) => selection.has(id));
	const compared: [string, string][] = at === 0 ? [] : [
		[`${y.label} to pin 1`, againstFirst(spot.y, first.y)],
		[`${x.label} to pin 1`, againstFirst(spot.x, first.x)]];
	const rows = [...spot.rows, ...compared.filter(([, v]) => v !== '')];
	return (
		<li className="pin">
			<div className="pin-head">
				<strong>{at + 1}: {spot.name}</strong>
				<button type="button" className="quiet small icon" aria-label={`Remove pin ${at + 1}`}
					onClick={() => onRemove(spot.id)}><Icon name="cross" /></button>
			</div>
			<dl>{rows.map(([label, value]) => (
				<div key={label}><dt>{label}</dt><dd className="num">{value}</dd></div>
			))}</dl>
			<p className="row tight">
				<Link to={target(`/runs/${ids[0]}`)}>Open</Link>
				{ids.length > 1 && <span className="dim">newest of {count(ids.length, 'repeat')}</span>}
				<button type="button" className="text" onClick={() => selection.set(isIn
					? selection.ids.filter((id) => !ids.includes(id)) : [...selection.ids, ...ids])}>
					{isIn ? 'Remove from comparison' : 'Add to comparison'}</button>
				<button type="button" className="text" onClick={() => {
					navigator.clipboard.writeText(pinText(spot)).then(() => toast('Copied.')).catch(toastError);
				}}>Copy values</button>
			</p>
		</li>
	);
}

export function Pins(props: Props): ReactNode {
	const { pins } = props;
	if (!pins.length)
		return null;
	return (
		<ol className="pins" aria-label="Pinned points">
			{pins.map((spot, at) => <Pin key={spot.id} {...props} spot={spot} first={pins[0]} at={at} />)}
		</ol>
	);
}
