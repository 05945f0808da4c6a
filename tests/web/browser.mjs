// SPDX-License-Identifier: Apache-2.0
// browser.mjs: the machine's own Chromium, driven by playwright-core from web/node_modules; and
// what the test of the pages and web/bench.mjs both do with it.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const require = createRequire(join(root, 'web/package.json'));

export function which(name) {
	return (process.env.PATH ?? '').split(delimiter).map((dir) => join(dir, name)).find(existsSync);
}

export async function launch() {
	const { chromium } = require('playwright-core');
	const executablePath = which('chromium') ?? which('chromium-browser') ?? which('google-chrome');
	if (!executablePath)
		throw new Error('chromium is not installed; scripts/setup --tests installs it');
	return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
		'--no-first-run', '--disable-background-networking', '--disable-component-update',
		'--disable-sync'] });
}

/** A tab that notes everything a page must not do: requests, errors, words on the console. */
export async function open(browser, file, options = {}) {
	const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, ...options });
	const wrong = [];
	page.on('console', (m) => wrong.push(`console: ${m.text()}`));
	page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
	page.on('request', (r) => {
		if (!r.isNavigationRequest())
			wrong.push(`request: ${r.url().slice(0, 100)}`);
	});
	await page.goto(pathToFileURL(resolve(file)).href);
	return { page, wrong };
}

export async function openTimeline(browser, file, options = {}) {
	const opened = await open(browser, file, options);
	await opened.page.waitForFunction(() => window.timeline
		|| document.querySelector('.failure'), undefined, { timeout: 120000 });
	return opened;
}

/**
 * Milliseconds between frames and of drawing while something moves in every frame: what is
 * 'scroll', 'zoom' or 'pan'.
 */
export async function frames(page, what, n = 90) {
	return page.evaluate(async ([kind, count]) => {
		const { view } = window.timeline, scroller = document.querySelector('.scroller');
		const frame = () => new Promise((then) => requestAnimationFrame(then));
		const between = [], drawing = [];
		const draw = view.drawNow.bind(view);
		view.drawNow = () => {
			const from = performance.now();
			draw();
			drawing.push(performance.now() - from);
		};
		const most = scroller.scrollHeight - scroller.clientHeight;
		let last = await frame();
		for (let k = 0; k < count; k++) {
			if (kind === 'scroll')
				scroller.scrollTop = (most * k) / count;
			else if (kind === 'zoom')
				view.zoom(k < count / 2 ? 0.85 : 1 / 0.85, view.width * 0.4);
			else
				view.pan(k < count / 2 ? 40 : -40);
			const now = await frame();
			between.push(now - last);
			last = now;
		}
		delete view.drawNow;
		const rank = (v, p) => [...v].sort((a, b) => a - b)[Math.ceil(v.length * p) - 1];
		const of = (v) => ({ median: rank(v, 0.5), p95: rank(v, 0.95), most: Math.max(...v) });
		return { between: of(between), drawing: of(drawing) };
	}, [what, n]);
}
