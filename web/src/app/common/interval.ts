// SPDX-License-Identifier: Apache-2.0
// interval.ts: an effect and its interval in words.
import { whole } from '../../lib/format';

/** What a reader should think of an effect. */
export type Tone = 'good' | 'bad' | 'plain';

/**
 * "+5.2 %", "−0.3 %", "+45.0 %"; of a share, not of a difference of percentages. One decimal below
 * 100 %; of more than three digits one more for each.
 */
export function percent(v: number | null | undefined, digits = 2): string {
	if (v === null || v === undefined)
		return '–';
	const p = v * 100, size = Math.abs(p);
	if (size >= 100)
		return `${p < 0 ? '−' : '+'}${whole(size)} %`;
	const shown = size.toFixed(Math.max(1, digits - 2));
	return `${Number(shown) === 0 ? '' : p < 0 ? '−' : '+'}${shown} %`;
}

/** "+20 %", "−0.5 %": of a round number, at the tick of an axis. */
export const roundPercent = (v: number): string =>
	`${v < 0 ? '−' : v > 0 ? '+' : ''}${Math.abs(v) < 10 ? Number(Math.abs(v * 100).toPrecision(6))
		: whole(Math.abs(v * 100))} %`;

/** No line ends between a number and its "%". */
export const withUnits = (text: string): string => text.replace(/ %/g, '\u00a0%');

const DIGITS_MOST = 5;

/** With as many digits as distinguish its ends, up to five. */
export function intervalText(interval: readonly number[] | null | undefined): string {
	if (interval?.length !== 2)
		return '';
	let digits = 3;
	const [low, high] = interval;
	while (low !== high && digits < DIGITS_MOST && percent(low, digits) === percent(high, digits))
		digits++;
	return `${percent(low, digits)} to ${percent(high, digits)}`;
}
