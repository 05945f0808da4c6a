// SPDX-License-Identifier: Apache-2.0
// groups.ts: what is compared: each chosen run, the parts of a set by one column, or groups made by
// the user.
import type { CompareGroup, CompareParameter } from '../../../lib/api';
import type { Cell } from '../../api';
import { asked, checkWhole, isEverything, type And, type Filter } from '../../filter';
import { showValue } from '../../show';
import { jsonCodec } from '../../url';
import { shortValue } from '../runs/names';

export const GROUPS_MAX = 12;
/** Limit of the API for a list of numbers. */
const IDS_MAX = 200;

export interface Kept {
	name: string;
	ids?: number[];
	filter?: And;
}

function checkKept(v: unknown): Kept {
	const o = v as Record<string, unknown>;
	const name = typeof o.name === 'string' ? o.name : '';
	if (Array.isArray(o.ids)) {
		const ids = o.ids.filter(
			(id): id is number => Number.isSafeInteger(id) && (id as number) > 0,
		);
		return { name, ids: ids.slice(0, IDS_MAX) };
	}
	return { name, filter: checkWhole(o.filter ?? { and: [] }) };
}

export const keptCodec = jsonCodec<Kept[]>((v) => {
	if (!Array.isArray(v)) throw new Error('groups are a list');
	return v.slice(0, GROUPS_MAX).map(checkKept);
}, []);

export function ofKept(kept: Kept[]): CompareGroup[] {
	return kept.map((k) =>
		k.ids ? { name: k.name, ids: k.ids } : { name: k.name, filter: asked(k.filter!) },
	);
}

export function ofRuns(ids: number[], names: string[] = []): CompareGroup[] {
	return ids.slice(0, GROUPS_MAX).map((id, i) => ({ name: names[i] ?? `Run ${id}`, ids: [id] }));
}

/**
 * Chosen runs as a comparison needs them: repeats of one configuration together, as the rows of Runs
 * show them; configurations: of each run, null: unknown. Repeats of a single one are compared with
 * each other.
 */
export function repeatsOf(ids: number[], configurations: (number | null)[]): number[][] {
	const by = new Map<string, number[]>();
	ids.forEach((id, i) => {
		const key = String(configurations[i] ?? `run ${id}`);
		by.set(key, [...by.get(key) ?? [], id]);
	});
	return by.size < 2 ? ids.map((id) => [id]) : [...by.values()];
}

/** Repeats as groups; the parameters are of these runs, which have the first one of each. */
export function ofRepeats(repeats: number[][], runs: number[],
	parameters: CompareParameter[]): CompareGroup[] {
	const shown = repeats.slice(0, GROUPS_MAX), at = shown.map(([id]) => runs.indexOf(id));
	const names = namesOf(shown.map(([id]) => id),
		parameters.map((p) => ({ ...p, values: at.map((i) => p.values[i]) })));
	return shown.map((ids, g) => ({ name: names[g], ids }));
}

/** What is left out of a selection that makes too many groups; null: nothing. */
export function leftOutText(ids: number[], repeats: number[][]): string | null {
	const named = repeats.length < ids.length
		? `${repeats.length} configurations of the ${ids.length} selected runs`
		: `${ids.length} selected runs`;
	return repeats.length > GROUPS_MAX ? `The first ${GROUPS_MAX} of ${named}.` : null;
}

/**
 * Columns that usually name a configuration, if they differ; others only if these do not suffice.
 */
const NAMED_BY = ['gpu_model', 'gpu', 'version', 'model', 'quantization', 'dtype', 'tensor_parallel_size',
	'pipeline_parallel_size', 'data_parallel_size', 'max_concurrency', 'request_rate'];
const NAMED_GROUPS = ['server', 'hardware', 'benchmark', 'environment'];
const NAMED_COLUMNS_MAX = 4;

/**
 * Single runs by their given names, else by the parameters in which they differ: "h100 TP4 c64";
 * equal ones by number too.
 */
export function namesOf(ids: number[], parameters: CompareParameter[]): string[] {
	const last = (p: CompareParameter): string => p.column.slice(p.column.lastIndexOf('.') + 1);
	const word = (p: CompareParameter, i: number): string => {
		const v = p.values[i]?.[0]?.value;
		return v === undefined || v === null ? '' : shortValue(p.column, v);
	};
	const shown = ids.slice(0, GROUPS_MAX), words = shown.map(() => [] as string[]);
	const own = parameters.find((p) => p.column === 'name');
	const given = shown.map((_, i) => (own ? word(own, i) : ''));
	const isTelling = given.length < 2 || new Set(given).size > 1;
	if (isTelling && given.every((name) => name !== '' && !name.includes('=')))
		return given.map((name, i) => (given.indexOf(name) === given.lastIndexOf(name) ? name
			: `${name} (run ${ids[i]})`));
	const differing = parameters.filter((p) => p.differs === 'between' && NAMED_GROUPS.includes(p.group));
	const first = NAMED_BY.flatMap((name) => differing.find((p) => last(p) === name) ?? []);
	let n = 0;
	for (const p of [...first, ...differing.filter((o) => !first.includes(o))]) {
		const isDistinct = new Set(words.map((w) => w.join(' '))).size === shown.length;
		if (n === NAMED_COLUMNS_MAX || (isDistinct && !first.includes(p)))
			break;
		/* Two columns of the same fact are named once. */
		if (n > 0 && words.every((w, i) => w.includes(word(p, i))))
			continue;
		words.forEach((w, i) => word(p, i) && w.push(word(p, i)));
		n++;
	}
	const names = words.map((w) => w.join(' '));
	return names.map((name, i) => (!name ? `Run ${ids[i]}`
		: names.indexOf(name) !== names.lastIndexOf(name) ? `${name} (run ${ids[i]})` : name));
}

const NEAR_MAX = 6;

/** Columns that end in the same word first, then those that hold it. */
export function nearColumns(wanted: string, all: string[]): string[] {
	const word = wanted.slice(wanted.lastIndexOf('.') + 1).toLowerCase();
	const ends = all.filter((c) => c.slice(c.lastIndexOf('.') + 1).toLowerCase() === word);
	const holds = all.filter((c) => !ends.includes(c) && word !== '' && c.toLowerCase().includes(word));
	return [...ends, ...holds].filter((c) => c !== wanted).slice(0, NEAR_MAX);
}

/**
 * Versions and numbers in ascending order, so that others are compared with the first; else as
 * given.
 */
function inOrder(column: string, values: Cell[]): Cell[] {
	const known = values.filter((v) => v !== null), rest = values.filter((v) => v === null);
	if (!/(^|\.)version$/.test(column) && !known.every((v) => typeof v === 'number'))
		return values;
	known.sort((a, b) => String(a).localeCompare(String(b), 'en', { numeric: true }));
	return [...known, ...rest];
}

/** A number with what it counts ("TP4"), a text without its path; in full where that is not enough. */
function groupNames(column: string, values: Cell[]): string[] {
	const short = values.map((v) => (v === null ? showValue(column, v) : shortValue(column, v)));
	return new Set(short).size === short.length ? short : values.map((v) => showValue(column, v));
}

/** A filter's runs by one column's values. */
export function ofValues(filter: And, column: string, values: Cell[]): CompareGroup[] {
	const ordered = inOrder(column, values.slice(0, GROUPS_MAX)), names = groupNames(column, ordered);
	return ordered.map((v, i) => {
		const own: Filter = { column, in: [v] };
		return {
			name: names[i],
			filter: isEverything(filter) ? own : { and: [{ and: filter.and }, own] },
		};
	});
}

/**
 * Chosen runs by one column, from a comparison that had the first of each of these lists as a group
 * of its own.
 */
export function ofChosen(lists: number[][], parameter: CompareParameter): CompareGroup[] {
	const by = new Map<string, { value: Cell; ids: number[] }>();
	lists.forEach((list, i) => {
		const value = parameter.values[i]?.[0]?.value ?? null,
			key = JSON.stringify(value);
		const held = by.get(key) ?? { value, ids: [] };
		held.ids.push(...list);
		by.set(key, held);
	});
	const groups = [...by.values()].slice(0, GROUPS_MAX);
	const names = groupNames(parameter.column, groups.map((g) => g.value));
	return groups.map((g, i) => ({ name: names[i], ids: g.ids }));
}
