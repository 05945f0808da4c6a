// SPDX-License-Identifier: Apache-2.0
// interval.ts: an effect and its interval in words.

/** What a reader should think of an effect. */
export type Tone = 'good' | 'bad' | 'plain';

/**
 * "+5.2 %", "−0.3 %"; of a share, not of a difference of percentages. One decimal; of more than three
 * digits one more for each.
 */
export function percent(v: number | null | undefined, digits = 2): string {
	if (v === null || v === undefined)
		return '–';
	const p = v * 100, size = Math.abs(p);
	const shown = Number(size.toFixed(size >= 100 ? 0 : Math.max(1, digits - 2)));
	return `${shown === 0 ? '' : p < 0 ? '−' : '+'}${shown} %`;
}

const DIGITS_MOST = 5;

/** With as many digits as distinguish its ends, up to five. */
export function intervalText(interval: readonly number[] | null | undefined): string {
	if (interval?.length !== 2)
		return '';
	let digits = 3;
	while (digits < DIGITS_MOST && percent(interval[0], digits) === percent(interval[1], digits))
		digits++;
	return `${percent(interval[0], digits)} to ${percent(interval[1], digits)}`;
}
