// SPDX-License-Identifier: Apache-2.0
// config.ts: a run's cells in groups, and which of them the user set.
import type { Cell, Values } from '../../api';
import { exactCell } from '../../show';

export interface Setting {
	column: string;
	group: string;
	value: Cell;
	isGiven: boolean;
}

/** The run's own columns and measured ones have pages of their own. */
const isParameter = (column: string): boolean => column.includes('.');
export const groupOf = (column: string): string => column.slice(0, column.indexOf('.'));

type Tree = Record<string, unknown>;
const isTree = (v: unknown): v is Tree => typeof v === 'object' && v !== null && !Array.isArray(v);

function walk(tree: Tree, path: string, out: Set<string>): void {
	for (const [key, v] of Object.entries(tree)) {
		const name = `${path}${key.replace(/-/g, '_')}`;
		out.add(name);
		if (isTree(v)) walk(v, `${name}.`, out);
	}
}

/** Columns that the user's configuration contains; null: the document does not have it. */
export function givenColumns(document: unknown): Set<string> | null {
	const config = isTree(document) ? document.config : null;
	const given = isTree(config) ? config.given : null;
	if (!isTree(given)) return null;
	const out = new Set<string>();
	walk(given, '', out);
	return out;
}

export function settings(values: Values, given: Set<string> | null): Setting[] {
	return Object.keys(values)
		.filter(isParameter)
		.sort()
		.map((column) => ({
			column,
			group: groupOf(column),
			value: values[column],
			isGiven: given?.has(column) ?? false,
		}));
}

/** Keeps settings that contain every word in the name or in the value. */
export function matching(list: Setting[], search: string, isGivenOnly: boolean): Setting[] {
	const words = search
		.toLowerCase()
		.split(/\s+/)
		.filter((w) => w !== '');
	return list.filter((s) => {
		const text = `${s.column} ${exactCell(s.column, s.value)}`.toLowerCase();
		return (!isGivenOnly || s.isGiven) && words.every((w) => text.includes(w));
	});
}

export interface Telemetry {
	name: string;
	/** "bytes", "bytes/s": the values are in these; else null. */
	unit: string | null;
	min: number;
	mean: number;
	max: number;
}

const spoken = (name: string): string =>
	name
		.replace(/_/g, ' ')
		.trim()
		.replace(/ (mb per s|gb)$/, '')
		.replace(/^host /, 'Host: ')
		.replace(/^processes (\S+) /, 'Processes of $1: ')
		.replace(
			/\b(gpu|cpu|rss|sm)(s?)\b/g,
			(_, word: string, s: string) => word.toUpperCase() + s,
		);

/** Bytes by the end of a name. */
const BYTES: [end: string, unit: string, factor: number][] =
	[['_mb_per_s', 'bytes/s', 1e6], ['_gb', 'bytes', 1e9], ['_mb', 'bytes', 1e6]];

/** Values observed while load ran: every member of "system" with minimum, mean and maximum. */
export function telemetryOf(document: unknown): Telemetry[] {
	const system = isTree(document) ? document.system : null;
	const out: Telemetry[] = [];
	const look = (v: unknown, name: string, depth: number): void => {
		if (Array.isArray(v)) {
			v.forEach((e, i) =>
				look(
					e,
					`${name} ${isTree(e) && typeof e.name === 'string' ? e.name : i}`,
					depth + 1,
				),
			);
		} else if (isTree(v)) {
			const { min, mean, max } = v;
			if (typeof min === 'number' && typeof mean === 'number' && typeof max === 'number') {
				const of = BYTES.find(([end]) => name.endsWith(end));
				const [, unit = null, k = 1] = of ?? [];
				out.push({ name: spoken(name), unit, min: min * k, mean: mean * k,
					max: max * k });
			}
			else if (depth < 5)
				for (const [key, w] of Object.entries(v))
					look(w, `${name} ${key}`, depth + 1);
		}
	};
	look(system, '', 0);
	return out;
}
