// SPDX-License-Identifier: Apache-2.0
// dashboard.mjs: filters, table, presets, links and exports of the Runs page, each number against
// what the API says; nothing leaves the origin.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from './browser.mjs';
import { accessible, ask, dashboard, isShown, results, tab, upload } from './dashboard-kit.mjs';
import { becomes, equal, main, ok, scratch } from './tap.mjs';

const RUNS = 430; /* more than two pages of the table */
const TP = 'server.tensor_parallel_size', RATE = 'tokens_per_s_per_gpu';

const total = (page) => () => page.$eval('[data-total]', (e) => Number(e.dataset.total))
	.catch(() => -1);
const params = (page) => new URL(page.url()).searchParams;
const filterOf = (page) => JSON.parse(params(page).get('f') ?? '{"and":[]}');
const facet = (column) => `.side [data-facet="${column}"]`;

/** The values of a column in the panel: [text, count] of each. */
const counts = (page, column) => () => page.$$eval(`${facet(column)} .values li`, (all) =>
	all.map((e) => [e.querySelector('.value-text').textContent,
		Number(e.querySelector('.value-count').dataset.count)]));

async function openFacet(page, column) {
	await page.fill('.side .panel-search input', column);
	const head = page.locator(`${facet(column)} .facet-name`);
	if (await head.getAttribute('aria-expanded') === 'false')
		await head.click();
}

async function apiCounts(url, filter, column) {
	const { facets: [f] } = await ask(url, '/api/filters/apply', { filter, limit: 0, facets: [column],
		facet_values: 100 });
	const { items } = await ask(url, '/api/filters/options');
	const known = items.find((o) => o.column === column);
	const all = new Map(known.values.map((v) => [v.value, 0]));
	for (const v of f.values)
		all.set(v.value, v.count);
	const list = [...all].filter(([v]) => v !== null).sort((a, b) => a[0] - b[0]);
	return [...list.map(([v, n]) => [String(v), n]), ...(known.missing ? [['missing', f.missing]] : [])];
}

/** How full the store is, under the table. */
async function fullnessIs(page, url) {
	const { columns } = await ask(url, '/api/data/summary', {});

	await becomes(() => page.$$eval('.fullness', ([e]) => e && [Number(e.dataset.used),
		Number(e.dataset.limit), e.textContent.endsWith('%)'), e.getAttribute('role')]),
	[columns.used, columns.limit, true, null],
	'how full the store is');
}

/** Local time as the table shows it. */
function local(s) {
	const t = new Date(s * 1000), two = (n) => String(n).padStart(2, '0');
	return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} `
		+ [t.getHours(), t.getMinutes()].map(two).join(':');
}

/** Every number in the strip and the table is the API's. */
async function numbersAre(page, url, name) {
	const filter = filterOf(page);
	let shown; // the strip may still be that of the filter before
	const read = async () => {
		shown = await page.$$eval('[data-statistic]', (all) => all.map((e) => [e.dataset.statistic,
			[...e.querySelectorAll('[data-value]')].map((v) =>
				[v.textContent, Number(v.dataset.value)])]));
		return shown.map(([column, v]) => [column, ...v.map((x) => x[1])]);
	};
	const api = await ask(url, '/api/filters/apply', { filter, limit: 0,
		statistics: (await read()).map(([column]) => column) });
	await becomes(read, api.statistics.map((s) => [s.column, s.p50, s.min, s.max]),
		`${name}: the strip is the API's`);
	ok(shown.every(([, v]) => v.every(([text, value]) => isShown(text, value))),
		`${name}: and shows it`, JSON.stringify(shown));
	const rows = await page.$$eval('.grid-body [role=row]', (all) => all.map((e) => [Number(e.dataset.id),
		[...e.querySelectorAll('[data-column]')].map((c) => [c.dataset.column, c.dataset.value,
			c.textContent])]));
	const cells = rows.flatMap(([id, list]) => list.map((c) => [id, ...c]));
	const columns = [...new Set(['status', ...cells.map((c) => c[1])])];
	const page1 = await ask(url, '/api/filters/apply', { filter, limit: 1000, columns });
	const byId = new Map(page1.items.map((r) => [r.id, r.values]));
	const wrong = cells.filter(([id, column, exact, text]) => {
		const value = byId.get(id)?.[column];
		if (column === 'timestamp')
			return exact !== new Date(value * 1000).toISOString() || text !== local(value);
		if (column === 'verdict') {
			const { status } = byId.get(id) ?? {}, after = status === 'completed' ? '' : status;
			return exact !== (value ?? 'missing')
				|| ![`${value ?? ''}${after}`, value ?? ''].includes(text);
		}
		const want = value === undefined ? 'missing' : typeof value === 'string' ? value
			: JSON.stringify(value);
		return exact !== want || !isShown(text, value);
	});
	ok(cells.length > 100 && wrong.length === 0, `${name}: every cell is the API's`,
		`${cells.length} cells`, JSON.stringify(wrong.slice(0, 5)));
}

/** The tiles name the best runs and open them; a facet stays where it is when it is used. */
async function tiles(browser, url) {
	const { page, wrong, context } = await tab(browser, `${url}/runs`);
	const figures = () => page.$$eval('[data-best]', (l) => l.map((e) => [e.dataset.best,
		Number(e.querySelector('[data-value]')?.dataset.value)]));
	const best = async (column, descending) => {
		const { items } = await ask(url, '/api/filters/apply', { limit: 1, columns: [column],
			sort: [{ column, descending }] });
		return [column, items[0].values[column]];
	};
	await becomes(figures, [await best('tokens_per_s_per_gpu', true), await best('p99_ttft_ms', false)],
		'the best output tokens/s/GPU and the lowest P99 TTFT');
	equal(await page.$$eval('[data-counted]', (l) => l.map((e) => [e.dataset.counted,
		e.querySelector('[data-value]').textContent])), [['INVALID', '0'], ['failed', '0']],
	'and how many runs are not usable');
	ok(/^Answered in [\d.]+ ms$/.test(await page.textContent('.runs-foot span')),
		'the time of the answer is in the footer');
	const second = page.locator('.side .panel-list .facet').nth(1);
	const before = await second.boundingBox(), column = await second.getAttribute('data-facet');
	await second.locator('.values li input').first().click();
	await becomes(async () => filterOf(page).and.map((c) => c.column), [column], 'a facet filters');
	await page.waitForTimeout(300);
	const after = await page.locator(facet(column)).boundingBox();
	equal([after.x, after.y], [before.x, before.y], 'and stays under the pointer');
	await page.click('[data-best="p99_ttft_ms"] a');
	await page.waitForURL(/\/runs\/\d+/);
	equal(wrong, [], 'nothing goes wrong there');
	await context.close();
}

async function filtering(page, url) {
	await becomes(total(page), RUNS, 'every run is counted');
	await page.waitForSelector('.grid-body [role=row]');
	await numbersAre(page, url, 'all runs');
	await fullnessIs(page, url);
	await openFacet(page, TP);
	await becomes(counts(page, TP), await apiCounts(url, null, TP), 'counts of a parameter');
	await page.click(`${facet(TP)} .values li:has-text("4") input`);
	const four = { and: [{ column: TP, in: [4] }] };
	const answer = await ask(url, '/api/filters/apply', { filter: four, limit: 0 });
	await becomes(total(page), answer.total, 'a value leaves its runs');
	equal(filterOf(page), four, 'and stands in the address');
	await becomes(counts(page, TP), await apiCounts(url, four, TP),
		'the other values keep the counts they would add');
	await openFacet(page, 'server.model');
	await page.locator(`${facet('server.model')} .values li`).first().waitFor();
	await becomes(async () => (await counts(page, 'server.model')()).reduce((sum, [, n]) => sum + n, 0),
		answer.total, 'other parameters count the runs that are left');
	await openFacet(page, TP);
	await page.click(`${facet(TP)} .values li:has-text("missing") input`);
	const wide = { and: [{ column: TP, in: [4, null] }] };
	const more = await ask(url, '/api/filters/apply', { filter: wide, limit: 0 });
	await becomes(total(page), more.total, 'missing is a value like others');
	ok(more.total > answer.total, 'and has runs', more.total, answer.total);
	await numbersAre(page, url, 'two values');
}

async function ranges(page, url) {
	const column = 'output_throughput';
	await openFacet(page, column);
	await page.fill(`${facet(column)} .ends input >> nth=0`, '2500');
	await page.keyboard.press('Enter');
	const filter = { and: [{ column: TP, in: [4, null] }, { column, range: { min: 2500 } }] };
	await becomes(async () => filterOf(page), filter, 'a range by its field');
	const low = await ask(url, '/api/filters/apply', { filter, limit: 0 });
	await becomes(total(page), low.total, 'leaves what is in it');
	const handle = page.locator(`${facet(column)} input[type=range] >> nth=1`);
	await handle.focus();
	for (let k = 0; k < 40; k++)
		await page.keyboard.press('ArrowLeft');
	await becomes(async () => filterOf(page).and[1].range?.min, 2500, 'the other end by its handle');
	await page.waitForFunction(() => location.search.includes('max'));
	// The keys arrive one by one, and the address follows a moment later: its last value counts.
	let now;
	do {
		now = filterOf(page);
		await page.waitForTimeout(1000);
	} while (JSON.stringify(now) !== JSON.stringify(filterOf(page)));
	ok(now.and[1].range.max > 2500, 'with the keyboard', JSON.stringify(now));
	const both = await ask(url, '/api/filters/apply', { filter: now, limit: 0 });
	await becomes(total(page), both.total, 'and both ends hold');
	ok(both.total < low.total, 'there are fewer', both.total, low.total);
	await page.click('.chip:has-text("to") .chip-out');
	await becomes(async () => filterOf(page).and.length, 1, 'a chip takes its condition away');
}

async function texts(page, all) {
	const note = 'tags.note', isIn = (r) => r.note.includes('run 12');
	await openFacet(page, note);
	await page.fill(`${facet(note)} .value-search`, 'run 12');
	const found = all.filter(isIn).map((r) => [r.note, 1]);
	ok(found.length > 5 && all.some((r, i) => i > 50 && isIn(r)), 'notes beyond the first values');
	const notes = async () => (await counts(page, note)()).filter(([, n]) => n > 0).sort();
	const tp = (r) => [4, undefined].includes(r.tensor_parallel_size);
	await becomes(notes, all.filter((r) => isIn(r) && tp(r)).map((r) => [r.note, 1]).sort(),
		'a search looks through every value');
	await page.click(`${facet(note)} button.more`);
	await becomes(async () => filterOf(page).and[1], { column: note, text: 'run 12' },
		'and becomes a condition on the text');
	await becomes(total(page), all.filter((r) => isIn(r) && tp(r)).length, 'with its runs');
	await page.click('.chip:has-text("contains") .chip-out');
	await page.fill('.side .panel-search input', 'RUN 12');
	await page.click('.panel-any');
	await becomes(total(page), all.filter((r) => isIn(r) && tp(r)).length, 'or on any text');
	await page.click('.chip:has-text("contains") .chip-out');
	await openFacet(page, 'timestamp');
	await page.fill(`${facet('timestamp')} .ends input >> nth=0`, '2026-03-20 00:00');
	await page.keyboard.press('Enter');
	await becomes(total(page), all.filter((r) => tp(r) && r.date >= '20260320').length,
		'times are ranges of dates');
	await page.click('.chip:has-text("2026") .chip-out');
	await becomes(async () => filterOf(page).and.length, 1, 'one condition is left');
}

async function groups(page, url, all) {
	await page.click('.chips button:has-text("And, or, not")');
	const dialog = page.locator('dialog[open]');
	await dialog.locator('button:has-text("Group")').last().click();
	const condition = dialog.locator('.group .group .condition').last();
	await condition.locator('input').first().fill('server.model');
	await condition.locator('select').selectOption('text');
	await condition.locator('input').nth(1).fill('LARGE');
	await dialog.locator('.group .group button:has-text("Filter")').click();
	const second = dialog.locator('.group .group .condition').last();
	await second.locator('input').first().fill('benchmark.request_rate');
	await second.locator('select').selectOption('range');
	await second.locator('input').nth(2).fill('2');
	await accessible(page, 'the editor of conditions');
	await dialog.locator('button:has-text("Apply")').click();
	const filter = { and: [{ column: TP, in: [4, null] }, { or: [
		{ column: 'server.model', text: 'LARGE' },
		{ column: 'benchmark.request_rate', range: { max: 2 } }] }] };
	await becomes(async () => filterOf(page), filter, 'any of two, and one more');
	const want = all.filter((r) => (r.tensor_parallel_size === 4 || !r.tensor_parallel_size)
		&& (r.model_id.includes('large') || r.request_rate <= 2)).length;
	await becomes(total(page), want, 'are as many as a count by hand');
	await numbersAre(page, url, 'groups');
	await page.goBack();
	await becomes(async () => filterOf(page).and.length, 1, 'back is one step back');
	await page.goForward();
	await becomes(total(page), want, 'and forth');
}

async function table(page, url) {
	await page.click('.chips button:has-text("Clear all")');
	await becomes(total(page), RUNS, 'everything is back');
	const head = (column) => page.locator(`[role=columnheader] button[title^="${column}"]`);
	await head(RATE).click();
	await becomes(async () => params(page).get('sort'), `-${RATE}`, 'a click sorts');
	const ids = () => page.$$eval('.grid-body [role=row]', (all) => all.map((e) =>
		[Number(e.getAttribute('aria-rowindex')), Number(e.dataset.id)]).sort((a, b) => a[0] - b[0])
		.slice(0, 10).map((r) => r[1]));
	const sorted = async (sort) => (await ask(url, '/api/filters/apply', { sort, limit: 10 }))
		.items.map((r) => r.id);
	await becomes(ids, await sorted([{ column: RATE, descending: true }]),
		'as the API does');
	await head(TP).click();
	await head(RATE).click({ modifiers: ['Shift'] });
	await becomes(ids, await sorted([{ column: TP, descending: true },
		{ column: RATE, descending: true }]), 'and by two columns');
	await page.$eval('.grid', (e) => e.scrollTo(0, 1e9));
	await page.waitForFunction(() => document.querySelector('.grid-body [aria-rowindex="350"]')
		|| document.querySelector('.grid').scrollTo(0, 1e9));
	for (let k = 0; k < 200 && !await page.$(`.grid-body [aria-rowindex="${RUNS + 1}"]`); k++) {
		await page.$eval('.grid', (e) => e.scrollTo(0, 1e9));
		await page.waitForTimeout(25);
	}
	ok(await page.$(`.grid-body [aria-rowindex="${RUNS + 1}"]`), 'scrolling fetches up to the last run');
	ok((await page.$$('.grid-body [role=row]')).length < 80, 'and draws only what is seen');
	await page.$eval('.grid', (e) => e.scrollTo(0, 0));
	await page.locator('.grid-body [data-column="server.model"]').first().click();
	await becomes(async () => filterOf(page).and.map((c) => [c.column, c.in.length]),
		[['server.model', 1]], 'a click on a value filters by it');
	await page.click('.chip .chip-out');
}

async function columns(page) {
	await page.click('.tools button:has(span:text-is("Columns"))');
	const dialog = page.locator('dialog[open]');
	await dialog.locator('input[type=search]').fill('prefix');
	await dialog.locator('label[title="server.enable_prefix_caching"] input').check();
	await dialog.locator('input[type=search]').fill('dtype');
	await dialog.locator('label[title="server.dtype"] input').check();
	await dialog.locator('.picked li[title="server.dtype"] button[aria-label$="earlier"]').click();
	await accessible(page, 'the chooser of columns');
	await dialog.locator('.dialog-foot button.primary').click();
	const cols = params(page).get('cols').split(',');
	equal(cols.slice(-2), ['server.dtype', 'server.enable_prefix_caching'],
		'columns in the order that was chosen');
	const heads = () => page.$$eval('[role=columnheader] button', (all) =>
		all.map((e) => e.title.split('\n')[0]));
	await page.$eval('.grid', (e) => e.scrollTo(1e9, 0));
	await page.waitForFunction(() => [...document.querySelectorAll('[role=columnheader] button')]
		.some((e) => e.title.startsWith('server.enable_prefix_caching')));
	ok((await heads()).includes('server.dtype'), 'a column that is the same everywhere');
	await page.click('.tools button:has-text("Hide constant columns")');
	await becomes(async () => (await heads()).includes('server.dtype'), false, 'is left out when asked');
	await page.$eval('.grid', (e) => e.scrollTo(0, 0));
}

/** A column that the filter fixes does not differ. */
async function fixed(page, browser, url) {
	const f = JSON.stringify({ and: [{ column: TP, in: [4] }] });
	const other = await tab(browser, `${url}/runs?f=${encodeURIComponent(f)}`
		+ `&cols=${TP},output_throughput&diff=1`);
	await other.page.waitForSelector('.grid-body [role=row]');
	await becomes(() => other.page.$$eval('[role=columnheader] button', (all) =>
		all.map((e) => e.title.split('\n')[0]).filter((c) => /tensor_parallel|output_thr/.test(c))),
	['output_throughput'], 'of the columns shown, only those that differ among the runs of the filter');
	equal(other.wrong, [], 'nothing goes wrong there');
	await other.context.close();
}

async function presets(page, browser, url) {
	const before = page.url();
	const save = async (name) => {
		await page.click('.views-button');
		await page.fill('dialog[open] .preset-save input', name);
		await page.click('dialog[open] .preset-save button');
		await page.waitForSelector(`dialog[open] .preset-name:has-text("${name}")`);
	};
	await save('my view');
	await accessible(page, 'presets');
	await page.keyboard.press('Escape');
	equal(page.url(), before, 'Escape closes and leaves the address alone');
	const { items } = await ask(url, '/api/filters/presets');
	equal(items.map((p) => p.name), ['my view'], 'a preset is kept by the server');
	const other = await tab(browser, `${url}/runs`);
	await other.page.click('.views-button');
	await other.page.click('dialog[open] .preset-name');
	const view = (address) => [...new URL(address).searchParams].sort();
	await becomes(async () => view(other.page.url()), view(before), 'and loads in another browser');
	await other.page.click('.views-button');
	await other.page.click('dialog[open] button[aria-label="Rename my view"]');
	await other.page.fill('dialog[open] input[aria-label="New name"]', 'our view');
	await other.page.click('dialog[open] button:has-text("Rename")');
	await other.page.click('dialog[open] button[aria-label="Delete our view"]');
	await becomes(async () => (await ask(url, '/api/filters/presets')).items.length, 0,
		'renamed, and deleted');
	equal(other.wrong, [], 'the other browser loads nothing else');
	await other.context.close();
}

/** A link, or a preset, whose columns went with the last run that had them. */
async function gone(browser, url) {
	const filter = JSON.stringify({ and: [{ column: 'tags.zzzzfffff', in: ['x'] }] });
	const { page, context } = await tab(browser, `${url}/runs?cols=server.model,tags.zzzzccccc`
		+ `&stats=tags.zzzzmmmmm&sort=tags.zzzzsssss&f=${encodeURIComponent(filter)}`);
	const said = () => page.textContent('.failure .state-text p').catch(() => '');
	for (const part of ['There is no column "tags.zzzzfffff"', 'There is no column "tags.zzzzsssss"',
		'There is no column "tags.zzzzccccc"']) {
		await becomes(said, part, `${part} is a sentence on the page`);
		await page.click('.failure button:has-text("Remove it")');
	}
	await page.waitForSelector('.grid-body [role=row]');
	equal(new URL(page.url()).searchParams.get('cols'), 'server.model', 'and can be left out');
	equal(await page.$('.top-note'), null, 'a filter that can be read is no reason for a note');
	await becomes(() => page.textContent('.strip [role=alert]'),
		'/statistics/0: there is no column "tags.zzzzmmmmm"', 'likewise a number above the table');
	await page.goto(`${url}/charts?f=${encodeURIComponent(filter).slice(0, -9)}`);
	await page.waitForSelector('.top-note:has-text("cannot be read")');
	ok(true, 'a filter that was cut off is not ignored in silence');
	await context.close();
}

async function link(page, browser, all) {
	await page.goto(`${new URL(page.url()).origin}/runs?f=${encodeURIComponent(JSON.stringify(
		{ and: [{ column: 'server.model', in: ['org/small-8b'] },
			{ column: 'median_ttft_ms', range: { max: 100 } }] }))}&sort=median_ttft_ms&sel=3,5`);
	const want = all.filter((r) => r.model_id === 'org/small-8b' && r.median_ttft_ms <= 100);
	await becomes(total(page), want.length, 'a link brings its filter');
	const view = async (p) => ({ rows: await p.$$eval('.grid-body [role=row]', (rows) => rows.map((r) =>
		r.textContent).slice(0, 12).sort()), chips: await p.$$eval('.chip-text', (c) =>
		c.map((e) => e.textContent)), chosen: await p.textContent('.chosen strong') });
	await page.waitForSelector('.grid-body [role=row]');
	const other = await tab(browser, page.url());
	await becomes(total(other.page), want.length, 'the same address, the same runs, elsewhere');
	await other.page.waitForSelector('.grid-body [role=row]');
	await becomes(() => view(other.page), await view(page), 'the same view');
	equal(other.wrong, [], 'nothing else is loaded there');
	await other.context.close();
}

async function keys(page) {
	const before = page.url();
	await page.focus('main');
	await page.keyboard.press('/');
	await becomes(() => page.evaluate(() => document.activeElement.getAttribute('aria-label')),
		'Search columns', '/ goes to the filters');
	await page.keyboard.press('Escape');
	await page.focus('main');
	await page.keyboard.press('?');
	await page.waitForSelector('dialog[open] .keys');
	const told = await page.$$eval('dialog[open] .keys dt', (all) => all.map((e) => e.textContent));
	for (const key of ['/', 'j', 'k', 'x', 'c', '?', 'Enter', 'Esc'])
		ok(told.includes(key), `the help tells ${key}`, told);
	await accessible(page, 'help');
	await page.keyboard.press('Escape');
	await becomes(() => page.$$eval('dialog[open]', (all) => all.length), 0, 'Escape closes it');
	equal(page.url(), before, 'and the address is as it was');
	await page.focus('main');
	for (const key of ['j', 'j', 'j', 'k'])
		await page.keyboard.press(key);
	await becomes(() => page.$$eval('.grid-row.now', (all) => all.map((e) =>
		e.getAttribute('aria-rowindex'))),
		['3'], 'j and k move among the runs');
	const id = await page.$eval('.grid-row.now', (e) => e.dataset.id);
	await page.keyboard.press('x');
	await becomes(async () => params(page).get('sel'), `3,5,${id}`, 'x selects');
	await page.keyboard.press('Enter');
	await page.waitForURL((u) => u.pathname === `/runs/${id}`);
	ok(true, 'Enter opens');
	await page.goBack();
	await page.waitForSelector('.grid-body [role=row]');
	await page.focus('main');
	await page.keyboard.press('c');
	await page.waitForURL((u) => u.pathname === '/compare');
	equal(params(page).get('sel'), `3,5,${id}`, 'c compares what is selected');
	await page.goBack();
	await page.waitForSelector('.grid-body [role=row]');
}

async function exports(page, url) {
	const { total: n, items } = await ask(url, '/api/filters/apply', { filter: filterOf(page),
		sort: [{ column: 'median_ttft_ms', descending: false }], limit: 1,
		columns: ['median_ttft_ms'] });
	for (const [format, label] of [['csv', 'CSV'], ['jsonl', 'JSON lines']]) {
		await page.click('.tools .menu > button');
		const [file] = await Promise.all([page.waitForEvent('download'),
			page.click(`.menu-panel a:has-text("${label}")`)]);
		const path = join(scratch, file.suggestedFilename());
		await file.saveAs(path);
		const lines = readFileSync(path, 'utf8').trim().split(/\r?\n/);
		equal(lines.length, n + (format === 'csv' ? 1 : 0), `${label}: as many lines as runs`);
		const at = lines[0].split(',').indexOf('median_ttft_ms');
		const first = format === 'csv' ? Number(lines[1].split(',')[at])
			: JSON.parse(lines[0]).median_ttft_ms;
		equal(first, items[0].values.median_ttft_ms,
			`${label}: the first is the API's, in its order`);
	}
}

main(async () => {
	const all = results(RUNS), it = await dashboard(), browser = await launch();
	const put = await upload(it.url, all);
	equal(put.results.filter((r) => r.outcome === 'new').length, RUNS, 'runs to look at');
	await tiles(browser, it.url);
	const { page, wrong } = await tab(browser,
		`${it.url}/runs?stats=output_throughput,median_ttft_ms,p99_ttft_ms,failed`);
	await filtering(page, it.url);
	await ranges(page, it.url);
	await texts(page, all);
	await groups(page, it.url, all);
	await table(page, it.url);
	await columns(page);
	await fixed(page, browser, it.url);
	await presets(page, browser, it.url);
	await gone(browser, it.url);
	await link(page, browser, all);
	await keys(page);
	await exports(page, it.url);
	equal(wrong, [], 'nothing left the origin, and nothing went wrong');
	equal(await it.stop(), 0, 'the dashboard ends as it should');
	await browser.close();
});
