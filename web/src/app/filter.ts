// SPDX-License-Identifier: Apache-2.0
// filter.ts: the tree of conditions, built up from clicks; src/results/index/filter.h says what it means.
//
// The whole filter is an "and" whose parts are at most one plain condition per column (these belong
// to the panel; their own column's counts leave them out) and any number of groups.
import type { Cell } from './api';

export interface InCondition { column: string; in: Cell[] }
export interface RangeCondition { column: string; range: { min?: Bound; max?: Bound } }
export interface TextCondition { column: string; text: string }
export interface MissingCondition { column: string; missing: boolean }
export type Bound = number | 'inf' | '-inf';
export type Condition = InCondition | RangeCondition | TextCondition | MissingCondition;
export interface And { and: Filter[] }
export interface Or { or: Filter[] }
export interface Not { not: Filter }
export type Group = And | Or | Not;
export type Filter = Condition | Group;

export const EVERYTHING: And = { and: [] };
const DEPTH_MAX = 16;

export function isCondition(f: Filter): f is Condition {
	return 'column' in f;
}

function cell(v: unknown): Cell {
	if (v === null || typeof v === 'boolean' || typeof v === 'number' || typeof v === 'string')
		return v;
	throw new Error('a value of a filter is text, a number, true, false or null');
}

function bound(v: unknown): Bound {
	if (typeof v === 'number' || v === 'inf' || v === '-inf')
		return v;
	throw new Error('an end of a range is a number or "inf"');
}

function checkCondition(o: Record<string, unknown>): Condition {
	const column = o.column;
	if (typeof column !== 'string')
		throw new Error('a condition names a column');
	if (Array.isArray(o.in))
		return { column, in: o.in.map(cell) };
	if (typeof o.text === 'string')
		return { column, text: o.text };
	if (typeof o.missing === 'boolean')
		return { column, missing: o.missing };
	if (typeof o.range === 'object' && o.range !== null) {
		const given = o.range as Record<string, unknown>;
		const range: { min?: Bound; max?: Bound } = {};
		if (given.min !== undefined)
			range.min = bound(given.min);
		if (given.max !== undefined)
			range.max = bound(given.max);
		return { column, range };
	}
	throw new Error('a condition has one of in, range, text, missing');
}

/** Checks a filter from an address, or throws. */
export function checkFilter(v: unknown, depth = 0): Filter {
	if (typeof v !== 'object' || v === null || depth > DEPTH_MAX)
		throw new Error('a filter is an object of at most 16 levels');
	const o = v as Record<string, unknown>;
	if (Array.isArray(o.and))
		return { and: o.and.map((part) => checkFilter(part, depth + 1)) };
	if (Array.isArray(o.or))
		return { or: o.or.map((part) => checkFilter(part, depth + 1)) };
	if (o.not !== undefined)
		return { not: checkFilter(o.not, depth + 1) };
	return checkCondition(o);
}

/** The same, with an "and" outermost and one plain condition per column in it. */
export function checkWhole(v: unknown): And {
	const f = checkFilter(v);
	const whole = 'and' in f ? f : { and: [f] };
	const seen = new Set<string>();
	return { and: whole.and.map((part) => {
		if (!isCondition(part))
			return part;
		const again = seen.has(part.column);
		seen.add(part.column);
		return again ? { and: [part] } : part;
	}) };
}

export const isEverything = (f: And): boolean => f.and.length === 0;

/** The plain condition on a column. */
export function conditionOn(f: And, column: string): Condition | undefined {
	return f.and.find((part): part is Condition => isCondition(part) && part.column === column);
}

/** Replaces the condition on its column, in the same place; null removes it. */
export function withCondition(f: And, column: string, next: Condition | null): And {
	const at = f.and.findIndex((part) => isCondition(part) && part.column === column);
	if (at < 0)
		return next ? { and: [...f.and, next] } : f;
	return { and: f.and.flatMap((part, i) => (i !== at ? [part] : next ? [next] : [])) };
}

export function withoutPart(f: And, at: number): And {
	return { and: f.and.filter((_, i) => i !== at) };
}

export function selectedValues(f: And, column: string): Cell[] {
	const now = conditionOn(f, column);
	if (!now)
		return [];
	if ('in' in now)
		return now.in;
	return 'missing' in now && now.missing ? [null] : [];
}

/** Adds or removes one value of a column; null is a missing value. */
export function toggleValue(f: And, column: string, value: Cell): And {
	const now = selectedValues(f, column);
	const next = now.includes(value) ? now.filter((v) => v !== value) : [...now, value];
	return withCondition(f, column, next.length ? { column, in: next } : null);
}

/** Keeps only this value of the column. */
export function onlyValue(f: And, column: string, value: Cell): And {
	return withCondition(f, column, { column, in: [value] });
}

export function withRange(f: And, column: string, min: Bound | null, max: Bound | null): And {
	if (min === null && max === null)
		return withCondition(f, column, null);
	const range: { min?: Bound; max?: Bound } = {};
	if (min !== null)
		range.min = min;
	if (max !== null)
		range.max = max;
	return withCondition(f, column, { column, range });
}

/** How many plain conditions there are, at any depth. */
export function countConditions(f: Filter): number {
	if (isCondition(f))
		return 1;
	const parts = 'and' in f ? f.and : 'or' in f ? f.or : [f.not];
	return parts.reduce((n, part) => n + countConditions(part), 0);
}

/** Brings a tree into the shape that checkWhole promises, without empty groups. */
export function tidy(f: Filter): Filter | null {
	if (isCondition(f))
		return 'in' in f && f.in.length === 0 ? null : f;
	if ('not' in f) {
		const inner = tidy(f.not);
		return inner ? { not: inner } : null;
	}
	const parts = ('and' in f ? f.and : f.or).map(tidy).filter((part): part is Filter => part !== null);
	if (parts.length === 0)
		return null;
	return 'and' in f ? { and: parts } : { or: parts };
}

/** The form that the API takes: null for no filter. */
export const asked = (f: And): And | null => (isEverything(f) ? null : f);

/**
 * The same rows, but counts leave no column's own condition out, so they show what really differs
 * among the rows. Combined with an empty "or", which is false and about no column, no filter is
 * about one column alone (src/web/data.c does the same).
 */
export const whole = (f: And): Filter | null => (isEverything(f) ? null : { or: [f, { or: [] }] });
