// SPDX-License-Identifier: Apache-2.0
import { deflateSync } from 'node:zlib';
import { base64, check, inflate, Numbers } from '../../../web/src/lib/column';

function leb128(values: bigint[]): Uint8Array {
	const out: number[] = [];
	for (let v of values) {
		for (; v >= 128n; v >>= 7n)
			out.push(Number(v & 127n) | 128);
		out.push(Number(v));
	}
	return Uint8Array.from(out);
}

describe('columns', () => {
	it('reads base64 with every kind of end', () => {
		for (let n = 0; n < 70; n++) {
			const bytes = Uint8Array.from({ length: n }, (_, k) => (k * 89 + n * 7) & 255);
			expect([...base64(Buffer.from(bytes).toString('base64'))]).toEqual([...bytes]);
		}
	});

	it('reads numbers of every length', () => {
		const values = [0n, 1n, 127n, 128n, 16383n, 16384n, 4294967295n, 4294967296n, 2n ** 53n - 1n];
		const numbers = new Numbers(leb128(values));
		for (const v of values)
			expect(BigInt(numbers.next())).toBe(v);
		expect(numbers.isAtEnd).toBe(true);
	});

	it('reads signed numbers', () => {
		const signed = [0, -1, 1, -2, 2, 2147483648, -2147483649, 4503599627370495];
		const numbers = new Numbers(leb128(signed.map((v) =>
			v < 0 ? BigInt(-v) * 2n - 1n : BigInt(v) * 2n)));
		expect(signed.map(() => numbers.signed())).toEqual(signed);
	});

	it('tells what is cut off and what is too long', () => {
		const long = new Numbers(leb128([1n, 2n])), cut = new Numbers(leb128([300n]).slice(0, 1));
		long.next();
		expect(() => check(long, 'gaps')).toThrow('the data called gaps are too long');
		cut.next();
		expect(() => check(cut, 'gaps')).toThrow('the data called gaps are cut off');
	});

	it('unpacks what zlib packed', async () => {
		const bytes = Uint8Array.from({ length: 200000 }, (_, k) => (k * k) & 255);
		const back = await inflate(new Uint8Array(deflateSync(bytes)));
		expect(Buffer.compare(back, bytes)).toBe(0);
		await expect(inflate(new Uint8Array([1, 2, 3]))).rejects.toThrow();
	});
});
