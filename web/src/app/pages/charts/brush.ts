// SPDX-License-Identifier: Apache-2.0
// brush.ts: what is marked in one chart applies to all others, until it becomes the filter or is
// cleared.
import type { Cell } from '../../api';
import {
	checkWhole, conditionOn, EVERYTHING, isCondition, withCondition, withRange, type And, type Filter,
} from '../../filter';
import { jsonCodec } from '../../url';

export const brushCodec = jsonCodec<And>(checkWhole, EVERYTHING);

/**
 * The conditions on columns other than these: a chart keeps showing what is outside its own mark.
 */
export function others(brush: And, own: readonly string[]): Filter[] {
	return brush.and.filter((part) => !isCondition(part) || !own.includes(part.column));
}

export function without(brush: And, own: readonly string[]): And {
	return { and: others(brush, own) };
}

const round = (v: number): number => Number(v.toPrecision(6));

/** Both ends belong to a range, so that rounding outwards loses no run. */
export function rangeOf(brush: And, column: string, a: number, b: number): And {
	return withRange(brush, column, round(Math.min(a, b)), round(Math.max(a, b)));
}

export function valuesOf(brush: And, column: string, values: Cell[]): And {
	return withCondition(brush, column, values.length ? { column, in: values } : null);
}

/** The numbers between which a column is marked; null: it is not. */
export function span(brush: And, column: string): [number, number] | null {
	const c = conditionOn(brush, column);
	if (!c || !('range' in c) || typeof c.range.min !== 'number' || typeof c.range.max !== 'number')
		return null;
	return [c.range.min, c.range.max];
}

/** The filter combined with the marked part. */
export function merged(filter: And, brush: And): And {
	let out = filter;
	for (const part of brush.and) {
		if (!isCondition(part))
			out = { and: [...out.and, part] };
		else if (conditionOn(out, part.column))
			out = { and: [...out.and, { and: [part] }] };
		else
			out = withCondition(out, part.column, part);
	}
	return out;
}
