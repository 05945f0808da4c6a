// SPDX-License-Identifier: Apache-2.0
// slo.ts: limits that a service must keep, in the address.
import type { CapacityConfiguration, Slo } from '../../../lib/api';
import { jsonCodec } from '../../url';

export interface Limit {
	column: string;
	side: 'max' | 'min';
	value: number | null;
}

/** None: the server chooses, by what was measured. */
export const USUAL: Limit[] = [];
/** Of one question: ANALYSE_SLO_MAX of src/results/analyse/analyse_internal.h. */
export const LIMITS_MAX = 8;

export const limitsCodec = jsonCodec<Limit[]>((v) => {
	if (!Array.isArray(v)) throw new Error('limits are a list');
	return v.slice(0, LIMITS_MAX).map((entry): Limit => {
		const { column, side, value } = entry as Record<string, unknown>;
		if (typeof column !== 'string') throw new Error('a limit names a column');
		return {
			column,
			side: side === 'min' ? 'min' : 'max',
			value: typeof value === 'number' && Number.isFinite(value) ? value : null,
		};
	});
}, USUAL);

/** Rows without a number are ignored. */
export function asked(limits: Limit[]): Slo[] {
	return limits.flatMap((l) =>
		l.value === null
			? []
			: [
					l.side === 'max'
						? { column: l.column, max: l.value }
						: { column: l.column, min: l.value },
				],
	);
}

/** Limits of an answer, as they are edited. */
export const limitsOf = (slo: Slo[]): Limit[] => slo.map(({ column, min, max }): Limit => ({
	column, side: min === undefined ? 'max' : 'min', value: min ?? max ?? null }));

/** The limits held at every load that was measured: these GPUs are enough, and fewer may be. */
export const isBound = (c: CapacityConfiguration): boolean => c.state !== 'found' && c.gpus.value !== null;

/**
 * Configurations that the question settles, best first, and those that need more measured loads.
 * One that kept the limits at a load at least as high as the rate is settled: one server of it is
 * enough. One that was not measured beyond its limits is settled where the GPUs known to be enough
 * are fewer than any other needs.
 */
export function rankedOf<T extends CapacityConfiguration>(list: T[]): [T[], T[]] {
	const isSettled = (c: CapacityConfiguration): boolean => c.gpus.value !== null
		&& (c.state === 'found' || c.servers === 1);
	const least = Math.min(...list.filter(isSettled).map((c) => c.gpus.value ?? Infinity));
	const isRanked = (c: CapacityConfiguration): boolean => isSettled(c)
		|| (isBound(c) && (c.gpus.value ?? Infinity) < least);
	return [list.filter(isRanked), list.filter((c) => !isRanked(c))];
}
