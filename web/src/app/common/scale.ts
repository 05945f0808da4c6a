// SPDX-License-Identifier: Apache-2.0
// scale.ts: places of values in small drawings: 0 to 1 from the least to the most.

export interface Scale {
	min: number;
	max: number;
	isLog: boolean;
}

/** Logarithmic where the values are positive and span much. */
export function scaleOf(values: readonly (number | null)[]): Scale {
	const good = values.filter((v): v is number => v !== null && Number.isFinite(v));
	if (!good.length) return { min: 0, max: 1, isLog: false };
	const min = Math.min(...good),
		max = Math.max(...good);
	const isLog = min > 0 && max / min > 50;
	if (min === max)
		return {
			min: min - (Math.abs(min) * 0.1 || 1),
			max: max + (Math.abs(max) * 0.1 || 1),
			isLog: false,
		};
	return { min, max, isLog };
}

export function at(s: Scale, v: number): number {
	const f = s.isLog ? Math.log : (x: number): number => x;
	const share = (f(v) - f(s.min)) / (f(s.max) - f(s.min));
	return Math.min(1, Math.max(0, share));
}
