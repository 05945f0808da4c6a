// SPDX-License-Identifier: Apache-2.0
// tap.mjs: cases as TAP, and the programs a test starts and stops.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { root } from './browser.mjs';

export const program = resolve(process.env.PROFLLM ?? join(root, 'build/profllm'));
export const output = resolve(root, process.env.O ?? 'build');
export const scratch = mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), 'web-'));

let cases = 0, failed = 0;
const children = new Set();

export function ok(is, name, ...why) {
	console.log(`${is ? 'ok' : 'not ok'} ${++cases} - ${name}`);
	if (!is) {
		failed++;
		for (const line of why.map(String).join('\n').split('\n'))
			console.error(`# ${line}`);
	}
	return is;
}

export function equal(got, want, name) {
	return ok(isDeepStrictEqual(got, want), name, `got  ${JSON.stringify(got)}`,
		`want ${JSON.stringify(want)}`);
}

/** Waits until what is read from the page is as wanted; then it is one case. */
export async function becomes(read_, want, name) {
	const text = JSON.stringify(want);
	let got;
	for (let k = 0; k < 1200; k++) {
		got = await read_();
		if (JSON.stringify(got) === text)
			return equal(got, want, name);
		await new Promise((done) => setTimeout(done, 25));
	}
	return ok(false, name, `got  ${JSON.stringify(got)}`, `want ${text}`);
}

/** Runs it to its end: { status, out, err }. */
export function run(command, args, options = {}) {
	return new Promise((then) => {
		const child = spawn(command, args,
			{ cwd: scratch, stdio: ['ignore', 'pipe', 'pipe'], ...options });
		const result = { status: null, out: '', err: '' };
		children.add(child);
		child.stdout.on('data', (d) => { result.out += d; });
		child.stderr.on('data', (d) => { result.err += d; });
		child.on('close', (status) => {
			children.delete(child);
			then({ ...result, status });
		});
	});
}

/** A simulator on a free port: its URL. */
export async function sim(...args) {
	const file = join(scratch, `port-${children.size}`);
	const child = spawn(program, ['sim', '--port', '0', '--port-file', file, ...args],
		{ stdio: 'ignore' });
	children.add(child);
	for (let k = 0; k < 3000; k++) {
		let port = '';
		try {
			port = readFileSync(file, 'utf8').trim();
		} catch {
			// not yet there
		}
		if (port)
			return `http://127.0.0.1:${port}`;
		await new Promise((done) => setTimeout(done, 10));
	}
	throw new Error('the simulator did not start');
}

/** The cases, one after the other; whatever happens, nothing is left running. */
export async function main(cases_) {
	try {
		await cases_();
	} catch (e) {
		ok(false, 'the test runs to its end', e.stack ?? e);
	} finally {
		await Promise.all([...children].map((child) => child.exitCode ?? child.signalCode
			?? new Promise((then) => child.on('exit', then).kill('SIGKILL'))));
		// What a child had started may still write.
		rmSync(scratch, { recursive: true, force: true, maxRetries: 20 });
	}
	console.log(`1..${cases}`);
	process.exit(failed ? 1 : 0);
}
