// SPDX-License-Identifier: Apache-2.0
// reading.tsx: the vertical line at which the best of each color is read; dragged, or moved by
// keys.
import { useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';
import { GRID, roomOf, type Plan, type Size } from '../../charts/axis';
import { shareOf, valueAt } from '../../charts/curves';

const STEPS = 50;

interface Props { plan: Plan; size: Size; at: number; label: string; onMove: (at: number) => void }

/** Three digits are enough for a place chosen by a drag. */
const rounded = (v: number): number => Number(v.toPrecision(3));

export function Reading({ plan, size, at, label, onMove }: Props): ReactNode {
	const [held, setHeld] = useState<number | null>(null);
	const room = roomOf(size), now = held ?? at;
	const share = Math.min(1, Math.max(0, shareOf(plan, now)));
	const valueOf = (event: PointerEvent<HTMLDivElement>): number => {
		const left = event.currentTarget.parentElement?.getBoundingClientRect().left ?? 0;
		return rounded(valueAt(plan, Math.min(1, Math.max(0.001, (event.clientX - left - GRID.left) / room.width))));
	};
	const pressed = (event: KeyboardEvent): void => {
		const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
		if (!by)
			return;
		event.preventDefault();
		event.stopPropagation();
		onMove(rounded(valueAt(plan, Math.min(1, Math.max(0.001, share + by / STEPS)))));
	};
	return (
		<div className="reading" role="slider" tabIndex={0} aria-label={`Reading line, ${label}`}
			aria-valuemin={plan.min} aria-valuemax={plan.max} aria-valuenow={now}
			style={{ left: GRID.left + share * room.width - 8, top: GRID.top, height: room.height }}
			title={`Reading line at ${now}: drag it, or move it with the arrow keys`} onKeyDown={pressed}
			onPointerDown={(event) => {
				event.currentTarget.setPointerCapture(event.pointerId);
				setHeld(now);
			}}
			onPointerMove={(event) => held !== null && setHeld(valueOf(event))}
			onPointerUp={(event) => {
				if (held !== null)
					onMove(valueOf(event));
				setHeld(null);
			}}>
			<span />
		</div>
	);
}
