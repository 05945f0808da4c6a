// SPDX-License-Identifier: Apache-2.0
// column.ts: columns of whole numbers as src/out/page/html.c writes them: LEB128 bytes, packed with
// zlib, in base64.

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const VALUE = new Uint8Array(128);
for (let i = 0; i < 64; i++)
	VALUE[DIGITS.charCodeAt(i)] = i;

export function base64(text: string): Uint8Array<ArrayBuffer> {
	let n = text.length;
	while (n > 0 && text.charCodeAt(n - 1) === 61)
		n--;
	const out = new Uint8Array(Math.floor((n * 3) / 4));
	let at = 0, i = 0;
	for (; i + 4 <= n; i += 4) {
		const bits = (VALUE[text.charCodeAt(i)] << 18) | (VALUE[text.charCodeAt(i + 1)] << 12)
			| (VALUE[text.charCodeAt(i + 2)] << 6) | VALUE[text.charCodeAt(i + 3)];
		out[at++] = bits >> 16;
		out[at++] = bits >> 8;
		out[at++] = bits;
	}
	if (n - i >= 2)
		out[at++] = (VALUE[text.charCodeAt(i)] << 2) | (VALUE[text.charCodeAt(i + 1)] >> 4);
	if (n - i === 3)
		out[at++] = (VALUE[text.charCodeAt(i + 1)] << 4) | (VALUE[text.charCodeAt(i + 2)] >> 2);
	return out;
}

export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads numbers one after another. Below 2^53: times of a run are. */
export class Numbers {
	private at = 0;
	constructor(private readonly bytes: Uint8Array) {}

	next(): number {
		const bytes = this.bytes;
		let byte = bytes[this.at++], v = byte & 127, scale = 128;
		while (byte > 127) {
			byte = bytes[this.at++];
			v += (byte & 127) * scale;
			scale *= 128;
		}
		return v;
	}

	/** 0, -1, 1, -2... are written as 0, 1, 2, 3... */
	signed(): number {
		const v = this.next();
		return v % 2 ? -(v + 1) / 2 : v / 2;
	}

	get isAtEnd(): boolean {
		return this.at === this.bytes.length;
	}

	get isCut(): boolean {
		return this.at > this.bytes.length;
	}
}

/** The column of this page with that id; its text is dropped, so that memory holds it once. */
export async function column(id: string): Promise<Numbers> {
	const element = document.getElementById(id);
	if (!element)
		throw new Error(`the page has no data called ${id}`);
	const text = element.textContent ?? '';
	element.remove();
	return new Numbers(await inflate(base64(text)));
}

export async function columnOf(id: string, n: number): Promise<Float64Array> {
	const from = await column(id), out = new Float64Array(n);
	for (let i = 0; i < n; i++)
		out[i] = from.next();
	check(from, id);
	return out;
}

export function check(numbers: Numbers, id: string): void {
	if (!numbers.isAtEnd)
		throw new Error(`the data called ${id} are ${numbers.isCut ? 'cut off' : 'too long'}`);
}

export function json<T>(id: string): T {
	const text = document.getElementById(id)?.textContent;
	if (!text)
		throw new Error(`the page has no data called ${id}`);
	return JSON.parse(text) as T;
}
