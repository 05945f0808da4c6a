// SPDX-License-Identifier: Apache-2.0
// input.ts: pointer, wheel and keys on the picture.
//
// The wheel scrolls rows; with Ctrl, or on the axis and the tracks, it zooms in time at the
// pointer; sideways or with Shift it pans. A drag pans both ways; with Shift it selects a time
// to zoom to. A double click zooms to a request.
import { h } from '../lib/dom';
import { mark, type Bar } from './bar';
import { GUTTER } from './canvas';
import { latency } from './data';
import type { Hover } from './hover';
import type { Rows } from './rows';
import { TRACK_HEIGHT, type Track } from './tracks';
import type { View } from './view';

const CLICK_PIXELS = 4;
/** Logarithm of the zoom for each pixel of the wheel. */
const WHEEL_ZOOM = 0.0022;

export class Input {
	private drag: { x: number; y: number; left: number; top: number; isSelect: boolean } | null = null;
	private readonly select = h('div', { class: 'select' });

	constructor(
		private readonly view: View, private readonly rows: Rows, private readonly bar: Bar,
		private readonly hover: Hover, private readonly plot: HTMLElement,
		private readonly scroller: HTMLElement, private readonly lower: HTMLCanvasElement,
		private readonly tracks: Track[],
	) {
		this.select.hidden = true;
		plot.append(this.select);
		plot.addEventListener('wheel', (e) => this.onWheel(e), { passive: false });
		plot.addEventListener('pointerdown', (e) => this.onDown(e));
		plot.addEventListener('pointermove', (e) => this.onMove(e));
		plot.addEventListener('pointerup', (e) => this.onUp(e));
		plot.addEventListener('pointercancel', () => this.stop());
		plot.addEventListener('pointerleave', () => this.leave());
		plot.addEventListener('dblclick', (e) => this.onDouble(e));
		scroller.addEventListener('scroll', () => view.changed());
		document.addEventListener('keydown', (e) => this.onKey(e));
	}

	private plotX(e: MouseEvent): number {
		return e.clientX - this.plot.getBoundingClientRect().left - this.plot.clientLeft - GUTTER;
	}

	private isOnRows(e: MouseEvent): boolean {
		return this.scroller.contains(e.target as Node);
	}

	private requestAt(e: MouseEvent): number {
		const box = this.scroller.getBoundingClientRect();
		const row = this.isOnRows(e) ? this.rows.rowAt(e.clientY - box.top) : -1;
		return row < 0 ? -1
			: this.view.requestAt(row, this.view.from + this.plotX(e) * this.view.perPixel);
	}

	private onWheel(e: WheelEvent): void {
		const unit = e.deltaMode === 1 ? 30 : e.deltaMode === 2 ? 300 : 1;
		const isZoom = e.ctrlKey || e.metaKey || (!this.isOnRows(e) && !e.shiftKey);
		const sideways = e.shiftKey && !e.deltaX ? e.deltaY : e.deltaX;
		if (isZoom)
			this.view.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * unit * WHEEL_ZOOM))),
				this.plotX(e));
		else if (Math.abs(sideways) > Math.abs(e.shiftKey ? 0 : e.deltaY))
			this.view.pan(sideways * unit);
		else
			return; // the browser scrolls
		e.preventDefault();
	}

	private onDown(e: PointerEvent): void {
		const isBar = this.isOnRows(e) && e.offsetX >= this.scroller.clientWidth;
		if (e.button !== 0 || isBar)
			return;
		this.drag = { x: e.clientX, y: e.clientY, left: this.view.from, top: this.scroller.scrollTop,
			isSelect: e.shiftKey };
		this.plot.setPointerCapture(e.pointerId);
		this.scroller.focus({ preventScroll: true });
		e.preventDefault();
	}

	private onMove(e: PointerEvent): void {
		const { view, drag } = this;
		view.cursor = view.from + this.plotX(e) * view.perPixel;
		if (!drag) {
			this.point(e);
			return;
		}
		this.hover.hide();
		if (drag.isSelect) {
			const box = this.plot.getBoundingClientRect();
			this.select.hidden = false;
			this.select.style.left = `${Math.min(drag.x, e.clientX) - box.left}px`;
			this.select.style.width = `${Math.abs(e.clientX - drag.x)}px`;
		} else {
			this.plot.classList.add('is-panning');
			view.from = drag.left;
			view.pan(drag.x - e.clientX);
			if (this.rows.visible < view.rows.length)
				this.scroller.scrollTop = drag.top + drag.y - e.clientY;
		}
		view.changed();
	}

	private onUp(e: PointerEvent): void {
		const { view, drag } = this;
		this.stop();
		if (!drag)
			return;
		const left = this.plot.getBoundingClientRect().left + GUTTER;
		const isClick = Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) < CLICK_PIXELS;
		if (isClick) {
			const i = this.requestAt(e);
			view.marked = i === view.marked ? -1 : i;
		} else if (drag.isSelect) {
			const at = (x: number): number => view.from + (x - left) * view.perPixel;
			view.show(at(Math.min(drag.x, e.clientX)), at(Math.max(drag.x, e.clientX)));
		}
		view.changed();
	}

	private onDouble(e: MouseEvent): void {
		const i = this.requestAt(e), { view } = this;
		if (i < 0)
			return;
		const r = view.r, length = Math.max(latency(r, i), r.whole[i], 1);
		view.marked = i;
		view.show(r.start[i] - r.lead[i] - length * 0.04, r.start[i] + length * 1.04);
	}

	private point(e: PointerEvent): void {
		const { view } = this, i = this.requestAt(e), x = this.plotX(e);
		view.hovered = i;
		if (i >= 0 && x >= -GUTTER) {
			this.hover.request(i, Math.max(view.cursor, view.from), view.next(i),
				e.clientX, e.clientY);
		} else if (e.target === this.lower && x >= 0) {
			const top = this.lower.getBoundingClientRect().top;
			const at = Math.floor((e.clientY - top) / TRACK_HEIGHT);
			this.hover.track(this.tracks[Math.min(at, this.tracks.length - 1)], view.cursor,
				e.clientX, e.clientY);
		} else {
			this.hover.hide();
		}
		view.changed();
	}

	private stop(): void {
		this.drag = null;
		this.select.hidden = true;
		this.select.style.width = '0';
		this.plot.classList.remove('is-panning');
	}

	private leave(): void {
		this.hover.hide();
		this.view.cursor = NaN;
		this.view.hovered = -1;
		this.view.changed();
	}

	private onKey(e: KeyboardEvent): void {
		const { view, rows } = this;
		const isTyping = e.target instanceof HTMLInputElement
			|| e.target instanceof HTMLSelectElement;
		if (e.key === 'Escape') {
			(e.target as HTMLElement).blur?.();
			view.marked = -1;
			this.hover.hide();
			view.changed();
		}
		if (isTyping || e.ctrlKey || e.metaKey || e.altKey)
			return;
		const page = Math.max(1, rows.visible - 2), n = view.rows.length;
		const by = (k: number): void => rows.scrollTo(Math.max(0, rows.top + k), 0);
		const keys: Record<string, () => void> = {
			'+': () => view.zoom(1 / 1.4), '=': () => view.zoom(1 / 1.4),
			'-': () => view.zoom(1.4),
			ArrowLeft: () => view.pan(-80), ArrowRight: () => view.pan(80),
			ArrowUp: () => by(-3), ArrowDown: () => by(3),
			PageUp: () => by(-page), PageDown: () => by(page),
			Home: () => rows.scrollTo(0, 0), End: () => rows.scrollTo(n, 1),
			f: () => view.fit(), '0': () => view.fit(),
			'/': () => this.bar.search.focus(),
			n: () => this.bar.nextFailed(1), p: () => this.bar.nextFailed(-1),
			j: () => this.step(1), k: () => this.step(-1),
		};
		const then = keys[e.key];
		if (!then)
			return;
		then();
		e.preventDefault();
	}

	/** Marks the neighbour of the marked request. */
	private step(by: number): void {
		const { view, rows } = this, at = view.order.indexOf(view.marked) + by;
		if (at >= 0 && at < view.order.length)
			mark(view, rows, view.order[at]);
	}
}
