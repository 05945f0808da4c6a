// SPDX-License-Identifier: Apache-2.0
// toast.tsx: a short word about something that happened, read out and gone after a while.
import { useEffect, useState, type ReactNode } from 'react';

interface Note { id: number; text: string; kind: 'good' | 'bad' }
const SHOWN_MS = 5000;
let notes: Note[] = [];
let next = 1;
let tell: (now: Note[]) => void = () => undefined;

function drop(id: number): void {
	notes = notes.filter((n) => n.id !== id);
	tell(notes);
}

export function toast(text: string, kind: Note['kind'] = 'good'): void {
	const id = next++;
	notes = [...notes.slice(-3), { id, text, kind }];
	tell(notes);
	setTimeout(() => drop(id), SHOWN_MS);
}

/** For promises nobody waits for: the reason, where the reader sees it. */
export function toastError(why: unknown): void {
	toast(why instanceof Error ? why.message : String(why), 'bad');
}

export function Toasts(): ReactNode {
	const [shown, setShown] = useState<Note[]>(notes);
	useEffect(() => {
		tell = setShown;
		return () => {
			tell = () => undefined;
		};
	}, []);
	return (
		<div className="toasts" role="status" aria-live="polite">
			{shown.map((n) => (
				<button key={n.id} type="button" className={`toast ${n.kind}`}
					onClick={() => drop(n.id)}>{n.text}</button>
			))}
		</div>
	);
}
