// SPDX-License-Identifier: Apache-2.0
// keys.ts: keys as commands. A key does nothing during typing or in a dialog. "g o" is g followed
// by o within a second.
import { useEffect, useRef } from 'react';

export interface Key { key: string; text: string; act: (event: KeyboardEvent) => void }
export interface Shortcut { key: string; text: string }

interface Holder { keys: Key[] }
const holders: Holder[] = [];
const SECOND_KEY_MS = 1000;
let first = { key: '', at: -Infinity };

function isTyping(target: EventTarget | null): boolean {
	return target instanceof HTMLElement
		&& target.matches('input:not([type=checkbox], [type=radio]), select, textarea, '
			+ '[contenteditable]');
}

function pressed(event: KeyboardEvent): void {
	if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey
		|| isTyping(event.target) || document.querySelector('dialog[open]:modal'))
		return;
	const before = event.timeStamp - first.at < SECOND_KEY_MS ? first.key : '';
	first = { key: event.key, at: event.timeStamp };
	for (const wanted of before ? [`${before} ${event.key}`, event.key] : [event.key])
		for (let i = holders.length - 1; i >= 0; i--) {
			const key = holders[i].keys.find((k) => k.key === wanted);
			if (key) {
				first.at = -Infinity;
				key.act(event);
				return;
			}
		}
}

/** Keys of a component while it is shown; the component shown last comes first. */
export function useKeys(keys: Key[]): void {
	const holder = useRef<Holder>({ keys });
	holder.current.keys = keys;
	useEffect(() => {
		const own = holder.current;
		if (holders.length === 0)
			addEventListener('keydown', pressed);
		holders.push(own);
		return () => {
			holders.splice(holders.indexOf(own), 1);
			if (holders.length === 0)
				removeEventListener('keydown', pressed);
		};
	}, []);
}

/** All keys that have an effect now, for the help. */
export function shortcuts(): Shortcut[] {
	const seen = new Map<string, string>();
	for (const { keys } of [...holders].reverse())
		for (const { key, text } of keys)
			if (text && !seen.has(key))
				seen.set(key, text);
	return [...seen].map(([key, text]) => ({ key, text }));
}
