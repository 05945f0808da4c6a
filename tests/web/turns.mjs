// SPDX-License-Identifier: Apache-2.0
// turns.mjs: conversations as people see them: the page of --plot-turns, the timeline by session, and
// the dashboard's page of a run, also of one with constrained answers and of one with priorities.
// Every number is the result's. Pictures go to $O/screenshots.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, open, openTimeline } from './browser.mjs';
import { accessible, dashboard, tab } from './dashboard-kit.mjs';
import { becomes, equal, main, ok, output, program, run, scratch, sim } from './tap.mjs';

const WIDE = { width: 1400, height: 900 }, NARROW = { width: 390, height: 844 };
/** Why an answer is wrong, as the page says it. */
const WORDS = { parse: 'No JSON', schema: 'JSON that its schema forbids',
	no_match: 'No match of the pattern, choice or grammar', truncated: 'Cut off by the token limit' };
const shots = join(output, 'screenshots');
const read = (name) => JSON.parse(readFileSync(join(scratch, name), 'utf8')
	.replace(/([:[,] )(-?Infinity|NaN)/g, '$1null'));

async function bench(url, name, ...args) {
	const made = await run(program, ['bench', 'serve', '--base-url', url, '--model', 'sim',
		'--tokenizer', 'sim', '--backend', 'openai-chat', '--endpoint', '/v1/chat/completions',
		'--save-result', '--save-detailed', '--result-filename', name, '--progress', 'none',
		'--percentile-metrics', 'ttft,tpot,itl,e2el', ...args]);
	ok(made.status === 0, `${name} is measured`, made.out, made.err);
	return { ...made, json: read(name) };
}

/** The cells of the table by turn, as numbers. */
const cells = (page) => page.$$eval('.turns-table tbody tr', (rows) => rows.map((row) =>
	Object.fromEntries([...row.children].map((c) => [c.dataset.field, Number(c.dataset.value)]))));

const wanted = (json) => json.per_turn_metrics.map((t) => ({ turn: t.turn_index + 1,
	completed: t.completed, ttft: t.median_ttft_ms, ttft_high: t.p99_ttft_ms, tpot: t.median_tpot_ms,
	e2el: t.median_e2el_ms, context: t.context_tokens.p50, cached: t.cached_tokens.p50,
	cached_share: t.cached_share }));

/** Both schemes and a narrow screen: axe finds nothing, nothing is wider than the screen. */
async function looks(page, name, what) {
	const picture = async (how) => {
		await page.locator(what).first().evaluate((e) => e.scrollIntoView());
		await page.screenshot({ path: join(shots, `${name}-${how}.png`), fullPage: true });
	};
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		await accessible(page, `${name}, ${scheme}`,
			scheme === 'dark' ? ['color-contrast'] : undefined);
		await picture(scheme);
	}
	await page.setViewportSize(NARROW);
	await becomes(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true,
		`${name}: nothing is wider than a narrow screen`);
	await picture('390');
	await page.setViewportSize(WIDE);
}

/** Sentence, charts and table, on whichever page they are. */
async function charts(page, json, name) {
	equal(await page.textContent('.turns-sentence'), json.sessions.turns_summary,
		`${name}: the result's sentence`);
	equal(await cells(page), wanted(json), `${name}: the table has the result's numbers`);
	const dots = (panel) => page.$$eval(`[data-panel=${panel}] .dot`, (all) =>
		all.map((e) => Number(e.dataset.value)));
	for (const [panel, key] of [['ttft', 'ttft'], ['context', 'context'], ['cached', 'cached']])
		equal(await dots(panel), wanted(json).map((t) => t[key]),
			`${name}: the medians of ${panel} are drawn`);
	await page.focus('.turns-charts');
	await page.keyboard.press('End');
	await page.keyboard.press('ArrowLeft');
	const turn = json.per_turn_metrics.at(-2), said = `Turn ${turn.turn_index + 1} · Requests `
		+ `${turn.completed} · Median TTFT (ms) ${turn.median_ttft_ms.toFixed(2)}`;
	await becomes(() => page.textContent('.turns-said').then((t) => t.startsWith(said)), true,
		`${name}: arrow keys read a turn`);
	await page.locator('[data-panel=context] svg').hover({ position: { x: 80, y: 60 } });
	await becomes(() => page.textContent('.turns-said').then((t) => /^Turn 1 /.test(t)), true,
		`${name}: so does the pointer`);
}

async function turns(browser, made) {
	const { json } = made, { page, wrong } = await open(browser, join(scratch, 'talk.turns.html'));
	await page.waitForSelector('body[data-ready]');
	ok(json.sessions.turns_summary.startsWith(`From turn 2 to turn ${json.per_turn_metrics.length} the `
		+ 'median TTFT '), 'a sentence is found', json.sessions.turns_summary);
	ok(made.out.includes(`\n${json.sessions.turns_summary}\n`), 'the report prints it', made.out);
	await charts(page, json, 'turns');
	await looks(page, 'turns', '.turns');
	equal(wrong, [], 'the page of the turns loads nothing and has no errors');
	await page.close();
}

/** What the timeline's rows hold. */
const lanes = (page) => page.evaluate(() => {
	const { view, requests: r } = window.timeline;
	return [...view.rows].map((_, row) => [...view.members(row)].map((i) => ({ i, session: r.session[i],
		turn: r.turn[i], start: r.start[i] - r.lead[i], end: r.start[i] + r.whole[i] })));
});

async function timeline(browser, json) {
	const { page, wrong } = await openTimeline(browser, join(scratch, 'talk.timeline.html'));
	const rows = await lanes(page), { session, turn } = json.profllm.requests;
	equal([rows.length, rows.flat().map((m) => m.i).sort((a, b) => a - b)],
		[json.sessions.n, json.ttfts.map((_, i) => i)], 'a row per session holds all of its turns');
	ok(rows.every((row) => row.every((m, k) => m.session === session[m.i] && m.turn === turn[m.i]
		&& m.session === row[0].session && (!k || m.start >= row[k - 1].end))),
	'one after another, named as in the result', JSON.stringify(rows[0]));
	// The pause after the first turn of the second row.
	const [first, next] = rows[1];
	await page.evaluate(([a, b]) => window.timeline.view.show(a, b), [first.start, next.end]);
	const at = await page.evaluate(async (t) => {
		const { view } = window.timeline;
		const box = document.querySelector('.scroller').getBoundingClientRect();
		await new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then)));
		return { x: box.left + 92 + (t - view.from) / view.perPixel,
			y: box.top + 1.5 * view.rowHeight };
	}, (first.end + next.start) / 2);
	await page.mouse.move(at.x, at.y);
	const tip = () => page.$$eval('#tip [data-field]', (all) =>
		Object.fromEntries(all.map((e) => [e.dataset.field, e.textContent])));
	await becomes(async () => {
		const { type, session: s, turn: t, duration } = await tip();
		return [type, s, t, Math.abs(parseFloat(duration) - (next.start - first.end) / 1e9) < 0.002];
	}, ['Pause before the next turn', String(first.session), '1', true], 'the pause has its length');
	await page.evaluate(() => window.timeline.view.fit());
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		await page.screenshot({ path: join(shots, `timeline-sessions-${scheme}.png`) });
	}
	await page.selectOption('#group', 'request');
	await becomes(() => page.evaluate(() => window.timeline.view.rows.length), json.ttfts.length,
		'grouped by request there is a row for each');
	equal(wrong, [], 'the timeline loads nothing and has no errors');
	await page.close();
}

async function upload(url, json) {
	const answer = await fetch(`${url}/api/upload/json`, { method: 'POST', body: JSON.stringify(json),
		headers: { 'Content-Type': 'application/json' } });
	const made = await answer.json();
	ok(made.results?.[0]?.outcome === 'new', 'the dashboard takes the result', JSON.stringify(made));
	return made.results[0].id;
}

async function pages(browser, talk, graded) {
	const it = await dashboard(), id = await upload(it.url, talk), other = await upload(it.url, graded);
	const { page, wrong } = await tab(browser, `${it.url}/runs/${id}`);
	await page.waitForSelector('.turns-table');
	await charts(page, talk, 'the run');
	await looks(page, 'run-turns', '.turns');
	await page.goto(`${it.url}/runs/${id}?tab=requests`);
	await page.waitForSelector('.timeline canvas');
	equal(await page.$eval('.timeline-rows canvas', (c) => c.getAttribute('aria-label')),
		`${talk.ttfts.length} requests over time`, 'the run\'s requests are drawn');
	equal(await page.locator('label:has-text("Group by") select').inputValue(), 'session', 'by session');
	await page.screenshot({ path: join(shots, 'run-sessions.png'), fullPage: true });
	await page.goto(`${it.url}/runs/${other}`);
	const c = graded.profllm.correctness, correct = page.locator('section[aria-label="Correct answers"]');
	const right = Math.round((c.constrained_correct_rate / 100) * c.scored);
	ok((await correct.textContent()).includes(`${right} of ${c.scored} constrained answers that were `
		+ 'scored are correct'), 'the run says how many answers are correct');
	equal(await correct.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [
		row.children[0].textContent, Number(row.querySelector('[data-value]').dataset.value)])),
	Object.entries(c.wrong).filter(([, n]) => n > 0).map(([why, n]) => [WORDS[why], n]),
	'and why the others are not');
	const of = page.locator('section[aria-label="Latency by priority"] tbody tr');
	equal(await of.evaluateAll((rows) => rows.map((row) => [Number(row.children[0].textContent),
		...[...row.querySelectorAll('[data-value]')].map((e) => Number(e.dataset.value))])),
	graded.profllm.priorities.map((p) => [p.priority, p.requests, p.failed, ...['ttft_ms', 'tpot_ms',
		'e2el_ms'].flatMap((key) => [p[key].p50, p[key].p99])]), 'latencies of each priority');
	await looks(page, 'run-answers', 'section[aria-label="Correct answers"]');
	equal(wrong, [], 'no error, and no request to elsewhere');
	await it.stop();
}

main(async () => {
	mkdirSync(shots, { recursive: true });
	const talk = await bench(await sim('--enable-prefix-caching', '--enable-prompt-tokens-details'),
		'talk.json', '--dataset-name', 'random', '--multi-turn', '--num-prompts', '9',
		'--multi-turn-min-turns', '3', '--multi-turn-max-turns', '5', '--random-input-len', '200',
		'--per-turn-input-len', '60',
		'--random-output-len', '12', '--multi-turn-delay-ms', '150', '--request-rate', '40',
		'--report-cached-tokens', '--plot-timeline', '--plot-turns');
	const graded = await bench(await sim('--scheduling-policy', 'priority', '--max-num-seqs', '8',
		'--constraint-errors', '0.3'), 'graded.json', '--dataset-name', 'structured',
	'--structured-dataset', 'json', '--num-prompts', '30', '--structured-output-len', '256',
	'--priority-classes', '0:0.5,3:0.5');
	const browser = await launch();
	await turns(browser, talk);
	await timeline(browser, talk.json);
	await pages(browser, talk.json, graded.json);
	await browser.close();
});
