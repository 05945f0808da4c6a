// SPDX-License-Identifier: Apache-2.0
// find.ts: targets of the search besides the pages of the navigation, and matching of names.

export interface Hit {
	name: string;
	note: string;
	to: string;
}

/** Views of pages that have a name of their own. */
export const PLACES: { name: string; to: string }[] = [
	{ name: 'Charts: any two metrics', to: '/charts?view=any' },
	{ name: 'Charts: distribution', to: '/charts?view=distribution' },
	{ name: 'Charts: parallel coordinates', to: '/charts?view=parallel' },
	{ name: 'Plan: calculator', to: '/plan?tab=calculator' },
	{ name: 'Plan: scaling', to: '/plan?tab=scaling' },
	{ name: 'Plan: impact', to: '/plan?tab=impact' },
	{ name: 'Plan: prices', to: '/plan?tab=prices' },
	{ name: 'Runs with a trace', to: '/runs?has=trace' },
];

const plain = (text: string): string => text.toLowerCase().replace(/[_.\-/]/g, ' ');

/** Hits whose name has every word; one that begins with the first word comes first. */
export function found(list: Hit[], word: string): Hit[] {
	const words = plain(word).split(/\s+/).filter((w) => w !== '');
	const begins = (h: Hit): number => Number(words.length > 0 && plain(h.name).startsWith(words[0]));
	return list.filter((h) => words.every((w) => plain(`${h.name} ${h.note}`).includes(w)))
		.sort((a, b) => begins(b) - begins(a));
}
