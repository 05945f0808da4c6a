// SPDX-License-Identifier: Apache-2.0
// names.ts: names of runs without what all rows of a table share or its columns already show.
//
// A name with key=value parts is split before each key, any other one at "-", "_" and spaces. A part
// is dropped when every row has it, or when its place repeats a column that is shown. Pure.
import type { Cell, Values } from '../../api';

export interface Named {
	id: number;
	name: Cell | undefined;
	/** What kind of benchmark it was, for runs without a name. */
	kind: Cell | undefined;
	values: Values;
}

const NAME_CHARS_MAX = 28;

interface Part { key: string; value: string; text: string }

const KEY = /(?:^|[-,; ])([A-Za-z][\w.]*)=/g;

/** Parameters that people write with letters: TP4, c64. */
const LETTERS: Record<string, string> = {
	tensor_parallel_size: 'TP', pipeline_parallel_size: 'PP', data_parallel_size: 'DP',
	expert_parallel_size: 'EP', max_concurrency: 'c', batch_size: 'batch ', max_num_seqs: 'seqs ',
	max_num_batched_tokens: 'batched ', random_input_len: 'in ', random_output_len: 'out ',
	num_prompts: 'prompts ', block_size: 'block ',
};

const lastWord = (column: string): string => column.slice(column.lastIndexOf('.') + 1);
const isNumber = (text: string): boolean => text !== '' && Number.isFinite(Number(text));

/** "meta-llama/Llama-3.1-8B" as "Llama-3.1-8B": without the path. */
function withoutPath(value: string): string {
	return value.slice(value.replace(/\/+$/, '').lastIndexOf('/') + 1) || value;
}

/** A parameter's value in its usual short form. */
export function shortValue(column: string, value: Cell): string {
	const key = lastWord(column);
	if (typeof value === 'boolean' || value === 'true' || value === 'false') {
		const is = String(value) === 'true', words = key.replace(/_/g, ' ');
		return words.startsWith('enable ') ? `${words.slice(7)} ${is ? 'on' : 'off'}`
			: `${is ? '' : 'no '}${words}`;
	}
	const text = withoutPath(String(value));
	if (key === 'request_rate' && isNumber(text))
		return `${text}/s`;
	if (LETTERS[key])
		return LETTERS[key] + text;
	return isNumber(text) ? `${key.replace(/_/g, ' ')} ${text}` : text;
}

const partsOfName = new Map<string, Part[]>();
const NAMES_KEPT_MAX = 100_000;

function split(name: string): Part[] {
	const known = partsOfName.get(name);
	if (known)
		return known;
	const keys = [...name.matchAll(KEY)], out: Part[] = [];
	const head = keys.length ? name.slice(0, keys[0].index) : name;
	for (const word of head.split(/[-_\s]+/).filter((w) => w !== ''))
		out.push({ key: '', value: word, text: word });
	keys.forEach((k, i) => {
		const value = name.slice(k.index + k[0].length, keys[i + 1]?.index ?? name.length);
		out.push({ key: k[1], value, text: shortValue(k[1], value) });
	});
	if (partsOfName.size > NAMES_KEPT_MAX)
		partsOfName.clear();
	partsOfName.set(name, out);
	return out;
}

/** "b200-192gb" as "b200", unless two values would become equal. */
function withoutMemory(values: Set<string>): Map<string, string> {
	const short = new Map([...values].map((v) => [v, v.replace(/[-_ ]?\d+ ?gi?b$/i, '')]));
	const isSafe = new Set(short.values()).size === short.size && ![...short.values()].includes('');
	return isSafe ? short : new Map([...values].map((v) => [v, v]));
}

const PARTS_LONG = 3;

/** "Llama-3.1-8B-Instruct" as "8B" if all others are "Llama-3.1-...-Instruct", too. */
function withoutCommon(values: Set<string>): Map<string, string> {
	const all = [...values].map((v) => v.split('-')), [first] = all;
	const alike = (at: (parts: string[]) => string | undefined): boolean =>
		all.every((parts) => at(parts) === at(first));
	let head = 0, tail = 0;
	if (all.length > 1 && all.every((parts) => parts.length >= PARTS_LONG)) {
		while (alike((parts) => parts[head]))
			head++;
		while (alike((parts) => parts[parts.length - 1 - tail]))
			tail++;
	}
	const short = all.map((parts) => parts.slice(head, parts.length - tail).join('-'));
	/* A text without letters, such as "8", means nothing by itself. */
	const isSafe = short.every((text) => /[a-z]/i.test(text));
	return new Map([...values].map((v, i) => [v, isSafe ? short[i] : v]));
}

function shortest(values: Set<string>): Map<string, string> {
	const first = withoutCommon(values), last = withoutMemory(new Set(first.values()));
	return new Map([...values].map((v) => [v, last.get(first.get(v) ?? v) ?? v]));
}

/** Whether a part repeats a column that is shown: "32" or "c32" where the concurrency is 32. */
function repeats(part: Part, shown: string[], values: Values): boolean {
	return shown.some((column) => {
		const v = values[column];
		if (v === undefined || v === null)
			return false;
		if (part.key)
			return String(v) === part.value && (typeof v === 'string'
				|| lastWord(column) === lastWord(part.key));
		const digits = /^[a-z]{0,5}(\d+(?:\.\d+)?)$/i.exec(part.value);
		return typeof v === 'number' ? digits !== null && String(v) === digits[1]
			: String(v).toLowerCase() === part.value.toLowerCase();
	});
}

/** Head and tail with "…" between them, cut between parts only. */
function fitted(words: string[], most: number): string {
	const whole = words.join(' ');
	if (whole.length <= most || words.length < 3)
		return whole;
	const tail = words[words.length - 1], head: string[] = [];
	for (const word of words.slice(0, -1)) {
		if ([...head, word, '…', tail].join(' ').length > most)
			break;
		head.push(word);
	}
	return [...(head.length ? head : words.slice(0, 1)), '…', tail].join(' ');
}

const place = (parts: Part[], i: number): string => parts[i].key || `${parts.length}/${i}`;

/** Columns of parameters that are shown and differ among these rows, in short form. */
function fromColumns(row: Named, differing: string[]): string[] {
	return differing.flatMap((c) => {
		const v = row.values[c];
		return v === undefined || v === null || v === '' ? [] : [shortValue(c, v)];
	});
}

/** A name for each row; shown: the columns of the table that hold parameters; most: characters. */
export function shortNames(rows: Named[], shown: string[], most = NAME_CHARS_MAX): Map<number, string> {
	const all = rows.map((r) => (typeof r.name === 'string' ? split(r.name) : []));
	const named = all.filter((p) => p.length > 0).length;
	const rowsWith = new Map<string, number>(), repeated = new Map<string, number>();
	const shape = new Map<string, number>(), valuesAt = new Map<string, Set<string>>();
	const add = (map: Map<string, number>, key: string): void =>
		void map.set(key, (map.get(key) ?? 0) + 1);
	all.forEach((parts, n) => {
		new Set(parts.map((p) => `${p.key}=${p.value}`)).forEach((text) => add(rowsWith, text));
		parts.forEach((p, i) => {
			const at = place(parts, i);
			add(shape, at);
			valuesAt.set(at, (valuesAt.get(at) ?? new Set()).add(p.text));
			if (repeats(p, shown, rows[n].values))
				add(repeated, at);
		});
	});
	const isShared = (p: Part): boolean => named > 1 && rowsWith.get(`${p.key}=${p.value}`) === named;
	const isRepeated = (at: string): boolean => repeated.get(at) === shape.get(at);
	const short = new Map([...valuesAt].map(([at, values]) => [at, shortest(values)]));
	const differing = shown.filter((c) => new Set(rows.map((r) => r.values[c] ?? null)).size > 1);
	return new Map(rows.map((row, n) => {
		const parts = all[n];
		if (!parts.length)
			return [row.id, `${typeof row.kind === 'string' && row.kind || 'run'} ${row.id}`];
		const word = (i: number): string =>
			short.get(place(parts, i))?.get(parts[i].text) ?? parts[i].text;
		const own = parts.map((_, i) => i).filter((i) => !isShared(parts[i]));
		const kept = own.filter((i) => !isRepeated(place(parts, i)));
		if (kept.length && kept[0] > 0 && !parts[kept[0]].key && /^\d/.test(parts[kept[0]].value))
			kept.unshift(kept[0] - 1);
		if (kept.length)
			return [row.id, fitted(kept.map(word), most)];
		const keyed = own.filter((i) => parts[i].key).map(word);
		const words = keyed.length ? keyed : fromColumns(row, differing);
		return [row.id, fitted(words.length ? words : parts.map((_, i) => word(i)), most)];
	}));
}
