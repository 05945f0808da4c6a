// SPDX-License-Identifier: Apache-2.0
//
// ask.mjs - our tokenizer's answers to a list of requests, by way of driver.c.
import { spawn } from 'node:child_process';

function frame(request) {
	const body = request.ids ? Buffer.from(Uint32Array.from(request.ids).buffer)
		: Buffer.from(request.text, 'utf8');
	const head = Buffer.alloc(8);

	head.writeUInt32LE(request.ids ? 1 : 0, 0);
	head.writeUInt32LE(body.length, 4);
	return Buffer.concat([head, body]);
}

async function run(driver, path, list) {
	const child = spawn(driver, [path], { stdio: ['pipe', 'pipe', 'inherit'] });
	const chunks = [];

	child.stdout.on('data', chunk => chunks.push(chunk));
	child.stdin.on('error', () => {}); // it says itself why it ended
	child.stdin.end(Buffer.concat(list.map(frame)));
	await new Promise((resolve, reject) => child.on('close', code =>
		code ? reject(new Error(`${path}: driver ended with status ${code}`)) : resolve()));
	return Buffer.concat(chunks);
}

// For { ids } the texts { kept, skipped }, with and without special tokens; for { text } also
// its ids { plain, full }, whose latter the texts belong to.
export async function ask(driver, path, list) {
	const bytes = await run(driver, path, list);
	let at = 0;
	const block = unit => {
		const n = bytes.readUInt32LE(at) * unit;
		at += 4 + n;
		return bytes.subarray(at - n, at);
	};
	const ids = () => {
		const raw = block(4);
		return Array.from({ length: raw.length / 4 }, (_, i) => raw.readUInt32LE(i * 4));
	};
	const text = () => block(1).toString('utf8');

	return list.map(request => ({
		...request.ids ? {} : { plain: ids(), full: ids() }, kept: text(), skipped: text() }));
}

// Compares the members that both have; prints the first differences and returns their number.
export function compare(name, list, ours, want) {
	let differences = 0;

	list.forEach((request, i) => {
		for (const key of Object.keys(want[i])) {
			if (JSON.stringify(ours[i][key]) === JSON.stringify(want[i][key]))
				continue;
			if (differences++ < 10)
				console.log(`${name}: ${key} differs`, JSON.stringify({
					of: request.text ?? request.ids, ours: ours[i][key], reference: want[i][key] }).slice(0, 2000));
		}
	});
	console.log(`${name}: ${list.length} requests, ${differences} differences`);
	return differences;
}
