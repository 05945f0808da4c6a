// SPDX-License-Identifier: Apache-2.0
// dashboard-pages-looks.mjs: every page beside Runs in both themes and on a narrow screen: axe finds
// nothing, nothing is wider than its screen; pictures go to $O/screenshots.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from './browser.mjs';
import { accessible, dashboard, tab, upload } from './dashboard-kit.mjs';
import { detailed, series, study } from './dashboard-sample.mjs';
import { becomes, equal, main, output } from './tap.mjs';

const WIDE = { width: 1440, height: 1000 }, NARROW = { width: 390, height: 844 };
const shots = join(output, 'screenshots');

/** Name, address, and what is there once it is drawn. */
const PAGES = [
	['overview', '/', '.overview-cards'],
	['charts', '/charts', '.chart-box[data-drawn=true]'],
	['trends', '/trends', '[data-changes]'],
	['compare', '/compare?by=server.model', '.figures td'],
	['compare-runs', '/compare?sel=1,2,3', '.figures td'],
	['compare-start', '/compare', '.state.empty'],
	['any', '/charts?view=any', '.chart-box[data-drawn=true]'],
	['impact', '/plan?tab=impact', '.matched'],
	['scaling', '/plan?tab=scaling', 'section[aria-label^=Speed]'],
	['capacity', '/plan?rate=60', '.ranked'],
	['prices', '/plan?tab=prices', '.prices-table td'],
	['traces', '/traces', '.quick + p[role=status]'],
	['upload', '/upload', '[data-drop]'],
	['launch', '/launch', 'section[aria-label=Plan]'],
	['run', '/runs/7', '.figure'],
	['run-requests', '/runs/97?tab=requests', '.timeline canvas'],
	['run-configuration', '/runs/7?tab=configuration', 'dl'],
	['run-notes', '/runs/7?tab=notes', '.say'],
	['run-document', '/runs/7?tab=document', '.document'],
	['run-missing', '/runs/123456', '.state.failure'],
];

async function looks(page, url, name, path, there) {
	const picture = (what) => page.screenshot({ path: join(shots, `${name}-${what}.png`) });
	await page.goto(url + path);
	await page.waitForSelector(there);
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		// The dark page differs in its colors only, so only what depends on them is checked again.
		await accessible(page, `${name}, ${scheme}`,
			scheme === 'dark' ? ['color-contrast'] : undefined);
		await picture(scheme);
	}
	await page.setViewportSize(NARROW);
	// An observer resizes the charts one frame or more after the screen has changed.
	await becomes(() => page.evaluate(() => ['html', '#main'].filter((name) =>
		document.querySelector(name).scrollWidth > innerWidth)), [],
	`${name}: nothing beside a narrow screen`);
	await picture('390');
	await page.setViewportSize(WIDE);
}

await main(async () => {
	mkdirSync(shots, { recursive: true });
	const it = await dashboard(), browser = await launch();
	await upload(it.url, [...study(), ...series(), detailed(40)]);
	const { page, wrong } = await tab(browser, `${it.url}/charts`);
	await page.setViewportSize(WIDE);
	for (const [name, path, there] of PAGES)
		await looks(page, it.url, name, path, there);
	equal(wrong.filter((w) => !/404/.test(w)), [], 'no error, and no request to elsewhere');
	await browser.close();
	await it.stop();
});
