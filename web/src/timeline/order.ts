// SPDX-License-Identifier: Apache-2.0
// order.ts: which requests are shown, and in which order.
import { DONE, FAILED, latency, type Requests } from './data';

export const SORTS = {
	sample: 'Sample order',
	start: 'Start',
	ttft: 'Longest TTFT',
	e2el: 'Longest E2EL',
	gap: 'Longest gap',
} as const;
export type Sort = keyof typeof SORTS;

export const FILTERS = {
	all: 'All requests',
	done: 'Completed only',
	failed: 'Failed only',
} as const;
export type Filter = keyof typeof FILTERS;

const KEYS: Record<Sort, ((r: Requests, i: number) => number) | null> = {
	sample: null,
	start: (r, i) => r.start[i],
	ttft: (r, i) => -r.ttft[i],
	e2el: (r, i) => -latency(r, i),
	gap: (r, i) => -r.longest[i],
};

/** Indices of the requests in the order of the rows; equal ones stay in sample order. */
export function rowsOf(r: Requests, sort: Sort, filter: Filter): Uint32Array {
	const rows = new Uint32Array(r.n);
	let n = 0;
	for (let i = 0; i < r.n; i++)
		if (filter === 'all' || r.state[i] === (filter === 'done' ? DONE : FAILED))
			rows[n++] = i;
	const key = KEYS[sort];
	if (!key)
		return rows.slice(0, n);
	const value = new Float64Array(r.n);
	for (let i = 0; i < r.n; i++)
		value[i] = key(r, i);
	return rows.slice(0, n).sort((a, b) => value[a] - value[b] || a - b);
}

/** What was typed into the search: "12", "Req 12", "#12", or a request id. -1: none. */
export function find(r: Requests, text: string, prefix: string | null): number {
	const typed = text.trim();
	const rest = prefix && typed.startsWith(prefix) ? typed.slice(prefix.length) : typed;
	const digits = /^(?:req(?:uest)?\s*|#)?(\d+)$/i.exec(rest);
	const i = digits ? Number(digits[1]) : -1;
	return i < r.n ? i : -1;
}
