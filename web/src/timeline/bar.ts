// SPDX-License-Identifier: Apache-2.0
// bar.ts: legend and controls between the summary and the timeline.
import { h } from '../lib/dom';
import { FAILED, type Meta } from './data';
import { FILTERS, find, GROUPS, SORTS, type Filter, type Group, type Sort } from './order';
import type { Rows } from './rows';
import type { View } from './view';

/** Shorter waits are not worth a colour in the legend. */
const LEAD_NS_MIN = 1e6;

function legend(view: View, meta: Meta): HTMLElement {
	const { r } = view, list = h('ul', { class: 'legend', 'aria-label': 'Legend' });
	const add = (kind: string, name: string, isExtra = false): void =>
		list.append(h('li', isExtra ? { class: 'extra' } : { 'data-legend': kind },
			h('i', { class: kind }), name));
	add('ttft', 'TTFT');
	['itl-low', 'itl-mid', 'itl-high'].forEach((kind, k) => add(kind, meta.labels[k]));
	if (r.lead.some((v) => v * r.unitNs >= LEAD_NS_MIN))
		add('waited', 'Queued in client', true);
	if (r.state.some((s) => s !== 0))
		add('ended', 'Failed', true);
	if (r.answer.some((v) => v >= 0))
		add('answer', 'Answer begins', true);
	return list;
}

function choice<T extends string>(
	name: string, id: string, options: Record<T, string>, then: (value: T) => void,
	value?: T,
): HTMLElement {
	const select = h('select', { id }, ...Object.entries<string>(options)
		.map(([value, text]) => h('option', { value }, text)));
	if (value)
		select.value = value;
	select.addEventListener('change', () => then(select.value as T));
	return h('label', {}, name, select);
}

function button(text: string, name: string, then: () => void): HTMLElement {
	const element = h('button', { type: 'button', title: name, 'aria-label': name }, text);
	element.addEventListener('click', then);
	return element;
}

export interface Bar {
	element: HTMLElement;
	search: HTMLInputElement;
	rowHeight: HTMLInputElement;
	/** Goes to the next failed request in the order of the rows. */
	nextFailed(step: number): void;
}

export function mark(view: View, rows: Rows, request: number): void {
	view.marked = request;
	const row = view.rowOf(request);
	if (row >= 0)
		rows.scrollTo(row);
	view.changed();
}

export function bar(view: View, meta: Meta, rows: Rows): Bar {
	const search = h('input', { type: 'search', id: 'search', placeholder: 'Request ...',
		'aria-label': 'Go to a request' });
	const prefix = meta.facts['request_id_prefix'];
	const go = (): void => {
		const i = find(view.r, search.value, typeof prefix === 'string' ? prefix : null);
		search.setCustomValidity(i < 0 && search.value ? 'No such request' : '');
		if (i >= 0 && view.rowOf(i) < 0)
			view.setRows(view.sort, filter.value = 'all');
		if (i >= 0)
			mark(view, rows, i);
		else if (search.value)
			search.reportValidity();
	};
	search.addEventListener('change', go);
	const rowHeight = h('input', { type: 'range', id: 'row-height', min: '1', max: '28',
		'aria-label': 'Row height', value: String(view.rowHeight) });
	rowHeight.addEventListener('input', () => {
		const middle = rows.top + rows.visible / 2;
		view.setRowHeight(Number(rowHeight.value));
		rows.scrollTo(middle);
	});
	const filterLabel = choice<Filter>('Show', 'filter', FILTERS,
		(v) => view.setRows(view.sort, v));
	const filter = filterLabel.querySelector('select') as HTMLSelectElement;
	const element = h('div', { class: 'bar' }, legend(view, meta), h('div', { class: 'controls' },
		view.r.session && choice<Group>('Group by', 'group', GROUPS,
			(v) => view.setRows(view.sort, view.filter, v), view.group),
		choice<Sort>('Sort', 'sort', SORTS, (v) => view.setRows(v, view.filter)), filterLabel, search,
		h('label', { title: 'Row height' }, 'Rows', rowHeight),
		h('span', { class: 'group' },
			button('−', 'Zoom out', () => view.zoom(1.6)),
			button('+', 'Zoom in', () => view.zoom(1 / 1.6)),
			button('Fit', 'Show the whole run', () => view.fit()))));
	return {
		element, search, rowHeight,
		nextFailed(step: number): void {
			const { order } = view, n = order.length, from = order.indexOf(view.marked);
			for (let k = 1; k <= n; k++) {
				const at = (((from < 0 && step < 0 ? 0 : from) + k * step) % n + n) % n;
				if (view.r.state[order[at]] === FAILED) {
					mark(view, rows, order[at]);
					return;
				}
			}
		},
	};
}
