// SPDX-License-Identifier: Apache-2.0
// bench.mjs PAGE: how long a timeline page takes to open, and a frame while it is moved.
//
// A page of 100,000 requests: TIMELINE_KEEP=page.html build/bench/timeline --repeats 1
import { frames, launch, openTimeline } from '../tests/web/browser.mjs';

const file = process.argv[2];
if (!file) {
	console.error('usage: node web/bench.mjs PAGE');
	process.exit(2);
}
const browser = await launch();
const from = performance.now();
const { page } = await openTimeline(browser, file);
const show = (name, v) => console.log(`${name.padEnd(44)} ${v}`);
const triple = (v) => [v.median, v.p95, v.most].map((ms) => ms.toFixed(1).padStart(7)).join('');
show('opened and drawn', `${((performance.now() - from) / 1000).toFixed(2)} s`);
const size = await page.evaluate(() => ({ n: window.timeline.meta.n, gaps: window.timeline.meta.n_gaps }));
show('requests, segments', `${size.n}, ${size.gaps + size.n}`);
show('milliseconds', ' median    p95   most');
for (const zoom of ['the whole run', 'a hundredth of it'])
	for (const what of ['scroll', 'zoom', 'pan']) {
		await page.evaluate((z) => {
			const { view } = window.timeline;
			if (z === 'the whole run')
				view.fit();
			else
				view.show(view.span * 0.4, view.span * 0.41);
		}, zoom);
		const t = await frames(page, what);
		show(`${what} at ${zoom}: between frames`, triple(t.between));
		show(`${what} at ${zoom}: drawing`, triple(t.drawing));
	}
await browser.close();
