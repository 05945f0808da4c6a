// SPDX-License-Identifier: Apache-2.0
// export.ts: a board as one HTML file: the drawn content, with its style, without a script.
import { fileName, save } from '../../charts/export';
import { forceTheme } from '../../theme';

const CONTROLS = 'button, .menu, .menu-panel, input, select, textarea, .block-editor, '
	+ '.board-tools, .reading, .unseen, .page-head .scope button, script';
const WORDS = '.legend button.quiet[aria-pressed=true], .series-list button, '
	+ ':is(td, th, .headline-row) button';
/** The file loads nothing and runs nothing, whatever a board says. */
const META = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
	+ '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
	+ 'style-src \'unsafe-inline\'">';
const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

/** Every style rule of the page, from its own files. */
function styleText(): string {
	return [...document.styleSheets].flatMap((sheet) => {
		try {
			return [...sheet.cssRules].map((rule) => rule.cssText);
		} catch {
			return []; // of a browser's extension
		}
	}).join('\n');
}

/** Replaces a button whose words are part of the text by these words. */
function withoutControls(page: Element): Element {
	const copy = page.cloneNode(true) as Element;
	for (const entry of copy.querySelectorAll(WORDS)) {
		const span = document.createElement('span');
		span.className = entry.closest('.legend, .series-list') ? 'legend-entry' : entry.className;
		span.replaceChildren(...entry.childNodes);
		entry.replaceWith(span);
	}
	copy.querySelectorAll(CONTROLS).forEach((e) => e.remove());
	copy.querySelectorAll('a[href^="/"]').forEach((a) => a.setAttribute('href', location.origin
		+ (a.getAttribute('href') ?? '')));
	copy.querySelectorAll('[tabindex], [role=application]').forEach((e) => {
		e.removeAttribute('tabindex');
		e.removeAttribute('role');
	});
	return copy;
}

/** Drawings that shrink with the paper or the window. */
export function fitDrawings(page: Element): void {
	for (const svg of page.querySelectorAll('.chart-box svg')) {
		const width = svg.getAttribute('width'), height = svg.getAttribute('height');
		if (width && height)
			svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
	}
}

export async function boardFile(name: string): Promise<string> {
	forceTheme('light');
	try {
		await new Promise((done) => setTimeout(done, 100));
		const page = document.querySelector('.board-page');
		if (!page)
			throw new Error('The board is not shown.');
		fitDrawings(page);
		const style = styleText().replace(/<\//g, '<\\/');
		return `<!doctype html>\n<html lang="en" data-theme="light"><head>${META}`
			+ `<title>${escaped(name)}</title><style>${style}</style></head>`
			+ `<body class="exported">${withoutControls(page).outerHTML}</body></html>\n`;
	} finally {
		forceTheme(null);
	}
}

export async function exported(name: string): Promise<void> {
	save(new Blob([await boardFile(name)], { type: 'text/html' }), fileName(name, 'html'));
}
