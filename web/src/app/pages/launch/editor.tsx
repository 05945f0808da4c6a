// SPDX-License-Identifier: Apache-2.0
// editor.tsx: plain text with line numbers; lines with findings are marked, findings lead to them.
import { useEffect, useRef, type KeyboardEvent, type ReactNode } from 'react';
import { Icon } from '../../parts/icon';
import type { Finding } from './types';

interface Props {
	text: string;
	onText: (text: string) => void;
	findings: Finding[];
	/** Begin and end of what is selected when it is given: the next key replaces it. */
	select?: [number, number] | null;
}

/** Where a line begins in a text; lines count from 1. */
export function offsetOf(text: string, line: number, column = 1): number {
	let at = 0;
	for (let k = 1; k < line; k++) {
		const end = text.indexOf('\n', at);
		if (end < 0)
			return text.length;
		at = end + 1;
	}
	return Math.min(text.length, at + Math.max(0, column - 1));
}

export function Editor({ text, onText, findings, select = null }: Props): ReactNode {
	const area = useRef<HTMLTextAreaElement>(null), gutter = useRef<HTMLPreElement>(null);
	useEffect(() => {
		if (!select || !area.current)
			return;
		area.current.focus();
		area.current.setSelectionRange(...select);
	}, [select]);
	const lines = text.split('\n').length;
	const level = new Map(findings.filter((f) => f.line !== null).map((f) =>
		[f.line!, f.level ?? 'error']));
	const go = (f: Finding): void => {
		const at = offsetOf(text, f.line ?? 1, f.column ?? 1);
		area.current?.focus();
		area.current?.setSelectionRange(at, at);
	};
	/** A tab character is an error in YAML; Escape then Tab leaves the field as usual. */
	const key = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
		if (event.key !== 'Enter')
			return;
		const box = event.currentTarget, from = box.selectionStart;
		const line = text.slice(text.lastIndexOf('\n', from - 1) + 1, from);
		const indent = /^ */.exec(line)![0] + (/:\s*$/.test(line) ? '  ' : '');
		event.preventDefault();
		box.setRangeText(`\n${indent}`, from, box.selectionEnd, 'end');
		onText(box.value);
	};
	return (
		<div className="editor">
			<div className="editor-box">
				<pre className="gutter" ref={gutter} aria-hidden="true">
					{Array.from({ length: lines }, (_, i) => (
						<span key={i} className={level.get(i + 1)}>{i + 1}{'\n'}</span>
					))}
				</pre>
				<textarea ref={area} value={text} spellCheck={false} wrap="off" rows={24}
					aria-label="Configuration" aria-invalid={findings.some((f) => f.level !== 'warning')}
					onScroll={(e) => {
						if (gutter.current)
							gutter.current.scrollTop = e.currentTarget.scrollTop;
					}} onKeyDown={key} onChange={(e) => onText(e.target.value)} />
			</div>
			<ul className="findings" aria-live="polite">{findings.map((f, i) => (
				<li key={i} className={f.level === 'warning' ? 'warn-text' : 'bad-text'}>
					<Icon name="warning" />
					{f.line !== null && <button type="button" className="text" onClick={() => go(f)}>
						Line {f.line}</button>}
					<span>{f.text}</span>
				</li>
			))}</ul>
		</div>
	);
}
