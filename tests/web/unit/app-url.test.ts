// SPDX-License-Identifier: Apache-2.0
import {
	choiceCodec, flagCodec, jsonCodec, listCodec, numberCodec, queryText, textCodec, type Codec,
} from '../../../web/src/app/url';
import { idsCodec, pageTarget, SELECTION_MAX } from '../../../web/src/app/state';
import { checkWhole, EVERYTHING, type And } from '../../../web/src/app/filter';

function roundTrip<T>(codec: Codec<T>, value: T): T {
	const text = codec.write(value);
	const query = queryText(new URLSearchParams(text === null ? {} : { key: text }));
	return codec.read(new URLSearchParams(query).get('key'));
}

it('brings every state through an address and back', () => {
	for (const list of [[], ['a'], ['a,b', 'c%2C', 'ü', 'a b+c&d=e#f'], ['x'.repeat(3000)]])
		expect(roundTrip(listCodec(), list)).toEqual(list);
	for (const text of ['', 'a', 'a b', '%', '%41', '+', '&x=1', '"{}"'])
		expect(roundTrip(textCodec(), text)).toBe(text);
	for (const value of [0, -1.5, 1e300, 7])
		expect(roundTrip(numberCodec(7), value)).toBe(value);
	for (const value of [true, false]) {
		expect(roundTrip(flagCodec(true), value)).toBe(value);
		expect(roundTrip(flagCodec(), value)).toBe(value);
	}
	const filter: And = { and: [{ column: 'server.x', in: [1, '1', null, true, 'a&b,c'] },
		{ or: [{ column: '*', text: '100 %' }, { not: { column: 'y', range: { max: 'inf' } } }] }] };
	expect(roundTrip(jsonCodec(checkWhole, EVERYTHING), filter)).toEqual(filter);
});

it('leaves what is at its default out of the address', () => {
	expect(numberCodec(7).write(7)).toBe(null);
	expect(listCodec(['a']).write(['a'])).toBe(null);
	expect(listCodec(['a']).write([])).toBe('');
	expect(listCodec(['a']).read('')).toEqual([]);
	expect(choiceCodec(['a', 'b'], 'a').write('a')).toBe(null);
	expect(jsonCodec(checkWhole, EVERYTHING).write({ and: [] })).toBe(null);
	expect(idsCodec.write([])).toBe(null);
});

it('takes any address without breaking', () => {
	const filter = jsonCodec(checkWhole, EVERYTHING);
	for (const text of ['', '{', '[]', 'null', '1', '{"and":1}', '{"column":"a"}', '{"column":1,"in":[]}',
		'{"column":"a","in":[{}]}', '{"column":"a","range":{"min":"5"}}', '{"not":'.repeat(50)])
		expect(filter.read(text)).toEqual(EVERYTHING);
	expect(numberCodec(3).read('x')).toBe(3);
	expect(numberCodec(3).read('')).toBe(3);
	expect(numberCodec(3).read('Infinity')).toBe(3);
	expect(choiceCodec(['a', 'b'], 'a').read('c')).toBe('a');
	expect(listCodec().read('%E0%A4%A,b')).toEqual(['%E0%A4%A', 'b']);
	expect(idsCodec.read('3,x,-1,3,2.5, 7,1e400')).toEqual([3, 7]);
	expect(idsCodec.read(Array.from({ length: 500 }, (_, i) => i + 1).join(',')))
		.toHaveLength(SELECTION_MAX);
});

it('carries filter and selection, and nothing else, to another page', () => {
	expect(pageTarget('?f=%7B%7D&sel=1,2&sort=a&shown=all', '/compare'))
		.toBe('/compare?f={}&shown=all&sel=1,2');
	expect(pageTarget('', '/charts', { x: 'a b' })).toBe('/charts?x=a+b');
});
