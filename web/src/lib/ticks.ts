// SPDX-License-Identifier: Apache-2.0
// ticks.ts: round values on an axis.

/** The smallest of 1, 2, 5, 10... times a power of ten that is not below v. */
export function roundUp(v: number): number {
	if (!(v > 0))
		return 1;
	const power = 10 ** Math.floor(Math.log10(v));
	for (const step of [1, 2, 5])
		if (step * power >= v * (1 - 1e-9))
			return step * power;
	return 10 * power;
}

/** The top of a scale that includes v, with a small margin. */
export function scaleTop(v: number): number {
	if (!(v > 0))
		return 1;
	const power = 10 ** Math.floor(Math.log10(v));
	return ([1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8].find((step) => step * power >= v) ?? 10) * power;
}

/** As roundUp, for nanoseconds: above a second, parts and multiples of a minute. */
export function roundUpTime(ns: number): number {
	const s = ns / 1e9;
	if (s <= 1)
		return Math.max(1, Math.round(roundUp(ns)));
	for (const step of [2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 36000])
		if (step >= s)
			return step * 1e9;
	return roundUp(s / 36000) * 36000e9;
}

/** Multiples of step from a to b, both included. */
export function multiples(step: number, a: number, b: number): number[] {
	const out: number[] = [];
	for (let k = Math.ceil(a / step - 1e-9); k * step <= b + step * 1e-9; k++)
		out.push(k * step + 0); // no -0
	return out;
}
