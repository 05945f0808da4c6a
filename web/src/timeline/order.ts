// SPDX-License-Identifier: Apache-2.0
// order.ts: which requests are shown, and in which order.
import { DONE, FAILED, latency, UNSENT, type Requests } from './data';

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

export const GROUPS = { request: 'Request', session: 'Session' } as const;
export type Group = keyof typeof GROUPS;

/** The content of the rows: row k has the requests member[first[k]] to member[first[k + 1] - 1]. */
export interface Lanes {
	member: Uint32Array;
	first: Uint32Array;
}

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

/** One session's turns by their start, in as few lanes as keep overlapping ones apart. */
function lanesOfSession(r: Requests, turns: number[]): number[][] {
	const lanes: number[][] = [], end: number[] = [];
	turns.sort((a, b) => r.start[a] - r.start[b] || a - b);
	for (const i of turns) {
		const isDrawn = r.state[i] !== UNSENT;
		let k = isDrawn ? end.findIndex((t) => t <= r.start[i] - r.lead[i]) : 0;
		if (k < 0 || k >= lanes.length)
			k = lanes.length;
		(lanes[k] ??= []).push(i);
		end[k] = isDrawn ? r.start[i] + r.whole[i] : end[k] ?? -Infinity;
	}
	return lanes;
}

/**
 * A row per session, or several where its turns overlap; a session is placed where the first of its
 * requests would be. Requests without a session have a row each.
 */
export function lanesOf(r: Requests, sort: Sort, filter: Filter): Lanes {
	const sessions = new Map<number, number[]>();
	for (const i of rowsOf(r, sort, filter)) {
		const session = r.session?.[i] ?? -1, key = session < 0 ? -1 - i : session;
		const turns = sessions.get(key);
		if (turns)
			turns.push(i);
		else
			sessions.set(key, [i]);
	}
	const lanes = [...sessions.values()].flatMap((turns) => lanesOfSession(r, turns));
	const first = new Uint32Array(lanes.length + 1);
	lanes.forEach((lane, k) => { first[k + 1] = first[k] + lane.length; });
	return { member: Uint32Array.from(lanes.flat()), first };
}

/** The request that a search text means: "12", "Req 12", "#12", or a request id. -1: none. */
export function find(r: Requests, text: string, prefix: string | null): number {
	const typed = text.trim();
	const rest = prefix && typed.startsWith(prefix) ? typed.slice(prefix.length) : typed;
	const digits = /^(?:req(?:uest)?\s*|#)?(\d+)$/i.exec(rest);
	const i = digits ? Number(digits[1]) : -1;
	return i < r.n ? i : -1;
}
