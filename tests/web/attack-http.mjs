// SPDX-License-Identifier: Apache-2.0
// attack-http.mjs: one connection as a hostile client needs it: any bytes out, answers of HTTP/1.1 in.
import { connect } from 'node:net';

const ANSWER_BYTES_MAX = 512 << 20;
const HEAD_BYTES_MAX = 1 << 16;
const none = Buffer.alloc(0);

export class Connection {
	constructor(port) {
		this.chunks = [];
		this.isOver = false;
		this.wake = () => {};
		this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
		this.socket.on('data', (d) => {
			this.chunks.push(d);
			this.wake();
		});
		const over = () => {
			this.isOver = true;
			this.wake();
		};
		this.socket.on('error', over);
		this.socket.on('close', over);
		this.socket.on('end', over);
	}

	send(bytes) {
		if (!this.socket.destroyed && this.socket.writable)
			this.socket.write(bytes);
	}

	close() {
		this.isOver = true;
		this.socket.destroy();
	}

	/** Waits for bytes, the end, or the time (ms since 1970): false when there is nothing new. */
	async more(until) {
		const had = this.chunks.length;
		if (this.isOver || Date.now() >= until)
			return false;
		await new Promise((then) => {
			const timer = setTimeout(then, Math.max(1, until - Date.now()));
			this.wake = () => {
				clearTimeout(timer);
				then();
			};
		});
		this.wake = () => {};
		return this.chunks.length > had;
	}

	/** What has come, in one piece. */
	bytes() {
		if (this.chunks.length > 1)
			this.chunks = [Buffer.concat(this.chunks)];
		return this.chunks[0] ?? none;
	}

	take(n) {
		const all = this.bytes(), first = all.subarray(0, n);
		this.chunks = all.length > n ? [all.subarray(n)] : [];
		return first;
	}

	async line(until) {
		for (;;) {
			const at = this.bytes().indexOf('\r\n');
			if (at >= 0)
				return this.take(at + 2).subarray(0, at).toString('latin1');
			if (this.bytes().length > HEAD_BYTES_MAX || !await this.more(until))
				return null;
		}
	}

	async exactly(n, until) {
		let have = this.bytes().length;
		while (have < n) {
			if (!await this.more(until))
				return null;
			have = this.chunks.reduce((sum, c) => sum + c.length, 0);
		}
		return this.take(n);
	}

	async chunked(until) {
		const parts = [];
		for (let sum = 0; sum < ANSWER_BYTES_MAX;) {
			const size = parseInt(await this.line(until) ?? 'none', 16);
			if (!(size >= 0))
				return null;
			const part = await this.exactly(size, until);
			if (part === null || await this.line(until) === null)
				return null;
			if (size === 0)
				return Buffer.concat(parts);
			parts.push(part);
			sum += size;
		}
		return null;
	}

	async untilEnd(until) {
		while (await this.more(until))
			continue;
		return this.isOver ? this.take(this.bytes().length) : null;
	}

	/**
	 * The next answer: { status, headers, body }. { why }: there is none, or no whole one: 'closed',
	 * 'late' or 'cut'. isHead: it has no body; isStream: only its head is
	 * wanted when it is a success.
	 */
	async answer({ isHead = false, isStream = false, until }) {
		let status, headers;
		do {
			const first = await this.line(until);
			if (first === null)
				return { why: this.isOver ? 'closed' : 'late' };
			status = Number(/^HTTP\/1\.[01] (\d{3})( |$)/.exec(first)?.[1] ?? 0);
			if (!status)
				return { why: `no status line: ${first.slice(0, 200)}` };
			headers = {};
			for (let line; (line = await this.line(until)) !== '';) {
				if (line === null)
					return { why: this.isOver ? 'cut' : 'late' };
				const colon = line.indexOf(':');
				const name = line.slice(0, colon).toLowerCase();
				const value = line.slice(colon + 1).trim();
				headers[name] = headers[name] === undefined ? value
					: `${headers[name]}, ${value}`;
			}
		} while (status < 200);
		let body = none;
		if (!(isStream && status === 200) && !isHead && status !== 204 && status !== 304) {
			if (/chunked/i.test(headers['transfer-encoding'] ?? ''))
				body = await this.chunked(until);
			else if (headers['content-length'] !== undefined)
				body = await this.exactly(Number(headers['content-length']), until);
			else
				body = await this.untilEnd(until);
		}
		if (body === null)
			return { why: this.isOver ? 'cut' : 'late' };
		if (/close/i.test(headers.connection ?? ''))
			this.isLast = true;
		return { status, headers, body };
	}
}
