// SPDX-License-Identifier: Apache-2.0
// block.tsx: a block of a board with its caption, its menu and its age.
import { useEffect, useId, useMemo, useRef, useState, type FormEvent, type ReactNode } from 'react';
import { BlockContext, type BlockState } from '../../common/block';
import { queryOn, type Block, type BoardBody } from '../../common/saved';
import { Icon } from '../../parts/icon';
import { Menu } from '../../parts/menu';
import { Boundary } from '../../parts/states';
import { toast } from '../../parts/toast';
import { when } from '../../show';
import { AddressContext, heldAddress } from '../../url';
import { Content, Newest, Source } from './parts';
import { thinned } from './thin';

export interface Edit {
	change: (next: Block, said?: string) => void;
	move: (by: -1 | 1) => void;
	remove: () => void;
}

interface Props { body: BoardBody; block: Block; at: number; edit: Edit | null }

const hasData = (block: Block): boolean => ['chart', 'table', 'number'].includes(block.kind);
/** Blocks with many columns are wide unless made narrow. */
export const isWide = ({ kind, path, query = '', is_wide: wide = kind === 'heading' || kind === 'text' || kind === 'table'
	|| path === '/compare' || query.includes('view=parallel') }: Block): boolean => wide;

/** Edits its caption or text; Escape discards the change. */
function Editor({ block, onDone }: { block: Block; onDone: (next: Block | null) => void }): ReactNode {
	const isText = block.kind === 'text';
	const [typed, setTyped] = useState((isText ? block.text : block.caption) ?? '');
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		onDone({ ...block, [isText ? 'text' : 'caption']: typed });
	};
	return (
		<form className="block-editor" onSubmit={submit} onKeyDown={(event) => {
			if (event.key === 'Escape')
				onDone(null);
		}}>
			{isText ? <textarea value={typed} rows={8} autoFocus aria-label="Text, as Markdown"
				placeholder="**bold**, *italics*, `code`, [link](https://…), # heading, - list"
				onChange={(e) => setTyped(e.target.value)} />
				: <input type="text" value={typed} autoFocus maxLength={300}
					aria-label={block.kind === 'heading' ? 'Heading' : 'Caption'}
					onChange={(e) => setTyped(e.target.value)} />}
			<p className="row">
				<button type="submit" className="primary small">Save</button>
				<button type="button" className="quiet small" onClick={() => onDone(null)}>Cancel</button>
			</p>
		</form>
	);
}

interface ToolsProps { block: Block; edit: Edit; answers: () => Record<string, unknown>; onEdit: () => void }

function Tools({ block, edit, answers, onEdit }: ToolsProps): ReactNode {
	const freeze = (): void => {
		const primary = new URLSearchParams(block.query).get('m') ?? '';
		const answer = Object.fromEntries(Object.entries(answers())
			.map(([route, given]) => [route, thinned(route, given, primary)]));
		if (!Object.keys(answer).length)
			toast('The block has no answer yet. Wait until it is drawn.', 'bad');
		else
			edit.change({ ...block, frozen: { at: Math.floor(Date.now() / 1000), answer } }, 'Frozen');
	};
	const thaw = (): void => {
		const { frozen: _, ...rest } = block;
		edit.change(rest, 'The block follows the store again');
	};
	const items: [string, () => void][] = [
		[block.kind === 'text' ? 'Edit text' : block.kind === 'heading' ? 'Edit heading' : 'Edit caption', onEdit],
		['Move up', () => edit.move(-1)],
		['Move down', () => edit.move(1)],
		...(block.kind === 'heading' ? [] : [[isWide(block) ? 'Half width' : 'Full width',
			() => edit.change({ ...block, is_wide: !isWide(block) })] as [string, () => void]]),
		...(hasData(block) ? [
			[block.frozen ? 'Unfreeze' : 'Freeze', block.frozen ? thaw : freeze],
			[block.is_own ? 'Use the filter of the board' : 'Use its own filter',
				() => edit.change({ ...block, is_own: !block.is_own })],
		] as [string, () => void][] : []),
		['Remove', edit.remove],
	];
	return (
		<Menu label={`Block: ${block.caption ?? block.kind}`} icon="more" isBare look="small quiet" align="end"
			title="Change this block">
			{(close) => items.map(([label, act]) => (
				<button key={label} type="button" className="menu-item" onClick={() => {
					close();
					act();
				}}>{label}</button>
			))}
		</Menu>
	);
}

export function BlockCard({ body, block, at, edit }: Props): ReactNode {
	const [isEditing, setEditing] = useState(false);
	const id = useId(), kept = useRef<Record<string, unknown>>({});
	const query = queryOn(body, block), { frozen } = block;
	const address = useMemo(() => heldAddress(block.path ?? '/runs', query), [block.path, query]);
	const state = useMemo((): BlockState => ({ id: `${id} ${frozen?.at ?? ''} ${query}`,
		frozen: frozen?.answer ?? null, onAnswer: (route, answer) => {
			kept.current[route] = answer;
		} }), [id, frozen, query]);
	useEffect(() => () => {
		kept.current = {};
	}, [state]);
	const heading = block.kind === 'heading', name = block.caption || (block.kind === 'text' ? 'Text' : 'Block');
	const done = (next: Block | null): void => {
		setEditing(false);
		if (next)
			edit?.change(next);
	};
	return (
		<article className={`block ${block.kind} ${isWide(block) ? 'wide' : ''} ${heading ? '' : 'card'}`}
			aria-label={name} data-block={at}>
			<header className="block-head">
				{isEditing && block.kind !== 'text' ? <Editor block={block} onDone={done} />
					: block.caption && <h2>{block.caption}</h2>}
				{edit && !isEditing && <Tools block={block} edit={edit} answers={() => kept.current}
					onEdit={() => setEditing(true)} />}
			</header>
			{isEditing && block.kind === 'text' ? <Editor block={block} onDone={done} /> : (
				<AddressContext.Provider value={address}>
					<BlockContext.Provider value={hasData(block) ? state : null}>
						<Boundary key={query}><Content block={block} /></Boundary>
					</BlockContext.Provider>
					{hasData(block) && (
						<footer className="block-foot dim small-text">
							{frozen ? <span className="frozen"><Icon name="check" />Frozen {when(frozen.at)}: it does not
								follow the store</span> : <span><Newest /></span>}
							<Source block={block} />
						</footer>
					)}
				</AddressContext.Provider>
			)}
		</article>
	);
}
