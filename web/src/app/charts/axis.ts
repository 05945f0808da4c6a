// SPDX-License-Identifier: Apache-2.0
// axis.ts: what all drawings with axes share: extents that do not move, texts, tooltips.
import type { Cell } from '../api';
import { short } from '../../lib/format';
import { measured, showValue } from '../show';
import { FONT, type Ink } from './ink';

export interface Extent { min: number; max: number }

/** From the least to the most of all, with a little air; null: there is nothing. */
export function extentOf(values: Iterable<number>, isLog = false): Extent | null {
	let min = Infinity, max = -Infinity;
	for (const v of values) {
		if (!Number.isFinite(v) || (isLog && v <= 0))
			continue;
		min = Math.min(min, v);
		max = Math.max(max, v);
	}
	return min <= max ? { min, max } : null;
}

/** 1, 2, 2.5, 5 times a power of ten: a step that divides a span into about n parts. */
export function niceStep(span: number, n = 5): number {
	const rough = span / n, power = 10 ** Math.floor(Math.log10(rough));
	return ([1, 2, 2.5, 5].find((s) => s * power >= rough * (1 - 1e-9)) ?? 10) * power;
}

/** Shares end at 100 %. */
export function extentIn(unit: string | null, e: Extent | null, isLog = false): Extent {
	const nice = niceExtent(e, isLog);
	return unit === '%' && e && e.max <= 100 && nice.max > 100 ? { ...nice, max: 100 } : nice;
}

/** Whether a figure spans so much that most of it would lie on the ground. */
export function isWide(e: Extent | null): boolean {
	return e !== null && e.min > 0 && e.max / e.min > 40;
}

/** Ends on round numbers; from zero where that costs little of the room. */
export function niceExtent(e: Extent | null, isLog = false): Extent {
	if (!e)
		return isLog ? { min: 1, max: 10 } : { min: 0, max: 1 };
	if (isLog) {
		const min = 10 ** Math.floor(Math.log10(e.min)), max = 10 ** Math.ceil(Math.log10(e.max));
		return { min, max: max > min ? max : min * 10 };
	}
	let { min, max } = e;
	if (min >= 0 && min < max * 0.6)
		min = 0;
	if (min === max) {
		const air = Math.abs(min) * 0.05 || 1;
		min -= air;
		max += air;
	}
	const step = niceStep(max - min), air = (max - min) * 0.03;
	const low = min === 0 ? 0 : Math.floor((min - air) / step) * step;
	const high = Math.ceil((max + air) / step) * step;
	const round = (v: number): number => Number(v.toPrecision(12));
	return { min: round(low), max: round(high) };
}

export function titleOf(label: string, unit: string | null | undefined): string {
	return unit ? `${label} (${unit})` : label;
}

interface AxisOptions { name: string; extent: Extent; isLog?: boolean; ink: Ink; isVertical: boolean }

export function valueAxis({ name, extent, isLog = false, ink, isVertical }: AxisOptions): object {
	return {
		type: isLog ? 'log' : 'value', name, min: extent.min, max: extent.max,
		nameLocation: 'middle', nameGap: isVertical ? 52 : 30,
		nameTextStyle: { color: ink.dim, fontFamily: FONT, fontSize: 12 },
		axisLabel: { color: ink.dim, fontFamily: FONT, fontSize: 11,
			formatter: (v: number) => short(v), hideOverlap: true },
		axisLine: { show: !isVertical, lineStyle: { color: ink['line-strong'] } },
		axisTick: { show: false },
		splitLine: { lineStyle: { color: ink.grid } },
	};
}

export function grid(): object {
	return { left: 70, right: 24, top: 16, bottom: 48 };
}

/** Rows of words and numbers; elements, because a policy without inline styles forbids markup. */
export function tipBody(title: string, rows: [string, string][], foot?: string): HTMLElement {
	const box = document.createElement('div');
	box.className = 'tip';
	const head = document.createElement('strong');
	head.textContent = title;
	box.append(head);
	for (const [name, value] of rows) {
		const line = document.createElement('div'), left = document.createElement('span');
		const right = document.createElement('b');
		left.textContent = name;
		right.textContent = value;
		line.append(left, right);
		box.append(line);
	}
	if (foot) {
		const end = document.createElement('em');
		end.textContent = foot;
		box.append(end);
	}
	return box;
}

export function tooltip(ink: Ink, formatter: (hit: unknown) => HTMLElement | string): object {
	return {
		trigger: 'item', confine: true, transitionDuration: 0, formatter,
		backgroundColor: ink.card, borderColor: ink['line-strong'], borderWidth: 1, padding: 10,
		textStyle: { color: ink.ink, fontFamily: FONT, fontSize: 12 },
	};
}

/** The API's name of a group, or its values: "A100, tensor_parallel_size 2". */
export function keyName(key: Record<string, Cell>, name?: string): string {
	if (name)
		return name;
	const parts = Object.entries(key).map(([column, v]) => (typeof v === 'string' && v !== '' ? v
		: `${column.slice(column.indexOf('.') + 1)} ${showValue(column, v)}`));
	return parts.length ? parts.join(', ') : 'All runs';
}

/** Stays the same whatever other groups there are: for colours and for the address. */
export function keyId(key: Record<string, Cell>): string {
	return Object.entries(key).map(([column, v]) => showValue(column, v)).join(' | ') || 'all';
}

export const amount = (v: number | null | undefined, unit?: string | null): string =>
	(v === null || v === undefined ? '–' : `${measured(v)}${unit ? ` ${unit}` : ''}`);
