// SPDX-License-Identifier: Apache-2.0
// view.ts: the visible part. Code that changes it calls changed(); drawing follows once a frame.
import type { Requests } from './data';
import { lanesOf, rowsOf, type Filter, type Group, type Lanes, type Sort } from './order';

const ROW_MIN = 1, ROW_MAX = 28;
/** Shortest time that a pixel shows. */
const PIXEL_NS_MIN = 50;

export class View {
	/** Left edge and scale of the time axis, in units. */
	from = 0;
	perPixel = 1;
	width = 0;       // pixels of the plot, without the gutter
	rowHeight = 16;  // pixels
	sort: Sort = 'sample';
	filter: Filter = 'all';
	group: Group;
	/** The first request of each row. */
	rows: Uint32Array;
	private lanes: Lanes | null = null; // null: a request a row
	/** A request that is drawn over the others. -1: none. */
	marked = -1;
	hovered = -1;
	/** Where the pointer is on the time axis, in units; NaN: elsewhere. */
	cursor = NaN;
	private waiting = false;
	private readonly listeners: (() => void)[] = [];

	constructor(readonly r: Requests, readonly span: number) {
		this.group = r.session ? 'session' : 'request';
		this.rows = this.arrange();
	}

	private arrange(): Uint32Array {
		if (this.group === 'request') {
			this.lanes = null;
			return rowsOf(this.r, this.sort, this.filter);
		}
		const { member, first } = this.lanes = lanesOf(this.r, this.sort, this.filter);
		return first.subarray(0, -1).map((at) => member[at]);
	}

	/** All requests that are shown, row by row. */
	get order(): Uint32Array {
		return this.lanes?.member ?? this.rows;
	}

	/** The requests of a row, by their start. */
	members(row: number): Uint32Array {
		const { lanes } = this;
		return lanes ? lanes.member.subarray(lanes.first[row], lanes.first[row + 1])
			: this.rows.subarray(row, row + 1);
	}

	/** The request of a row at a time: the last one that is due by then, else the first. */
	requestAt(row: number, t: number): number {
		const members = this.members(row), { r } = this;
		let k = members.length - 1;
		while (k > 0 && r.start[members[k]] - r.lead[members[k]] > t)
			k--;
		return members[k];
	}

	/** The one that follows in the same row; -1: none. */
	next(request: number): number {
		const row = this.rowOf(request), members = this.members(Math.max(0, row));
		return row < 0 ? -1 : members[members.indexOf(request) + 1] ?? -1;
	}

	onDraw(draw: () => void): void {
		this.listeners.push(draw);
	}

	changed(): void {
		if (this.waiting)
			return;
		this.waiting = true;
		requestAnimationFrame(() => {
			this.waiting = false;
			this.drawNow();
		});
	}

	drawNow(): void {
		for (const draw of this.listeners)
			draw();
	}

	/** The whole run with a margin at both ends. */
	fit(): void {
		this.perPixel = this.clampScale((this.span * 1.02) / Math.max(1, this.width));
		this.from = -(this.width * this.perPixel - this.span) / 2;
		this.changed();
	}

	show(from: number, to: number): void {
		this.perPixel = this.clampScale((to - from) / Math.max(1, this.width));
		this.from = (from + to) / 2 - (this.width * this.perPixel) / 2;
		this.clampPlace();
		this.changed();
	}

	/** factor below 1 zooms in; the instant at pixel x stays where it is. */
	zoom(factor: number, x = this.width / 2): void {
		const at = this.from + x * this.perPixel;
		this.perPixel = this.clampScale(this.perPixel * factor);
		this.from = at - x * this.perPixel;
		this.clampPlace();
		this.changed();
	}

	pan(pixels: number): void {
		this.from += pixels * this.perPixel;
		this.clampPlace();
		this.changed();
	}

	resize(width: number): void {
		if (width === this.width || width <= 0)
			return;
		const visible = this.width * this.perPixel;
		const isFirst = this.width === 0;
		this.width = width;
		if (isFirst)
			this.fit();
		else
			this.perPixel = this.clampScale(visible / width);
	}

	setRows(sort: Sort, filter: Filter, group = this.group): void {
		this.sort = sort;
		this.filter = filter;
		this.group = group;
		this.rows = this.arrange();
		this.changed();
	}

	setRowHeight(pixels: number): void {
		this.rowHeight = Math.min(ROW_MAX, Math.max(ROW_MIN, Math.round(pixels)));
		this.changed();
	}

	rowOf(request: number): number {
		const { lanes } = this, at = this.order.indexOf(request);
		return lanes && at >= 0 ? lanes.first.findIndex((from) => from > at) - 1 : at;
	}

	private clampScale(perPixel: number): number {
		const most = (this.span * 4) / Math.max(1, this.width);
		return Math.max(PIXEL_NS_MIN / this.r.unitNs, Math.min(perPixel, Math.max(most, 1)));
	}

	/** Keeps some of the run visible. */
	private clampPlace(): void {
		const visible = this.width * this.perPixel;
		this.from = Math.max(-visible * 0.9, Math.min(this.from, this.span - visible * 0.1));
	}
}
