// SPDX-License-Identifier: Apache-2.0
// theme.ts: light, dark, or as the system has it. <html data-theme> is always one of the first two,
// so that style sheets and charts need only one check.
import { useSyncExternalStore } from 'react';

export type Choice = 'light' | 'dark' | 'system';
export type Theme = 'light' | 'dark';

const KEY = 'profllm-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();
let choice: Choice = remembered();
let forced: Theme | null = null;

function remembered(): Choice {
	try {
		const word = localStorage.getItem(KEY);
		return word === 'light' || word === 'dark' ? word : 'system';
	} catch {
		return 'system'; // storage is forbidden: nothing is remembered
	}
}

export function currentTheme(): Theme {
	if (forced)
		return forced;
	if (choice === 'system')
		return dark.matches ? 'dark' : 'light';
	return choice;
}

function show(): void {
	document.documentElement.dataset.theme = currentTheme();
	listeners.forEach((tell) => tell());
}

/** For paper and files, which are white; null: the chosen theme again. */
export function forceTheme(theme: Theme | null): void {
	forced = theme;
	show();
}

export function followTheme(): void {
	dark.addEventListener('change', show);
	addEventListener('beforeprint', () => forceTheme('light'));
	addEventListener('afterprint', () => forceTheme(null));
	show();
}

export function chooseTheme(next: Choice): void {
	choice = next;
	try {
		localStorage.setItem(KEY, next);
	} catch {
		// then it applies until the page is left
	}
	show();
}

function subscribe(tell: () => void): () => void {
	listeners.add(tell);
	return () => listeners.delete(tell);
}

export function useThemeChoice(): Choice {
	return useSyncExternalStore(subscribe, () => choice);
}

/** For drawings: draw again when it changes. */
export function useTheme(): Theme {
	return useSyncExternalStore(subscribe, currentTheme);
}
