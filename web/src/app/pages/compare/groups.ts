// SPDX-License-Identifier: Apache-2.0
// groups.ts: what is compared: each chosen run, the parts of a set by one column, or groups that
// were put together one after another.
import type { CompareGroup, CompareParameter } from '../../../lib/api';
import type { Cell } from '../../api';
import { asked, checkWhole, isEverything, type And, type Filter } from '../../filter';
import { showValue } from '../../show';
import { jsonCodec } from '../../url';

export const GROUPS_MAX = 12;
/** Of the API: a list of numbers. */
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

export function ofRuns(ids: number[]): CompareGroup[] {
	return ids.slice(0, GROUPS_MAX).map((id) => ({ name: `Run ${id}`, ids: [id] }));
}

/** A filter's runs by one column's values. */
export function ofValues(filter: And, column: string, values: Cell[]): CompareGroup[] {
	return values.slice(0, GROUPS_MAX).map((v) => {
		const own: Filter = { column, in: [v] };
		return {
			name: showValue(column, v),
			filter: isEverything(filter) ? own : { and: [{ and: filter.and }, own] },
		};
	});
}

/**
 * Chosen runs by one column, from a comparison that had each of them as a group of its own. Runs
 * are in the order of ids.
 */
export function ofChosen(ids: number[], parameter: CompareParameter): CompareGroup[] {
	const by = new Map<string, { value: Cell; ids: number[] }>();
	ids.forEach((id, i) => {
		const value = parameter.values[i]?.[0]?.value ?? null,
			key = JSON.stringify(value);
		const held = by.get(key) ?? { value, ids: [] };
		held.ids.push(id);
		by.set(key, held);
	});
	return [...by.values()]
		.slice(0, GROUPS_MAX)
		.map((g) => ({ name: showValue(parameter.column, g.value), ids: g.ids }));
}
