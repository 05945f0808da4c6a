// SPDX-License-Identifier: Apache-2.0
// dashboard-pages.mjs: a walk through the pages other than Runs: 100 files are uploaded, viewed,
// compared and judged, and an experiment is started on the simulator. Every number is the API's; no
// request leaves the origin.
import { readFileSync } from 'node:fs';
import { launch } from './browser.mjs';
import { accessible, ask, dashboard, isShown, pick, tab } from './dashboard-kit.mjs';
import { detailed, series, study } from './dashboard-sample.mjs';
import { becomes, equal, main, ok } from './tap.mjs';

const file = (name, text) => ({ name, mimeType: 'application/json', buffer: Buffer.from(text) });

/** 72 + 24 + 1 good ones, one of them again, one that is broken, one that is something else. */
function hundred() {
	const good = [...study(), ...series(), detailed(40)].map((d, i) =>
		file(`run-${i}.json`, JSON.stringify(d)),
	);
	return [
		...good,
		{ ...good[3], name: 'again.json' },
		file('broken.json', '{"results": '),
		file('other.json', '{"a": 1}'),
	];
}

/** Every element with data-value shows that value, and it is among these. */
async function numbersOf(page, scope, values, name) {
	const shown = await page.$$eval(`${scope} [data-value]`, (list) =>
		list
			.filter((e) => e.dataset.value !== '')
			.map((e) => [e.textContent.trim(), Number(e.dataset.value)]),
	);
	const known = new Set(values.filter((v) => v !== null));
	const strange = shown.filter(([, v]) => !known.has(v));
	equal([shown.length > 0, strange], [true, []], `${name}: ${shown.length} numbers, all the API's`);
	return shown;
}

const all = (v, out = []) => {
	if (typeof v === 'number') out.push(v);
	else if (v && typeof v === 'object') Object.values(v).forEach((w) => all(w, out));
	return out;
};

async function uploads(page, url) {
	await page.goto(`${url}/upload`);
	const files = hundred();
	equal(files.length, 100, 'a hundred files');
	await page.setInputFiles('input[aria-label=Files]', files);
	await becomes(
		() => page.$eval('[data-done]', (e) => Number(e.dataset.done)).catch(() => -1),
		100,
		'each of them has an outcome',
	);
	const counts = await page.$$eval('[data-outcome] .tag', (l) => l.map((e) => e.textContent));
	equal(counts, ['97 new', '1 duplicate', '2 invalid'], 'and the outcomes are counted');
	const bad = await page.$$eval('tr[data-state=invalid]', (l) =>
		l.map((e) => [
			e.querySelector('th').textContent,
			e.querySelector('.bad-text').textContent.length > 10,
		]),
	);
	equal(
		bad.sort(),
		[
			['broken.json', true],
			['other.json', true],
		],
		'with the reason of each that is bad',
	);
	equal((await ask(url, '/api/health')).runs, 97, 'they are in the store');
	await becomes(
		() => page.$eval('.pulse .num', (e) => e.textContent),
		'97 runs',
		'and the page’s head says so',
	);
}

async function drops(page, url) {
	await page.goto(`${url}/upload`);
	const text = JSON.stringify({ ...detailed(3), date: '20260502-120000' });
	const data = await page.evaluateHandle((t) => {
		const transfer = new DataTransfer();
		transfer.items.add(new File([t], 'dropped.json', { type: 'application/json' }));
		return transfer;
	}, text);
	await page.dispatchEvent('[data-drop]', 'drop', { dataTransfer: data });
	await becomes(() => page.$$eval('tr[data-state=new]', (l) => l.length), 1, 'a file can be dropped');
}

async function dropped(page, files) {
	const data = await page.evaluateHandle((list) => {
		const transfer = new DataTransfer();
		for (const [name, text] of list) transfer.items.add(new File([text], name));
		return transfer;
	}, files);
	await page.dispatchEvent('[data-drop]', 'drop', { dataTransfer: data });
}

async function traces(page, url) {
	const trace = '{"traceEvents": []}\n'.repeat(3);
	const document = study()[0];
	document.run_id = 'exp_traced';
	document.profiling = {
		...document.profiling,
		traces: [{ path: 'x.d/traces/rank0.json', bytes: trace.length }],
	};
	await page.goto(`${url}/upload`);
	await dropped(page, [
		['rank0.json', trace],
		['x.json', JSON.stringify(document)],
		['other.pt.trace.json', '{"traceEvents": []}'],
	]);
	await becomes(
		() => page.$$eval('tr[data-state=attached]', (l) => l.map((e) => e.children[0].textContent)),
		['rank0.json'],
		'a trace that is dropped with its document is attached',
	);
	ok(
		(await page.$eval('tr[data-state=invalid]', (e) => e.textContent)).includes(
			'drop it together with the document of its run, or attach it on the run’s page',
		),
		'one alone is told what to do with it',
	);
	await page.goto(`${url}/runs/exp_traced`);
	await page.click('button:has-text("Notes and traces")');
	const [download] = await Promise.all([
		page.waitForEvent('download'),
		page.click('section[aria-label=Traces] a:has-text("Download")'),
	]);
	equal(readFileSync(await download.path(), 'utf8'), trace, 'its page gives it back, byte for byte');
	equal(download.suggestedFilename(), 'rank0.json', 'by its name');
	await page.goto(`${url}/traces`);
	await page.waitForSelector('.run-traces');
	equal([new URL(page.url()).pathname, new URL(page.url()).searchParams.get('f')],
		['/runs', JSON.stringify({ and: [{ column: 'run_id', in: ['exp_traced'] }] })],
		'the old address of Traces shows the runs that have one');
	await page.click('.run-traces summary');
	const stored = await (await fetch(`${url}/api/traces`)).json();
	equal(await page.$$eval('.run-traces tbody tr', (rows) => rows.map((r) => [
		r.querySelector('th').textContent, Number(r.querySelector('[data-value]').dataset.value),
		r.querySelector('a[download]').getAttribute('href')])),
	stored.items.map((t) => [t.name, t.bytes, `/api/export/traces/${t.id}`]),
	'they are listed there, to download');
	await page.goto(`${url}/runs/exp_traced`);
	await page.click('button:has-text("Notes and traces")');
	await page.click('section[aria-label=Traces] button[aria-label="Remove rank0.json"]');
	equal((await (await fetch(`${url}/api/traces`)).json()).items.length, stored.items.length,
		'removing a trace asks first');
	await page.click('dialog button.danger');
	await page.waitForSelector('section[aria-label=Traces] p');
	await becomes(
		() => page.$eval('section[aria-label=Traces] p', (e) => e.textContent.split(':')[1]),
		' rank0.json. Attach them here, or run profllm ingest where they are.',
		'a trace that the document names and the store lacks is said',
	);
}

async function runPage(page, url) {
	const run = await ask(url, '/api/data/experiments/5');
	await page.goto(`${url}/runs/5`);
	await page.waitForSelector('.figure');
	const figures = await page.$$eval('.figure [data-column]', (l) =>
		l.map((e) => [e.dataset.column, e.querySelector('[data-value]').textContent]),
	);
	equal(
		figures.filter(([c, text]) => !isShown(text, run.values[c])),
		[],
		`the run's ${figures.length} main figures are the API's`,
	);
	await numbersOf(page, 'main', all(run.values).concat(all(run.document)), 'the run');
	equal(
		await page.$$eval('.badge', (l) => l.map((e) => e.textContent)),
		run.badges.filter((b) => b.code !== 'verdict').map((b) => b.text),
		'its badges; the sentences below say its verdict',
	);
	const told = run.reasons.map((r) => r.text);
	equal(
		[
			told.length > 0,
			await page.$$eval('.reasons li .reason-text', (l) =>
				l.map((e) => e.textContent),
			),
		],
		[true, told],
		'the sentences of its verdict',
	);
	equal(
		await page.$$eval('.copy-line pre', (l) => l.map((e) => e.textContent)),
		run.reproduce,
		'how to reproduce it',
	);
	await page.click('button:has-text("Configuration")');
	await page.fill('input[type=search]', 'tensor_parallel_size');
	equal(
		await page.$$eval('main dd[data-column]', (l) => l.map((e) => e.textContent)),
		['1'],
		'a parameter is found by its name',
	);
	await page.click('button:has-text("Notes and traces")');
	await page.route('**/annotations', (route) => route.fulfill({ status: 401,
		contentType: 'application/problem+json',
		body: '{"status": 401, "detail": "the session has ended"}' }));
	await page.fill('section[aria-label=Notes] label:first-of-type input', 'looks <b>odd</b>');
	await page.click('section[aria-label=Notes] button:has-text("Add")');
	await page.waitForSelector('dialog[open]');
	await page.keyboard.press('Escape');
	await page.unroute('**/annotations');
	equal(await page.inputValue('section[aria-label=Notes] label:first-of-type input'),
		'looks <b>odd</b>', 'a note that is refused is not lost');
	await page.click('section[aria-label=Notes] button:has-text("Add")');
	await becomes(
		() =>
			page.$$eval('section[aria-label=Notes] li p:first-child', (l) =>
				l.map((e) => e.textContent),
			),
		['looks <b>odd</b>'],
		'a note is kept, as text',
	);
	await page.click('button[aria-label="Remove this note"]');
	await page.click('.toast:has-text("Undo")');
	await becomes(async () => (await ask(url, '/api/data/experiments/5')).annotations.map((n) => n.text),
		['looks <b>odd</b>'], 'a note that was removed comes back');
	await page.fill('section[aria-label=Exclusion] label:first-of-type input', 'the machine was busy');
	await page.click('section[aria-label=Exclusion] button:has-text("Exclude")');
	await page.waitForSelector('section[aria-label=Exclusion] button:has-text("Include again")');
	equal(
		(await ask(url, '/api/data/experiments/5')).flags,
		['excluded'],
		'a run is excluded with a reason',
	);
	await page.click('section[aria-label=Exclusion] button:has-text("Include again")');
	await page.waitForSelector('section[aria-label=Exclusion] button:has-text("Exclude")');
	equal((await ask(url, '/api/data/experiments/5')).flags, [], 'and is included again');
	await page.click('button:has-text("Document")');
	ok(await page.$('a[download][href$="/document"]'), 'its document can be had');
}

/** A run that failed says why, with the last lines of its server's log. */
async function failedRun(page, url) {
	const document = study()[0];
	const log = Array.from({ length: 80 }, (_, i) => `log line ${i}`).join('\n');
	Object.assign(document, { run_id: 'exp_failed', status: 'failed' });
	document.error = { stage: 'start', category: 'crash', reason: 'The server ended.', log_tail: log };
	await ask(url, '/api/upload/raw?name=failed.json', document);
	await page.goto(`${url}/runs/exp_failed`);
	await page.waitForSelector('.log-tail');
	equal(
		(await page.textContent('.log-tail')).trim().split('\n'),
		log.split('\n').slice(-50),
		'the last 50 lines of the log',
	);
	ok(
		(await page.textContent('section[aria-label=Failure]')).includes('The server ended.'),
		'with the reason',
	);
	const broken = await page.$$eval('.facts dt', (l) =>
		l.filter((e) => e.getClientRects().length && e.offsetHeight > 60).map((e) => e.textContent),
	);
	equal(broken, [], 'no label is broken into pieces');
	await page.goto(`${url}/runs`);
	await page.click('[data-counted=failed] button');
	await becomes(
		() => page.$eval('[data-total]', (e) => Number(e.dataset.total)),
		1,
		'Runs counts it and shows it',
	);
}

async function requests(page, url) {
	const found = await ask(url, '/api/filters/apply', {
		filter: { column: 'benchmark.num_prompts', in: [40] },
		columns: [],
		limit: 5,
	});
	const detail = found.items.find((i) => i.id) ?? { id: 0 };
	await page.goto(`${url}/runs/${detail.id}?tab=requests`);
	await page.waitForSelector('.timeline canvas');
	const arrays = await ask(url, `/api/data/experiments/${detail.id}/arrays`);
	await page.click('.twin summary');
	const ttfts = await page.$$eval('.twin tbody tr', (l) =>
		l.map((tr) => Number(tr.children[1].querySelector('[data-value]').dataset.value)),
	);
	ok(
		ttfts.length === 40 && ttfts.every((v, i) => Math.abs(v - arrays.ttfts[i] * 1000) < 1e-9),
		'every request of a detailed result is drawn and listed',
	);
	const colours = await page.$eval('.timeline-rows canvas', (c) => {
		const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height),
			seen = new Set();
		for (let i = 0; i < data.length; i += 4)
			seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
		return [0x636efa, 0x109618, 0xff7f0e, 0xd62728].map((colour) => seen.has(colour));
	});
	equal(colours, [true, true, true, true], 'in the colours of its times');
}

const question = (groups, more) => ({
	metrics: null,
	primary: null,
	baseline: 0,
	ignore: [],
	comparable_only: false,
	groups,
	...more,
});
const shownEffects = (page) =>
	page.$$eval('.headline .big-number[data-value]', (l) => l.map((e) => Number(e.dataset.value)));

async function compares(page, url) {
	await page.goto(`${url}/compare`);
	await page.click('.state.empty a:has-text("tensor_parallel_size")');
	await page.waitForSelector('.headline .big-number');
	const names = await page.$$eval('.pick:has-text("Baseline") option', (l) =>
		l.map((o) => o.textContent),
	);
	const groups = names.map((name) => ({
		name,
		filter: { column: 'server.tensor_parallel_size', in: [Number(name.replace('TP', ''))] },
	}));
	const answer = await ask(url, '/api/data/compare', question(groups));
	const main = (a, name = 'output_throughput') =>
		a.comparisons.map((c) => c.metrics.find((m) => m.metric === name));
	equal(await shownEffects(page), main(answer).map((m) => m.effect), 'the main figure’s differences');
	equal(
		await page.$$eval('.headline .headline-delta strong', (l) => l.map((e) => e.textContent)),
		main(answer).map((m) => m.words),
		'with the verdict in words',
	);
	const [first] = answer.comparisons;
	const card = `section[aria-label="${first.side} against ${first.baseline}"]`;
	const [lead] = main(answer);
	ok((await page.textContent('.headline .answer')).includes(`of ${lead.n_configurations} matched`),
		'and in a sentence');
	const drawn = (table) => page.$$eval(`${card} ${table} tbody tr .forest`, (l) => l.map((e) =>
		[Number(e.dataset.effect), e.dataset.interval]));
	const numbersIn = (list) => list.filter((m) => m.verdict !== 'not_comparable' && m.effect !== null)
		.map((m) => [m.effect, m.interval?.join(' ') ?? '']);
	const listed = await page.$$eval(`${card} .figures:not(.configurations) tbody button`,
		(l) => l.map((e) => e.title.split(':')[0]));
	ok(['output_throughput', 'median_ttft_ms'].every((m) => listed.includes(m)),
		'main metrics are listed');
	equal(await drawn('.figures:not(.configurations)'),
		numbersIn(first.metrics.filter((m) => listed.includes(m.metric))),
		'the forest plot has the API’s numbers');
	const dots = await page.$$eval(`${card} .figures:not(.configurations) .forest .dot[cx]`, (l) =>
		l.map((e) => [Number(e.closest('svg').dataset.effect), Number(e.getAttribute('cx')) - 130])
			.filter(([v]) => v !== 0));
	const scale = dots.map(([v, x]) => x / v);
	ok(dots.length > 2 && scale.every((s) => Math.abs(s / scale[0] - 1) < 1e-6),
		'its dots lie where the numbers are, on one axis about 0', JSON.stringify(dots));
	const rows = () => page.$$eval(`${card} .configurations tbody tr[data-configuration]`, (l) =>
		l.map((tr) => tr.dataset.configuration));
	equal(await rows(), lead.configurations.slice(0, 20).map((c) => c.configuration),
		'matched configurations have a row each, by change');
	equal(await drawn('.configurations'), numbersIn(lead.configurations.slice(0, 20)),
		'with the API’s numbers');
	const panels = await page.$$eval(`${card} .multiple circle`, (l) => l.map((e) =>
		e.dataset.sides.split(' ').map(Number)));
	equal(panels.sort().join(), lead.configurations.map((c) => [c.baseline, c.value]).sort().join(),
		'and are drawn over the load');
	const values = (run) => [1, 2, 3].map((k) => 10 * k + run / 1000);
	await page.route('**/sketches', (r) => {
		const run = Number(r.request().url().split('/').at(-2));
		return r.fulfill({ json: { by_prompt: null, by_turn: null, missing: [],
			metrics: [{ key: 'ttft_ms', label: 'TTFT', unit: 'ms', n: 3, p: [0, 0.5, 1],
				value: values(run), is_spoiled: false, spoiled_by: null }] } });
	});
	const overTime = (run) => [run, 3 * run, null, 2 * run];
	await page.route('**/series', (r) => {
		const run = Number(r.request().url().split('/').at(-2));
		const track = { key: 'output_tokens_per_s', label: 'Output tokens per second',
			unit: 'tokens/s', t_s: [0, 1, 2, 3], y: overTime(run), min: null, max: null };
		return r.fulfill({ json: { start_s: 0, duration_s: 3, failed_s: [], missing: [],
			tracks: [track, { ...track, key: `only of ${run}` }] } });
	});
	await page.click(`${card} .configurations tbody button >> nth=0`);
	await page.waitForSelector(`${card} .cdf path`);
	await page.waitForSelector(`${card} .over-time path`);
	const strips = await page.$$eval(`${card} .over-time-track`, (l) => l.map((e) => [e.dataset.track,
		[...e.querySelectorAll('path')].map((p) => p.getAttribute('d').replace(/[^ML]/g, ''))]));
	equal(strips, [['output_tokens_per_s', ['MLM', 'MLM']]],
		'a strip for each quantity of both runs, one line over the other, with its gaps');
	const means = await page.textContent(`${card} .over-time-track p`);
	const opened = lead.configurations[0].configuration;
	const pair = answer.configurations.find((c) => c.configuration === opened);
	equal(await page.$$eval(`${card} .cdf path`, (l) => l.map((e) => e.dataset.values)),
		[0, first.group].map((g) => values(pair.ids[g][0]).join(' ')),
		'with the distributions of a run of each side');
	const mean = means.match(/mean .* ([\d.]+), .* ([\d.]+)$/);
	equal(mean.slice(1).map(Number),
		[0, first.group].map((g) => 2 * pair.ids[g][0]), 'with the mean of each');
	await accessible(page, 'a pair of runs');
	await page.unroute('**/series');
	await page.unroute('**/sketches');
	equal((await page.$$eval(`${card} .pair .run-link`, (l) => l.map((e) => e.textContent))).length,
		lead.configurations[0].runs[0] + lead.configurations[0].runs[1],
		'a row opens the runs of the pair');
	await numbersOf(page, 'main', all(answer), 'comparison');
	const parameters = () => page.$$eval('section[aria-label="Differing parameters"] tbody tr',
		(l) => l.length - 1);
	const between = answer.parameters.filter((p) => p.differs === 'between');
	const divisions = new Set(between.map((p) => JSON.stringify(p.values.map((list) =>
		list.map((v) => `${v.value} ${v.count}`).sort())))).size;
	ok(divisions > 1, 'the groups differ in more than one way');
	equal(await parameters(), divisions,
		'only parameters that differ between groups are listed, '
		+ 'and those that divide them alike once');
	await page.click('section[aria-label="Differing parameters"] button');
	equal(await parameters(), answer.parameters.length - between.length + divisions,
		'the others on a click');
	await page.selectOption('.pick:has-text("Baseline") select', { value: '1' });
	await page.waitForURL(/base=1/);
	const other = await ask(url, '/api/data/compare', question(groups, { baseline: 1 }));
	await becomes(
		() => shownEffects(page),
		main(other).map((m) => m.effect),
		'the baseline can be another',
	);
	await pick(page, '.pick:has-text("Primary metric")', 'median_ttft_ms');
	await page.waitForURL(/m=median_ttft_ms/);
	const more = { baseline: 1, primary: 'median_ttft_ms' };
	const judged = await ask(url, '/api/data/compare', question(groups, more));
	await becomes(() => shownEffects(page), main(judged, 'median_ttft_ms').map((m) => m.effect),
		'so can the metric that is judged');
	await becomes(() => page.$$eval('.figures .tag', (l) => l.map((e) => e.textContent)), ['primary'],
		'which is said');
	const second = judged.comparisons[1];
	await page.click('.headline-delta >> nth=1');
	await page.waitForSelector(`section[aria-label="${second.side} against ${second.baseline}"]`);
	equal(Number(new URL(page.url()).searchParams.get('side')), second.group,
		'each group has its own card');
	await page.goto(`${url}/compare?sel=1,2`);
	await becomes(
		() => page.$$eval('.headline-delta strong', (l) => l.map((e) => e.textContent)),
		['not enough data'],
		'two runs are not enough data',
	);
	const same = JSON.stringify([{ name: 'X', ids: [1, 2] }, { name: 'Y', ids: [1, 2] }]);
	await page.goto(`${url}/compare?groups=${encodeURIComponent(same)}`);
	const said = async () => (await page.textContent('main')).includes('X and Y are the same runs');
	await becomes(said, true, 'the same runs on both sides: one sentence');
}

/** The address without a parameter answers: a sentence, a frontier per color, every point below. */
async function performance(page, url) {
	const answer = await ask(url, '/api/analysis/curves', { filter: null });
	await page.goto(`${url}/charts?x=${answer.x.column}&y=${answer.y.column}`);
	await page.waitForSelector('.chart-box[data-drawn=true] canvas');
	equal(await page.textContent('.answer strong'), answer.sentence,
		'the server’s sentence is above the chart');
	await page.click('.card .twin summary');
	const rows = () => page.$$eval('.twin[open] tbody tr', (l) =>
		l.map((tr) => tr.children[6].textContent === 'yes'));
	const points = answer.lines.flatMap((l) => l.points.map((p) => ({ ...p, color: l.color })));
	equal((await rows()).length, points.length, 'every point is in the table');
	equal((await rows()).filter((is) => is).length, points.filter((p) => p.is_frontier).length,
		'and the frontier is the server’s');
	const first = answer.colors[0].key;
	await page.click(`.legend button:has-text("${first}")`);
	equal(new URL(page.url()).searchParams.get('hide'), first,
		'a click in the legend hides a color, in the address');
	equal((await rows()).length, points.filter((p) => p.color !== first).length, 'its points are gone');
	await page.focus(`.legend button[aria-label="Only ${first}"]`);
	await page.keyboard.press('Enter');
	equal((await rows()).length, points.filter((p) => p.color === first).length, 'Only shows it alone');
	await page.focus('.chart-keys');
	await page.keyboard.press('ArrowRight');
	await page.keyboard.press('Space');
	const pin = Number(new URL(page.url()).searchParams.get('pin'));
	const pinned = points.find((p) => p.ids[0] === pin);
	equal([pinned.color, pinned.is_frontier], [first, true], 'the arrows reach the frontier, Space pins');
	equal(await page.$eval('.pin a', (a) => new URL(a.href).pathname), `/runs/${pin}`,
		'a pin opens its run');
	const [saved] = await Promise.all([page.waitForEvent('download'), (async () => {
		await page.click('.chart-menu button');
		await page.click('.menu-item:has-text("SVG")');
	})()]);
	const svg = readFileSync(await saved.path(), 'utf8');
	ok(svg.includes(first) && svg.includes('</svg>'), 'the chart is saved as SVG with its legend');
	await page.focus('.chart-keys');
	await page.keyboard.press('ArrowRight');
	await page.keyboard.press('Enter');
	await page.waitForURL((u) => u.pathname.startsWith('/runs/'));
}

async function charts(page, url) {
	await page.goto(`${url}/charts?g=server.model&x=output_throughput&y=median_ttft_ms`);
	await page.waitForSelector('.chart-box[data-drawn=true] canvas');
	const body = { x: 'output_throughput', y: 'median_ttft_ms', group: ['server.model'], filter: null };
	const answer = await ask(url, '/api/analysis/pareto', body);
	await page.click('.card .twin summary');
	const points = await page.$$eval('.twin[open] tbody tr', (l) =>
		l.map((tr) => [
			Number(tr.children[0].textContent),
			Number(tr.querySelector('[data-value]').dataset.value),
			tr.children[4].textContent === 'yes',
		]),
	);
	equal(
		points,
		answer.groups.flatMap((g) => g.points.map((p) => [p.id, p.x, p.is_frontier])),
		'the chart’s points and frontiers',
	);
	await page.click('button:has-text("Select area")');
	const box = await page.$eval('.chart-box', (e) => {
		const { x, y, width, height } = e.getBoundingClientRect();
		return { x, y, width, height };
	});
	await page.mouse.move(box.x + 90, box.y + 30);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 4 });
	await page.mouse.up();
	await page.waitForSelector('.brushed');
	const brush = JSON.parse(new URL(page.url()).searchParams.get('brush'));
	equal(
		brush.and.map((c) => c.column),
		['output_throughput', 'median_ttft_ms'],
		'a rectangle marks both figures in the address',
	);
	const marked = await ask(url, '/api/analysis/distribution', {
		metric: 'output_throughput',
		filter: brush,
		group: ['server.model'],
	});
	await pick(page, 'section[aria-label^=Distribution] .pick', 'output_throughput');
	const narrowed = await ask(url, '/api/analysis/distribution', {
		metric: 'output_throughput',
		filter: { and: [brush.and[1]] },
		group: ['server.model'],
	});
	await becomes(
		() =>
			page.$$eval('.spread tbody tr', (l) =>
				l.map((tr) => Number(tr.children[1].textContent)),
			),
		narrowed.groups.map((g) => g.n),
		'the distribution shows the marked runs',
	);
	ok(
		marked.groups.length <= narrowed.groups.length,
		'whatever it shows itself is not cut by its own mark',
	);
	await page.click('.brushed a:has-text("Show these runs")');
	const total = (await ask(url, '/api/filters/apply', { filter: brush, limit: 1, columns: [] }))
		.total;
	await becomes(
		() => page.$eval('[data-total]', (e) => Number(e.dataset.total)).catch(() => -1),
		total,
		'and becomes the filter of Runs',
	);
	await page.goto(`${url}/charts?w=all`
		+ `&axes=server.tensor_parallel_size,output_throughput,median_ttft_ms`);
	await page.waitForSelector('section[aria-label="Parallel coordinates"] canvas');
	await page.click('section[aria-label="Parallel coordinates"] .twin summary');
	const lines = await ask(url, '/api/analysis/parallel', {
		filter: null,
		limit: 1000,
		columns: ['server.tensor_parallel_size', 'output_throughput', 'median_ttft_ms'],
	});
	equal(
		await page.$$eval('section[aria-label="Parallel coordinates"] tbody tr', (l) => l.length),
		lines.lines.length,
		'parallel coordinates: a line per run',
	);
	const canvas = await page.$('section[aria-label="Parallel coordinates"] .chart-box');
	await canvas.scrollIntoViewIfNeeded();
	const b = await canvas.boundingBox(),
		middle = b.x + 70 + (b.width - 160) / 2;
	await page.mouse.move(middle, b.y + 60);
	await page.mouse.down();
	await page.mouse.move(middle, b.y + 180, { steps: 4 });
	await page.mouse.up();
	await page.waitForSelector('.brushed');
	const part = JSON.parse(new URL(page.url()).searchParams.get('brush'));
	equal(
		[part.and.length, part.and[0].column],
		[1, 'output_throughput'],
		'a drag along an axis marks a part',
	);
	const left = await ask(url, '/api/analysis/distribution', {
		metric: 'median_ttft_ms',
		filter: part,
		group: ['server.model'],
	});
	await becomes(
		() =>
			page.$$eval('.spread tbody tr', (l) =>
				l.reduce((n, tr) => n + Number(tr.children[1].textContent), 0),
			),
		left.groups.reduce((n, g) => n + g.n, 0),
		'and the other drawings follow',
	);
}

async function trends(page, url) {
	const f = JSON.stringify({ and: [{ column: 'server.model', in: ['org/trend-1b'] }] });
	await page.goto(`${url}/trends?m=output_throughput&f=${encodeURIComponent(f)}`);
	await page.waitForSelector('[data-changes]');
	const body = { filter: JSON.parse(f), metric: 'output_throughput', axis: 'commit', series: null };
	const answer = await ask(url, '/api/analysis/trends', body);
	const changes = answer.series.flatMap((s) => s.changes);
	equal(
		[changes.length, changes[0]?.index, changes[0]?.verdict],
		[1, 12, 'worse'],
		'the API finds the step',
	);
	equal(
		await page.$eval('[data-changes]', (e) => Number(e.dataset.changes)),
		1,
		'one change, in large type',
	);
	await numbersOf(page, 'section[aria-label=Changes]', all(answer), 'the change');
	const everything = page.waitForRequest(
		(r) => r.url().endsWith('/analysis/trends') && r.postDataJSON().include_invalid === true,
	);
	await page.click('.scope button:has-text("Include invalid")');
	ok(await everything, 'what does not count is asked for');
	await page.click('.scope button:has-text("Include invalid")');
	await becomes(() => page.url().includes('invalid'), false, 'and no longer');
	await page.click('section[aria-label=Changes] button:has-text("Expected")');
	await page.fill('dialog input', 'safer kernels');
	await page.click('dialog button:has-text("Save")');
	await becomes(
		() => page.$eval('[data-changes]', (e) => Number(e.dataset.changes)),
		0,
		'a change that is expected needs no review',
	);
	equal(
		(await ask(url, '/api/analysis/marks')).items.map((m) => [m.metric, m.kind, m.text]),
		[['output_throughput', 'expected', 'safer kernels']],
		'and who marked it can be read',
	);
	await page.click('.twin summary');
	equal(
		await page.$$eval('.twin tbody tr', (l) =>
			l.map((tr) => Number(tr.querySelector('[data-value]').dataset.value)),
		),
		answer.series[0].points.map((p) => p.value),
		'the trend’s points',
	);
	await page.click('section[aria-label=Changes] td a');
	await page.waitForURL(/\/compare\?/);
	const groups = JSON.parse(new URL(page.url()).searchParams.get('groups'));
	equal(
		groups.map((g) => g.ids),
		[changes[0].before_ids, changes[0].after_ids],
		'a change leads to the runs on both sides of it',
	);
}

/** A step at the 17th commit in one of three series: its row is the first, until it is reviewed. */
async function listed(page, url) {
	const [known] = (await ask(url, '/api/analysis/trends', { metric: 'output_throughput', axis: 'commit',
		filter: { and: [{ column: 'server.model', in: ['org/trend-1b'] }] } })).series;
	const [step] = known.changes;
	const row = (name, changes) => ({ ...known, id: name, name, key: { 'server.gpu': name }, changes });
	const change = (more) => ({ ...step, index: 17, commit: known.points[17].commit,
		is_marked: false, mark: null, ...more });
	let isReviewed = false;
	const marked = { is_marked: true, mark: { id: 1, metric: 'output_throughput', kind: 'not_real',
		text: 'a slow night', who: 'ann' } };
	await page.route('**/api/analysis/trends', (r) => r.fulfill({ json: { metric: 'output_throughput',
		unit: 'tokens/s', better: 'higher', axis: 'commit', order: '', level: 1e-5, effect: 0.03,
		reason: null, is_judged: true, axes: [], left_out: 0, trust: [], notes: [],
		series: [row('flat', []),
			row('small', [change({ effect: -0.04 })]),
			row('seeded', [change({ effect: -0.13, also_in: 2, also_of: 3,
				...isReviewed ? marked : {} })])] } }));
	const names = () => page.$$eval('.series-list .name', (l) => l.map((e) => e.textContent));
	await page.goto(`${url}/trends?m=output_throughput`);
	await page.waitForSelector('.series-list');
	equal(await names(), ['seeded', 'small', 'flat'], 'the series with the largest change is the first');
	equal(await page.$eval('.series-list [data-value]', (e) => Number(e.dataset.value)), -0.13,
		'with its change');
	equal(await page.$$eval('.series-list .sparkline',
		(l) => l.map((e) => e.querySelectorAll('circle').length)), [1, 1, 0],
		'and a dot at each change');
	ok((await page.textContent('section[aria-label=Changes]')).includes('In 2 of 3 series'),
		'a change says how many series share it');
	await page.click('.series-part button:has-text("Changed")');
	await becomes(names, ['seeded', 'small'], 'only those that changed');
	await page.click('.series-list button >> nth=1');
	await becomes(() => page.$$eval('.series-list button',
		(l) => l.map((e) => e.getAttribute('aria-pressed'))), ['true', 'false'],
		'a click takes a series out of the chart');
	isReviewed = true;
	await page.goto(`${url}/trends?m=output_throughput`);
	await page.waitForSelector('.series-list');
	equal(await names(), ['small', 'seeded', 'flat'], 'a reviewed change moves down');
	ok((await page.textContent('section[aria-label=Changes]')).includes('not real'), 'with its review');
	const rows = await page.$$eval('.changes-table tbody tr', (l) => l.length);
	const reached = () => page.$$eval('.changes-table tbody tr',
		(l) => l.findIndex((r) => r === document.activeElement && r.ariaCurrent === 'true'));
	await page.click('h1');
	for (const [key, row] of [['n', 0], ['n', 1 % rows], ['p', 0], ['p', rows - 1]]) {
		await page.keyboard.press(key);
		await becomes(reached, row, `${key}: change ${row + 1} of ${rows} has the focus`);
	}
	const ticks = await page.$$eval('.series-list .sparkline', (l) => l.map((e) =>
		[...e.querySelectorAll('.tick.change')].map((t) => t.getAttribute('x1')).join()));
	equal([ticks[0] !== '', new Set(ticks).size], [true, 1], 'ticks of all sparklines are aligned');
	await page.unroute('**/api/analysis/trends');
}

/** A formula in place of a metric: checked while it is typed, then drawn and a column of the table. */
async function formulas(page, url) {
	const formula = '=output_throughput / request_throughput';
	await page.goto(`${url}/charts?view=any&x=median_ttft_ms&y=output_throughput`);
	await page.click('.pick:has-text("Y axis") .pick-button');
	await page.fill('.choices input', '=output_throughput / ');
	await becomes(() => page.textContent('.formula-choice [role=status]'),
		'formula "=output_throughput /": at character 21, '
			+ 'expected a column, a number or an opening parenthesis',
		'what is wrong is said, with its place');
	await page.fill('.choices input', '=output_throughput / request_troughput');
	await becomes(async () => /no column "request_troughput"; did you mean "request_throughput"/
		.test(await page.textContent('.formula-choice [role=status]')), true,
	'also a column that is misspelt');
	await page.keyboard.press('Enter');
	equal(new URL(page.url()).searchParams.get('y'), 'output_throughput',
		'a wrong one is not taken');
	await page.fill('.choices input', formula);
	await becomes(async () => /^\d+ runs of \d+, median /
		.test(await page.textContent('.formula-choice [role=status]')), true,
	'a right one has its runs');
	await accessible(page, 'a formula');
	await page.keyboard.press('Enter');
	await becomes(() => new URL(page.url()).searchParams.get('y'), formula, 'Enter takes it');
	const twin = 'section[aria-label*=" against "] .twin';
	await page.waitForSelector(twin);
	await page.click(`${twin} summary`);
	const shown = () => page.$$eval(`${twin} tbody tr`, (rows) => rows.map((r) => [
		Number(r.children[0].textContent),
		Number(r.children[3].querySelector('[data-value]').dataset.value)]));
	const { items } = await ask(url, '/api/filters/apply', { limit: 200,
		columns: ['output_throughput', 'request_throughput', formula] });
	const ratio = new Map(items.map(({ id, values: v }) =>
		[id, v.output_throughput / v.request_throughput]));
	const isRight = ([id, v]) => Math.abs(v / ratio.get(id) - 1) < 1e-12;
	await becomes(async () => (await shown()).length > 0 && (await shown()).every(isRight), true,
		'every point is the quotient of its run');
	ok(items.some((i) => i.values[formula] !== null) && items.every(({ id, values: v }) =>
		(v[formula] === null ? !Number.isFinite(ratio.get(id)) : isRight([id, v[formula]]))),
	'as the column of the table is');
	await page.goto(`${url}/runs?group=none&cols=${encodeURIComponent(`output_throughput,${formula}`)}`);
	await page.waitForSelector('[role=columnheader]:has-text("output_throughput / request_throughput")');
	await accessible(page, 'a formula as a column');
}

/** Configurations that the question settles, in the order of the table. */
const settled = (list) => list.filter((c) => c.gpus.value !== null
	&& (c.state === 'found' || c.servers === 1));

async function plans(page, url, filter) {
	const limits = encodeURIComponent(JSON.stringify([
		{ column: 'p95_ttft_ms', side: 'max', value: 1000 }]));
	const asks = (rate, slo) => ask(url, '/api/analysis/capacity',
		{ filter, rate, slo, configuration: null });
	const slo = [{ column: 'p95_ttft_ms', max: 1000 }];
	await page.goto(`${url}/plan?rate=50&slo=${limits}`);
	await page.waitForSelector('section[aria-label="GPUs needed"]');
	const capacity = await asks(50, slo);
	const best = () => page.$$eval('section[aria-label="GPUs needed"] .big-number [data-value]',
		(l) => l.map((e) => Number(e.dataset.value)));
	const firstOf = (answer) => settled(answer.configurations).slice(0, 1).map((c) => c.gpus.value);
	await numbersOf(page, 'main', all(capacity), 'capacity');
	equal(await best(), firstOf(capacity), 'the fewest GPUs that are known to do');
	await page.fill('.capacity-form input[inputmode=decimal]', '100');
	await page.keyboard.press('Enter');
	await becomes(best, firstOf(await asks(100, slo)), 'another rate, other GPUs');
	await page.goto(`${url}/plan`);
	await page.waitForSelector('.ranked td');
	const usual = await asks(null, null), ranked = settled(usual.configurations);
	equal([Number(await page.inputValue('.capacity-form input[inputmode=decimal]')),
		Number(await page.inputValue('.capacity-form input[type=number]'))],
	[usual.rate, usual.slo[0].max],
	'without a question: 70 % of what carries most, twice the lowest P99 TTFT');
	ok(ranked.length < usual.configurations.length || ranked.some((c) => c.servers > 1),
		'which tells configurations apart');
	equal(await page.$$eval('.ranked tbody tr', (rows) => rows.map((r) => [
		r.querySelector('th').title,
		Number(r.querySelectorAll('td')[1].querySelector('[data-value]').dataset.value),
		Number(r.querySelectorAll('td')[4].dataset.value)])),
	ranked.map((c) => [c.name, c.gpus.value, c.headroom]), 'ranked by GPUs, with headroom');
	equal(await page.$$eval('section[aria-label="Not ranked"] tbody th',
		(l) => l.map((e) => e.title)),
		usual.configurations.filter((c) => !ranked.includes(c)).map((c) => c.name),
		'what needs a higher load or never keeps the limit is apart');
	await numbersOf(page, 'main', all(usual), 'the default capacity');
	await page.waitForSelector('section[aria-label="Latency over load"] .chart-box[data-drawn=true]');
	await accessible(page, 'capacity');
	await page.goto(`${url}/plan?tab=calculator&speed=60`);
	await page.waitForSelector('.calculated');
	const { reading } = await ask(url, '/api/analysis/curves', { filter: null, at: 60 });
	const rowsShown = () => page.$$eval('.calculated tbody tr', (rows) => rows.map((r) => {
		const cell = r.querySelectorAll('td')[0].querySelector('[data-value]');
		return [r.querySelector('th').textContent, cell && Number(cell.dataset.value), cell
			? r.querySelectorAll('td')[0].textContent[0] : null];
	}).sort());
	equal(await rowsShown(),
		reading.map((r) => (r.low !== null && 60 < r.low ? [r.color, r.y, String(r.y)[0]]
			: [r.color, r.between, r.between === null ? null : '~'])).sort(),
		'the calculator reads each color off its frontier, and marks what was not measured');
	await accessible(page, 'calculator');
}

async function analyses(page, url) {
	const overview = await ask(url, '/api/analysis/curves', { filter: null });
	const filter = { and: [{ column: 'workload', in: [overview.workload] }] };
	await page.goto(`${url}/impact?m=output_throughput`);
	await becomes(() => new URL(page.url()).search, '?m=output_throughput&tab=impact',
		'an old address leads to Plan');
	await page.waitForSelector('.matched');
	const impact = await ask(url, '/api/analysis/impact', { filter, metric: 'output_throughput' });
	await numbersOf(page, '.matched', all(impact), 'matched effects');
	equal(await page.$$eval('.matched tbody tr', (rows) => rows.map((r) => [
		Number(r.querySelector('td[data-value]').dataset.value), Number(r.lastElementChild
			.previousElementSibling.dataset.value)])),
	impact.matched.slice(0, 15).map((s) => [s.effect, s.pairs]),
	'matched effects come first, the largest above');
	await accessible(page, 'impact');
	await page.click('.impact-shares summary');
	await page.waitForSelector('.impact');
	await numbersOf(page, '.impact', all(impact), 'impact');
	await page.goto(
		`${url}/plan?tab=scaling&load=all&m=output_throughput&by=server.tensor_parallel_size`);
	await page.waitForSelector('section[aria-label^=Speed] td');
	await numbersOf(
		page,
		'section[aria-label^=Speed]',
		all(
			await ask(url, '/api/analysis/scaling', {
				filter,
				metric: 'output_throughput',
				by: 'server.tensor_parallel_size',
				series: null,
			}),
		),
		'scaling',
	);
	await plans(page, url, filter);
	await formulas(page, url);
	await page.goto(`${url}/resources?y=system.j_per_token&x=output_throughput`);
	await page.waitForSelector('.twin');
	equal(new URL(page.url()).pathname + new URL(page.url()).search,
		'/charts?y=system.j_per_token&x=output_throughput&view=any',
		'the old address of Resources opens any two metrics, with its metrics');
	equal(await page.$eval('[aria-label^="System metric"] [aria-pressed=true]', (e) => e.textContent),
		'Energy per token', 'where what the machine did is one click');
	await page.click('.twin summary');
	await numbersOf(
		page,
		'.twin',
		all(
			await ask(url, '/api/analysis/resources', {
				filter: null,
				x: 'output_throughput',
				y: 'system.j_per_token',
				color: 'server.model',
			}),
		),
		'resources',
	);
	await page.goto(`${url}/traces`);
	const none = await page.waitForSelector('.quick + p[role=status]');
	equal((await none.textContent()).slice(0, 19), 'No run has a trace.', 'no traces is no error');
}

const CONFIG = `name: walked
server:
  command: sim
  model: org/small-8b
benchmark:
  dataset_name: random
  tokenizer: sim
  random_input_len: 20
  random_output_len: 4
  num_prompts: 6
  request_rate: inf
  ignore_eos: true
`;

const HEADLINE = ['verdict', 'output_throughput', 'median_ttft_ms', 'p99_ttft_ms', 'median_tpot_ms'];

async function launches(page, url) {
	await page.goto(`${url}/launch`);
	await page.waitForSelector('textarea');
	await becomes(
		() => page.$eval('textarea', (e) => e.value.length > 100),
		true,
		'an example is there to start from',
	);
	await page.fill('textarea', CONFIG.replace('num_prompts', 'num_promts'));
	await page.waitForSelector('.findings button');
	ok(
		(await page.$eval('.findings li', (e) => e.textContent)).includes('num_prompts'),
		'a mistake is told with its line and the nearest key',
	);
	const run = 'section[aria-label=Configuration] button.primary:has-text("Run")';
	ok(await page.$eval(run, (e) => e.disabled), 'and cannot be run');
	await page.fill('textarea', CONFIG);
	await page.waitForSelector(`${run}:not([disabled])`);
	ok(
		(await page.$eval('section[aria-label=Plan] tbody th', (e) => e.textContent)).startsWith(
			'walked',
		),
		'the plan is shown before anything is done',
	);
	await page.click(run);
	await page.waitForSelector('section[aria-label=Experiment] [data-state=done]', { timeout: 60000 });
	ok((await page.$eval('.log', (e) => e.textContent)).length > 100, 'its log was followed');
	const [row] = (await ask(url, '/api/filters/apply', {
		filter: { column: 'name', in: ['walked'] }, columns: HEADLINE, limit: 1 })).items;
	await page.waitForSelector('.outcome td[data-column]');
	const shown = await page.$$eval('.outcome td[data-column] [data-value]', (l) => l.map((e) =>
		[e.parentElement.dataset.column, Number(e.dataset.value)]));
	equal([Object.fromEntries(shown), await page.textContent('.outcome td .tag')],
		[Object.fromEntries(HEADLINE.slice(1).map((c) => [c, row.values[c]])), row.values.verdict],
		'the card ends with the verdict and the headline metrics of the store');
	await page.click('.outcome a');
	await page.waitForSelector('.figure');
	equal(
		await page.$eval(
			'h1',
			(e) => e.textContent.includes('walked') && e.textContent.includes('completed'),
		),
		true,
		'and its run is in the store',
	);
	await repeats(page, url, row.id);
}

/** From the page of a run: Launch again, type another value, Run. */
async function repeats(page, url, id) {
	await page.click('.run-head a:has-text("Launch again")');
	await page.waitForFunction(() => document.activeElement?.selectionEnd > 0);
	equal(await page.$eval('textarea', (e) => [e.value.slice(e.selectionStart, e.selectionEnd),
		e.value.split('\n').find((l) => l.includes('num_prompts')), location.search]),
	['6', '  num_prompts: 6', ''], 'the configuration of the run, the value to change selected');
	await page.keyboard.type('7');
	await page.click('section[aria-label=Configuration] button.primary:has-text("Run"):not([disabled])');
	await page.waitForSelector('section[aria-label=Experiment] [data-state=done]', { timeout: 60000 });
	await page.click('.outcome a');
	await page.waitForSelector('.figure');
	const again = (await ask(url, `/api/data/experiments/${new URL(page.url()).pathname.split('/')[2]}`))
		.document.config.given;
	const before = (await ask(url, `/api/data/experiments/${id}`)).document.config.given;
	equal(again, { ...before, benchmark: { ...before.benchmark, num_prompts: 7 } },
		'was run with that value, and nothing else is different');
}

/** A result of bench serve becomes a configuration whose load is the same command line. */
async function repeatsResult(page, url) {
	const options = { model: 'org/demo', host: '127.0.0.1', port: 41234, num_prompts: 120,
		max_concurrency: 8, tokenizer: 'sim', random_input_len: 64, ignore_eos: true, seed: 0 };
	await ask(url, '/api/upload/raw?name=served.json', { ...detailed(5), date: '20260503-120000',
		model_id: 'org/demo', profllm: { schema_version: 1, version: 'x', options } });
	const [row] = (await ask(url, '/api/filters/apply', { columns: [], limit: 1,
		filter: { column: 'server.model', in: ['org/demo'] } })).items;
	await page.goto(`${url}/launch?from=${row.id}`);
	const load = 'section[aria-label=Plan] td:nth-of-type(2) .command';
	await page.waitForSelector(load);
	equal((await page.textContent(load)).trim(),
		'vllm bench serve --base-url http://127.0.0.1:41234 --num-prompts 120 --random-input-len 64 '
		+ '--max-concurrency 8 --model org/demo --tokenizer sim --ignore-eos',
		'a result becomes an experiment with the options that were given');
}

await main(async () => {
	const it = await dashboard(),
		browser = await launch();
	const { page, wrong } = await tab(browser, `${it.url}/upload`);
	for (const walk of [
		uploads,
		drops,
		runPage,
		requests,
		compares,
		performance,
		charts,
		trends,
		listed,
		analyses,
		launches,
		repeatsResult,
		traces,
		failedRun,
	])
		await walk(page, it.url);
	const refused = wrong.filter((w) => /400 \(Bad Request\)|401/.test(w));
	equal(refused.length, 4,
		'refused are the same runs on both sides, wrong formulas, and a note');
	equal(wrong.filter((w) => !refused.includes(w)), [], 'no error, and no request to elsewhere');
	await browser.close();
	equal(await it.stop(), 0, 'the dashboard stops');
});
