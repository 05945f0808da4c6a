// SPDX-License-Identifier: Apache-2.0
import {
	brushCodec, merged, others, rangeOf, span, valuesOf, without,
} from '../../../web/src/app/pages/charts/brush';
import { both } from '../../../web/src/app/common/routes';
import { EVERYTHING, type And } from '../../../web/src/app/filter';

const marked = rangeOf(rangeOf(EVERYTHING, 'x', 5, 1), 'y', 0.1234567, 2);

it('marks a range whichever way it was drawn', () => {
	expect(span(marked, 'x')).toEqual([1, 5]);
	expect(span(marked, 'z')).toBeNull();
	expect(span(rangeOf(marked, 'x', 2, 3), 'x')).toEqual([2, 3]);
});

it('leaves a drawing what is beside its own mark', () => {
	expect(others(marked, ['x'])).toEqual([marked.and[1]]);
	expect(without(marked, ['x', 'y'])).toEqual(EVERYTHING);
	expect(both(EVERYTHING, [])).toBeNull();
	expect(both(EVERYTHING, others(marked, ['y']))).toEqual({ and: [marked.and[0]] });
});

it('takes values of a column, and none of them as no mark', () => {
	const one = valuesOf(marked, 'm', ['a', null]);
	expect(one.and[2]).toEqual({ column: 'm', in: ['a', null] });
	expect(valuesOf(one, 'm', [])).toEqual(marked);
});

it('becomes part of a filter without losing what that has', () => {
	const filter: And = { and: [{ column: 'x', in: [3] }, { or: [{ column: '*', text: 'a' }] }] };
	const all = merged(filter, marked);
	expect(all.and.slice(0, 2)).toEqual(filter.and);
	expect(all.and).toContainEqual({ and: [marked.and[0]] });
	expect(all.and).toContainEqual(marked.and[1]);
	expect(merged(EVERYTHING, marked)).toEqual(marked);
});

it('lives in the address', () => {
	expect(brushCodec.read(brushCodec.write(marked))).toEqual(marked);
	expect(brushCodec.write(EVERYTHING)).toBeNull();
	expect(brushCodec.read('{"and":[{"column":1}]}')).toEqual(EVERYTHING);
});
