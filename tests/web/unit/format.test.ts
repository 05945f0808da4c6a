// SPDX-License-Identifier: Apache-2.0
import { clock, duration, seconds, short, whole } from '../../../web/src/lib/format';
import { multiples, roundUp, roundUpTime, scaleTop } from '../../../web/src/lib/ticks';
import { mix, pixel } from '../../../web/src/lib/theme';
import { tickLabel } from '../../../web/src/timeline/axis';

it('writes times as upstream does', () => {
	expect(clock(0)).toBe('00:00:00.000');
	expect(clock(1.2345e9)).toBe('00:00:01.235');
	expect(clock(59.9996e9)).toBe('00:01:00.000');
	expect(clock(3600e9 * 25 + 61.007e9)).toBe('25:01:01.007');
	expect(seconds(12.3456e6)).toBe('0.012s');
});

it('writes durations, counts and scales', () => {
	expect([950, 12300, 4.56e6, 1.2345e9, 120e9, 3600e9].map(duration))
		.toEqual(['950 ns', '12.3 µs', '4.56 ms', '1.23 s', '120 s', '60 min']);
	expect([0, 999, 1000, 1234567].map(whole)).toEqual(['0', '999', '1,000', '1,234,567']);
	expect([0, 0.5, 1234, 20000, 1.5e6].map(short)).toEqual(['0', '0.5', '1234', '20k', '1.5M']);
});

it('finds round places', () => {
	expect([0.3, 1, 1.1, 4, 6, 0].map(roundUp)).toEqual([0.5, 1, 2, 5, 10, 1]);
	expect([21000, 100, 7, 0].map(scaleTop)).toEqual([25000, 100, 8, 1]);
	expect([0.03e9, 1.5e9, 40e9, 4000e9].map(roundUpTime)).toEqual([0.05e9, 2e9, 60e9, 7200e9]);
	expect(multiples(5, -1, 16)).toEqual([0, 5, 10, 15]);
});

it('labels ticks as exactly as their step needs', () => {
	expect(tickLabel(1.25e9, 0.05e9)).toBe('1.25 s');
	expect(tickLabel(2e9, 1e9)).toBe('2 s');
	expect(tickLabel(125e9, 5e9)).toBe('2:05');
	expect(tickLabel(3725e9, 60e9)).toBe('1:02:05');
	expect(tickLabel(125.5e9, 0.5e9)).toBe('125.5 s');
});

it('knows colours as pixels', () => {
	expect(pixel('#636efa')).toBe(0xfffa6e63);
	expect(pixel('#fff')).toBe(0xffffffff);
	expect(pixel('#01020380')).toBe(0x80030201);
	expect(mix(pixel('#000000'), pixel('#ffffff'), 0.5)).toBe(0xff808080);
});
