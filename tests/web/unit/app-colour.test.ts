// SPDX-License-Identifier: Apache-2.0
// The colours of series: their order, and how far apart they are for people who see fewer of them.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
	adopt, arrange, COLOURS, colourName, RAMP, rampAt, SHAPES, shapeOf,
} from '../../../web/src/app/colour';

type Three = [number, number, number];
const file = new URL('../../../web/src/app/theme.css', import.meta.url);
const css = readFileSync(fileURLToPath(file), 'utf8');
const [light, dark] = css.split(':root[data-theme="dark"]');

/** A colour of a theme: the dark one inherits what it does not set. */
function hex(theme: string, name: string): string {
	const wanted = new RegExp(`--${name}: (#[0-9a-f]{6});`);
	const found = wanted.exec(theme) ?? wanted.exec(light);
	if (!found)
		throw new Error(`no colour ${name}`);
	return found[1];
}

const linear = (v: number): number => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const rgb = (text: string): Three =>
	[1, 3, 5].map((i) => linear(parseInt(text.slice(i, i + 2), 16) / 255)) as Three;
const times = (m: number[][], v: Three): Three =>
	m.map((row) => row.reduce((sum, f, i) => sum + f * v[i], 0)) as Three;

/** Full dichromacy after Machado, Oliveira and Fernandes (2009), on linear RGB. */
const SIGHT: Record<string, number[][]> = {
	normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
		[-0.003882, -0.048116, 1.051998]],
	deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
		[-0.01182, 0.04294, 0.968881]],
	tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
		[0.004733, 0.691367, 0.3039]],
};

function lab(color: Three): Three {
	const clamped = color.map((v) => Math.min(1, Math.max(0, v))) as Three;
	const xyz = times([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175],
		[0.0193339, 0.119192, 0.9503041]], clamped);
	const f = xyz.map((v, i) => v / [0.95047, 1, 1.08883][i])
		.map((t) => (t > 216 / 24389 ? Math.cbrt(t) : (24389 / 27 * t + 16) / 116));
	return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])];
}

/** CIEDE2000. */
function distance([l1, a1, b1]: Three, [l2, a2, b2]: Three): number {
	const rad = Math.PI / 180, mean = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
	const g = 0.5 * (1 - Math.sqrt(mean ** 7 / (mean ** 7 + 25 ** 7)));
	const c1 = Math.hypot(a1 * (1 + g), b1), c2 = Math.hypot(a2 * (1 + g), b2);
	const angle = (a: number, b: number): number => (a === 0 && b === 0 ? 0
		: (Math.atan2(b, a * (1 + g)) / rad + 360) % 360);
	const h1 = angle(a1, b1), h2 = angle(a2, b2);
	const turn = c1 * c2 === 0 ? 0 : (h2 - h1 + 540) % 360 - 180;
	const dl = l2 - l1, dc = c2 - c1, dh = 2 * Math.sqrt(c1 * c2) * Math.sin(turn / 2 * rad);
	const l = (l1 + l2) / 2, c = (c1 + c2) / 2;
	const h = c1 * c2 === 0 ? h1 + h2 : Math.abs(h1 - h2) <= 180 ? (h1 + h2) / 2
		: h1 + h2 < 360 ? (h1 + h2 + 360) / 2 : (h1 + h2 - 360) / 2;
	const t = 1 - 0.17 * Math.cos((h - 30) * rad) + 0.24 * Math.cos(2 * h * rad)
		+ 0.32 * Math.cos((3 * h + 6) * rad) - 0.2 * Math.cos((4 * h - 63) * rad);
	const sl = 1 + 0.015 * (l - 50) ** 2 / Math.sqrt(20 + (l - 50) ** 2);
	const sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
	const rt = -2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7))
		* Math.sin(60 * Math.exp(-(((h - 275) / 25) ** 2)) * rad);
	return Math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * (dc / sc) * (dh / sh));
}

function least(colors: string[], sight: string): number {
	const seen = colors.map((c) => lab(times(SIGHT[sight], rgb(c))));
	return Math.min(...seen.flatMap((a, i) => seen.slice(i + 1).map((b) => distance(a, b))));
}

function contrast(a: string, b: string): number {
	const light = (c: string): number => times([[0.2126, 0.7152, 0.0722]], rgb(c))[0];
	const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
	return (x + 0.05) / (y + 0.05);
}

const series = (theme: string, n: number): string[] =>
	Array.from({ length: n }, (_, i) => hex(theme, `series-${i + 1}`));

it('measures distances as the standard does', () => {
	// Pairs of the data that were published with CIEDE2000.
	expect(distance([50, 2.6772, -79.7751], [50, 0, -82.7485])).toBeCloseTo(2.0425, 3);
	expect(distance([50, 2.5, 0], [73, 25, -18])).toBeCloseTo(27.1492, 3);
	expect(distance([2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514])).toBeCloseTo(0.9082, 3);
});

it('keeps series apart for everybody, in both themes', () => {
	for (const theme of [light, dark])
		for (const sight of Object.keys(SIGHT)) {
			expect(least(series(theme, 4), sight), `first four, ${sight}`).toBeGreaterThan(12.5);
			expect(least(series(theme, COLOURS), sight), `all, ${sight}`).toBeGreaterThan(9.5);
			const [good, bad] = ['good', 'bad'].map((name) =>
				lab(times(SIGHT[sight], rgb(hex(theme, name)))));
			expect(distance(good, bad), `better and worse, ${sight}`).toBeGreaterThan(14);
		}
});

it('is seen on the card, and better and worse can be read', () => {
	for (const theme of [light, dark]) {
		for (const color of series(theme, COLOURS))
			expect(contrast(color, hex(theme, 'card')), color).toBeGreaterThan(3);
		for (const word of ['good', 'bad'])
			for (const ground of ['card', 'page', 'sunken', `${word}-soft`])
				expect(contrast(hex(theme, word), hex(theme, ground)), `${word} on ${ground}`)
					.toBeGreaterThan(4.5);
	}
});

it('has a ramp that grows in one direction', () => {
	for (const theme of [light, dark]) {
		const steps = Array.from({ length: RAMP },
			(_, i) => lab(rgb(hex(theme, `ramp-${i + 1}`)))[0]);
		const sign = theme === light ? -1 : 1;
		steps.slice(1).forEach((l, i) => expect((l - steps[i]) * sign).toBeGreaterThan(5));
		expect(contrast(hex(theme, 'ramp-1'), hex(theme, 'card'))).toBeGreaterThan(3);
	}
	expect([rampAt(0, 3), rampAt(1, 3), rampAt(2, 3)]).toEqual([[0, 0], [2, 0], [3, 1]]);
	expect(rampAt(0, 1)).toEqual([3, 1]);
});

it('gives a name the colour that it has in the performance chart', () => {
	adopt(['b200', 'h100', 'a100'],
		[['x | h100', 'h100'], ['x | b200', 'b200'], ['x | mi300x', 'mi300x']]);
	arrange(['x | h100', 'x | mi300x', 'x | b200']);
	expect(['x | b200', 'x | h100', 'x | mi300x'].map(colourName))
		.toEqual(['series-1', 'series-2', 'series-3']);
});

it('gives colours in the order of the legend, and keeps them when others are filtered out', () => {
	const keys = ['h100', 'h200', 'b200', 'a100'];
	arrange(keys);
	expect(keys.map(colourName)).toEqual(['series-1', 'series-2', 'series-3', 'series-4']);
	arrange(['b200', 'a100']);
	expect(colourName('b200')).toBe('series-3');
	arrange(['b200', 'mi300x', 'a100']);
	expect(['b200', 'mi300x', 'a100'].map(colourName)).toEqual(['series-3', 'series-1', 'series-4']);
	// Two that were never in one legend and now are: the later one gives way.
	arrange(['h100', 'mi300x']);
	expect(['h100', 'mi300x'].map(colourName)).toEqual(['series-1', 'series-2']);
	expect([0, 7, 8].map(colourName)).toEqual(['series-1', 'series-8', 'series-1']);
});

it('has a shape of its own for each colour, and another for the next round', () => {
	expect(new Set(SHAPES).size).toBe(COLOURS);
	const all = Array.from({ length: 16 }, (_, i) => `${i % COLOURS} ${shapeOf(i)}`);
	expect(new Set(all).size).toBe(16);
});
