// SPDX-License-Identifier: Apache-2.0
// show.ts: cells in readable form. A number keeps four digits or its whole part; the exact one is
// in the title and in data-value.
import { whole } from '../lib/format';
import type { Cell } from './api';

export const NOTHING = '–';

/** A measured number: separators from a thousand up, four digits below. */
export function measured(v: number): string {
	if (!Number.isFinite(v))
		return v > 0 ? '∞' : v < 0 ? '−∞' : NOTHING;
	const size = Math.abs(v);
	if (size >= 1e15 || (size > 0 && size < 1e-4))
		return v.toExponential(3).replace('-', '−').replace('e−', 'e-').replace('e+', 'e');
	if (Number.isInteger(v))
		return minus(whole(v));
	if (size >= 1000)
		return minus(whole(v));
	return minus(String(Number(v.toPrecision(4))));
}

const minus = (text: string): string => (text.startsWith('-') ? `−${text.slice(1)}` : text);

/** A parameter's number: as users type it. */
export function given(v: number): string {
	return Number.isFinite(v) ? String(v) : measured(v);
}

const two = (n: number): string => String(n).padStart(2, '0');

/** Seconds since 1970 as "2026-03-01 14:05" in the reader's time zone. */
export function when(s: number, hasSeconds = false): string {
	const t = new Date(s * 1000);
	if (!Number.isFinite(t.getTime()))
		return given(s);
	return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} `
		+ `${two(t.getHours())}:${two(t.getMinutes())}${hasSeconds ? `:${two(t.getSeconds())}` : ''}`;
}

/**
 * Zone names by the minutes to UTC: a formatter costs more than all else in a cell, and a table has
 * many.
 */
const zones = new Map<number, string>();

function zoneOf(t: Date): string {
	const offset = t.getTimezoneOffset(), known = zones.get(offset);
	if (known !== undefined)
		return known;
	const format = new Intl.DateTimeFormat('en', { timeZoneName: 'short' });
	const zone = format.formatToParts(t).find((p) => p.type === 'timeZoneName')?.value ?? '';
	const place = format.resolvedOptions().timeZone;
	const text = `${zone}${place && place !== zone ? ` (${place})` : ''}`;
	zones.set(offset, text);
	return text;
}

/** "2026-03-01 14:05:09 GMT+1 (Europe/Berlin)": for titles. */
export function zonedTime(s: number): string {
	const t = new Date(s * 1000);
	return Number.isFinite(t.getTime()) ? `${when(s, true)} ${zoneOf(t)}` : given(s);
}

const DAY_S = 86_400;

/** "3 min ago" within a day, else the local date; hasSeconds: the clock, as rows share minutes. */
export function age(s: number, now: number, hasSeconds = false): string {
	const ago = now - s;
	if (!(ago >= 0 && ago < DAY_S))
		return when(s, hasSeconds);
	if (hasSeconds)
		return when(s, true).slice(11);
	if (ago < 60)
		return 'just now';
	return ago < 3600 ? `${Math.floor(ago / 60)} min ago` : `${Math.floor(ago / 3600)} h ago`;
}

export function exactTime(s: number): string {
	const t = new Date(s * 1000);
	return Number.isFinite(t.getTime()) ? t.toISOString() : given(s);
}

const TIMES = new Set(['timestamp', 'received', 'date']);

/** What kind of thing a column's numbers are, by its name and unit. */
export function isTime(column: string): boolean {
	return TIMES.has(column);
}

export function isParameter(column: string): boolean {
	return column.includes('.');
}

export function showCell(column: string, v: Cell | undefined): string {
	if (v === undefined)
		return NOTHING;
	if (v === null)
		return 'null';
	if (typeof v === 'boolean')
		return v ? 'true' : 'false';
	if (v === 'inf' || v === '-inf')
		return v === 'inf' ? '∞' : '−∞';
	if (typeof v === 'string')
		return v === '' ? '“”' : v;
	if (isTime(column))
		return when(v);
	return isParameter(column) ? given(v) : measured(v);
}

/** The exact value, for titles and for programs. */
export function exactCell(column: string, v: Cell | undefined): string {
	if (v === undefined)
		return 'missing';
	if (typeof v === 'number' && isTime(column))
		return exactTime(v);
	return typeof v === 'string' ? v : JSON.stringify(v);
}

/** A missing value in a list of values. */
export function showValue(column: string, v: Cell): string {
	return v === null ? 'missing' : showCell(column, v);
}

/** "1 run", "1,234 runs" */
export function count(n: number, one: string, many = `${one}s`): string {
	return `${whole(n)} ${n === 1 ? one : many}`;
}

const UPPER: Record<string, string> = {
	ttft: 'TTFT', tpot: 'TPOT', itl: 'ITL', e2el: 'E2EL', id: 'ID', gpu: 'GPU', cpu: 'CPU', kv: 'KV',
	slo: 'SLO', url: 'URL', lora: 'LoRA', http: 'HTTP', tls: 'TLS', api: 'API', nccl: 'NCCL',
	vllm: 'vLLM', os: 'OS', ram: 'RAM', moe: 'MoE',
};
const UNITS = new Set(['ms', 'ns', 's', 'us', 'bytes']);

/** "server.tensor_parallel_size" as "tensor parallel size", "median_ttft_ms" as "median TTFT". */
export function columnLabel(column: string): string {
	if (column.startsWith('='))
		return column.slice(1).trim();
	const words = column.slice(column.indexOf('.') + 1).split(/[_.]/).filter((w) => w !== '');
	if (words.length > 1 && !column.includes('.') && UNITS.has(words[words.length - 1]))
		words.pop();
	const label = words.map((w) => UPPER[w] ?? w).join(' ');
	return /^(p\d+|mean|median) (TTFT|TPOT|ITL|E2EL)$/.test(label)
		? label.charAt(0).toUpperCase() + label.slice(1) : label;
}
