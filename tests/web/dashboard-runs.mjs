// SPDX-License-Identifier: Apache-2.0
// dashboard-runs.mjs: the list of columns by keyboard, pointer and screen reader.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from './browser.mjs';
import { accessible, dashboard, pick, results, tab, upload } from './dashboard-kit.mjs';
import { becomes, equal, main, ok, output } from './tap.mjs';

const RUNS = 60;
const shots = join(output, 'screenshots');
const shot = (page, name) => page.screenshot({ path: join(shots, `${name}.png`) });

/** The list of columns that every page chooses from. */
async function picker(browser, url) {
	const { page, wrong } = await tab(browser, `${url}/charts?view=any`);
	const scope = '.pick:has-text("Y axis")', list = () => page.$$eval(`${scope} .choice`,
		(l) => l.map((e) => e.dataset.column));
	const active = () => page.$eval(`${scope} .choice[aria-selected=true]`, (e) => e.dataset.column);
	const y = () => new URL(page.url()).searchParams.get('y');
	await page.waitForSelector(`${scope} .pick-button`);
	await page.focus(`${scope} .pick-button`);
	await page.keyboard.press('ArrowDown');
	await page.waitForSelector(`${scope} [role=listbox]`);
	equal((await list()).slice(0, 4), ['tokens_per_s_per_gpu', 'tokens_per_s_per_user',
		'output_throughput', 'request_throughput'], 'the metrics that are used most come first');
	const heads = await page.$$eval(`${scope} .choices-group`, (l) => l.map((e) => e.textContent));
	equal(heads.slice(0, 3), ['Most used', 'Throughput', 'Latency'], 'then the others in groups');
	await page.keyboard.type('itl p99');
	equal(await list(), ['p99_itl_ms'], 'words find a metric by its label');
	const heard = await page.$eval(`${scope} [role=combobox]`, (e) =>
		document.getElementById(e.getAttribute('aria-activedescendant'))?.dataset.column);
	equal(heard, 'p99_itl_ms', 'a screen reader hears which one is active');
	await accessible(page, 'the list of columns');
	await page.keyboard.press('Enter');
	await becomes(async () => y(), 'p99_itl_ms', 'Enter chooses it');
	equal(await page.evaluate(() => document.activeElement?.className), 'pick-button',
		'and the focus is back on the button');
	equal(await page.$eval(`${scope} .pick-value`, (e) => e.textContent), 'P99 ITL', 'which shows it');
	await page.keyboard.press('Enter');
	await page.waitForSelector(`${scope} [role=listbox]`);
	equal(await active(), 'p99_itl_ms', 'opened again, the list begins at it');
	await page.keyboard.press('ArrowUp');
	await page.keyboard.press('Escape');
	equal([await page.$(`${scope} [role=listbox]`), y()], [null, 'p99_itl_ms'],
		'Escape closes the list and changes nothing');
	await pick(page, scope, 'median_ttft_ms');
	await becomes(async () => y(), 'median_ttft_ms', 'a click chooses, too');
	const f = encodeURIComponent('{"and":[{"column":"server.tensor_parallel_size","missing":true}]}');
	await page.goto(`${url}/charts?view=any&f=${f}`);
	await page.click(`${scope} .pick-button`);
	await becomes(async () => (await list()).includes('benchmark.tensor_parallel_size')
		|| (await list()).includes('server.tensor_parallel_size'), false,
	'what no run of the filter has is hidden');
	await becomes(() => page.$eval(`${scope} .choices-note`, (e) => /hidden: no run/.test(e.textContent)),
		true, 'and counted');
	for (const [scheme, width] of [['light', 1440], ['dark', 1440], ['light', 390]]) {
		await page.emulateMedia({ colorScheme: scheme });
		await page.setViewportSize({ width, height: 844 });
		ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
			`${width} px, ${scheme}: the list is inside the page`);
		await shot(page, `picker-${scheme}-${width}`);
	}
	equal(wrong, [], 'nothing went wrong in the list of columns');
	await page.close();
}

main(async () => {
	mkdirSync(shots, { recursive: true });
	const it = await dashboard(), browser = await launch();
	await upload(it.url, results(RUNS));
	await picker(browser, it.url);
	equal(await it.stop(), 0, 'the dashboard ends as it should');
	await browser.close();
});
