// SPDX-License-Identifier: Apache-2.0
// rows.ts: the visible requests, one row each.
//
// Rows are written as pixels into one picture, so a frame costs what its pixels cost, whether a row
// holds ten tokens or a hundred thousand. Only visible rows are examined.
import { colour, mix, pixel } from '../lib/theme';
import { roundUp } from '../lib/ticks';
import { DONE, FAILED } from './data';
import { ticks } from './axis';
import { density, GUTTER, prepare, type Ink } from './canvas';
import { CATEGORIES, ENDED, HIGH, LOW, MID, NONE, Painter, TTFT, WAITED } from './lod';
import type { View } from './view';

/** Browsers cannot scroll beyond this height; the scroll bar then shows a share. */
const SCROLL_MAX = 12e6;
const LABEL_HEIGHT = 12;

export class Rows {
	private readonly painter: Painter;
	private picture: ImageData | null = null;
	private readonly paint = new Uint32Array(CATEGORIES);
	private ground = 0;
	private grid = 0;
	private thread = 0;
	private height = 0;

	constructor(
		private readonly view: View, private readonly scroller: HTMLElement,
		private readonly spacer: HTMLElement, private readonly canvas: HTMLCanvasElement,
	) {
		this.painter = new Painter(view.r);
		this.readTheme();
	}

	readTheme(): void {
		const names: [number, string][] = [[WAITED, 'waited'], [TTFT, 'ttft'], [LOW, 'itl-low'],
			[MID, 'itl-mid'], [HIGH, 'itl-high'], [ENDED, 'ended']];
		for (const [kind, name] of names)
			this.paint[kind] = pixel(colour(name));
		this.ground = pixel(colour('card'));
		this.grid = pixel(colour('grid'));
		this.thread = pixel(colour('faint'));
	}

	/** Height of all rows, and the first visible row (a fraction). */
	private get total(): number {
		return this.view.rows.length * this.view.rowHeight;
	}

	get top(): number {
		const reach = Math.max(1, this.scroller.scrollHeight - this.height);
		const hidden = Math.max(0, this.total - this.height);
		return this.total <= SCROLL_MAX ? this.scroller.scrollTop / this.view.rowHeight
			: ((this.scroller.scrollTop / reach) * hidden) / this.view.rowHeight;
	}

	get visible(): number {
		return this.height / this.view.rowHeight;
	}

	/** Scrolls so that this row is at the given share of the height. */
	scrollTo(row: number, share = 0.5): void {
		this.layout();
		const to = Math.max(0, row * this.view.rowHeight - this.height * share);
		const reach = this.scroller.scrollHeight - this.height;
		this.scroller.scrollTop = this.total <= SCROLL_MAX ? to
			: (to / Math.max(1, this.total - this.height)) * reach;
		this.view.changed();
	}

	/** The row under y (pixels of the canvas); -1: none. */
	rowAt(y: number): number {
		const row = Math.floor(this.top + y / this.view.rowHeight);
		return row >= 0 && row < this.view.rows.length ? row : -1;
	}

	layout(): void {
		this.height = this.scroller.clientHeight;
		this.view.resize(this.scroller.clientWidth - GUTTER);
		const more = Math.max(0, Math.min(this.total, SCROLL_MAX) - this.height);
		this.spacer.style.height = `${more}px`;
	}

	draw(ink: Ink): void {
		this.layout();
		const { view, height } = this, g = prepare(this.canvas, GUTTER + view.width, height);
		const dots = density(), width = this.canvas.width - Math.round(GUTTER * dots);
		g.fillStyle = ink.card;
		g.fillRect(0, 0, GUTTER + view.width, height);
		if (width > 0)
			this.drawPixels(g, dots, width);
		this.drawOver(g, ink);
	}

	private drawPixels(g: CanvasRenderingContext2D, dots: number, width: number): void {
		const { view } = this, tall = this.canvas.height;
		if (this.picture?.width !== width || this.picture.height !== tall)
			this.picture = new ImageData(width, tall);
		const dot = new Uint32Array(this.picture.data.buffer);
		const line = dot.subarray(0, width);
		line.fill(this.ground);
		for (const tick of ticks(view))
			line[Math.round(tick.x * dots)] = this.grid;
		for (let y = 1; y < tall; y++)
			dot.copyWithin(y * width, 0, width);
		const span = { from: view.from, perPixel: view.perPixel / dots, width };
		const kinds = new Uint8Array(width), top = this.top;
		const deep = view.rowHeight * dots;
		const air = deep >= 10 * dots ? 2 * dots : deep >= 4 ? 1 : 0;
		for (let row = Math.floor(top); row < view.rows.length; row++) {
			const y0 = Math.round((row - top) * deep);
			const y1 = Math.round((row + 1 - top) * deep) - air;
			const from = Math.max(0, y0), to = Math.min(tall, Math.max(y0 + 1, y1));
			if (y0 >= tall)
				break;
			const members = view.members(row), isMarked = members.includes(view.marked);
			if (isMarked || members.includes(view.hovered))
				this.band(dot, width, from, Math.min(tall, y1 + air), isMarked);
			if (members.length > 1)
				this.joined(dot, width, members, Math.floor((y0 + y1) / 2));
			for (const i of members)
				if (this.painter.paint(i, span, kinds))
					this.copy(dot, width, kinds, from, to);
		}
		g.putImageData(this.picture, Math.round(GUTTER * dots), 0);
	}

	/** The background of a row that the pointer or a search selects. */
	private band(dot: Uint32Array, width: number, y0: number, y1: number, isMarked: boolean): void {
		const ground = mix(this.ground, this.paint[TTFT], isMarked ? 0.28 : 0.14);
		dot.fill(ground, y0 * width, y1 * width);
	}

	/** A thin line from a session's first turn to its last: the pauses between them. */
	private joined(dot: Uint32Array, width: number, members: Uint32Array, y: number): void {
		const { r, from, perPixel } = this.view, last = members[members.length - 1];
		const x = (t: number): number => Math.round((t - from) / perPixel * density());
		const a = Math.max(0, x(r.start[members[0]]));
		const b = Math.min(width, x(r.start[last] + r.whole[last]));
		if (y >= 0 && y * width < dot.length && b > a)
			dot.fill(this.thread, y * width + a, y * width + b);
	}

	private copy(dot: Uint32Array, width: number, kinds: Uint8Array, y0: number, y1: number): void {
		let from = 0, to = width;
		while (from < to && kinds[from] === NONE)
			from++;
		while (to > from && kinds[to - 1] === NONE)
			to--;
		if (y1 <= y0 || from === to)
			return;
		const first = y0 * width;
		for (let x = from; x < to; x++)
			if (kinds[x] !== NONE)
				dot[first + x] = this.paint[kinds[x]];
		for (let y = y0 + 1; y < y1; y++)
			dot.copyWithin(y * width + from, first + from, first + to);
	}

	/** Names at the left, marks of failures and of where an answer begins, the cursor. */
	private drawOver(g: CanvasRenderingContext2D, ink: Ink): void {
		const { view, height } = this, tall = view.rowHeight, top = this.top;
		const every = roundUp(LABEL_HEIGHT / tall);
		g.textAlign = 'right';
		g.textBaseline = 'middle';
		const last = Math.min(view.rows.length, Math.ceil(top + height / tall));
		for (let row = Math.floor(top); row < last; row++) {
			const members = view.members(row), middle = (row - top + 0.5) * tall;
			if (row % every === 0) {
				g.fillStyle = members.some((i) => view.r.state[i] === FAILED) ? ink.bad
					: members.includes(view.marked) ? ink.accent : ink.dim;
				g.fillText(this.label(row), GUTTER - 10, Math.max(LABEL_HEIGHT / 2, middle));
			}
			if (tall >= 6)
				for (const i of members)
					this.drawMarks(g, ink, i, (row - top) * tall);
		}
		g.fillStyle = ink.line;
		g.fillRect(GUTTER - 1, 0, 1, height);
		const x = (view.cursor - view.from) / view.perPixel;
		if (x >= 0 && x <= view.width) {
			g.fillStyle = ink.faint;
			g.fillRect(GUTTER + x, 0, 1, height);
		}
	}

	/** A session's further rows, of turns at the same time, have no name. */
	private label(row: number): string {
		const { group, r, rows } = this.view, i = rows[row], session = r.session?.[i] ?? -1;
		if (group === 'request' || session < 0)
			return `Req ${i}`;
		return row > 0 && r.session?.[rows[row - 1]] === session ? '' : `Session ${session}`;
	}

	private drawMarks(g: CanvasRenderingContext2D, ink: Ink, i: number, y: number): void {
		const { view } = this, r = view.r, tall = view.rowHeight;
		if (r.answer[i] >= 0) {
			const x = (r.start[i] + r.answer[i] - view.from) / view.perPixel;
			if (x >= 0 && x < view.width) {
				g.fillStyle = ink.ink;
				g.fillRect(GUTTER + x - 1, y, 2, tall - 1);
			}
		}
		if (r.state[i] !== DONE) {
			const x = (r.start[i] + r.whole[i] - view.from) / view.perPixel;
			if (x < -8 || x >= view.width)
				return;
			g.strokeStyle = ink.bad;
			g.lineWidth = 1.5;
			const d = Math.min(4, tall / 2 - 1.5);
			const cx = GUTTER + x + d + 3, cy = y + tall / 2 - 0.5;
			g.beginPath();
			g.moveTo(cx - d, cy - d);
			g.lineTo(cx + d, cy + d);
			g.moveTo(cx - d, cy + d);
			g.lineTo(cx + d, cy - d);
			g.stroke();
		}
	}
}
