// SPDX-License-Identifier: Apache-2.0
// saved.ts: addresses stored on the server: saved views, and the blocks of boards.
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { ApiError, change, get, post } from '../api';
import { checkWhole, type And } from '../filter';
import { client } from '../query';
import { queryText } from '../url';

export interface Target { path: string; query: string }
export interface Saved { id: number; name: string; body: unknown; at: number }

const isObject = (v: unknown): v is Record<string, unknown> =>
	typeof v === 'object' && v !== null && !Array.isArray(v);

/** A path on this server and nothing else, whatever the store holds. */
const isPath = (v: unknown): v is string => typeof v === 'string' && /^\/(?!\/)[\w/.-]*$/.test(v);

/**
 * The form in which a page's address is stored: without the selection, unless the page is about it.
 */
export function keptQuery(path: string, search: string): string {
	const kept = new URLSearchParams(search);
	kept.delete('token');
	if (path !== '/compare')
		kept.delete('sel');
	return queryText(kept).replace(/^\?/, '');
}

/** The target of a saved view; one from before other pages had views leads to Runs. */
export function targetOf(body: unknown): Target {
	if (!isObject(body))
		return { path: '/runs', query: '' };
	const path = isPath(body.path) ? body.path : '/runs';
	if (typeof body.query === 'string')
		return { path, query: body.query.replace(/^\?/, '') };
	const query = !('filter' in body) ? ''
		: queryText(new URLSearchParams({ f: JSON.stringify(body.filter) }));
	return { path, query: query.replace(/^\?/, '') };
}

export const addressOf = ({ path, query }: Target): string => (query ? `${path}?${query}` : path);

/* ---- boards ---- */

export const KINDS = ['chart', 'table', 'number', 'text', 'heading'] as const;
export type Kind = (typeof KINDS)[number];

export interface Frozen { at: number; answer: Record<string, unknown> }

export interface Block extends Partial<Target> {
	kind: Kind;
	caption?: string;
	text?: string;
	frozen?: Frozen;
	/** The board's filter and workload do not apply to it. */
	is_own?: boolean;
	is_wide?: boolean;
}

/** f, w: the filter and the workload of all blocks, in place of their own. */
export interface BoardBody { blocks: Block[]; f?: And; w?: string }
export interface Board { id: number; name: string; at: number; body: BoardBody }

function blockOf(v: unknown): Block[] {
	if (!isObject(v) || !KINDS.includes(v.kind as Kind))
		return [];
	const text = (key: string): object => (typeof v[key] === 'string' ? { [key]: v[key] } : {});
	const frozen = isObject(v.frozen) && typeof v.frozen.at === 'number' && isObject(v.frozen.answer)
		? { frozen: { at: v.frozen.at, answer: v.frozen.answer } } : {};
	return [{ kind: v.kind as Kind, ...(isPath(v.path) && { path: v.path }), ...text('query'),
		...text('caption'), ...text('text'), ...frozen,
		...(v.is_own === true && { is_own: true }), ...(v.is_wide === true && { is_wide: true }) }];
}

/** Reads a board, whatever the store holds. */
export function boardOf({ id, name, at, body }: Saved): Board {
	const given = isObject(body) ? body : {};
	const board: BoardBody = { blocks: Array.isArray(given.blocks) ? given.blocks.flatMap(blockOf) : [] };
	if (given.f !== undefined) {
		try {
			board.f = checkWhole(given.f);
		} catch {
			// a filter that this version does not know
		}
	}
	if (typeof given.w === 'string')
		board.w = given.w;
	return { id, name, at, body: board };
}

/** The query of a block on its board. */
export function queryOn(body: BoardBody, block: Block): string {
	const params = new URLSearchParams(block.query ?? '');
	if (!block.is_own && body.f)
		params.set('f', JSON.stringify(body.f));
	if (!block.is_own && body.w)
		params.set('w', body.w);
	return queryText(params).replace(/^\?/, '');
}

/** The list with one item moved. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
	const out = [...list], [item] = out.splice(from, 1);
	out.splice(to, 0, item);
	return out;
}

const KEY = ['boards'];

/** Never from before a save of this page: a change of that would undo the save. */
async function boards(signal?: AbortSignal): Promise<Board[]> {
	for (;;) {
		const before = saving;
		await before;
		const { items } = await get<{ items: Saved[] }>('/api/boards', signal);
		if (saving === before)
			return items.map(boardOf);
	}
}

export const useBoards = (enabled = true): UseQueryResult<Board[]> =>
	useQuery({ queryKey: KEY, queryFn: ({ signal }) => boards(signal), enabled });

const again = (): void => void client.invalidateQueries({ queryKey: KEY });

export async function addBoard(name: string, body: BoardBody): Promise<number> {
	const { id } = await post<{ id: number }>('/api/boards', { name, body });
	again();
	return id;
}

/** When this page saved its latest version of the key: only saves by others are conflicts. */
const savedAt = new Map<number, number>();
let saving: Promise<unknown> = Promise.resolve();
let unsaved = 0;
const askFirst = (event: Event): void => event.preventDefault();

/**
 * Shown at once, and saved after earlier changes; until then the browser asks before it leaves. at: time
 * of the board that next was made from; the server refuses it if others have saved since (isStale),
 * unless isForced.
 */
export function saveBoard(
	id: number, next: { name?: string; body?: BoardBody }, at: number, isForced = false,
): Promise<void> {
	client.setQueryData<Board[]>(KEY, (list) =>
		list?.map((b) => (b.id === id ? { ...b, ...next, at } : b)));
	if (!unsaved++)
		addEventListener('beforeunload', askFirst);
	const save = saving.then(async () => {
		let was = at;
		while (savedAt.has(was))
			was = savedAt.get(was) ?? was;
		const saved = await change<{ at: number }>('PUT', `/api/boards/${id}`,
			isForced ? next : { ...next, was });
		/* A name alone replaces nothing that others have saved: a body made from at still would. */
		if (saved.at !== was && (next.body || !isForced))
			savedAt.set(was, saved.at);
	}).finally(() => {
		if (!--unsaved)
			removeEventListener('beforeunload', askFirst);
	});
	saving = save.catch(() => undefined);
	return save.finally(again);
}

/** A board as this browser has it now, changes that are still being saved included. */
export const boardNow = (id: number): Board | undefined =>
	client.getQueryData<Board[]>(KEY)?.find((b) => b.id === id);

export const isStale = (why: unknown): boolean => why instanceof ApiError && why.pointer === '/was';

export const dropBoard = (id: number): Promise<unknown> =>
	change('DELETE', `/api/boards/${id}`).finally(again);

/** The first free name of "Board 1", "Board 2" ... */
export function freeName(list: readonly Board[]): string {
	for (let n = 1; ; n++)
		if (!list.some((b) => b.name === `Board ${n}`))
			return `Board ${n}`;
}

/* ---- what this browser remembers ---- */

const LAST = 'profllm-board', HOME = 'profllm-home';

function remembered(key: string): number | null {
	try {
		return Number(localStorage.getItem(key)) || null;
	} catch {
		return null; // storage is forbidden: nothing is remembered
	}
}

function remember(key: string, id: number | null): void {
	try {
		if (id === null)
			localStorage.removeItem(key);
		else
			localStorage.setItem(key, String(id));
	} catch {
		// then it is not remembered
	}
}

/**
 * The board that something was added to last, if it still exists; else the one that changed last.
 */
export function lastBoard(list: readonly Board[]): Board | undefined {
	const id = remembered(LAST);
	return list.find((b) => b.id === id) ?? [...list].sort((a, b) => b.at - a.at)[0];
}

/** The board that this browser shows at / in place of Overview. */
export const homeBoard = (): number | null => remembered(HOME);
export const setHomeBoard = (id: number | null): void => remember(HOME, id);

/** Tries to add a block to the newest version of a board that others change meanwhile. */
const ADD_TRIES = 5;

/** Adds a block to the board's current version; to: its number or the name of a new one. */
export async function addBlock(to: number | string, block: Block): Promise<Board> {
	if (typeof to === 'string') {
		const body = { blocks: [block] }, id = await addBoard(to, body);
		remember(LAST, id);
		return { id, name: to, at: 0, body };
	}
	for (let tries = 1; ; tries++) {
		const board = (await boards()).find((b) => b.id === to);
		if (!board)
			throw new Error('The board was deleted. Choose another one.');
		board.body.blocks.push(block);
		try {
			await saveBoard(to, { body: board.body }, board.at);
			remember(LAST, to);
			return board;
		} catch (why) {
			if (tries === ADD_TRIES || !isStale(why))
				throw why;
		}
	}
}
