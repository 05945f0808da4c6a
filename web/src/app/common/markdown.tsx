// SPDX-License-Identifier: Apache-2.0
// markdown.tsx: the part of Markdown that a note on a board needs: headings, lists, code, bold,
// italics and links. HTML is text like any other: no part of a note is ever run.
import type { ReactNode } from 'react';

export type Inline = string | { kind: 'strong' | 'em' | 'code'; text: Inline[] }
	| { kind: 'link'; text: Inline[]; to: string };
export type Part = { kind: 'heading'; level: number; text: Inline[] } | { kind: 'paragraph'; text: Inline[] }
	| { kind: 'list'; isOrdered: boolean; items: Inline[][] } | { kind: 'code'; text: string };

/** Addresses on this server and on the web; nothing that a browser would run. */
const isSafe = (to: string): boolean => /^(https?:\/\/|mailto:|\/(?!\/)|#)/i.test(to);

const RULES: [RegExp, (found: RegExpExecArray) => Inline][] = [
	[/^\\([\\`*_[\]()#-])/, (m) => m[1]],
	[/^`([^`]+)`/, (m) => ({ kind: 'code', text: [m[1]] })],
	[/^\*\*(?=\S)(.+?)\*\*(?!\*)/, (m) => ({ kind: 'strong', text: inlines(m[1]) })],
	[/^\*(?=\S)([^*]+?)\*/, (m) => ({ kind: 'em', text: inlines(m[1]) })],
	[/^_(?=\S)([^_]+?)_(?!\w)/, (m) => ({ kind: 'em', text: inlines(m[1]) })],
	[/^\[([^\]]+)\]\(([^()\s]+)\)/, (m) => (isSafe(m[2])
		? { kind: 'link', text: inlines(m[1]), to: m[2] } : m[0])],
];

export function inlines(text: string): Inline[] {
	const out: Inline[] = [];
	const put = (piece: Inline): void => {
		const last = out.length - 1;
		if (typeof piece === 'string' && typeof out[last] === 'string')
			out[last] = `${out[last]}${piece}`;
		else
			out.push(piece);
	};
	for (let at = 0; at < text.length;) {
		const rest = text.slice(at), isInWord = rest[0] === '_' && /\w/.test(text[at - 1] ?? '');
		const rule = isInWord ? undefined : RULES.find(([pattern]) => pattern.test(rest));
		const found = rule?.[0].exec(rest);
		put(rule && found ? rule[1](found) : rest[0]);
		at += found ? found[0].length : 1;
	}
	return out;
}

const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;

export function partsOf(text: string): Part[] {
	const out: Part[] = [], lines = text.split(/\r?\n/);
	for (let i = 0; i < lines.length; i++) {
		const line = lines[i], heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line), item = ITEM.exec(line);
		if (line.startsWith('```')) {
			const code: string[] = [];
			while (++i < lines.length && !lines[i].startsWith('```'))
				code.push(lines[i]);
			out.push({ kind: 'code', text: code.join('\n') });
		} else if (heading)
			out.push({ kind: 'heading', level: heading[1].length, text: inlines(heading[2]) });
		else if (item) {
			const items: string[] = [], isOrdered = item[1] !== undefined;
			for (; i < lines.length; i++) {
				const next = ITEM.exec(lines[i]);
				if (next && (next[1] !== undefined) === isOrdered)
					items.push(next[2]);
				else if (!next && /^\s+\S/.test(lines[i]))
					items[items.length - 1] += ` ${lines[i].trim()}`;
				else
					break;
			}
			i--;
			out.push({ kind: 'list', isOrdered, items: items.map(inlines) });
		} else if (line.trim() !== '') {
			const words = [line.trim()];
			while (i + 1 < lines.length && lines[i + 1].trim() !== '' && !ITEM.test(lines[i + 1])
				&& !/^(#{1,6}\s|```)/.test(lines[i + 1]))
				words.push(lines[++i].trim());
			out.push({ kind: 'paragraph', text: inlines(words.join(' ')) });
		}
	}
	return out;
}

function drawn(list: Inline[]): ReactNode[] {
	return list.map((piece, i) => {
		if (typeof piece === 'string')
			return piece;
		const text = drawn(piece.text);
		switch (piece.kind) {
		case 'strong': return <strong key={i}>{text}</strong>;
		case 'em': return <em key={i}>{text}</em>;
		case 'code': return <code key={i}>{text}</code>;
		case 'link': return <a key={i} href={piece.to} rel="noreferrer noopener">{text}</a>;
		}
	});
}

/** Headings begin one level below the block's. */
function Drawn({ part }: { part: Part }): ReactNode {
	switch (part.kind) {
	case 'heading':
		return part.level === 1 ? <h3>{drawn(part.text)}</h3> : <h4>{drawn(part.text)}</h4>;
	case 'paragraph': return <p>{drawn(part.text)}</p>;
	case 'code': return <pre tabIndex={0}>{part.text}</pre>;
	case 'list': {
		const items = part.items.map((text, i) => <li key={i}>{drawn(text)}</li>);
		return part.isOrdered ? <ol>{items}</ol> : <ul>{items}</ul>;
	}
	}
}

export function Markdown({ text }: { text: string }): ReactNode {
	return <div className="markdown">{partsOf(text).map((part, i) => <Drawn key={i} part={part} />)}</div>;
}
