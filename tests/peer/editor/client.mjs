// SPDX-License-Identifier: Apache-2.0
// client.mjs: a language server as an editor talks to it, over stdin and stdout: open a text, take
// the diagnostics that the server publishes for it.
import { spawn } from 'node:child_process';
import { pathToFileURL } from 'node:url';

const WAIT_MS = 60000;

/** command: the server's words; settings: the answer to its workspace/configuration request. */
export function start(command, settings) {
	const child = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
	const waiting = new Map(); // id of a request, or uri of a text, to what takes the answer
	let bytes = Buffer.alloc(0);
	let id = 0;

	const send = (message) => {
		const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));

		child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
		child.stdin.write(body);
	};
	const take = (message) => {
		if (message.method === 'workspace/configuration')
			send({ id: message.id, result: message.params.items.map((i) => settings[i.section] ?? null) });
		else if (message.method === 'textDocument/publishDiagnostics')
			waiting.get(message.params.uri)?.(message.params.diagnostics);
		else if (message.method && message.id !== undefined)
			send({ id: message.id, result: null });
		else if (message.id !== undefined)
			waiting.get(message.id)?.(message.result);
	};
	child.stdout.on('data', (more) => {
		bytes = Buffer.concat([bytes, more]);
		for (;;) {
			const head = bytes.indexOf('\r\n\r\n');
			const length = head < 0 ? 0 : Number(/Content-Length: (\d+)/i.exec(bytes.subarray(0, head))[1]);

			if (head < 0 || bytes.length < head + 4 + length)
				return;
			const message = JSON.parse(bytes.subarray(head + 4, head + 4 + length));

			bytes = bytes.subarray(head + 4 + length);
			take(message);
		}
	});
	const answer = (key, what) => new Promise((done, fail) => {
		const late = setTimeout(() => fail(new Error(`${what}: no answer in ${WAIT_MS} ms`)), WAIT_MS);

		waiting.set(key, (value) => {
			clearTimeout(late);
			waiting.delete(key);
			done(value);
		});
	});
	const request = (method, params) => {
		send({ id: ++id, method, params });
		return answer(id, method);
	};
	return {
		request,
		async open(folder) {
			await request('initialize', { processId: process.pid, rootUri: pathToFileURL(folder).href,
				capabilities: { workspace: { configuration: true } } });
			send({ method: 'initialized', params: {} });
			send({ method: 'workspace/didChangeConfiguration', params: { settings } });
		},
		/** What the server finds in a text; path ends as the editor's file would. */
		diagnostics(path, languageId, text) {
			const uri = pathToFileURL(path).href;

			send({ method: 'textDocument/didOpen', params: { textDocument: {
				uri, languageId, version: 1, text } } });
			return answer(uri, path);
		},
		/** Labels of what it offers at a place of a text that was opened. */
		async completions(path, line, character) {
			const found = await request('textDocument/completion', {
				textDocument: { uri: pathToFileURL(path).href }, position: { line, character } });

			return (found.items ?? found).map((item) => item.label);
		},
		async hover(path, line, character) {
			const found = await request('textDocument/hover', {
				textDocument: { uri: pathToFileURL(path).href }, position: { line, character } });

			return found?.contents?.value ?? '';
		},
		stop() {
			child.kill();
		},
	};
}
