// SPDX-License-Identifier: Apache-2.0
// format.ts: numbers in readable form. Pages only format; values were computed before.

const NS_PER_MS = 1e6;

/** HH:MM:SS.mmm of a time since the start, as upstream writes it. */
export function clock(ns: number): string {
	const ms = Math.round(ns / NS_PER_MS);
	const two = (v: number): string => String(Math.floor(v)).padStart(2, '0');
	return `${two(ms / 3600000)}:${two((ms / 60000) % 60)}:${two((ms / 1000) % 60)}`
		+ `.${String(ms % 1000).padStart(3, '0')}`;
}

/** Seconds with three decimals: "0.012s". */
export function seconds(ns: number): string {
	return `${(ns / 1e9).toFixed(3)}s`;
}

export function fixed2(v: number): string {
	return v.toFixed(2);
}

/** 1234567 as "1,234,567", whatever the reader's language. */
export function whole(v: number): string {
	return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** The shortest unit that needs no leading zero: "950 ns", "12.3 ms", "1.5 s", "2 min". */
export function duration(ns: number): string {
	const units: [number, string][] =
		[[60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
	for (const [size, name] of units)
		if (Math.abs(ns) >= size && (size < 60e9 || Math.abs(ns) >= 600e9))
			return `${Number((ns / size).toPrecision(3))} ${name}`;
	return '0';
}

/** 0.5, 12, 3.4k, 1.2M: for axes. */
export function short(v: number): string {
	const size = Math.abs(v);
	if (size >= 1e6)
		return `${Number((v / 1e6).toPrecision(3))}M`;
	if (size >= 1e4)
		return `${Number((v / 1e3).toPrecision(3))}k`;
	return String(Number(v.toPrecision(4)));
}
