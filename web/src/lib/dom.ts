// SPDX-License-Identifier: Apache-2.0
// dom.ts: elements in one expression.

type Child = Node | string | null | false;

export function h<K extends keyof HTMLElementTagNameMap>(
	name: K, attributes: Record<string, string> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
	const element = document.createElement(name);
	for (const [key, value] of Object.entries(attributes))
		element.setAttribute(key, value);
	element.append(...children.filter((c): c is Node | string => c !== null && c !== false));
	return element;
}

export function svg(
	name: string, attributes: Record<string, string | number>, ...children: (Node | string)[]
): SVGElement {
	const element = document.createElementNS('http://www.w3.org/2000/svg', name);
	for (const [key, value] of Object.entries(attributes))
		element.setAttribute(key, String(value));
	element.append(...children);
	return element;
}

/** Rows of name and value; data-field carries a stable name for programs. */
export function facts(rows: [string, string, string][]): HTMLDListElement {
	const list = h('dl');
	for (const [field, name, value] of rows)
		list.append(h('dt', {}, name), h('dd', { 'data-field': field }, value));
	return list;
}

/** Puts a tip next to the pointer, inside the window. */
export function place(tip: HTMLElement, x: number, y: number): void {
	tip.hidden = false;
	const { width, height } = tip.getBoundingClientRect();
	const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
	const top = y + 14 + height > innerHeight ? y - 14 - height : y + 14;
	tip.style.left = `${Math.max(4, left)}px`;
	tip.style.top = `${Math.max(4, top)}px`;
}
