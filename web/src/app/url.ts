// SPDX-License-Identifier: Apache-2.0
// url.ts: where the reader is: a path and a query string that holds the whole state of the view.
//
// A codec turns one parameter into a value and back; a parameter at its default is left out, so
// that links stay short. Values of discrete choices make a step of the browser's history; those
// that change while something is dragged or typed replace it.
import { createContext, useCallback, useContext, useMemo, useSyncExternalStore } from 'react';

export interface Codec<T> {
	/** null: the parameter is missing. Any text gives a value. */
	read: (text: string | null) => T;
	/** null: leave it out. */
	write: (value: T) => string | null;
}

export function textCodec(otherwise = ''): Codec<string> {
	return {
		read: (text) => text ?? otherwise,
		write: (value) => (value === otherwise ? null : value),
	};
}

export function choiceCodec<T extends string>(choices: readonly T[], otherwise: T): Codec<T> {
	return {
		read: (text) => choices.find((c) => c === text) ?? otherwise,
		write: (value) => (value === otherwise ? null : value),
	};
}

export function flagCodec(otherwise = false): Codec<boolean> {
	return {
		read: (text) => (text === null ? otherwise : text === '1'),
		write: (value) => (value === otherwise ? null : value ? '1' : '0'),
	};
}

export function numberCodec(otherwise: number): Codec<number> {
	return {
		read: (text) => {
			const value = text === null || text.trim() === '' ? NaN : Number(text);
			return Number.isFinite(value) ? value : otherwise;
		},
		write: (value) => (value === otherwise ? null : String(value)),
	};
}

/** Words joined by commas; a comma, a percent sign and an empty word inside one are escaped. */
export function listCodec(otherwise: readonly string[] = []): Codec<string[]> {
	const whole = (list: readonly string[]): string =>
		list.map((w) => w.replace(/[%,]/g, encodeURIComponent)).join(',');
	return {
		read: (text) => {
			if (text === null)
				return [...otherwise];
			return text.split(',').filter((w) => w !== '').map(plain);
		},
		write: (value) => (whole(value) === whole(otherwise) ? null : whole(value)),
	};
}

/** A word of a list without escapes. */
export function plain(word: string): string {
	try {
		return decodeURIComponent(word);
	} catch {
		return word;
	}
}

export function jsonCodec<T>(check: (value: unknown) => T, otherwise: T): Codec<T> {
	const usual = JSON.stringify(otherwise);
	return {
		read: (text) => {
			if (text === null)
				return otherwise;
			try {
				return check(JSON.parse(text));
			} catch {
				return otherwise;
			}
		},
		write: (value) => {
			const text = JSON.stringify(value);
			return text === usual ? null : text;
		},
	};
}

/** Like URLSearchParams, but characters that need no escape stay readable. */
export function queryText(params: URLSearchParams): string {
	const soft = (text: string): string => encodeURIComponent(text)
		.replace(/%2C/g, ',').replace(/%3A/g, ':').replace(/%2F/g, '/').replace(/%20/g, '+')
		.replace(/%5B/g, '[').replace(/%5D/g, ']').replace(/%7B/g, '{').replace(/%7D/g, '}');
	const text = [...params].map(([key, value]) => `${soft(key)}=${soft(value)}`).join('&');
	return text ? `?${text}` : '';
}

/* ---- the browser's address ---- */

const listeners = new Set<() => void>();
const tellAll = (): void => listeners.forEach((tell) => tell());

function subscribe(tell: () => void): () => void {
	if (listeners.size === 0)
		addEventListener('popstate', tellAll);
	listeners.add(tell);
	return () => {
		listeners.delete(tell);
		if (listeners.size === 0)
			removeEventListener('popstate', tellAll);
	};
}

export interface Go { replace?: boolean }

/** target: a path with its query string, on this server. */
export function navigate(target: string, how: Go = {}): void {
	if (target === location.pathname + location.search)
		return;
	if (how.replace)
		history.replaceState(null, '', target);
	else
		history.pushState(null, '', target);
	tellAll();
}

/** Where the state of a view is stored: the browser's address, or a block's of a board. */
export interface Address {
	path: () => string;
	search: () => string;
	subscribe: (tell: () => void) => () => void;
	go: (target: string, how?: Go) => void;
}

const browser: Address = { path: () => location.pathname, search: () => location.search, subscribe,
	go: navigate };
export const AddressContext = createContext(browser);

/** An address of its own: parts of a page can be shown at it, and changed, without the browser's. */
export function heldAddress(path: string, query: string): Address {
	const tells = new Set<() => void>();
	let search = query && `?${query.replace(/^\?/, '')}`;
	return {
		path: () => path, search: () => search,
		subscribe: (tell) => {
			tells.add(tell);
			return () => tells.delete(tell);
		},
		go: (target) => {
			search = target.includes('?') ? target.slice(target.indexOf('?')) : '';
			tells.forEach((tell) => tell());
		},
	};
}

/** Changes some parameters and leaves the others; null takes one away. */
export function setParams(changes: Record<string, string | null>, how: Go = {}, at = browser): void {
	const params = new URLSearchParams(at.search());
	for (const [key, value] of Object.entries(changes)) {
		if (value === null)
			params.delete(key);
		else
			params.set(key, value);
	}
	at.go(at.path() + queryText(params), how);
}

export function usePath(): string {
	const at = useContext(AddressContext);
	return useSyncExternalStore(at.subscribe, at.path);
}

export function useSearch(): string {
	const at = useContext(AddressContext);
	return useSyncExternalStore(at.subscribe, at.search);
}

/** One parameter of the query string as state. Give a codec that lives outside the component. */
export function useUrlState<T>(
	key: string, codec: Codec<T>,
): [T, (next: T | ((now: T) => T), how?: Go) => void] {
	const at = useContext(AddressContext);
	const raw = useSyncExternalStore(at.subscribe, () => new URLSearchParams(at.search()).get(key));
	const value = useMemo(() => codec.read(raw), [codec, raw]);
	const set = useCallback((next: T | ((now: T) => T), how: Go = {}) => {
		const now = codec.read(new URLSearchParams(at.search()).get(key));
		const made = typeof next === 'function' ? (next as (now: T) => T)(now) : next;
		setParams({ [key]: codec.write(made) }, how, at);
	}, [key, codec, at]);
	return [value, set];
}
