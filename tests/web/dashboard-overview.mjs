// SPDX-License-Identifier: Apache-2.0
// dashboard-overview.mjs: the first page. Every number is the API's and opens its run; an empty store
// shows the first steps; a recorded answer shows what the sample's runs do not have.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, root } from './browser.mjs';
import { accessible, ask, dashboard, isShown, tab, upload } from './dashboard-kit.mjs';
import { series, study } from './dashboard-sample.mjs';
import { becomes, equal, main, ok, output, program, scratch } from './tap.mjs';

const API = '/api/analysis/overview', TABLE = '.best-table';
const SAMPLE = join(root, 'web/src/app/pages/overview/sample.json');

/** A cell of the recorded answer. */
const cell = (id, best, invalid, lead) => ({ id, ids: [id], configuration: 'TP2', version: `0.1${id}.0`,
	tokens_per_s_per_user: 100 + id, tokens_per_s_per_gpu: 50 + id, p99_ttft_ms: 90 + id,
	median_ttft_ms: 30 + id, usd_per_m_output: null, is_best: best, is_degraded: best,
	invalid, would_lead: lead });
const RECORDED = {
	runs: 9, workload: 'w',
	workloads: [{ key: 'w', label: 'model · random', runs: 9, configurations: 3 }],
	rows_by: 'gpu_model', loads: [{ name: 'low', value: 1, label: 'concurrency 1' },
		{ name: 'high', value: 64, label: 'concurrency 64' }],
	rows: [{ name: 'alpha', cells: [cell(1, false, 2, true), cell(2, true, 1, false)] },
		{ name: 'beta', cells: [cell(3, true, 0, false), null] }],
	unpriced: ['beta'], at_need: [{ name: 'beta', id: 3, tokens_per_s_per_gpu: 53 }],
	sentence: 'beta leads.', changes: [],
	attention: { invalid: 3, failed: 0, degraded: 1 },
	versions: [], latest: [{ suite: null, runs: 9, time: 1790000000 }],
};

/** Numbers of the table by row and load, as [value, run]. */
const tableOf = (page) => page.$$eval(`${TABLE} tbody tr`, (rows) => rows.map((tr) => [
	tr.querySelector('th').textContent,
	...[...tr.querySelectorAll('td[data-load]')].filter((td) => td.dataset.load !== 'At need').map((td) =>
		[td.classList.contains('is-best'), ...[...td.querySelectorAll('.numbers a')].map((a) =>
			[Number(a.dataset.value), Number(new URL(a.href).pathname.split('/').pop())])])]));

const tableIn = (answer) => answer.rows.map((row) => [row.name, ...row.cells.map((c) => (!c ? [false]
	: [c.is_best, ...[c.tokens_per_s_per_user, c.tokens_per_s_per_gpu, c.usd_per_m_output]
		.filter((v) => v !== null).map((v) => [v, c.id])]))]);

async function empty(browser) {
	const it = await dashboard();
	const { page, wrong, context } = await tab(browser, `${it.url}/`);
	await page.waitForSelector('.welcome:has-text("No runs yet")');
	equal(await page.title(), 'Overview · ProfLLM', 'an empty store opens with the overview');
	equal(await page.$$eval('.welcome section', (l) => l.map((e) => e.getAttribute('aria-label'))),
		['Try it with sample data', 'Run a first experiment', 'Import results'],
		'which offers the first steps, and nothing else');
	equal(await page.textContent('.welcome pre'), 'profllm ingest results/', 'a line for the shell');
	await accessible(page, 'first steps');
	for (const path of ['trends', 'compare', 'plan', 'charts']) {
		await page.goto(`${it.url}/${path}`);
		await becomes(() => page.textContent('.state-title').catch(() => ''),
			path === 'charts' ? 'Nothing to draw yet' : 'No runs yet',
			`${path} says that there is nothing`);
	}
	await page.goto(`${it.url}/`);
	await page.click('.welcome a:has-text("Open Launch")');
	await becomes(() => page.$eval('textarea', (e) => e.value.includes('sim')).catch(() => false), true,
		'the first experiment is ready to be started');
	equal(wrong, [], 'nothing went wrong');
	await context.close();
	await it.stop();
}

/** The store is replaced under a page: it does not go on with runs that are no longer there. */
async function restored(browser) {
	const other = await dashboard(), it = await dashboard(), backup = join(scratch, 'other.backup');
	await upload(other.url, study().slice(0, 6));
	await upload(it.url, study().slice(0, 3));
	const run = (...args) => equal(spawnSync(program, args, { encoding: 'utf8' }).status, 0, args[0]);
	run('backup', backup, '--store', other.store);
	const { page, context } = await tab(browser, `${it.url}/runs`);
	await page.waitForSelector('.tile [data-value]');
	run('restore', backup, '--store', it.store, '--force');
	await becomes(() => page.textContent('.pulse.bad').catch(() => ''),
		'Store was replaced: restart the dashboard', 'a page says that its store was replaced');
	await page.waitForSelector('.state.failure:has-text("restart this dashboard")');
	const answer = await fetch(`${it.url}/api/data/experiments/1`);
	const ready = await fetch(`${it.url}/api/health/ready`);
	equal([answer.status, ready.status], [503, 503], 'and nothing is answered from the old contents');
	await context.close();
	await it.stop();
	equal(it.log.split('was replaced by').length, 2, 'the log says it once');
	await other.stop();
}

const copyOf = (d, more) => ({ ...structuredClone(d), ...more });

/** Two rows of Runs with three repeats each are two groups; runs that failed say so. */
async function chosenRows(browser) {
	const it = await dashboard(), all = study(), tp = (d) => d.config.server.tensor_parallel_size;
	const one = all[0], two = all.find((d) => tp(d) !== tp(one)), crash = all.at(-1);
	await upload(it.url, [one, two].flatMap((d, side) => [0, 1, 2].map((i) =>
		copyOf(d, { run_id: `exp_repeat_${side}${i}` }))));
	const { page, context } = await tab(browser, `${it.url}/runs`);
	await page.waitForSelector('.grid-body [role=row]:has-text("×3")');
	for (const row of [0, 1])
		await page.locator('.grid-body [role=row]').nth(row).locator('input').check();
	await page.keyboard.press('c');
	await page.waitForSelector('.headline');
	const groups = await page.$$eval('.pick:has-text("Baseline") option', (l) => l.length);
	const runs = await page.textContent(
		'section[aria-label="Differing parameters"] tr:has-text("Runs")');
	equal([groups, (runs.match(/\d/g) ?? []).length], [2, 6],
		'two rows of three repeats are two groups');
	const failed = await upload(it.url, [0, 1].map((i) => copyOf(crash, { run_id: `exp_failed_${i}`,
		results: null, status: 'failed', config: { ...crash.config, name: `crash ${i}` } })));
	await page.goto(`${it.url}/compare?sel=${failed.results.map((r) => r.id).join(',')}`);
	await page.waitForSelector('.state.empty:has-text("crash 0 failed and has no results")');
	await context.close();
	await it.stop();
}

/** What the sample's own documents say: the most tokens/s/GPU at the highest load, and the slower commit. */
function truth() {
	const runs = JSON.parse(readFileSync(SAMPLE, 'utf8')).experiments;
	const perGpu = (x) => x.results.output_throughput / x.config.server.tensor_parallel_size;
	const spoiled = (x) => x.trust.verdicts.output_throughput === 'INVALID';
	const best = runs.filter((x) => x.suite === 'sample-gpus' && x.config.benchmark.max_concurrency === 64
		&& !spoiled(x)).sort((a, b) => perGpu(b) - perGpu(a))[0].config.server;
	const slow = runs.find((x) => x.suite === 'sample-commits' && x.config.server.decode_base_us > 7000);
	return { best: `${best.gpu} leads at high load`, tp: `(TP${best.tensor_parallel_size}`,
		commit: slow.provenance.engine_commit };
}

/** One click fills an empty store with runs whose answer is known; another one removes them. */
async function sample(browser) {
	const it = await dashboard(), { best, tp, commit } = truth();
	const { page, wrong, context } = await tab(browser, `${it.url}/`);
	await page.click('button:has-text("Load sample data")');
	await page.waitForSelector(TABLE);
	const sentence = await page.textContent('.overview-best .answer');
	ok(sentence.includes(best) && sentence.includes(tp), `the overview says: ${best} ${tp}`, sentence);
	ok((await page.textContent('section[aria-label=Changed] li')).includes(commit.slice(0, 7)),
		'and names the commit that made it slower');
	await page.screenshot({ path: join(output, 'screenshots', 'overview-sample.png'), fullPage: true });
	await page.click('button:has-text("Remove sample data")');
	await page.waitForSelector('.welcome:has-text("No runs yet")');
	equal(wrong, [], 'nothing went wrong');
	await context.close();
	await it.stop();
}

async function numbers(page, url) {
	const answer = await ask(url, API, {});
	await page.goto(`${url}/`);
	await page.waitForSelector(TABLE);
	ok(answer.rows.length > 1 && answer.loads.length === 3, 'several rows at three loads',
		JSON.stringify(answer.loads));
	equal(await tableOf(page), tableIn(answer), 'every number is the API’s and opens its run');
	const shown = await page.$$eval(`${TABLE} .numbers a`, (l) => l.map((a) =>
		[a.firstChild.textContent, Number(a.dataset.value)]));
	ok(shown.every(([text, v]) => isShown(text, v)), 'and reads as it', JSON.stringify(shown));
	equal(await page.textContent('.answer .said'), answer.sentence, 'the sentence too');
	const { invalid, degraded, failed } = answer.attention;
	equal(await page.$$eval('section[aria-label="To look at"] [data-value]', (l) =>
		l.map((e) => Number(e.dataset.value))), [invalid, degraded, failed],
		'what to look at is counted');
	equal(await page.$$eval('section[aria-label=Latest] li p',
		(l) => l.map((p) => parseInt(p.textContent))),
		answer.latest.map((l) => l.runs), 'and what came last');
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		await accessible(page, `overview, ${scheme}`);
	}
	await page.click(`${TABLE} .numbers a`);
	await page.waitForURL(/\/runs\/\d+$/);
	ok(true, 'a click on a number opens a run');
	await page.goBack();
}

async function choices(page, url) {
	await page.waitForSelector(TABLE);
	const first = await ask(url, API, {}), other = first.workloads[1];
	await page.selectOption('.pick:has-text("Workload") select', other.key);
	const second = await ask(url, API, { workload: other.key });
	await becomes(() => tableOf(page), tableIn(second), 'another workload has its own table');
	equal(new URL(page.url()).searchParams.get('w'), other.key, 'which the address holds');
	const best = Math.max(
		...second.rows.flatMap((r) => r.cells.map((c) => c?.tokens_per_s_per_user ?? 0)));
	const need = { tokens_per_s_per_user: Math.floor(best * 0.9) };
	await page.fill('.need input >> nth=0', String(need.tokens_per_s_per_user));
	await page.keyboard.press('Enter');
	await becomes(() => tableOf(page), tableIn(await ask(url, API, { workload: other.key, need })),
		'what is needed leaves what reaches it');
	await page.selectOption('.pick:has-text("Rank") select', 'ttft');
	await becomes(() => tableOf(page), tableIn(await ask(url, API,
		{ workload: other.key, need, rank: 'ttft' })), 'another rank is the API’s too');
}

async function changed(page, url) {
	const { changes } = await ask(url, API, {});
	await page.goto(`${url}/`);
	await page.waitForSelector('section[aria-label=Changed] li');
	equal(changes.some((c) => c.metric === 'output_throughput' && c.verdict === 'worse'), true,
		'the step of the history is found');
	equal(await page.$$eval('section[aria-label=Changed] [data-value]', (l) =>
		l.map((e) => Number(e.dataset.value))), changes.map((c) => c.effect),
		'and shown with its effect');
	await page.click('section[aria-label=Changed] a:has-text("Before / after")');
	await page.waitForURL(/\/compare\?/);
	equal(JSON.parse(new URL(page.url()).searchParams.get('groups')).map((g) => g.ids),
		[changes[0].before_ids, changes[0].after_ids], 'it leads to the runs before and after it');
}

/** The study measured with two versions, 7.5 % apart: a line, and Compare says the same. */
async function versions(page, url) {
	await page.goto(`${url}/`);
	await page.waitForSelector('section[aria-label=Latest] li');
	equal(await page.$$('[data-versions]'), [], 'one version says nothing');
	await upload(url, ['0.12.0', '0.13.0'].flatMap((version, k) => study().map((d, i) => {
		d.run_id = `exp_20260${5 + k}01_120000_${(i + 9000).toString(16).padStart(6, '0')}`;
		d.timestamp = d.timestamp.replace('2026-04', `2026-0${5 + k}`);
		d.suite = 'of two versions';
		d.environment.server.version = version;
		d.environment.profllm = `0.${i % 2}`;
		for (const rate of ['request_throughput', 'output_throughput', 'total_token_throughput'])
			d.results[rate] *= k ? 1.075 : 1;
		return d;
	})));
	await page.goto(`${url}/`);
	await page.waitForSelector('[data-versions="0.13.0 0.12.0"]');
	const [line] = (await ask(url, API, {})).versions;
	equal([line.name, line.text, line.verdict, Math.round(line.effect * 1e4) / 1e4],
		['of two versions', '36 of 36 faster', 'better', 0.075],
		'a known difference of two versions is found');
	const text = await page.textContent('[data-versions]');
	equal(line.notes.length, 2, 'runs of two versions of the program are joined');
	ok(['0.13.0 against 0.12.0', '+7.5 %', line.text, ...line.notes].every((part) => text.includes(part)),
		'and is a line of Changed', text);
	await page.click('[data-versions] a');
	await page.waitForSelector('section[aria-label="Main metric"] .big-number');
	equal(await page.$eval('section[aria-label="Main metric"] .big-number',
		(e) => Number(e.dataset.value)), line.effect,
		'Compare opens with both sides and the same change');
}

async function goes(page, url) {
	const f = JSON.stringify({ and: [{ column: 'server.model', in: ['org/trend-1b'] }] });
	await page.goto(`${url}/?f=${encodeURIComponent(f)}&sort=timestamp`);
	await page.waitForSelector('.grid-body [role=row]');
	const at = new URL(page.url());
	equal([at.pathname, at.searchParams.get('f'), at.searchParams.get('sort')], ['/runs', f, 'timestamp'],
		'an old link with a filter opens Runs');
	await page.focus('main');
	for (const [key, path] of [['o', '/overview'], ['t', '/trends'], ['r', '/runs']]) {
		await page.keyboard.press('g');
		await page.keyboard.press(key);
		await becomes(() => new URL(page.url()).pathname, path, `g ${key} goes to ${path}`);
	}
}

/** One search over pages, boards, views, metrics and runs. */
async function searches(page, url) {
	const { id } = await ask(url, '/api/boards', { name: 'Weekly p99 report', body: { blocks: [] } });
	await ask(url, '/api/filters/presets', { name: 'Slow p99 runs',
		body: { path: '/runs', query: 'sort=name' } });
	await page.goto(`${url}/trends`);
	await page.waitForSelector('h1');
	await page.keyboard.press('/');
	await page.waitForSelector('.search input');
	equal(await page.$$eval('.search [role=group]', (l) => l.map((e) => e.ariaLabel)), ['Pages'],
		'at first it lists the pages');
	await page.keyboard.type('p99');
	const groups = () => page.$$eval('.search [role=group]', (l) => l.map((e) => e.ariaLabel));
	await becomes(groups, ['Boards', 'Saved views', 'Metrics'], 'then what has the word');
	equal(await page.$$eval('.search [data-to]', (l) => l.slice(0, 2).map((e) => e.dataset.to)),
		[`/boards/${id}`, '/runs?sort=name'], 'boards and views by their names');
	await accessible(page, 'search');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await becomes(() => new URL(page.url()).pathname, '/runs', 'Enter goes to the one that is marked');
	await page.click('button[aria-label=Search]');
	const { items: [run] } = await ask(url, '/api/filters/apply', { limit: 1, columns: ['name'] });
	await page.fill('.search input', run.values.name);
	await page.waitForSelector('.search [role=group][aria-label=Runs]');
	await page.click('.search [role=group][aria-label=Runs] [role=option] >> nth=0');
	await becomes(() => /^\/runs\/\d+$/.test(new URL(page.url()).pathname), true,
		'runs are found by their name');
	await page.keyboard.press('/');
	await page.fill('.search input', 'median ttft');
	await page.click('.search [data-to*="median_ttft_ms"] >> nth=0');
	await becomes(() => new URL(page.url()).searchParams.get('y')?.includes('median_ttft_ms'), true,
		'a metric opens its chart');
}

/** A run that reports is there with its curves, and leads to its result when it has ended. */
async function live(page, url) {
	const { id } = await ask(url, '/api/live', { name: 'far away', kind: 'bench serve', total: 60 });
	const sample = (t_s, done, tokens_per_s) => ({ t_s, done, tokens_per_s, running: 4 });
	await ask(url, `/api/live/${id}/samples`, { samples: [sample(1, 20, 900), sample(2, 40, 1100)] });
	await page.goto(`${url}/`);
	const item = `section[aria-label="Running now"] li[data-live="${id}"]`;
	await becomes(() => page.textContent(`${item} summary`),
		'far away 40 of 60 requests · 1,100 tokens/s · 2 s', 'a run that reports says how far it is');
	await page.waitForSelector(`${item} [data-track=output_tokens_per_s]`);
	await accessible(page, 'a run that reports');
	await page.goto(`${url}/runs`);
	await page.click(`section[aria-label="Running now"] li[data-live="${id}"] a`);
	await becomes(() => new URL(page.url()).pathname, `/live/${id}`,
		'Runs has it at the top, with a page of its own');
	const tokens = '[data-track=output_tokens_per_s] [data-value]';
	const lineOf = () => page.$eval('.strip-line path.line',
		(p) => (p.getAttribute('d').match(/[ML]/g) ?? []).length);
	const tokensShown = () => page.$eval(tokens, (e) => Number(e.dataset.value));
	await page.waitForSelector(tokens);
	equal(await tokensShown(), 1100, 'its strips show what the API has');
	equal(await lineOf(), 2, 'a point for each sample');
	await ask(url, `/api/live/${id}/samples`, { samples: [{ ...sample(3, 55, 1300), ttft_ms: 21 }] });
	await becomes(tokensShown, 1300, 'they grow while it runs');
	equal(await lineOf(), 3, 'by the new sample');
	equal(await page.$$eval('.figure [data-value]', (l) => l.map((e) => Number(e.dataset.value))),
		[55, 0, 1300, 21, 3], 'and its figures are those of the last sample');
	await accessible(page, 'the page of a run that reports');
	const [result] = study();
	result.run_id = 'exp_20260601_000000_0000ff';
	const { run } = await ask(url, `/api/live/${id}/end`, { result });
	await becomes(() => page.$eval('[role=status] a.button', (a) => new URL(a.href).pathname)
		.catch(() => ''), `/runs/${run}`, 'its page ends with the link to the stored run');
	await page.goto(`${url}/runs`);
	await page.waitForSelector('.run-name, [role=grid], table');
	equal(await page.$$(`section[aria-label="Running now"]`).then((l) => l.length), 0,
		'Runs lists it among the others');
	await page.goto(`${url}/`);
	await becomes(() => page.$eval(`${item} > a`, (a) => new URL(a.href).pathname).catch(() => ''),
		`/runs/${run}`, 'and leads to its result when it has ended');
}

async function recorded(page, url) {
	const asked = [];
	await page.route(`**${API}`, (r) => {
		asked.push(r.request().postDataJSON());
		return r.fulfill({ json: RECORDED });
	});
	await page.goto(`${url}/?need=user:50`);
	await page.waitForSelector(TABLE);
	equal(asked.at(-1), { need: { tokens_per_s_per_user: 50 } }, 'the address is the question');
	equal(await tableOf(page), tableIn(RECORDED), 'a recorded answer');
	equal(await page.$$eval(`${TABLE} .facts-line a`, (l) => l.map((a) => a.textContent)),
		['2 INVALID left out (would lead)', '1 INVALID left out'],
		'says what was left out and would lead');
	equal(await page.$$eval(`${TABLE} .facts-line span[title^="Version"]`,
		(l) => l.map((e) => e.textContent)), ['0.11.0', '0.12.0', '0.13.0'],
		'and names the version of each number where there are several');
	const link = new URL(await page.$eval(`${TABLE} .facts-line a`, (a) => a.href));
	equal(JSON.parse(link.searchParams.get('f')).and.map((c) => [c.column, c.in]),
		[['verdict', ['INVALID']], ['workload', ['w']], ['gpu_model', ['alpha']], ['load', [1]]],
		'and leads to those runs');
	equal(await page.$$eval(`${TABLE} td[data-load="At need"]`, (l) => l.map((td) =>
		td.querySelector('a')?.dataset.value ?? td.textContent)), ['not reached', '53'],
		'with what is needed');
	ok((await page.textContent('section[aria-label=Changed]')).includes('No unreviewed change'),
		'no change is a sentence');
	await page.click('button:has-text("Prices")');
	await page.fill('.prices input >> nth=1', '2.5');
	await page.keyboard.press('Enter');
	await becomes(async () => (await (await fetch(`${url}/api/settings/prices`)).json()).items
		.find((p) => p.gpu === 'beta')?.usd_per_hour, 2.5, 'a price is kept for everybody');
	const price = () => page.inputValue('.prices input >> nth=1');
	const said = () => page.$$eval('.toast', (l) => l.map((e) => e.textContent).join(' '));
	await becomes(price, '2.5', 'the field shows it');
	await ask(url, '/api/settings/prices/beta', { usd_per_hour: 4 }, 'PUT');
	await page.fill('.prices input >> nth=1', '3');
	await page.keyboard.press('Enter');
	await becomes(async () => /changed in another window.*not saved/.test(await said()), true,
		'a price that someone else has changed is not replaced unseen');
	await becomes(price, '4', 'theirs is shown');
	await page.fill('.prices input >> nth=1', '3,5');
	await page.keyboard.press('Enter');
	await becomes(async () => /“3,5” is not a number/.test(await said()), true,
		'no number removes no price');
	equal(await price(), '4', 'the field shows it again');
	await page.keyboard.press('Escape');
	await page.selectOption('label:has-text("Rank") select', 'usd');
	await page.waitForSelector('[aria-label="GPUs without a price"]:has-text("Set a price forbeta")');
	await page.setViewportSize({ width: 390, height: 844 });
	await becomes(() => page.evaluate(
		() => document.querySelector('html').scrollWidth > innerWidth), false,
		'nothing is wider than a narrow screen');
	await accessible(page, 'overview, narrow');
}

await main(async () => {
	const browser = await launch();
	mkdirSync(join(output, 'screenshots'), { recursive: true });
	await empty(browser);
	await restored(browser);
	await chosenRows(browser);
	await sample(browser);
	const it = await dashboard();
	const loaded = study().map((d) => {
		d.config.benchmark.max_concurrency = d.config.benchmark.request_rate;
		return d;
	});
	await upload(it.url, [...loaded, ...series()]);
	const { page, wrong } = await tab(browser, `${it.url}/upload`);
	for (const walk of [numbers, choices, searches, live, changed, versions, goes, recorded])
		await walk(page, it.url);
	equal(wrong.filter((w) => !w.includes('409')), [],
		'no error but a refused price, and no request to elsewhere');
	await browser.close();
	await it.stop();
});
