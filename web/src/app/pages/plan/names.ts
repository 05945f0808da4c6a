// SPDX-License-Identifier: Apache-2.0
// names.ts: short names of configurations, from what distinguishes them: "b200-192gb TP2".
import type { Cell } from '../../api';
import { columnsOf, tellingOf } from '../../common/columns';
import { shortValue } from '../runs/names';

/** By the whole name, which stays in titles. */
export function withNames<T extends { key: Record<string,
	Cell>; name: string }>(list: T[]): (T & { full: string })[] {
	const keys = list.map((c) => c.key), telling = tellingOf(columnsOf(keys), keys);
	return list.map((c) => ({ ...c, full: c.name, name: telling.map((column) => {
		const v = c.key[column] ?? null;
		return v === null ? `${column.slice(column.lastIndexOf('.') + 1)} not set`
			: shortValue(column, v);
	}).join(' ') || c.name }));
}

/** Which version of the engine the numbers are of. */
export const versionText = (o: { version: string | null }): string => (o.version === null ? ''
	: `, version ${o.version}`);
