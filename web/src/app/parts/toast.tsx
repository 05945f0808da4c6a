// SPDX-License-Identifier: Apache-2.0
// toast.tsx: a short message about an event, read out and removed after a while.
import { useEffect, useState, type ReactNode } from 'react';

/** A follow-up action, such as undo. */
interface Action { label: string; act: () => void }
interface Note { id: number; text: string; kind: 'good' | 'bad'; action?: Action | undefined }
const SHOWN_MS = 5000, ACTION_MS = 10_000;
let notes: Note[] = [];
let next = 1;
let tell: (now: Note[]) => void = () => undefined;

function drop(id: number): void {
	notes = notes.filter((n) => n.id !== id);
	tell(notes);
}

export function toast(text: string, kind: Note['kind'] = 'good', action?: Action): void {
	const id = next++;
	notes = [...notes.slice(-3), { id, text, kind, action }];
	tell(notes);
	/* What was not saved is lost without this action: it stays until the reader has decided. */
	if (kind === 'bad' && action)
		return;
	setTimeout(() => drop(id), action ? ACTION_MS : SHOWN_MS);
}

/** For promises that are not awaited: shows the reason to the user. */
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
				<div key={n.id} className="row tight">
					<button type="button" className={`toast ${n.kind}`} onClick={() => drop(n.id)}>{n.text}</button>
					{n.action && <button type="button" className="toast action" onClick={() => {
						drop(n.id);
						n.action?.act();
					}}>{n.action.label}</button>}
				</div>
			))}
		</div>
	);
}
