// SPDX-License-Identifier: Apache-2.0
// dashboard-runs.mjs: repeats as one row, many runs changed at once, quick filters, and the list of
// columns by keyboard, pointer and screen reader.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, root } from './browser.mjs';
import {
	accessible, ask, dashboard, pick, results, tab, upload,
} from './dashboard-kit.mjs';
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
	await page.setViewportSize({ width: 1440, height: 900 });
	await page.goto(`${url}/runs`);
	await page.waitForSelector('.panel .facet');
	const facets = await page.$$eval('.panel-list section[aria-label=Suggested] .facet', (l) =>
		l.map((e) => e.dataset.facet));
	ok(facets.includes('benchmark.request_rate') && !facets.some((c) => /seed|port|num_prompts/.test(c)),
		'suggested filters are parameters, not how the client works');
	equal(wrong, [], 'nothing went wrong in the list of columns');
	await page.close();
}

const HOUR_S = 3600;

/** A document of a configuration, by its hash, so many hours ago. */
function document(name, hash, hours, ttft, status = 'completed') {
	const d = JSON.parse(readFileSync(join(root, 'examples/results/vllm-cpu.json'), 'utf8'));
	const at = new Date(Date.now() - hours * HOUR_S * 1000);
	Object.assign(d, { run_id: `run-${name}-${hours}`, timestamp: at.toISOString(), status });
	Object.assign(d.config, { name, hash: hash.padStart(16, '0') });
	d.provenance.engine_commit = 'c1';
	if (status === 'failed')
		Object.assign(d, { error: { stage: 'server', category: 'crash', reason: 'it ended' } });
	d.results.median_ttft_ms = ttft;
	return d;
}

/** Three repeats of 100, 110 and 130 ms, two of 50 and 60, one alone; two that failed. */
const documents = () => [document('big', 'a', 2, 100), document('big', 'a', 3, 130),
	document('big', 'a', 4, 110), document('small', 'b', 5, 50), document('small', 'b', 6, 60),
	document('alone', 'c', 7, 70), document('big', 'a', 8, 900, 'failed'),
	document('big', 'a', 80, 900, 'failed')];

const cells = (page, column) => page.$$eval(`.grid-row:not(.head) [data-column="${column}"]`,
	(l) => l.map((e) => e.textContent.trim().replace(/\s+/g, ' ')));
const names = (page) => page.$$eval('.grid-row:not(.head) .lead', (l) => l.map((e) =>
	`${e.querySelector('a').textContent}${e.querySelector('.times')?.textContent ?? ''}`));
const rows = (page) => page.$eval('[role=grid]', (e) => Number(e.getAttribute('aria-rowcount')) - 1);

async function folding(page, url) {
	const f = encodeURIComponent('{"and":[{"column":"status","in":["completed"]}]}');
	await page.goto(`${url}/runs?f=${f}&cols=name,median_ttft_ms,timestamp&sort=median_ttft_ms`);
	await page.waitForSelector('.grid-row .fold');
	equal(await names(page), ['small×2', 'alone', 'big×3'], 'repeats are one row, by their medians');
	equal(await cells(page, 'median_ttft_ms'), ['55 ±9.1 %', '70', '110 ±14 %'],
		'which shows the median and half the range');
	equal(await rows(page), 3, 'the table counts its rows');
	ok(/6 runs in 3 rows/.test(await page.textContent('.common')), 'the line above says how many runs');
	await page.click('.grid-row:has-text("big") .fold');
	await becomes(() => cells(page, 'median_ttft_ms'),
		['55 ±9.1 %', '70', '110 ±14 %', '100', '130', '110'],
		'the arrow shows the repeats, newest first');
	await accessible(page, 'repeats that are open');
	await page.keyboard.press('j');
	await page.keyboard.press('e');
	await becomes(async () => (await cells(page, 'median_ttft_ms')).length, 8, 'e opens them, too');
	await page.keyboard.press('e');
	await becomes(async () => (await cells(page, 'median_ttft_ms')).length, 6, 'and closes them');
	await page.click('.grid-row:has-text("small") input');
	await becomes(() => page.textContent('.chosen .num'), '2', 'a folded row selects its runs');
	await page.click('.grid-row:has-text("small") input');
	await becomes(() => page.$('.chosen'), null, 'and takes them back');
	await page.click('button:has-text("Group repeats")');
	await becomes(() => names(page).then((l) => l.length), 6, 'runs can be shown one by one');
	equal(new URL(page.url()).searchParams.get('group'), 'none', 'which the address keeps');
}

/** Tags: put on several runs at once, a chip in the table and a filter; removed on the page of a run. */
async function tagging(page, url) {
	const tagged = async () => (await ask(url, '/api/tags')).items.map((t) => [t.tag, t.runs.length]);
	await page.goto(`${url}/runs?sort=median_ttft_ms`);
	await page.click('.grid-row:has-text("small") input');
	await page.click('.chosen .menu button');
	await page.click('.menu-item:has-text("Tags")');
	await page.fill('dialog input[aria-label=Tag]', 'candidate');
	await accessible(page, 'tags of selected runs');
	await page.keyboard.press('Enter');
	await becomes(tagged, [['candidate', 2]], 'a tag on the selected runs');
	await page.keyboard.press('Escape');
	await becomes(() => page.$$eval('.grid-row:has(.run-tag)', (l) => l.map((e) =>
		[e.querySelector('.lead a').textContent, e.querySelector('.run-tag').textContent])),
	[['small', 'candidate']], 'is a chip in their row');
	await page.click('.quick button:has-text("# candidate")');
	await becomes(() => page.$eval('[data-total]', (e) => +e.dataset.total), 2,
		'and a filter in one click');
	equal(JSON.parse(new URL(page.url()).searchParams.get('f')),
		{ and: [{ column: 'tag', in: ['candidate'] }] }, 'by its name, in the address');
	await accessible(page, 'runs with a tag');
	await page.click('.grid-row:not(.head) .lead a');
	await page.click('button[aria-label="Remove the tag candidate"]');
	await becomes(tagged, [['candidate', 1]], 'the page of a run removes it there alone');
	await page.fill('.tag-form input', 'odd one');
	await page.click('.tag-form button');
	await becomes(tagged, [['candidate', 1], ['odd one', 1]], 'and adds another one');
	await becomes(() => page.$$eval('.tag-line .run-tag a', (l) => l.map((e) => e.textContent)),
		['odd one'], 'which is shown there');
	await accessible(page, 'the tags of a run');
}

async function lastNight(page, url) {
	let clicks = 0;
	const click = async (target) => {
		clicks++;
		await page.click(target);
	};
	await page.goto(url);
	await click('nav a:has-text("Runs"), header a:has-text("Runs")');
	await page.waitForSelector('.quick');
	await click('.quick button:has-text("Failed")');
	await click('.quick button:has-text("Last 24 hours")');
	await becomes(() => page.$eval('[data-total]', (e) => Number(e.dataset.total)), 1,
		'the run that failed last night, and not the one of three days ago');
	ok(clicks <= 5, `in ${clicks} clicks from the first page`);
	equal(await page.$$eval('.quick [aria-pressed=true]', (l) => l.map((e) => e.textContent)),
		['Last 24 hours', 'Failed'], 'the quick filters say that they are on');
	await page.click('.quick button:has-text("Failed")');
	await becomes(() => page.$eval('[data-total]', (e) => +e.dataset.total), 7, 'a click ends it');
}

async function bulk(page, url) {
	const total = async (shown) => (await ask(url, '/api/filters/apply', { shown, limit: 0 })).total;
	await page.goto(`${url}/runs?sort=median_ttft_ms`);
	await page.click('.grid-row:has-text("small") input');
	await page.click('.chosen .menu button');
	await page.waitForSelector('.menu-item:has-text("Exclude")');
	await accessible(page, 'what can be done with selected runs');
	await shot(page, 'runs-bulk');
	await page.click('.menu-item:has-text("Exclude")');
	await page.fill('dialog input[required]', 'noisy machine');
	await shot(page, 'runs-exclude');
	await page.click('dialog button.primary');
	await becomes(() => total('usual'), 6, 'two runs are excluded with a reason');
	await becomes(() => page.$$eval('.toast', (l) => l.some((e) => e.textContent === '2 runs excluded.')),
		true, 'which is said');
	const one = (await ask(url, '/api/filters/apply', { shown: 'excluded', limit: 9 })).items
		.find((r) => r.flags.includes('excluded'));
	equal((await ask(url, `/api/data/experiments/${one.id}`)).exclusions[0].reason, 'noisy machine',
		'the reason is kept');
	await page.goto(`${url}/runs?shown=excluded&sel=${one.id}`);
	await page.click('.chosen .menu button');
	await page.click('.menu-item:has-text("Include again")');
	await becomes(() => total('usual'), 7, 'one is included again');
	await page.goto(`${url}/runs?sel=${one.id}`);
	await page.click('.chosen .menu button');
	await page.click('.menu-item:has-text("Save as a view")');
	await page.fill('dialog input[required]', 'the best one');
	await page.click('dialog button.primary');
	await becomes(async () => (await ask(url, '/api/filters/presets')).items.map((p) => p.name),
		['the best one'], 'selected runs get a name');
	const [kept] = (await ask(url, '/api/filters/presets')).items;
	await page.click('button[aria-label="Views"]');
	await page.click('button[aria-label="Rename the best one"]');
	await ask(url, `/api/filters/presets/${kept.id}`, { name: 'their name' }, 'PUT');
	await page.fill('input[aria-label="New name"]', 'my name');
	await page.click('dialog button:has-text("Rename")');
	await page.waitForSelector('.toast:has-text("this view was changed in another window")');
	await becomes(() => page.$$eval('.preset-name span:not(.dim)', (l) => l.map((e) => e.textContent)),
		['their name'], 'a view that someone else has renamed keeps that name, and shows it');
	await page.keyboard.press('Escape');
	await page.click('.chosen .menu button');
	await page.click('.menu-item:has-text("Delete")');
	ok(/Delete 1 run\?/.test(await page.textContent('dialog h2')), 'deleting asks, with the number');
	equal(await total('all'), 8, 'nothing is deleted before that');
	await page.click('dialog button.danger');
	await becomes(() => total('all'), 7, 'then the run is gone');
}

async function repeats(browser) {
	const it = await dashboard(), { page, wrong } = await tab(browser, it.url);
	for (const d of documents())
		await upload(it.url, [d]);
	await folding(page, it.url);
	await tagging(page, it.url);
	await lastNight(page, it.url);
	await bulk(page, it.url);
	equal(wrong.filter((w) => !w.includes('409')), [],
		'nothing went wrong with repeats but a refused name');
	equal(await it.stop(), 0, 'that dashboard ends, too');
}

async function withoutGpus(browser) {
	const it = await dashboard(), { page } = await tab(browser, it.url);
	await upload(it.url, results(4).map((r) => ({ ...r, tensor_parallel_size: undefined })));
	await page.goto(`${it.url}/charts`);
	await becomes(() => page.$$eval('.tools .pick', (l) => l.map((e) => e.textContent).slice(0, 1)),
		['Y axisOutput throughput'], 'where no run says its GPUs, the chart is not empty');
	equal(await it.stop(), 0, 'that dashboard ends, too');
}

/** Any two metrics: a point says which run it is, a click pins it with all that differs, a second opens. */
async function anyPoint(browser, url) {
	const { page, wrong } = await tab(browser, url);
	const where = `${url}/charts?view=any&g=server.model&x=output_throughput&y=median_ttft_ms`;
	await page.goto(where);
	await page.waitForSelector('.chart-box[data-drawn=true] canvas');
	const box = await page.$eval('.chart-box', (e) => e.getBoundingClientRect().toJSON());
	const isOver = () => page.$$eval('.tip', (l) => l.some((e) =>
		e.checkVisibility({ visibilityProperty: true })));
	let at = null;
	for (let y = box.y + 20; y < box.bottom - 60 && !at; y += 6)
		for (let x = box.x + 80; x < box.right - 30 && !at; x += 6) {
			await page.mouse.move(x, y);
			if (await isOver())
				at = [x, y];
		}
	ok(at, 'there is a point with a tip');
	await becomes(async () => /Verdict|Date/.test(await page.textContent('.tip')), true,
		'the tip says what differs, once that has come');
	await page.mouse.click(...at);
	const pin = () => Number(new URL(page.url()).searchParams.get('pin'));
	await becomes(async () => pin() > 0, true, 'a click pins it, in the address');
	const { values } = await ask(url, `/api/data/experiments/${pin()}`);
	const { columns } = await ask(url, '/api/filters/apply', { limit: 1 });
	const facts = columns.filter((c) => !['run_id', 'name', 'status', 'verdict', 'output_throughput',
		'median_ttft_ms',
	].includes(c) && values[c] !== undefined && values[c] !== null && values[c] !== '').length;
	const rows = () => page.$$eval('.pin dl > div', (l) => l.length);
	await becomes(async () => await rows() >= facts + 2, true,
		'the pin has both metrics and all that differs');
	equal(await page.$eval('.pin a', (a) => new URL(a.href).pathname), `/runs/${pin()}`,
		'and opens its run');
	const id = pin();
	await page.mouse.dblclick(...at);
	await page.waitForURL((u) => u.pathname === `/runs/${id}`);
	await page.goto(where);
	await page.waitForSelector('.pick.workload option:nth-child(2)', { state: 'attached' });
	const workloads = await page.$$eval('.pick.workload option', (l) => l.map((o) => o.value));
	const answer = await ask(url, '/api/filters/apply', { limit: 0, facets: ['workload'],
		facet_values: 50 });
	await page.waitForSelector('section[aria-label^="Distribution"] td');
	const save = async (what) => {
		const [file] = await Promise.all([page.waitForEvent('download'), (async () => {
			await page.click('section[aria-label^="Distribution"] .chart-menu button');
			await page.click(`.menu-item:has-text("${what}")`);
		})()]);
		return readFileSync(await file.path(), 'utf8');
	};
	const spread = await ask(url, '/api/analysis/distribution', { metric: 'median_ttft_ms',
		group: ['server.model'] });
	const csv = (await save('CSV')).trim().split('\r\n').map((l) => l.split(','));
	equal(csv.slice(1).map((l) => l.slice(1).map(Number)), spread.groups.map((g) => [g.n,
		...g.quantiles]),
		'a distribution is saved as CSV');
	ok((await save('SVG')).includes(spread.groups[0].name),
		'and as a picture, with the names of its groups');
	equal(workloads, [...answer.facets[0].values.map((v) => v.value).filter((v) => v !== null), 'all'],
		'workloads are chosen from');
	await page.selectOption('.pick.workload select', workloads[1]);
	const n = answer.facets[0].values.find((v) => v.value === workloads[1]).count;
	await becomes(async () => (await page.textContent('main')).includes(`${n} runs`), true,
		'and one of them is drawn alone');
	equal(wrong, [], 'nothing went wrong with points');
}

main(async () => {
	mkdirSync(shots, { recursive: true });
	const it = await dashboard(), browser = await launch();
	await upload(it.url, results(RUNS));
	await picker(browser, it.url);
	await anyPoint(browser, it.url);
	await repeats(browser);
	await withoutGpus(browser);
	equal(await it.stop(), 0, 'the dashboard ends as it should');
	await browser.close();
});
