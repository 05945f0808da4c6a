// SPDX-License-Identifier: Apache-2.0
// pages.mjs: a real run against the simulator, its pages opened in Chromium: what they show
// equals the result file, they load nothing, and they can be used.
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { frames, launch, open, openTimeline, which } from './browser.mjs';
import { becomes, equal, main, ok, output, program, run, scratch, sim } from './tap.mjs';

const LIMITS = [8, 20];
const PERCENTILES = ['50', '99', '99.9'];
const GUTTER = 92;
const shots = join(output, 'screenshots');

/** Python writes infinities that JSON has not. */
const read = (name) => JSON.parse(readFileSync(join(scratch, name), 'utf8')
	.replace(/([:[,] )(-?Infinity|NaN)/g, '$1null'));

const clock = (s) => {
	const ms = Math.round(s * 1000), two = (v) => String(Math.floor(v)).padStart(2, '0');
	return `${two(ms / 3600000)}:${two((ms / 60000) % 60)}:${two((ms / 1000) % 60)}.`
		+ String(ms % 1000).padStart(3, '0');
};
const sum = (v) => v.reduce((a, b) => a + b, 0);

function labelOf(itl) {
	const ms = itl * 1000;
	return ms < LIMITS[0] ? 'ITL < 8ms' : ms < LIMITS[1] ? '8ms ≤ ITL < 20ms' : 'ITL ≥ 20ms';
}

async function measured() {
	const url = await sim('--max-num-seqs', '12', '--reasoning', '4', '--fault', 'reset@9:0.08',
		'status=503:0.05');
	const made = await run(program, ['bench', 'serve', '--base-url', url, '--model', 'sim',
		'--tokenizer', 'sim', '--backend', 'openai-chat', '--endpoint', '/v1/chat/completions',
		'--dataset-name', 'random', '--random-input-len', '64', '--random-output-len', '40',
		'--random-range-ratio', '0.6', '--num-prompts', '80', '--request-rate', '60',
		'--metrics-interval', '0.1', '--percentile-metrics', 'ttft,tpot,itl,e2el',
		'--metric-percentiles', PERCENTILES.join(','), '--save-result', '--save-detailed',
		'--result-filename', 'run.v1.json', '--plot-timeline', '--timeline-itl-thresholds',
		LIMITS.join(','), '--plot-dataset-stats', '--progress', 'none',
		'--ready-check-timeout-sec', '0']);
	equal(made.status, 0, 'a run with failed requests');
	ok(made.out.includes('\nTimeline plot saved to: run.v1.timeline.html\n'), 'the timeline is named',
		made.out, made.err);
	ok(made.out.includes('\nDataset statistics page saved to: run.v1.dataset_stats.html\n'),
		'the page of the lengths is named', made.out, made.err);
	return read('run.v1.json');
}

async function texts(page, selector) {
	return page.$$eval(`${selector} [data-field]`, (all) =>
		Object.fromEntries(all.map((e) => [e.dataset.field, e.textContent])));
}

async function summary(page, json) {
	const shown = await texts(page, '.summary'), want = {};
	for (const key of ['completed', 'failed', 'total_input_tokens', 'total_output_tokens'])
		want[key] = String(json[key]);
	const rates = await page.evaluate(() => window.timeline.meta.rates);
	want.peak_concurrency = String(Math.max(...rates.concurrency));
	for (const key of ['duration', 'request_throughput', 'output_throughput', 'total_token_throughput',
		'max_output_tokens_per_s'])
		want[key] = json[key].toFixed(2);
	for (const name of ['ttft', 'tpot', 'itl', 'e2el'])
		for (const kind of ['mean', 'median', ...PERCENTILES.map((p) => `p${p}`)])
			want[`${kind}_${name}_ms`] = json[`${kind}_${name}_ms`].toFixed(2);
	equal(Object.fromEntries(Object.entries(shown).sort()),
		Object.fromEntries(Object.entries(want).sort()), 'the summary shows the result');
	equal((await texts(page, '.head')).verdict, json.profllm.verdict, 'the verdict is the result\'s');
	equal(await page.$$eval('[data-legend]', (all) => all.map((e) => e.textContent)),
		['TTFT', 'ITL < 8ms', '8ms ≤ ITL < 20ms', 'ITL ≥ 20ms'], 'the legend, in upstream\'s order');
	equal(await page.$$eval('[data-legend] i', (all) => all.map((e) =>
		getComputedStyle(e).backgroundColor)), ['rgb(15, 77, 214)', 'rgb(12, 163, 141)',
		'rgb(218, 121, 49)', 'rgb(159, 2, 88)'], 'in colors that everyone can tell apart');
}

/** Every time of every request, as exactly as it was measured. */
async function arrays(page, json) {
	const got = await page.evaluate(() => {
		const { requests: r, meta } = window.timeline, gaps = [];
		for (let i = 0; i < r.n; i++)
			gaps.push([...r.end.slice(r.first[i], r.first[i + 1])].map((end, k, all) =>
				end - (k ? all[k - 1] : 0)));
		return { unit: meta.unit_ns, ttft: [...r.ttft], gaps, prompt: [...r.prompt],
			output: [...r.output], start: [...r.start], errors: meta.errors,
			failed: [...r.state].map((s, i) => (s ? i : -1)).filter((i) => i >= 0) };
	});
	const ns = (v) => Math.round(v * 1e9), t0 = Math.min(...json.start_times);
	equal(got.unit, 1, 'a small run is kept to the nanosecond');
	equal(got.ttft, json.ttfts.map(ns), 'TTFT of every request');
	equal(got.gaps, json.itls.map((itl) => itl.map(ns)), 'every gap of every request');
	equal([got.prompt, got.output], [json.input_lens, json.output_lens], 'prompt and output tokens');
	// The result's seconds since the epoch are good to a quarter of a microsecond.
	ok(got.start.every((v, i) => Math.abs(v - (json.start_times[i] - t0) * 1e9) < 1000),
		'start of every request', got.start.slice(0, 5));
	equal(got.failed, json.errors.map((e, i) => (e ? i : -1)).filter((i) => i >= 0),
		'failed requests are there and marked');
	ok(got.failed.length > 0 && got.failed.length < 80, 'some of the 80 requests failed',
		got.failed.length);
	const lines = new Set(json.errors.filter(Boolean).map((e) => e.split('\n')[0].slice(0, 300)));
	equal(new Set(got.errors), lines, 'with the errors of the result');
	return got.failed;
}

/** The place on the screen of a time, in nanoseconds, of a request; scrolled to when needed. */
async function place(page, i, at) {
	return page.evaluate(async ([request, ns, gutter]) => {
		const { view } = window.timeline, scroller = document.querySelector('.scroller');
		scroller.scrollTop = Math.max(0, (request - 3) * view.rowHeight);
		await new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)));
		const box = scroller.getBoundingClientRect();
		return { x: box.left + gutter + (ns / view.r.unitNs - view.from) / view.perPixel,
			y: box.top + (view.rowOf(request) + 0.5) * view.rowHeight - scroller.scrollTop };
	}, [i, at, GUTTER]);
}

async function hover(page, json, i, gap) {
	const t0 = Math.min(...json.start_times), start = json.start_times[i] - t0, ttft = json.ttfts[i];
	const itl = json.itls[i], from = gap < 0 ? start : start + ttft + sum(itl.slice(0, gap));
	const length = gap < 0 ? ttft : itl[gap], end = start + ttft + sum(itl);
	await page.evaluate(([a, b]) => window.timeline.view.show(a, b),
		[(from - length * 3) * 1e9, (from + length * 4) * 1e9]);
	const { x, y } = await place(page, i, (from + length / 2) * 1e9);
	await page.mouse.move(x, y);
	const want = { request: `Req ${i}`, type: gap < 0 ? 'TTFT' : labelOf(itl[gap]), start: clock(from),
		end: clock(from + length), duration: `${length.toFixed(3)}s`,
		prompt_tokens: String(json.input_lens[i]), output_tokens: String(json.output_lens[i]),
		request_start: clock(start), request_end: clock(end) };
	// A time half way between two milliseconds may be rounded either way from these doubles.
	const ms = (text) => Number(text.replace(/^(..):(..):/, (_, h, m) => `${h * 3600 + m * 60} `)
		.split(' ').reduce((a, b) => Number(a) + Number(b), 0)) * 1000;
	let shown;
	await becomes(async () => {
		shown = await texts(page, '#tip');
		return Object.fromEntries(Object.entries(want).map(([key, value]) => [key,
			/start|end/.test(key) && Math.abs(ms(shown[key] ?? '') - ms(value)) <= 1.001 ? value
				: shown[key]]));
	}, want, `hover of request ${i}, ${gap < 0 ? 'TTFT' : `gap ${gap + 1}`}`);
	return shown;
}

async function use(page) {
	const scale = () => page.evaluate(() => [window.timeline.view.from, window.timeline.view.perPixel]);
	const state = (key) => page.evaluate((k) => window.timeline.view[k], key);
	const drawn = () => page.evaluate(() => new Promise((then) =>
		requestAnimationFrame(() => requestAnimationFrame(then))));
	await page.click('button[aria-label="Show the whole run"]');
	await drawn();
	const [from, whole] = await scale(), box = await page.locator('.scroller').boundingBox();
	const middle = [box.x + box.width / 2, box.y + box.height / 2];
	await page.mouse.move(...middle);
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -300);
	await page.keyboard.up('Control');
	await becomes(async () => (await scale())[1] < whole * 0.8, true, 'Ctrl and the wheel zoom in');
	const before = await scale();
	await page.mouse.down();
	await page.mouse.move(middle[0] - 120, middle[1], { steps: 4 });
	await page.mouse.up();
	await becomes(async () => Math.abs((await scale())[0] - before[0] - 120 * before[1])
		< before[1] * 2, true, 'a drag pans');
	await page.keyboard.press('ArrowLeft');
	await page.keyboard.press('-');
	await page.keyboard.press('f');
	await becomes(scale, [from, whole], 'f shows the whole run again');
	await page.keyboard.down('Shift');
	await page.mouse.move(...middle);
	await page.mouse.down();
	await page.mouse.move(middle[0] + 200, middle[1] + 20, { steps: 4 });
	await page.mouse.up();
	await page.keyboard.up('Shift');
	const width = await state('width');
	await becomes(async () => Math.abs((await scale())[1] * width - 200 * whole) < 3 * whole, true,
		'Shift and a drag zoom to a time');
	await page.keyboard.press('/');
	await page.keyboard.type('57');
	await page.keyboard.press('Enter');
	await becomes(() => state('marked'), 57, 'a request is found by its number');
	await page.keyboard.press('Escape');
	await page.selectOption('#filter', 'failed');
	await becomes(() => page.evaluate(() => [...window.timeline.view.rows].every((i) =>
		window.timeline.requests.state[i] === 1)), true, 'failed requests alone');
	await page.keyboard.press('n');
	await becomes(() => state('marked'), await page.evaluate(() => window.timeline.view.rows[0]),
		'n goes to the next failed request');
	await page.selectOption('#filter', 'all');
	await page.selectOption('#sort', 'ttft');
	await becomes(() => page.evaluate(() => {
		const { view, requests } = window.timeline;
		return view.rows.length === 80 && [...view.rows].every((i, k) =>
			!k || requests.ttft[view.rows[k - 1]] >= requests.ttft[i]);
	}), true, 'sorted by TTFT, the longest on top');
	await page.selectOption('#sort', 'sample');
	await page.keyboard.press('f');
}

/** Where the picture shows a category there is one, and the other way round. */
async function picture(page, json) {
	await page.evaluate(() => {
		const { view } = window.timeline;
		view.setRowHeight(16);
		view.fit();
	});
	const i = json.itls.findIndex((itl) => itl.length > 5), t0 = Math.min(...json.start_times);
	const at = (json.start_times[i] - t0 + json.ttfts[i] / 2) * 1e9;
	const { x, y } = await place(page, i, at);
	await page.mouse.move(5, 5);
	const colour = await page.evaluate(async ([px, py]) => {
		await new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)));
		const canvas = document.querySelector('.scroller canvas');
		const box = canvas.getBoundingClientRect();
		return [...canvas.getContext('2d').getImageData((px - box.left) * (canvas.width / box.width),
			(py - box.top) * (canvas.height / box.height), 1, 1).data];
	}, [x, y]);
	equal(colour, [15, 77, 214, 255], 'the time to the first token is drawn where it was');
}

async function series(page) {
	equal(await page.evaluate(() => [...new Set(window.timeline.meta.series.map((s) => s.name))]),
		['running', 'waiting', 'kv_usage'], 'the series of the server are in the page');
	const total = await page.evaluate(() => {
		const { rates, summary } = window.timeline.meta;
		return [rates.tokens_per_s.reduce((a, b) => a + b, 0) * rates.bin_ns / 1e9,
			summary.total_output_tokens, Math.max(...rates.concurrency)];
	});
	// Failed streams brought tokens too, which no total counts.
	ok(total[0] >= total[1] - 1 && total[0] < total[1] * 1.5, 'the rates add up to the tokens', total);
	ok(total[2] >= 2 && total[2] <= 80, 'the concurrency is one of this run', total);
}

/** As numpy.histogram of whole numbers does it. */
function counts(values) {
	let low = Math.min(...values), high = Math.max(...values);
	if (low === high)
		[low, high] = [low - 0.5, high + 0.5];
	const edge = Array.from({ length: 31 }, (_, k) => (k === 30 ? high : low + k * ((high - low) / 30)));
	const out = Array(30).fill(0);
	for (const v of values)
		out[Math.max(0, edge.findLastIndex((e, k) => k < 30 && v >= e))]++;
	return out;
}

async function dataset(browser, json) {
	const { page, wrong } = await open(browser, join(scratch, 'run.v1.dataset_stats.html'));
	await page.waitForSelector('body[data-ready]');
	const total = json.input_lens.map((v, i) => v + json.output_lens[i]);
	const panels = await page.$$eval('figure', (all) => all.map((f) => ({
		title: f.querySelector('figcaption').textContent,
		labels: [...f.querySelectorAll('.label')].map((l) => l.textContent),
		counts: [...f.querySelectorAll('.bar')].map((b) => Number(b.dataset.count)) })));
	const words = [['Prompt Tokens Distribution', 'Prompt Tokens', json.input_lens],
		['Output Tokens Distribution', 'Output Tokens', json.output_lens],
		['Total Tokens Distribution', 'Total Tokens (Prompt + Output)', total]];
	for (const [k, [title, label, values]] of words.entries())
		equal(panels[k], { title, labels: [label, 'Frequency'], counts: counts(values) }, title);
	equal([panels[3].title, ...panels[3].labels],
		['Tokens per Request (Stacked)', 'Request ID', 'Tokens'], 'the fourth panel');
	const area = await page.locator('[data-request="7"]').boundingBox();
	await page.mouse.move(area.x + area.width / 2, area.y + area.height / 2);
	await page.waitForSelector('#tip:not([hidden])');
	const tip = await texts(page, '#tip');
	equal(tip, { prompt_tokens: String(json.input_lens[7]), output_tokens: String(json.output_lens[7]) },
		'hover of a request\'s bar');
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		await page.screenshot({ path: join(shots, `dataset-${scheme}.png`) });
	}
	equal(wrong, [], 'the page of the lengths loads nothing and has no errors');
	await page.close();
	const png = join(scratch, 'run.v1.dataset_stats.png');
	if (which('gnuplot')) {
		const bytes = readFileSync(png);
		equal([bytes.toString('latin1', 1, 4), bytes.readUInt32BE(16), bytes.readUInt32BE(20)],
			['PNG', 2100, 1500], 'gnuplot\'s picture: 14 by 10 inches at 150 dots');
		ok(existsSync(join(scratch, 'run.v1.dataset_stats.gp')), 'its script lies beside it');
	} else {
		ok(!existsSync(png), 'no picture without gnuplot');
	}
}

async function sealed(page) {
	const policy = await page.$eval('meta[http-equiv="Content-Security-Policy"]', (m) => m.content);
	ok(policy.startsWith("default-src 'none'; script-src 'sha256-"), 'a policy allows nothing', policy);
	const answer = await page.evaluate(() => fetch('http://127.0.0.1:9/').then(() => 'sent',
		(e) => e.message));
	ok(/Failed to fetch/.test(answer), 'and a request from the page is refused', answer);
}

async function large(browser) {
	const file = join(scratch, 'large.html');
	const made = await run(join(output, 'bench/timeline'), ['--shared', '--repeats', '1'],
		{ env: { ...process.env, PROFLLM: program, TIMELINE_KEEP: file } });
	if (!ok(made.status === 0, 'a page of 100,000 requests is written', made.out, made.err))
		return;
	ok(statSync(file).size <= 60e6, 'in at most 60 MB', statSync(file).size);
	const { page, wrong } = await openTimeline(browser, file);
	equal(await page.evaluate(() => [window.timeline.meta.n,
		window.timeline.requests.end.length + window.timeline.meta.n > 13e6,
		window.timeline.requests.first[100000] === window.timeline.meta.n_gaps]),
	[100000, true, true], '100,000 requests, 13 million segments');
	for (const what of ['scroll', 'zoom', 'pan']) {
		const t = await frames(page, what, 60);
		// A bound for a busy machine; web/bench.mjs measures.
		ok(t.drawing.median < 50 && t.between.median < 150, `${what}: a frame is drawn in time`,
			JSON.stringify(t));
		const show = (v) => `median ${v.median.toFixed(1)} ms, p95 ${v.p95.toFixed(1)} ms`;
		console.log(`# ${what}: drawing ${show(t.drawing)}; between frames ${show(t.between)}`);
	}
	await page.screenshot({ path: join(shots, 'timeline-large.png') });
	equal(wrong, [], 'the large page loads nothing and has no errors');
	await page.close();
}

main(async () => {
	mkdirSync(shots, { recursive: true });
	const json = await measured(), browser = await launch();
	const { page, wrong } = await openTimeline(browser, join(scratch, 'run.v1.timeline.html'));
	await summary(page, json);
	const failed = await arrays(page, json);
	// Several events of one read have one stamp: a gap of nothing cannot be pointed at.
	const visible = (i) => [...json.itls[i].keys()].filter((k) => json.itls[i][k] > 1e-3);
	const [long] = [...json.itls.keys()].filter((i) => !failed.includes(i))
		.sort((a, b) => visible(b).length - visible(a).length), gaps = visible(long);
	for (const [i, gap] of [[0, -1], [long, gaps[0]], [long, gaps[gaps.length >> 1]], [79, -1],
		[long, gaps.at(-1)]])
		if (json.ttfts[i] > 0)
			await hover(page, json, i, gap);
	const broken = failed.find((i) => visible(i).length > 0);
	if (broken !== undefined) {
		const tip = await hover(page, json, broken, visible(broken)[0]);
		equal([tip.state, tip.error], ['failed', json.errors[broken].split('\n')[0].slice(0, 300)],
			'hover of a failed request says why');
	}
	await use(page);
	await picture(page, json);
	await series(page);
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		await page.waitForTimeout(100);
		await page.screenshot({ path: join(shots, `timeline-${scheme}.png`) });
	}
	equal(wrong, [], 'the timeline loads nothing and has no errors');
	await sealed(page);
	await page.close();
	await dataset(browser, json);
	await large(browser);
	await browser.close();
});
