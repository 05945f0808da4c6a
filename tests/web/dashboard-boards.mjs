// SPDX-License-Identifier: Apache-2.0
// dashboard-boards.mjs: boards and saved views. A chart is added in two clicks; a board shows the
// numbers of the chart's page and of the API; a frozen block stays when runs arrive; a dashboard that
// is read-only shows boards and changes none; paper and the exported file have charts and no controls.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from './browser.mjs';
import { accessible, ask, dashboard, isShown, isStill, tab, upload } from './dashboard-kit.mjs';
import { series, study } from './dashboard-sample.mjs';
import { becomes, equal, main, ok, output, scratch } from './tap.mjs';

const shots = join(output, 'screenshots');
const CHART = '.chart-menu button', HEAD = '.card-head .chart-menu button';
const SCATTER = `section[aria-label*=" against "] ${CHART}`, MENU = '.board-menu button',
	ADD = '.menu-item:has-text("Add to board")';
const drawn = (page, n) => becomes(() => page.$$eval('.block [data-drawn=true]', (l) => l.length), n,
	`${n} charts are drawn`);

/** Where each chart is, and which of the buttons there opens its menu. */
const CHARTS = [['/charts', CHART, 0], ['/charts?view=any', SCATTER, 0], ['/charts?view=any', HEAD, 0],
	['/trends', CHART, 0], ['/compare?by=gpu_model', MENU, 0]];

async function twoClicks(page, url) {
	for (const [address, button, nth] of CHARTS) {
		let clicks = 0;
		const click = async (what) => {
			await what.click();
			clicks++;
		};
		await page.goto(url + address);
		await click(page.locator(button).nth(nth));
		await click(page.locator(ADD));
		await page.waitForSelector('.toast:has-text("Added to “Board 1”")');
		equal(clicks, 2, `${address}: a chart is on the board after two clicks`);
	}
	await page.click('.toast:has-text("Open board")');
	await page.waitForSelector('.board .block');
	equal(new URL(page.url()).pathname, `/boards/${(await ask(url, '/api/boards')).items[0].id}`,
		'and one more opens the board');
	equal(await page.$$eval('.block', (l) => l.length), CHARTS.length, 'which has all of them');
	await drawn(page, 3);
}

/** Rows of the table below a chart: what is drawn, exactly. */
const twin = (page, root) => page.$$eval(`${root} .twin tbody tr`, (rows) => rows.map((tr) =>
	[...tr.cells].map((td) => td.querySelector('[data-value]')?.dataset.value ?? td.textContent)));

async function sameNumbers(page, url) {
	const board = page.url();
	const block = '.block:has(section[aria-label=Performance])';
	await page.waitForSelector(`${block} .twin tbody tr`, { state: 'attached' });
	const here = await twin(page, block), sentence = await page.textContent(`${block} .answer strong`);
	const { workload, lines, sentence: said } = await ask(url, '/api/analysis/curves',
		{ filter: null, x: 'tokens_per_s_per_user', y: 'tokens_per_s_per_gpu' });
	ok(here.length > 3, 'the block has points', here.length);
	equal(here.map((r) => [Number(r[0]), Number(r[4]), Number(r[5])]),
		lines.flatMap((l) => l.points.map((p) => [p.ids[0], p.x, p.y])),
			'the numbers of the block are the API’s');
	equal(sentence, said, 'and so is its sentence');
	await page.click(`${block} .block-foot a`);
	await page.waitForSelector('.performance .twin tbody tr', { state: 'attached' });
	equal(new URL(page.url()).searchParams.get('w'), workload,
		'its link names the workload that is drawn');
	equal(await twin(page, '.performance'), here, 'and the page of the chart has the same ones');
	await page.goto(board);
}

const save = async (page, id, change, url) => {
	const { items } = await ask(url, '/api/boards'), { body } = items.find((b) => b.id === id);
	change(body);
	await ask(url, `/api/boards/${id}`, { body }, 'PUT');
	await page.reload();
	await page.waitForSelector('.block');
};

const block = (page, caption) => page.locator(`.block[aria-label="${caption}"]`);

async function choose(page, caption, item) {
	await block(page, caption).locator('.block-head .menu > button').click();
	await page.click(`.menu-item:has-text("${item}")`);
}

/** The median of a workload: of several the one that charts show. */
async function medianOf(url, filter = null) {
	const { workload } = await ask(url, '/api/analysis/curves', { filter });
	const { groups } = await ask(url, '/api/analysis/distribution',
		{ metric: 'output_throughput', group: ['workload'], filter });
	return groups.find((g) => g.key.workload === workload).quantiles[3];
}

const number = (page, caption) => block(page, caption).locator('.big-number').getAttribute('data-value')
	.then(Number);

async function blocks(page, url, id) {
	await save(page, id, (body) => body.blocks.unshift({ kind: 'heading', caption: 'What is fast?' },
		{ kind: 'number', path: '/runs', query: 'm=output_throughput', caption: 'Speed' },
		{ kind: 'number', path: '/runs', query: 'm=output_throughput', caption: 'Speed then' },
		{ kind: 'table', path: '/runs', query: 'sort=-output_throughput&cols=output_throughput',
			caption: 'Fastest' },
		{ ...body.blocks[0], caption: 'Performance once more' },
		{ kind: 'text', text: '**Bold** and <b onclick="x()">text</b>, [runs](/runs)' }), url);
	const before = await number(page, 'Speed');
	equal(before, await medianOf(url), 'a number is the median that the API has');
	ok(/: .*, the workload with the most configurations/.test(await block(page, 'Speed').textContent()),
		'of one workload, which it names');
	await page.waitForSelector('.block.table tbody tr');
	const rows = await page.$$eval('.block.table tbody tr', (l) => l.map((tr) =>
		tr.cells[1].textContent));
	const { items } = await ask(url, '/api/filters/apply', { limit: 20, columns: ['output_throughput'],
		group: 'configuration',
		sort: [{ column: 'output_throughput', descending: true }] });
	ok(rows.length === 20 && rows.every((t, i) => isShown(t, items[i].values.output_throughput)),
		'a table has the first 20 rows of its address', rows);
	equal(await page.$$eval('.markdown b', (l) => l.length), 0, 'HTML in a text is text');
	equal(await page.textContent('.markdown strong'), 'Bold', 'Markdown is drawn');
	await choose(page, 'Speed then', 'Freeze');
	await page.waitForSelector('.frozen');
	await becomes(() => isStill(page), true, 'a block that is frozen is saved');
	await page.reload();
	await page.waitForSelector('.frozen');
	await upload(url, study().map((d) => ({ ...d, run_id: `${d.run_id.slice(0, -2)}ff`,
		results: { ...d.results, output_throughput: 9e6 } })));
	await page.reload();
	await page.waitForSelector('.frozen');
	const after = await medianOf(url);
	ok(after !== before, 'runs were added that change the median', after);
	await becomes(() => number(page, 'Speed'), after, 'a block follows the store');
	equal(await number(page, 'Speed then'), before, 'one that is frozen does not');
	ok(/Frozen \d{4}-/.test(await block(page, 'Speed then').textContent()), 'and says since when');
}

/** Other pages that can be blocks: what they show there is what their own page shows. */
async function otherPages(page, url) {
	for (const [path, button, part] of [['/overview', MENU, '.best-table'], ['/runs', MENU, null]]) {
		await page.goto(url + path);
		await page.locator(button).first().click();
		await page.click(ADD);
		await page.waitForSelector('.toast:has-text("Added")');
		if (!part)
			continue;
		const values = () => page.$$eval(`${part} [data-value]`, (l) => l.map((e) =>
			e.dataset.value));
		const there = await values();
		await page.click('.toast:has-text("Open board")');
		await page.waitForSelector(`.block ${part}`);
		ok(there.length > 2, `${path} has numbers`, there);
		await becomes(values, there, 'which its block has, too');
		await becomes(() => page.$$eval('.block .tools', (l) => l.filter((e) => e.checkVisibility())
			.map((e) => e.querySelectorAll('select, input').length)), [0], 'without controls');
	}
	await page.click('.toast:has-text("Open board")');
	await page.waitForSelector('.block.table[aria-label=Runs] tbody tr');
	ok(true, 'a table of runs can be added from Runs');
}

const captionsOf = async (url, id) => (await ask(url, '/api/boards')).items.find((b) => b.id === id)
	.body.blocks.map((b) => b.caption ?? '');

async function edits(page, url, id) {
	const captions = () => captionsOf(url, id);
	const first = await captions();
	await choose(page, 'Speed', 'Move up');
	await becomes(captions, [first[1], first[0], ...first.slice(2)], 'a block moves up');
	await choose(page, 'Speed', 'Remove');
	await becomes(captions, [first[0], ...first.slice(2)], 'and goes');
	await page.click('.toast:has-text("Undo")');
	await becomes(captions, [first[1], first[0], ...first.slice(2)], 'and comes back');
	await choose(page, 'Speed', 'Remove');
	await becomes(captions, [first[0], ...first.slice(2)], 'it goes again');
	await page.waitForSelector('.toast:has-text("Undo")');
	const [other, last] = first.slice(-2);
	await choose(page, last, 'Move up');
	await becomes(captions, [first[0], ...first.slice(2, -2), last, other], 'another block moves');
	await page.click('.toast:has-text("Undo")');
	await becomes(captions, [first[1], first[0], ...first.slice(2, -2), last, other],
		'Undo brings the block back and leaves the move');
	await choose(page, last, 'Move down');
	await becomes(captions, [first[1], first[0], ...first.slice(2)], 'as it was');
	await choose(page, 'Speed', 'Edit caption');
	await page.fill('.block-editor input', 'Median speed');
	await page.click('.block-editor button:has-text("Save")');
	await becomes(captions, ['Median speed', first[0], ...first.slice(2)], 'its caption changes');
	const f = { and: [{ column: 'gpu_model', in: ['beta 40gb'] }] };
	const { items } = await ask(url, '/api/filters/options'), gpu = items.find((c) =>
		c.column === 'gpu_model');
	f.and[0].in = [gpu.values[0].value];
	await page.goto(`${url}/boards/${id}?f=${encodeURIComponent(JSON.stringify(f))}`);
	await page.click('.scope button:has-text("Filter all blocks by")');
	const wanted = await medianOf(url, f);
	await becomes(() => number(page, 'Median speed'), wanted,
		'a filter of the board holds for its blocks');
	await page.click('.scope button:has-text("Remove the filter")');
	await becomes(async () => (await number(page, 'Median speed')) !== wanted, true,
		'until it is removed');
}

async function rename(page, name) {
	await page.click('button[aria-label="Rename the board"]');
	await page.fill('input[aria-label="Name of the board"]', name);
	await page.keyboard.press('Enter');
}

/** Requests reach the server at once, and their answers come late; a page may be left before. */
const late = (page, what, ms) => page.route(what, (r) => r.fetch().then(async (response) => {
	await new Promise((then) => setTimeout(then, ms));
	await r.fulfill({ response });
}).catch(() => undefined));

/** Changes of a person who does not wait for the answers to the ones before. */
async function quick(page, url, id) {
	const first = await captionsOf(url, id), asked = [];
	const list = (r) => r.url().endsWith('/api/boards'), add = async () => {
		await page.click('.board-tools button:has-text("Add")');
		await page.click('.menu-item:text-is("Heading")');
	};
	await late(page, '**/api/boards', 300);
	await late(page, '**/api/boards/*', 1000);
	await rename(page, 'Board 2');
	await Promise.all([page.waitForRequest(list), add()]);
	const answer = page.waitForResponse(list);
	await add();
	await answer;
	await add();
	page.on('dialog', (d) => {
		asked.push(d.type());
		d.dismiss();
	});
	await page.evaluate(() => location.assign('/charts'));
	await becomes(() => asked, ['beforeunload'], 'the browser asks before it leaves what is not saved');
	await becomes(() => captionsOf(url, id), [...first, 'Heading', 'Heading', 'Heading'],
		'quick changes are all saved');
	await becomes(() => isStill(page), true, 'then the page is still');
	await page.unroute('**/api/boards');
	await page.unroute('**/api/boards/*');
	await save(page, id, (body) => body.blocks.splice(-3), url);
	equal(asked, ['beforeunload'], 'and it is left without a question');
	page.removeAllListeners('dialog');
}

/** Two windows: the second one, which still shows the board as it was, undoes nothing of the first. */
async function twoWindows(page, url, id) {
	const before = await ask(url, '/api/boards'), { body } = before.items.find((b) => b.id === id);
	const captions = () => captionsOf(url, id);
	const mine = await captions(), theirs = [...mine, 'By someone else'];
	await page.route('**/api/boards', (r) => r.fulfill({ json: before }));
	await page.goto(`${url}/boards/${id}`);
	await page.waitForSelector('.block');
	await ask(url, `/api/boards/${id}`, { body: { ...body,
		blocks: [...body.blocks, { kind: 'heading', caption: 'By someone else' }] } }, 'PUT');
	await rename(page, 'Board 1');
	await becomes(async () => (await ask(url, '/api/boards')).items.find((b) => b.id === id).name,
		'Board 1', 'a name is saved whoever changed the board');
	await choose(page, 'Median speed', 'Move down');
	await page.waitForSelector('.toast:has-text("was changed in another window")');
	equal(await captions(), theirs, 'a change of an older version of the board is not saved');
	await page.unroute('**/api/boards');
	await late(page, '**/api/boards', 1000);
	await page.waitForTimeout(10_500);
	ok(await page.$('.toast:has-text("Save mine instead")'),
		'what was not saved is offered until the reader decides');
	await page.click('.toast:has-text("Save mine instead")');
	await becomes(captions, [mine[1], mine[0], ...mine.slice(2)], 'unless the reader wants it');
	await becomes(() => page.$$eval('.block', (l) => l.length), mine.length, 'and it is what is shown');
	await choose(page, 'Median speed', 'Move up');
	await becomes(captions, mine, 'one change after the other of the same window is saved');
	await page.unroute('**/api/boards');
}

async function looks(page, url, id) {
	for (const [scheme, width] of [['light', 1440], ['dark', 1440], ['dark', 390]]) {
		await page.emulateMedia({ colorScheme: scheme });
		await page.setViewportSize({ width, height: 900 });
		await page.goto(`${url}/boards/${id}`);
		await drawn(page, 4);
		await becomes(() => page.evaluate(() =>
			document.querySelector('main').scrollWidth <= innerWidth), true,
			`${width} px, ${scheme}: nothing is wider than the screen`);
		await accessible(page, `a board, ${scheme}, ${width} px`);
		await page.screenshot({ path: join(shots, `board-${scheme}-${width}.png`) });
	}
	await page.setViewportSize({ width: 1440, height: 900 });
	const columns = await page.$eval('.board', (e) =>
		getComputedStyle(e).gridTemplateColumns.split(' ').length);
	equal(columns, 2, 'a wide screen has two columns');
}

/** What is printed is asked of the page while it prints: Chromium says so by an event. */
async function paper(page) {
	await page.evaluate(() => addEventListener('beforeprint', () => setTimeout(() => undefined)));
	await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
	await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
	await becomes(() => page.$eval('html', (e) => e.dataset.theme), 'light',
		'paper is white in the dark theme too');
	equal(await page.$$eval('.top, .board-tools, .block-head .menu, .chart-menu', (l) =>
		l.filter((e) => e.checkVisibility()).length), 0, 'it has no controls');
	ok(/\/boards\/\d+ · \d{4}-/.test(await page.textContent('.board-foot')),
		'and the address and the date');
	equal(await page.$$eval('.block:not(.heading)', (l) => l.filter((e) =>
		getComputedStyle(e).breakInside !== 'avoid').length), 0, 'no block is split');
	await page.evaluate(() => dispatchEvent(new Event('afterprint')));
	await page.emulateMedia({ media: null });
	equal(await page.$eval('html', (e) => e.dataset.theme), 'dark', 'the screen is as it was');
	const pdf = await page.pdf({ format: 'A4', path: join(shots, 'board.pdf') });
	ok(pdf.length > 10_000, 'a PDF is made', pdf.length);
}

async function file(page, browser) {
	const came = page.waitForEvent('download');
	await page.click('button:has-text("Share")');
	await page.click('.menu-item:has-text("Export as HTML file")');
	const path = join(scratch, 'board.html');
	await (await came).saveAs(path);
	const html = readFileSync(path, 'utf8');
	ok(!/<script|<button|javascript:|<[^>]* on[a-z]+=/i.test(html),
		'the file has no script and no button');
	const context = await browser.newContext({ javaScriptEnabled: false, offline: true });
	const opened = await context.newPage(), asked = [];
	opened.on('request', (r) => asked.push(r.url()));
	await opened.goto(`file://${path}`);
	equal(asked.filter((u) => !u.startsWith('file:')), [], 'it asks for nothing');
	const sizes = await opened.locator('.chart-box svg').all();
	equal(sizes.length, 4, 'and has the charts');
	for (const svg of sizes)
		ok((await svg.boundingBox())?.height > 100, 'which are seen');
	equal(await opened.locator('.big-number').first().textContent(),
		await page.locator('.big-number').first().textContent(), 'and the numbers');
	await opened.screenshot({ path: join(shots, 'board-file.png'), fullPage: true });
	await context.close();
}

async function views(page, browser, url) {
	await page.goto(`${url}/charts?x=median_ttft_ms&sel=1`);
	await page.waitForSelector('.performance');
	await page.click('.views-button');
	await page.fill('dialog[open] .preset-save input', 'latency');
	await page.click('dialog[open] .preset-save button');
	await page.waitForSelector('.preset-name:has-text("latency"):has-text("Charts")');
	equal((await ask(url, '/api/filters/presets')).items[0].body, { path: '/charts',
		query: 'x=median_ttft_ms' },
		'a view of any page keeps its path and its settings');
	await ask(url, '/api/filters/presets', { name: 'old one', filters: { and: [{ column: 'name',
		missing: true }] } });
	const { page: other, context } = await tab(browser, `${url}/trends`);
	await other.click('.views-button');
	await accessible(other, 'views');
	await other.click('.preset-name:has-text("latency")');
	await becomes(() => other.url(), `${url}/charts?x=median_ttft_ms`, 'it opens from every page');
	await other.click('.views-button');
	await other.click('.preset-name:has-text("old one")');
	await becomes(() => new URL(other.url()).pathname, '/runs', 'a view from before opens Runs');
	await context.close();
}

async function readOnly(browser, db, id) {
	const it = await dashboard('--read-only', '--store', db);
	const { page, wrong, context } = await tab(browser, `${it.url}/boards/${id}`);
	await drawn(page, 4);
	equal(await page.$$eval('.block-head button, .board-tools button:has-text("Add"), h1 + button', (l) =>
		l.length), 0,
		'a dashboard that is read-only shows boards without what would change them');
	await page.click('.board .chart-menu button');
	equal(await page.$$eval('.menu-item', (l) => l.map((e) => e.textContent)),
		['PNG', 'SVG', 'CSV of the points', 'Copy link'],
			'charts can be saved, but not added to boards');
	const statuses = await page.evaluate(async (n) => Promise.all([['/api/boards', 'POST'],
		[`/api/boards/${n}`, 'PUT'], [`/api/boards/${n}`, 'DELETE'], ['/api/filters/presets',
			'POST']].map(
		async ([path, method]) => (await fetch(path, { method, body: '{"name":"x","body":{}}',
			headers: { 'Content-Type': 'application/json' } })).status)), id);
	equal(statuses, [403, 403, 403, 403], 'and the server refuses changes');
	equal(wrong.filter((w) => !w.includes('403')), [], 'nothing else went wrong');
	await context.close();
	await it.stop();
}

async function home(page, url, id) {
	await page.goto(`${url}/boards/${id}`);
	await page.click('button:has-text("Share")');
	await page.click('.menu-item:has-text("Use as start page")');
	await page.goto(`${url}/`);
	await page.waitForSelector('.board');
	ok(true, 'a board can be the start page of a browser');
	await page.keyboard.press('g');
	await page.keyboard.press('o');
	await becomes(() => new URL(page.url()).pathname, '/overview', 'g o still opens Overview');
	await page.keyboard.press('g');
	await page.keyboard.press('b');
	await becomes(() => new URL(page.url()).pathname, '/boards', 'g b opens the boards');
	await accessible(page, 'the list of boards');
	await page.click('button[aria-label="Delete Board 1"]');
	await page.waitForSelector('.state.empty');
	await page.click('.toast:has-text("Undo")');
	await page.waitForSelector('th a:has-text("Board 1")');
	ok(true, 'a deleted board comes back');
}

await main(async () => {
	mkdirSync(shots, { recursive: true });
	const db = `sqlite:${join(scratch, 'boards.db')}`, it = await dashboard('--store', db);
	const browser = await launch();
	await upload(it.url, [...study(), ...series()]);
	const { page, wrong, context } = await tab(browser, `${it.url}/boards`);
	await page.waitForSelector('.state.empty:has-text("No boards yet")');
	await twoClicks(page, it.url);
	const { id } = (await ask(it.url, '/api/boards')).items[0];
	await sameNumbers(page, it.url);
	await blocks(page, it.url, id);
	await otherPages(page, it.url);
	await edits(page, it.url, id);
	await quick(page, it.url, id);
	await twoWindows(page, it.url, id);
	await looks(page, it.url, id);
	await paper(page);
	await file(page, browser);
	await views(page, browser, it.url);
	await readOnly(browser, db, id);
	await home(page, it.url, id);
	equal(wrong.filter((w) => !w.includes('409')), [],
		'nothing went wrong, and nothing was asked elsewhere');
	await context.close();
	await browser.close();
	await it.stop();
});
