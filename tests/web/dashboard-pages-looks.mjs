// SPDX-License-Identifier: Apache-2.0
// dashboard-pages-looks.mjs: every page there is (web/src/app/pages.ts), in both themes, with the store
// in SQLite and, where a server is known, in PostgreSQL. Each number is one that the API gave to this
// page, and reads as it; no request leaves the origin; axe finds nothing; nothing is wider than a
// narrow screen; both stores show the same. Pictures go to $O/screenshots.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, root } from './browser.mjs';
import { accessible, ask, dashboard, isShown, isStill, tab, upload } from './dashboard-kit.mjs';
import { detailed, series, study } from './dashboard-sample.mjs';
import { becomes, equal, main, ok, output } from './tap.mjs';

const WIDE = { width: 1440, height: 1000 }, NARROW = { width: 390, height: 844 };
const THEMES = ['light', 'dark'];
const shots = join(output, 'screenshots');

const SMALL = encodeURIComponent('{"and":[{"column":"server.model","in":["org/small-8b"]}]}');

/**
 * Page, name of the case, address (null: beginLive's), what is there once it is drawn, the least numbers it
 * shows; null: they are sums over the run's arrays (requestsAre).
 */
const PAGES = [
	['overview', '', '/', '.overview-cards', 10],
	['charts', '', '/charts', '.chart-box[data-drawn=true]', 0],
	['charts', 'any', '/charts?view=any', '.chart-box[data-drawn=true]', 0],
	['runs', '', '/runs', '.grid-body [role=row]', 100],
	['runs', 'traces', '/traces', '.quick + p[role=status]', 0],
	['trends', '', '/trends', '[data-changes]', 2],
	['compare', '', '/compare?by=server.model', '.figures td', 10],
	['compare', 'runs', '/compare?sel=1,2,3', '.figures td', 1],
	['compare', 'start', '/compare', '.state.empty', 0],
	['plan', 'capacity', '/plan?rate=60', '.ranked', 5],
	['plan', 'calculator', `/plan?tab=calculator&speed=90&f=${SMALL}`, '.calculated [data-value]', 2],
	['plan', 'scaling', '/plan?tab=scaling', 'section[aria-label^=Speed]', 5],
	['plan', 'impact', '/plan?tab=impact', '.matched', 5],
	['plan', 'prices', '/plan?tab=prices', '.prices-table td', 0],
	['boards', '', '/boards', 'th a', 0],
	['boards', 'one', '/boards/1', '.block .best-table', 5],
	['upload', '', '/upload', '[data-drop]', 0],
	['launch', '', '/launch', 'section[aria-label=Plan]', 0],
	['run', '', '/runs/7', '.figure', 5],
	['run', 'requests', '/runs/97?tab=requests', '.timeline canvas', null],
	['run', 'configuration', '/runs/7?tab=configuration', 'dl', 0],
	['run', 'notes', '/runs/7?tab=notes', '.say', 0],
	['run', 'document', '/runs/7?tab=document', '.document', 0],
	['run', 'missing', '/runs/123456', '.state.failure', 0],
	['live', '', null, '[data-track=output_tokens_per_s] [data-value]', 6],
];

/** The names in the table of pages.ts. */
function pagesThereAre() {
	const text = readFileSync(join(root, 'web/src/app/pages.ts'), 'utf8');
	return [...text.matchAll(/^\t\['(\w+)', '[^']+', '\w+'\],$/gm)].map(([, name]) => name);
}

/** Numbers and texts of an answer. */
function collect(v, into) {
	if (v !== null && typeof v === 'object')
		Object.values(v).forEach((w) => collect(w, into));
	else
		into.add(v);
}

/** A tab that keeps what the API answered since heard was emptied last. */
async function listening(browser, url) {
	const opened = await tab(browser, url), heard = new Set(), coming = new Set();
	opened.page.on('response', (r) => {
		if (!r.url().includes('/api/') || !r.headers()['content-type']?.includes('json'))
			return;
		const read = r.json().then((v) => collect(v, heard), () => undefined)
			.finally(() => coming.delete(read));
		coming.add(read);
	});
	return { ...opened, heard, settle: () => Promise.all(coming) };
}

/** Whether a text begins with the number, rounded to the digits that it has, or with a limit of it. */
function reads(text, value) {
	if (text.startsWith('<'))
		return value < Number(text.slice(1));
	const [, sign, digits, decimals = '', exponent = '0', percent] =
		/^[^\d−-]*([−-]?)([\d,]+)(?:\.(\d+))?(?:e([+-]?\d+))?( ?%)?/.exec(text) ?? [];
	if (digits === undefined)
		return isShown(text, value);
	const shown = Number(`${sign && '-'}${digits.replace(/,/g, '')}.${decimals || 0}e${exponent}`);
	const half = 0.5 * 10 ** (Number(exponent) - decimals.length);
	return Math.abs(shown - value * (percent ? 100 : 1)) <= half * (1 + 1e-9);
}

/** Whether what an element says is its value was in an answer, and its text reads as that. */
function isRight(heard, [value, text]) {
	const number = Number(value), time = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) / 1000 : NaN;
	if (Number.isFinite(number))
		return heard.has(number) && reads(text, number);
	if (Number.isFinite(time))
		return heard.has(time);
	return value === 'missing' || value === 'null' || heard.has(value)
		|| ((value === 'true' || value === 'false') && heard.has(value === 'true'));
}

const valuesOf = (page) => page.$$eval('main [data-value]', (l) => l.filter((e) => e.dataset.value !== '')
	.map((e) => [e.dataset.value, e.textContent.trim()]));

async function numbersAre(page, { heard, settle }, name, least) {
	let shown, wrong, last;
	await becomes(async () => {
		// Until then some of it is not there, such as counts, which a page asks for after its rows.
		const isWhole = await isStill(page);
		await settle();
		shown = await valuesOf(page);
		wrong = shown.filter((v) => !isRight(heard, v));
		const before = last;
		last = JSON.stringify(shown);
		return isWhole && last === before && shown.length >= least && wrong.length === 0;
	}, true, `${name}: its numbers are the API’s`);
	if (wrong.length || shown.length < least)
		console.error(`# ${shown.length} numbers, at least ${least}; wrong: ${
			JSON.stringify(wrong.slice(0, 5))}`);
	return shown;
}

/** The table of all requests has the times of the run's arrays, added up. */
async function requestsAre(page, url, name) {
	const id = /\d+/.exec(new URL(page.url()).pathname)[0];
	const { ttfts, itls } = await ask(url, `/api/data/experiments/${id}/arrays`);
	const want = ttfts.map((t, i) => [t, itls[i].reduce((sum, gap) => sum + gap, t), Math.max(...itls[i])]
		.map((s) => 1000 * s));
	if (await page.$('.twin:not([open]) summary'))
		await page.click('.twin summary');
	const near = ([value, text], ms) => Math.abs(Number(value) - ms) <= 1e-6 * ms
		&& reads(text, Number(value));
	await becomes(async () => {
		const rows = await page.$$eval('.twin tbody tr', (l) => l.map((tr) =>
			[...tr.querySelectorAll('[data-value]')].map((e) =>
				[e.dataset.value, e.textContent.trim()])));
		return rows.length === want.length && rows.every((row, i) => row.length === 3
			&& row.every((cell, k) => near(cell, want[i][k])));
	}, true, `${name}: its times are those of the API’s arrays`);
	return valuesOf(page);
}

async function narrow(page, name) {
	await page.setViewportSize(NARROW);
	// An observer resizes the charts one frame or more after the screen has changed.
	await becomes(() => page.evaluate(() => ['html', '#main'].filter((what) =>
		document.querySelector(what).scrollWidth > innerWidth)), [],
	`${name}: nothing beside a narrow screen`);
	await page.screenshot({ path: join(shots, `${name}-390.png`) });
	await page.setViewportSize(WIDE);
}

/** A new database of the server that tests/with_postgres.sh started, also when this is run again. */
function postgresUrl() {
	const [createdb, ...args] = process.env.PROFLLM_TEST_CREATEDB.split(' ');
	const name = `looks${process.pid}`;
	execFileSync(createdb, [...args, name]);
	return process.env.PROFLLM_TEST_POSTGRES.replace('@', name);
}

/** The address of a run that is under way. Not before its page is due: others show it for a minute. */
async function beginLive(url) {
	const { id } = await ask(url, '/api/live', { name: 'far away', kind: 'bench serve', total: 60 });
	await ask(url, `/api/live/${id}/samples`, { samples: [
		{ t_s: 1, done: 20, tokens_per_s: 900, running: 4 },
		{ t_s: 2, done: 40, tokens_per_s: 1100, running: 4 }] });
	return `/live/${id}`;
}

/** What each page shows, by its name. */
async function walk(browser, store, isSeen) {
	const it = await dashboard(...store ? ['--store', store] : []), { url } = it, seen = {};
	const kind = store ? 'PostgreSQL' : 'SQLite';
	const runs = [...study(), ...series(), detailed(40)];
	for (const { results } of runs)
		if (results) // the more load, the slower for each user
			results.median_tpot_ms = 8 + results.request_rate / 4;
	await upload(url, runs);
	await ask(url, '/api/boards', { name: 'A board', body: { blocks: [
		{ kind: 'chart', path: '/overview', query: '', caption: 'Best configurations' }] } });
	const opened = await listening(browser, `${url}/charts`), { page, wrong } = opened;
	await page.setViewportSize(WIDE);
	for (const [name, part, path, there, least] of PAGES) {
		const full = part ? `${name}-${part}` : name;
		opened.heard.clear();
		await page.goto(url + (name === 'live' ? await beginLive(url) : path));
		await page.waitForSelector(there);
		for (const theme of THEMES) {
			await page.emulateMedia({ colorScheme: theme });
			const shown = least === null
				? await requestsAre(page, url, `${full}, ${kind}, ${theme}`)
				: await numbersAre(page, opened, `${full}, ${kind}, ${theme}`, least);
			if (theme === 'light')
				seen[full] = shown;
			else
				equal(shown, seen[full], `${full}, ${kind}: the same in both themes`);
			if (!isSeen)
				continue;
			// The dark page differs in its colors alone: what depends on them is checked again.
			await accessible(page, `${full}, ${theme}`,
				theme === 'dark' ? ['color-contrast'] : undefined);
			await page.screenshot({ path: join(shots, `${full}-${theme}.png`) });
		}
		if (isSeen)
			await narrow(page, full);
	}
	equal(wrong.filter((w) => !/404/.test(w)), [], `${kind}: no error, and no request to elsewhere`);
	await opened.context.close();
	await it.stop();
	return seen;
}

await main(async () => {
	mkdirSync(shots, { recursive: true });
	equal(pagesThereAre().filter((name) => !PAGES.some(([page]) => page === name)), [],
		'every page there is is looked at');
	ok(pagesThereAre().length > 8, 'which are several');
	const browser = await launch(), seen = await walk(browser, null, true);
	const other = process.env.PROFLLM_TEST_POSTGRES && await walk(browser, postgresUrl(), false);
	for (const name of Object.keys(other ?? {}))
		equal(other[name], seen[name], `${name}: both stores show the same`);
	await browser.close();
});
