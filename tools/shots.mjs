// SPDX-License-Identifier: Apache-2.0
// shots.mjs STORE FOLDER [PAGE...]: a picture of every page of a dashboard on a store, at 1440x900,
// 1920x1080 and 390x844, light and dark, to be looked at. STORE is an SQLite file; a copy is opened, and
// gets a board, a job and a run that reports, so that their pages show something. WHOLE=1 in the
// environment makes the window as high as the page, SIZE=390x844 and THEME=dark take only that one.
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
const { WHOLE, SIZE, THEME } = process.env;
const SIZES = SIZE ? [SIZE.split('x').map(Number)] : [[1440, 900], [1920, 1080], [390, 844]];
const THEMES = THEME ? [THEME] : ['light', 'dark'];
const HIGHEST = 8000;
const json = (what) => encodeURIComponent(JSON.stringify(what));
const dir = mkdtempSync(join(tmpdir(), 'profllm-shots-'));
copyFileSync(store, join(dir, 'runs.db'));
mkdirSync(folder, { recursive: true });
const it = await dashboard('--store', `sqlite:${join(dir, 'runs.db')}`, '--jobs-dir', join(dir, 'jobs'));

/** The newest runs that meet a condition. */
const newest = async (condition, limit = 1) => (await ask(it.url, '/api/filters/apply', { limit,
	filter: condition ? { and: [condition] } : { and: [] },
	sort: [{ column: 'timestamp', descending: true }] })).items.map((run) => run.id);

async function board() {
	const blocks = [
		{ kind: 'heading', caption: 'What to buy' },
		{ kind: 'text', text: 'The **frontier** of each GPU at this workload. *Below*: the history of the engine.' },
		{ kind: 'chart', path: '/charts', query: '', caption: 'Speed per user and throughput per GPU' },
		{ kind: 'chart', path: '/trends', query: '', caption: 'What changed' },
		{ kind: 'number', path: '/runs', query: 'm=output_throughput', caption: 'Output throughput' },
		{ kind: 'table', path: '/runs', query: '', caption: 'Runs', is_wide: true },
	];
	return (await ask(it.url, '/api/boards', { name: 'For the review', body: { blocks } })).id;
}

async function job() {
	const { items } = await ask(it.url, '/api/launch/examples');
	const { config } = items.find((e) => e.name === 'quickstart.yaml');
	const { job_id: id } = await ask(it.url, '/api/launch', { config });
	for (;;) {
		const { state } = await ask(it.url, `/api/jobs/${id}`);
		if (!['waiting', 'running'].includes(state))
			return id;
		await new Promise((done) => setTimeout(done, 500));
	}
}

async function reporting() {
	const { id } = await ask(it.url, '/api/live', { name: 'chat at 32', kind: 'bench serve', total: 600 });
	const samples = Array.from({ length: 60 }, (_, i) => ({ t_s: i + 1, done: 8 * (i + 1), stage: 'benchmark',
		failed: i > 40 ? 2 : 0, tokens_per_s: 900 + 300 * Math.sin(i / 6), running: 32, waiting: i % 7,
		kv_cache_percent: Math.min(80, 2 * i), ttft_ms: 40 + 12 * Math.cos(i / 5), itl_ms: 9 }));
	await ask(it.url, `/api/live/${id}/samples`, { samples });
	return id;
}

const { changes } = await ask(it.url, '/api/analysis/overview', {});
const sides = changes[0] ? json([{ name: 'before', ids: changes[0].before_ids },
	{ name: 'after', ids: changes[0].after_ids }]) : '';
const [last = 1] = await newest(null), six = await newest(null, 6);
const openFirst = (page) => page.locator('.configurations button').first().click({ timeout: 3000 });
const isWanted = (name) => !only.length || only.includes(name);
const made = async (name, make) => (isWanted(name) ? make() : '');

/** Name, address, and what is done there before the picture is taken. */
const pages = [
	['overview', '/'],
	['charts', '/charts'],
	['any', '/charts?view=any'],
	['runs', '/runs'],
	['compare', sides ? `/compare?groups=${sides}` : '/compare'],
	['compare-pair', sides ? `/compare?groups=${sides}` : '/compare', openFirst],
	['compare-versions', '/compare?by=environment.server.version'],
	['compare-gpus', '/compare?by=server.gpu'],
	['compare-models', '/compare?by=server.model'],
	['compare-sizes', '/compare?by=server.tensor_parallel_size'],
	['compare-runs', `/compare?sel=${six.join()}`],
	['compare-start', '/compare'],
	['trends', '/trends'],
	['trends-time', '/trends?axis=time'],
	['trends-relative', '/trends?rel=1'],
	['capacity', '/plan?tab=capacity'],
	['scaling', '/plan?tab=scaling'],
	['impact', '/plan?tab=impact'],
	['calculator', '/plan?tab=calculator'],
	['prices', '/plan?tab=prices'],
	['boards', '/boards'],
	['board', `/boards/${await made('board', board)}`],
	['upload', '/upload'],
	['launch', '/launch'],
	['launch-job', `/launch?job=${await made('launch-job', job)}`],
	['live', `/live/${await made('live', reporting)}`],
	['run', `/runs/${last}`],
	['run-failed', `/runs/${(await newest({ column: 'status', in: ['failed'] }))[0] ?? last}`],
	['run-invalid', `/runs/${(await newest({ column: 'verdict', in: ['INVALID'] }))[0] ?? last}`],
	['run-degraded', `/runs/${(await newest({ column: 'verdict', in: ['DEGRADED'] }))[0] ?? last}`],
	['run-requests', `/runs/${last}?tab=requests`],
	['run-configuration', `/runs/${last}?tab=configuration`],
	['run-notes', `/runs/${last}?tab=notes`],
	['run-document', `/runs/${last}?tab=document`],
].filter(([name]) => isWanted(name));
const browser = await launch();
for (const [width, height] of SIZES)
	for (const colorScheme of THEMES) {
		const context = await browser.newContext({ viewport: { width, height }, colorScheme });
		const page = await context.newPage();
		for (const [name, path, act] of pages) {
			await page.setViewportSize({ width, height });
			await page.mouse.move(0, 0); // what is under the pointer looks different
			await page.goto(it.url + path);
			const settled = async () => {
				await page.waitForLoadState('networkidle');
				await page.waitForFunction(() => !document.querySelector('main .loading'));
				await page.waitForTimeout(300);
			};
			await settled();
			await act?.(page).then(settled, (e) => console.error(`${name}: ${e.message.split('\n')[0]}`));
			await page.mouse.move(0, 0);
			if (WHOLE) {
				const whole = await page.evaluate(() => innerHeight
					+ Math.max(...['html', '#main'].map((q) => document.querySelector(q)).map((e) =>
						e.scrollHeight - e.clientHeight)));
				await page.setViewportSize({ width, height: Math.min(HIGHEST, whole) });
				await page.waitForTimeout(300);
			}
			await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
		}
		await context.close();
	}
await browser.close();
await it.stop();
rmSync(dir, { recursive: true });
console.log(`${pages.length * SIZES.length * THEMES.length} pictures in ${folder}`);
