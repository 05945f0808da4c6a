// SPDX-License-Identifier: Apache-2.0
// dashboard-looks.mjs: the Runs page on narrow and wide screens, light and dark; axe finds nothing;
// no page is wider than its screen; what it says when there is nothing, and when it may not.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from './browser.mjs';
import { accessible, dashboard, results, tab, upload } from './dashboard-kit.mjs';
import { becomes, equal, main, ok, output, scratch } from './tap.mjs';

const RUNS = 60;
const shots = join(output, 'screenshots');
const total = (page) => () => page.$eval('[data-total]', (e) => Number(e.dataset.total))
	.catch(() => -1);

async function looks(page, url) {
	for (const [scheme, width, height] of [['light', 1440, 900], ['dark', 1440, 900],
		['light', 390, 844], ['dark', 390, 844], ['light', 2560, 1300]]) {
		await page.emulateMedia({ colorScheme: scheme });
		await page.setViewportSize({ width, height });
		await page.goto(`${url}/runs?sel=3`);
		await page.waitForSelector('.tile [data-value]');
		await page.waitForSelector('.grid-body [role=row]');
		await becomes(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
			true, `${width} px, ${scheme}: nothing beside the page`);
		if (width === 1440 || (width < 600 && scheme === 'dark'))
			await accessible(page, `the Runs page, ${scheme}, ${width} px`);
		await page.screenshot({ path: join(shots, `runs-${scheme}-${width}.png`) });
		if (width < 600) {
			await page.click('.panel-button');
			await page.waitForSelector('dialog[open] .facet');
			if (scheme === 'light')
				await accessible(page, 'the filters in a drawer');
			await page.screenshot({ path: join(shots, `filters-${scheme}-${width}.png`) });
		}
	}
	await page.setViewportSize({ width: 1440, height: 900 });
	const none = '{"and":[{"column":"server.model","in":["y"]}]}';
	await page.goto(`${url}/runs?f=${encodeURIComponent(none)}`);
	await page.waitForSelector('.state.empty');
	await accessible(page, 'no runs match');
	await page.click('.state.empty button');
	await becomes(total(page), RUNS, 'from there, one click shows all');
	await page.click('.top-tools .menu button');
	await page.click('.menu-item:has-text("Dark")');
	await becomes(() => page.$eval('html', (e) => e.dataset.theme), 'dark', 'the theme can be chosen');
	await page.reload();
	await becomes(() => page.$eval('html', (e) => e.dataset.theme), 'dark', 'and is remembered');
}

async function door(browser) {
	const file = join(scratch, 'tokens'), token = 'a-token-of-24-characters';
	writeFileSync(file, `${token}\n`, { mode: 0o600 });
	const it = await dashboard('--auth-token-file', file);
	const { page, wrong, context } = await tab(browser, `${it.url}/runs`);
	await page.waitForSelector('dialog[open] input[type=password]');
	await accessible(page, 'the door');
	await page.fill('dialog[open] input[type=password]', 'not the token, but as long');
	await page.click('dialog[open] button.primary');
	await page.waitForSelector('dialog[open] [role=alert]');
	await page.fill('dialog[open] input[type=password]', token);
	await page.click('dialog[open] button.primary');
	await page.waitForSelector('.state.empty:has-text("No runs yet")');
	ok(true, 'the token opens the door; behind it, an empty store says how to fill it');
	await accessible(page, 'no runs yet');
	const others = wrong.filter((w) => !w.includes('401'));
	equal(others, [], 'with nothing but refusals on the way');
	equal(await it.stop(), 0, 'it ends when told');
	await page.click('.views-button');
	await page.waitForSelector('.pulse.bad', { timeout: 60000 });
	ok(true, 'a dashboard that is gone is told');
	await page.waitForSelector('dialog[open] .state.failure');
	ok(true, 'and so is what it cannot answer');
	await context.close();
}

/** As a user who has just started it and opens the URL printed in the terminal. */
async function printed(browser) {
	const it = await dashboard('made-token');
	let target;
	await becomes(() => Boolean([, target] = /(http:\S+\?token=\S+) \(/.exec(it.log) ?? []), true,
		'a URL with a token is printed');
	const token = new URL(target).searchParams.get('token');
	const context = await browser.newContext(), page = await context.newPage();
	const referers = [], later = [];
	context.on('request', (r) => {
		referers.push(r.headers().referer ?? '');
		if (r.url() !== target)
			later.push(r.url());
	});
	await page.goto(target);
	await page.waitForSelector('.welcome:has-text("No runs yet")');
	ok(!page.url().includes('token'), 'the URL opens the page, and the token is gone from the address');
	const [cookie] = await context.cookies();
	equal([cookie.value, cookie.httpOnly, cookie.sameSite], [token, true, 'Strict'],
		'it has become a cookie that no script reads');
	ok(later.length > 0 && ![...referers, ...later].some((text) => text.includes(token)),
		'no later request has it in its address or Referer');
	await page.goto(`${it.url}/upload`);
	await page.waitForSelector('input[type=file]', { state: 'attached' });
	await page.goBack();
	ok(!page.url().includes('token'), 'nor has the history');
	await page.goto(`${it.url}/?token=${'0'.repeat(token.length)}`);
	await page.waitForSelector('.welcome:has-text("No runs yet")');
	ok(!page.url().includes('token'), 'a wrong token is taken away and takes nothing away');
	await context.close();
	const stranger = await tab(browser, `${it.url}/`);
	await stranger.page.waitForSelector(
		'dialog[open]:has-text("the token is in the URL that it printed")');
	ok(true, 'who has no token reads what to do');
	await stranger.context.close();
	await it.stop();
}

/** Where reading is open, nothing is offered that would be refused. */
async function reader(browser) {
	const it = await dashboard('--open-read');
	const { page, wrong, context } = await tab(browser, `${it.url}/upload`);
	await page.waitForSelector('.state.empty:has-text("Your token may not upload")');
	await page.goto(`${it.url}/launch`);
	await page.waitForSelector('.state.empty:has-text("Your token cannot launch experiments")');
	equal(await page.$$('input[type=file], textarea, button:text-is("Run")'), [],
		'a reader is offered neither uploads nor experiments');
	await page.click('.top-tools button:has-text("Log in")');
	await becomes(() => /token=\S+/.test(it.log), true, 'the owner has a token');
	await page.fill('dialog[open] input[type=password]', /token=(\w+)/.exec(it.log)[1]);
	await page.click('dialog[open] button.primary');
	await page.waitForSelector('button:text-is("Run")');
	ok(true, 'with the token they are there');
	equal(wrong, [], 'and nothing was refused on the way');
	await context.close();
	await it.stop();
}

main(async () => {
	mkdirSync(shots, { recursive: true });
	const it = await dashboard(), browser = await launch();
	await upload(it.url, results(RUNS));
	const { page, wrong } = await tab(browser, `${it.url}/`);
	await looks(page, it.url);
	equal(wrong, [], 'nothing left the origin, and nothing went wrong');
	await it.stop();
	await door(browser);
	await printed(browser);
	await reader(browser);
	await browser.close();
});
