// SPDX-License-Identifier: Apache-2.0
// dashboard-tasks.mjs: ten things that people open a dashboard for, each begun at its address and
// done as a new user would: the answer on the page is the one that the made-up runs have, in at most
// five clicks. Clicks and seconds of each are printed.
import { launch } from './browser.mjs';
import { ask, dashboard, isStill, tab, upload } from './dashboard-kit.mjs';
import { series, study } from './dashboard-sample.mjs';
import { becomes, equal, main, ok } from './tap.mjs';

const CLICKS_MAX = 5, MODEL = 'org/small-8b', FASTER = 1.075, PRICES = { alpha: 4, beta: 1 };
const gpuOf = (d) => (d.system.hardware_info.gpus[0].name.startsWith('A') ? 'alpha' : 'beta');

/** Tokens/s of one user: alpha is faster, more GPUs help, and more users at once do not. */
function speed(gpu, tp, users) {
	return ((gpu === 'alpha' ? 120 : 80) * tp ** 0.5) / (1 + users / 24);
}

/** The study's settings with a speed per user that follows a rule, as one version of an engine. */
function version(name, factor, from) {
	return study().filter((d) => d.config.server.model === MODEL).map((d, i) => {
		const tp = d.config.server.tensor_parallel_size, users = d.results.request_rate;
		const user = speed(gpuOf(d), tp, users) * factor * (i % 2 ? 1.002 : 0.998), r = d.results;
		d.run_id = `exp_20260501_1200${name.slice(2, 4)}_${(from + i).toString(16).padStart(6, '0')}`;
		d.suite = 'sizes';
		d.environment.server.version = name;
		d.config.benchmark.max_concurrency = users;
		d.trust = { verdict: 'VALID', reasons: [] };
		r.profllm = { ...r.profllm, series: { step_s: 1, tracks: [
			{ key: 'gpu_util_percent', y: [40, 60, 97] },
			{ key: 'gpu_power_w', y: [300, 500, 690] }] } };
		Object.assign(r, { max_concurrency: users, median_tpot_ms: 1000 / user,
			mean_tpot_ms: 1000 / user,
			output_throughput: user * users, median_ttft_ms: 4000 / user,
			p99_ttft_ms: 6000 / user,
			median_e2el_ms: 4000 / user + 127_000 / user });
		return d;
	});
}

/** A run that failed, and one that is INVALID, some hours ago. */
function bad() {
	const [failed, invalid] = version('0.12.0', 1, 4096), hours = (h) =>
		new Date(Date.now() - h * 3_600_000).toISOString();
	Object.assign(failed, { status: 'failed', timestamp: hours(8), suite: 'nightly', results: null,
		trust: null,
		error: { stage: 'start', category: 'crash', reason: 'The server ended with status 1.',
			log_tail: 'loading weights\nCUDA out of memory' } });
	Object.assign(invalid, { timestamp: hours(9), suite: 'nightly' });
	invalid.trust = { verdict: 'INVALID', reasons: [{ level: 'INVALID', code: 'client_cpu',
		text: 'A thread of the client used 99 % of a core.' }] };
	return [failed, invalid];
}

/** The commits of the sample; the one that is slower came with another library. */
const commits = () => series().map((d, i) => {
	if (i >= 12)
		d.environment.python.packages.torch = '2.14.0';
	return d;
});

/** What the rule says: the best setting of 0.13.0 by a measure, larger being better. */
function best(runs, is, measure) {
	const d = runs.filter(is).reduce((a, b) => (measure(b) > measure(a) ? b : a));
	return [gpuOf(d), `TP${d.config.server.tensor_parallel_size}`];
}

const results = [];
async function task(page, url, name, walk) {
	let clicks = 0;
	const click = async (what, options) => {
		clicks++;
		await (typeof what === 'string' ? page.locator(what).first() : what).click(options);
	};
	/* One click opens a list, and one chooses. */
	const choose = async (what, value) => {
		clicks += 2;
		await page.selectOption(what, value);
	};
	await page.goto(`${url}/`);
	await page.waitForSelector('.best-table td a');
	const from = performance.now();
	await walk(click, choose);
	const seconds = (performance.now() - from) / 1000;
	results.push(`${name}: ${clicks} clicks, ${seconds.toFixed(1)} s`);
	ok(clicks <= CLICKS_MAX, `${name}: ${clicks} clicks`, clicks);
	await becomes(() => isStill(page), true, 'what it changed is saved');
}

/** Charts of other pages are added in two clicks each. */
async function anyFive(page, url) {
	const charts = [['/charts', '.chart-menu button'],
		['/charts?view=any', 'section[aria-label*=" against "] .chart-menu button'],
		['/charts?view=any', '.card-head .chart-menu button'], ['/trends', '.chart-menu button'],
		['/compare?by=gpu_model', '.board-menu button']];
	for (const [path, button] of charts) {
		await page.goto(url + path);
		await page.locator(button).first().click();
		await page.locator('.menu-item:has-text("Add to board")').first().click();
		await page.waitForSelector('.toast:has-text("Added to")');
	}
	await page.click('.toast:has-text("Open board")');
	await page.waitForSelector('.board .block');
	equal(await page.$$eval('.block', (l) => l.length), 6 + charts.length,
		'five charts of other pages are on the board after two clicks each');
}

/** The row that is marked as the best in a column of the first page's table, and its setting. */
const marked = (page, column) => page.$$eval('.best-table tbody tr', (rows, k) => {
	const row = rows.find((tr) => tr.querySelectorAll('td[data-load]')[k]?.classList.contains('is-best'));
	return row && [row.querySelector('th').textContent,
		row.querySelectorAll('td[data-load]')[k].querySelector('.facts-line')?.textContent
			.split(' · ')[0]];
}, column);

await main(async () => {
	const browser = await launch(), it = await dashboard(), { url } = it;
	const older = version('0.12.0', 1, 0), newer = version('0.13.0', FASTER, 1024);
	await upload(url, [...older, ...newer, ...commits(), ...bad()]);
	for (const [gpu, usd] of Object.entries(PRICES)) {
		const { items } = await ask(url, '/api/settings/prices');
		const known = items.find((p) => p.gpu.startsWith(gpu));
		await ask(url, `/api/settings/prices/${encodeURIComponent(known.gpu)}`,
			{ usd_per_hour: usd }, 'PUT');
	}
	const { page, wrong } = await tab(browser, `${url}/`);
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	const user = (d) => 1000 / d.results.median_tpot_ms, perGpu = (d) =>
		d.results.output_throughput / d.config.server.tensor_parallel_size;

	await task(page, url, 'best configuration for 50 tokens/s/user', async (click) => {
		await click('.need input');
		await page.keyboard.type('50');
		await page.keyboard.press('Enter');
		await page.waitForSelector('.best-table th:has-text("At need")');
		const want = best(newer, (d) => user(d) >= 50, perGpu);
		const found = await page.$$eval('.best-table tbody tr', (rows) => rows.map((tr) =>
			[tr.querySelector('th').textContent,
				Number(tr.querySelector('td[data-load="At need"] a')
					?.dataset.value ?? NaN)]));
		const [name] = found.reduce((a, b) => (b[1] > a[1] ? b : a));
		ok(name.toLowerCase().startsWith(want[0]), `the GPU is ${want[0]}`, JSON.stringify(found));
	});
	await task(page, url, 'cheapest for a given P99 TTFT', async (click, choose) => {
		await click('.need input >> nth=1');
		await page.keyboard.type('100');
		await page.keyboard.press('Enter');
		await choose('.pick:has-text("Rank") select', 'usd');
		await page.waitForFunction(() => new URLSearchParams(location.search).get('rank') === 'usd');
		await page.waitForTimeout(500);
		const users = Math.max(...newer.map((d) => d.results.max_concurrency));
		const [gpu] = best(newer, (d) => d.results.max_concurrency === users
			&& d.results.p99_ttft_ms <= 100, (d) => perGpu(d) / PRICES[gpuOf(d)]);
		const columns = await page.$$eval('.best-table thead th', (l) => l.length);
		const found = await marked(page, columns - 3);
		ok(found?.[0].toLowerCase().startsWith(gpu), `at high load it is ${gpu}`,
			JSON.stringify(found));
	});
	await task(page, url, 'did 0.13 beat 0.12', async (click) => {
		await click('section[aria-label=Changed] a:has-text("0.13.0 against 0.12.0")');
		await page.waitForURL(/\/compare/);
		const text = await page.locator('.answer, .verdict-sentence, h2 + p').first().textContent();
		ok(/is faster in 18 of 18 .*\+7\.5\s%/.test(text), 'the page says by how much', text);
	});
	await task(page, url, 'which commit made it slower', async (click) => {
		const line = page.locator('section[aria-label=Changed] li').first();
		ok((await line.textContent()).includes('12c0ffe'),
			'the first line names the thirteenth commit');
		await click('section[aria-label=Changed] li a');
		await page.waitForURL(/\/trends/);
		const row = page.locator('section[aria-label=Changes] tbody tr').first();
		const text = await row.textContent();
		ok(text.includes('11c0ffee..12c0ffee'), 'the page has the range of commits', text);
		ok(/torch.*2\.13\.0.*2\.14\.0/.test(text), 'and what else changed', text);
	});
	await task(page, url, 'why is this run not valid', async (click) => {
		await click('section[aria-label="To look at"] li:has-text("INVALID") a');
		await page.waitForURL(/\/runs/);
		await click('.grid-body [role=row] a');
		await page.waitForSelector('section[aria-label=Verdict]');
		ok((await page.textContent('section[aria-label=Verdict]')).includes('used 99 % of a core'),
			'the page of the run begins with the reason');
	});
	await task(page, url, 'what did the GPU do', async (click) => {
		await click('.best-table td a');
		await page.waitForURL(/\/runs\/\d+/);
		await page.waitForSelector('[data-track=gpu_power_w]');
		equal(await page.$$eval('[data-track^=gpu_]', (l) => l.map((e) => parseFloat(
			/[\d.]+/.exec(e.textContent)[0]))), [97, 690], 'its use and its power at the end');
	});
	await task(page, url, 'repeat a run with another batch size', async (click) => {
		await click('.best-table td a');
		await page.waitForURL(/\/runs\/\d+/);
		await click('a:has-text("Launch again"), button:has-text("Launch again")');
		await page.waitForURL(/\/launch/);
		await page.waitForFunction(() =>
			document.querySelector('textarea')?.value.includes('max_num_seqs'));
		const chosen = await page.$eval('textarea', (e) =>
			e.value.slice(e.selectionStart, e.selectionEnd));
		ok(/\d/.test(chosen), 'what is changed most is selected already', JSON.stringify(chosen));
		await page.keyboard.type('16');
		const text = await page.inputValue('textarea');
		ok(/(max_num_seqs|max_concurrency)"?: 16\b/.test(text), 'typing replaces it',
			text.slice(0, 900));
		await page.waitForSelector('button:text-is("Run"):not([disabled])');
	});
	await task(page, url, 'share a chart', async (click) => {
		await click('nav a:has-text("Charts")');
		await page.waitForSelector('.chart-box[data-drawn=true]');
		await click('.chart-menu button');
		await click('.menu-item:has-text("Copy link")');
		const link = await page.evaluate(() => navigator.clipboard.readText());
		ok(link.startsWith(`${url}/charts`), 'its address is on the clipboard', link);
	});
	await task(page, url, 'failed runs of last night', async (click) => {
		await click('section[aria-label="To look at"] li:has-text("Failed") a');
		await page.waitForURL(/\/runs/);
		await click('.quick button:has-text("Last 24 hours")');
		await page.waitForFunction(() =>
			document.querySelector('[data-total]')?.dataset.total === '1');
		await click('.grid-body [role=row] a');
		await page.waitForSelector('section[aria-label=Failure]');
		ok((await page.textContent('section[aria-label=Failure]')).includes('CUDA out of memory'),
			'the run shows the log of its server');
	});
	await task(page, url, 'five charts on a board', async (click) => {
		await click('nav a:has-text("Boards")');
		await click('input[aria-label="Name of a new board"]');
		await page.keyboard.type('Weekly');
		await page.keyboard.press('Enter');
		await click('button:has-text("Add five usual charts")');
		await page.waitForSelector('.board .block');
		await page.waitForFunction(() =>
			document.querySelectorAll('.block .chart-box[data-drawn=true]').length >= 4 &&
			document.querySelector('.block .best-table td a'));
		equal(await page.$$eval('.block', (l) => l.length), 5, 'all five are there and drawn');
	});
	await task(page, url, 'five charts of one’s own choice on a board', async (click) => {
		await click('nav a:has-text("Boards")');
		await click('input[aria-label="Name of a new board"]');
		await page.keyboard.type('My own');
		await page.keyboard.press('Enter');
		await page.waitForSelector('.chooser input[type=text]:focus');
		for (const words of ['best conf', 'p99 ttft', 'median tpot', 'request throughput',
			'scaling']) {
			await page.keyboard.type(words);
			await page.waitForSelector('.tick.first');
			await page.keyboard.press('Enter');
		}
		await click('.chooser button:has-text("Add 5 charts")');
		await page.waitForSelector('.board .block');
		equal(await page.$$eval('.block', (l) => l.map((e) => e.getAttribute('aria-label'))),
			['Best configurations', 'Tokens/s/GPU against P99 TTFT', 'Median TPOT, trend',
				'Request throughput, trend', 'Scaling'],
			'the five that were chosen are there');
		await page.waitForFunction(() => [...document.querySelectorAll('.block')].every((b) =>
			b.querySelector('.chart-box[data-drawn=true], table, .state')));
	});
	await task(page, url, 'what a verdict means', async (click) => {
		await click('section[aria-label="Best configurations"] .answer .explain');
		ok((await page.textContent('dialog[open]')).includes('no other color has'),
			'the leader is explained');
		await page.keyboard.press('Escape');
		await click('section[aria-label="To look at"] li:has-text("INVALID") a');
		await click('.grid-body [role=row] a');
		await click('section[aria-label=Verdict] .explain');
		ok((await page.textContent('dialog[open]')).includes('Do not use the named metrics'),
			'and so is INVALID');
	});
	await task(page, url, 'this chart on a board', async (click) => {
		await click('nav a:has-text("Charts")');
		await page.waitForSelector('.chart-box[data-drawn=true]');
		await click('.chart-menu button');
		await click('.menu-item:has-text("Add to board")');
		await click('.toast:has-text("Open board")');
		await page.waitForFunction(() => document.querySelectorAll('.board .block').length === 6);
	});
	await anyFive(page, url);
	for (const line of results)
		console.log(`# ${line}`);
	equal(wrong, [], 'no error, and no request to elsewhere');
	await browser.close();
	await it.stop();
});
