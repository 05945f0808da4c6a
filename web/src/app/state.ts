// SPDX-License-Identifier: Apache-2.0
// state.ts: the parts of the address that all pages share: which runs (f, shown), the chosen ones
// (sel), whether analyses also include failed and INVALID ones (invalid), and the workload (w).
// They stay when moving from page to page; the rest belongs to its page.
import { useCallback, useMemo } from 'react';
import { checkWhole, EVERYTHING, type And } from './filter';
import {
	choiceCodec, flagCodec, jsonCodec, queryText, useSearch, useUrlState, type Codec,
} from './url';

export type Shown = 'usual' | 'excluded' | 'archived' | 'all';
export const SELECTION_MAX = 200;
const SHARED = ['f', 'shown', 'sel', 'invalid', 'w'];

const filterCodec = jsonCodec<And>(checkWhole, EVERYTHING);
const shownCodec = choiceCodec<Shown>(['usual', 'excluded', 'archived', 'all'], 'usual');

const invalidCodec = flagCodec();

export const useIncludeInvalid = (): ReturnType<typeof useUrlState<boolean>> =>
	useUrlState('invalid', invalidCodec);
export const useFilter = (): ReturnType<typeof useUrlState<And>> => useUrlState('f', filterCodec);
/** Whether the address has a filter that cannot be read: all runs are shown then. */
export function useIsFilterBroken(): boolean {
	const given = new URLSearchParams(useSearch()).get('f');
	return useMemo(() => {
		try {
			return given !== null && !checkWhole(JSON.parse(given));
		} catch {
			return true;
		}
	}, [given]);
}

export const useShown = (): ReturnType<typeof useUrlState<Shown>> =>
	useUrlState('shown', shownCodec);

/** Numbers of runs, in the order they were chosen. */
export const idsCodec: Codec<number[]> = {
	read: (text) => [...new Set((text ?? '').split(/[, ]/).map(Number))]
		.filter((id) => Number.isSafeInteger(id) && id > 0).slice(0, SELECTION_MAX),
	write: (ids) => (ids.length ? ids.join(',') : null),
};

export interface Selection {
	ids: number[];
	has: (id: number) => boolean;
	toggle: (id: number) => void;
	set: (ids: number[]) => void;
	clear: () => void;
}

export function useSelection(): Selection {
	const [ids, setIds] = useUrlState('sel', idsCodec);
	const members = useMemo(() => new Set(ids), [ids]);
	const toggle = useCallback((id: number) => setIds((now) => (now.includes(id)
		? now.filter((other) => other !== id) : [...now, id].slice(0, SELECTION_MAX)),
	{ replace: true }), [setIds]);
	const set = useCallback((next: number[]) =>
		setIds([...new Set(next)].slice(0, SELECTION_MAX), { replace: true }), [setIds]);
	return useMemo(() => ({
		ids, has: (id: number) => members.has(id), toggle, set, clear: () => set([]),
	}), [ids, members, toggle, set]);
}

/** The shared parameters of an address; those of the last one are kept, as tables ask once a row. */
let last = { search: '', shared: new URLSearchParams() };

function sharedOf(search: string): URLSearchParams {
	if (search === last.search)
		return last.shared;
	const now = new URLSearchParams(search), shared = new URLSearchParams();
	for (const key of SHARED) {
		const value = now.get(key);
		if (value !== null)
			shared.set(key, value);
	}
	last = { search, shared };
	return shared;
}

/** Another page with the same runs: its path with the shared parameters and some of its own. */
export function pageTarget(search: string, path: string, own: Record<string, string> = {}): string {
	const next = new URLSearchParams(sharedOf(search));
	for (const [key, value] of Object.entries(own))
		next.set(key, value);
	return path + queryText(next);
}

export function usePageTarget(): (path: string, own?: Record<string, string>) => string {
	const search = useSearch();
	return useCallback((path, own) => pageTarget(search, path, own), [search]);
}
