// SPDX-License-Identifier: Apache-2.0
// shots.mjs STORE FOLDER [PAGE...]: a picture of every page of a dashboard on a store, at 1440x900,
// 1920x1080 and 390x844, light and dark, to be looked at. STORE is an SQLite file; a copy is opened.
//
//   PROFLLM=$PWD/build/profllm node tools/shots.mjs runs.db shots overview charts
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch } from '../tests/web/browser.mjs';
import { ask, dashboard } from '../tests/web/dashboard-kit.mjs';

const [store, folder, ...only] = process.argv.slice(2);
if (!store || !folder) {
	console.error('usage: PROFLLM=/path/to/profllm node tools/shots.mjs STORE FOLDER [PAGE...]');
	process.exit(2);
}
const SIZES = [[1440, 900], [1920, 1080], [390, 844]];
const dir = mkdtempSync(join(tmpdir(), 'profllm-shots-'));
copyFileSync(store, join(dir, 'runs.db'));
mkdirSync(folder, { recursive: true });
const it = await dashboard('--store', `sqlite:${join(dir, 'runs.db')}`);
const { changes } = await ask(it.url, '/api/analysis/overview', {});
const newest = await ask(it.url, '/api/filters/apply', { limit: 1,
	sort: [{ column: 'timestamp', descending: true }] });
const sides = changes[0] ? encodeURIComponent(JSON.stringify([
	{ name: 'before', ids: changes[0].before_ids }, { name: 'after', ids: changes[0].after_ids }])) : '';
const pages = Object.entries({
	overview: '/', charts: '/charts', any: '/charts?view=any', runs: '/runs',
	compare: sides ? `/compare?groups=${sides}` : '/compare', trends: '/trends',
	capacity: '/plan?tab=capacity', scaling: '/plan?tab=scaling', impact: '/plan?tab=impact',
	prices: '/plan?tab=prices', boards: '/boards', upload: '/upload', launch: '/launch',
	run: `/runs/${newest.items[0]?.id ?? 1}`,
}).filter(([name]) => !only.length || only.includes(name));
const browser = await launch();
for (const [width, height] of SIZES)
	for (const colorScheme of ['light', 'dark']) {
		const context = await browser.newContext({ viewport: { width, height }, colorScheme });
		const page = await context.newPage();
		for (const [name, path] of pages) {
			await page.goto(it.url + path);
			await page.waitForLoadState('networkidle');
			await page.waitForFunction(() => !document.querySelector('main .loading'));
			await page.waitForTimeout(300);
			await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
		}
		await context.close();
	}
await browser.close();
await it.stop();
rmSync(dir, { recursive: true });
console.log(`${pages.length * SIZES.length * 2} pictures in ${folder}`);
