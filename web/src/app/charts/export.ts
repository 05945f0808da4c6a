// SPDX-License-Identifier: Apache-2.0
// export.ts: a chart as a file: SVG or PNG with its title, legend and notes, or its points as CSV.
import type { EChartsCoreOption } from 'echarts/core';
import type { Size } from './axis';
import { FONT, type Ink } from './ink';

export interface LegendItem { name: string; colour: string; shape: string }
export type Table = (string | number | null)[][];

export interface Picture {
	title: string;
	notes: string[];
	legend: LegendItem[];
	option: EChartsCoreOption;
	size: Size;
	ink: Ink;
}

const PAD = 16, TITLE_PX = 28, LINE_PX = 20, CHAR_PX = 7, ITEM_PX = 30;
const PNG_SCALE = 2;

const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;')
	.replace(/>/g, '&gt;').replace(/"/g, '&quot;');

/** Breaks text into lines no longer than a width. */
export function wrapped(text: string, width: number): string[] {
	const most = Math.max(20, Math.floor(width / CHAR_PX)), lines = [''];
	for (const word of text.split(' ')) {
		const last = lines[lines.length - 1];
		if (last && last.length + 1 + word.length > most)
			lines.push(word);
		else
			lines[lines.length - 1] = last ? `${last} ${word}` : word;
	}
	return lines;
}

/** Where each entry of a legend goes, row after row. */
export function legendPlaces(names: readonly string[], width: number): { x: number; y: number }[] {
	let x = 0, y = 0;
	return names.map((name) => {
		const w = name.length * CHAR_PX + ITEM_PX;
		if (x > 0 && x + w > width) {
			x = 0;
			y += LINE_PX;
		}
		const place = { x, y };
		x += w;
		return place;
	});
}

export function composed(p: Omit<Picture, 'option'>, drawing: string): { svg: string; size: Size } {
	const inner = p.size.width, places = legendPlaces(p.legend.map((l) => l.name), inner);
	const notes = p.notes.flatMap((n) => wrapped(n, inner));
	const below = PAD + TITLE_PX + p.size.height;
	const legendHigh = places.length ? places[places.length - 1].y + LINE_PX : 0;
	const size = { width: inner + 2 * PAD, height: below + legendHigh + notes.length * LINE_PX + PAD };
	const legend = p.legend.map((l, i) => `<g transform="translate(${PAD + places[i].x},`
		+ `${below + places[i].y})">`
		+ `<path d="${l.shape}" transform="translate(0,4)" fill="${l.colour}"/>`
		+ `<text x="15" y="13" fill="${p.ink.ink}">${escaped(l.name)}</text></g>`);
	const lines = notes.map((n, i) => `<text x="${PAD}" y="${below + legendHigh + i * LINE_PX + 13}" `
		+ `fill="${p.ink.dim}">${escaped(n)}</text>`);
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" `
		+ `font-family="${escaped(FONT)}" font-size="12">`
		+ `<rect width="100%" height="100%" fill="${p.ink.card}"/>`
		+ `<text x="${PAD}" y="${PAD + 12}" font-size="15" font-weight="600" fill="${p.ink.ink}">`
		+ `${escaped(p.title)}</text>`
		+ `<g transform="translate(${PAD},${PAD + TITLE_PX - 4})">${drawing}</g>`
		+ `${legend.join('')}${lines.join('')}</svg>`;
	return { svg, size };
}

async function drawn(p: Picture): Promise<{ svg: string; size: Size }> {
	const { init } = await import('./echarts');
	const chart = init(null, null, { renderer: 'svg', ssr: true, ...p.size });
	chart.setOption({ animation: false, ...p.option });
	const drawing = chart.renderToSVGString();
	chart.dispose();
	return composed(p, drawing);
}

export async function svgOf(p: Picture): Promise<Blob> {
	return new Blob([(await drawn(p)).svg], { type: 'image/svg+xml' });
}

export async function pngOf(p: Picture): Promise<Blob> {
	const { svg, size } = await drawn(p);
	const url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
	try {
		const image = new Image();
		image.src = url;
		await image.decode();
		const canvas = document.createElement('canvas');
		canvas.width = size.width * PNG_SCALE;
		canvas.height = size.height * PNG_SCALE;
		canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
		return await new Promise((done, failed) => canvas.toBlob((blob) =>
			(blob ? done(blob) : failed(new Error('The browser could not make a PNG')))));
	} finally {
		URL.revokeObjectURL(url);
	}
}

/** Escapes a cell that a spreadsheet would run as a formula. */
function cell(v: string | number | null): string {
	if (typeof v !== 'string')
		return v === null ? '' : String(v);
	const text = /^[=+\-@\t\r]/.test(v) ? `'${v}` : v;
	return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export const csvText = (table: Table): string =>
	`${table.map((row) => row.map(cell).join(',')).join('\r\n')}\r\n`;

/** "Output tokens/s/GPU against ..." as a name of a file. */
export const fileName = (title: string, kind: string): string =>
	`${title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 80)
		|| 'chart'}.${kind}`;

export function save(blob: Blob, name: string): void {
	const a = document.createElement('a');
	a.href = URL.createObjectURL(blob);
	a.download = name;
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}
