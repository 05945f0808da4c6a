// SPDX-License-Identifier: Apache-2.0
// menu.tsx: the forms in which every chart can be saved.
import { useState, type ReactNode } from 'react';
import type { EChartsCoreOption } from 'echarts/core';
import { BoardDialog, BoardItems, useBlockOf } from '../common/board-menu';
import { addressOf } from '../common/saved';
import { Menu } from '../parts/menu';
import { toast, toastError } from '../parts/toast';
import { useCanChange } from '../query';
import type { Size } from './axis';
import { csvText, fileName, pngOf, save, svgOf, type LegendItem, type Picture, type Table } from './export';
import { readInk, type Ink } from './ink';

export interface Saved {
	title?: string;
	notes?: string[];
	legend?: () => LegendItem[];
	/** The points: names of the columns first. */
	table?: () => Table;
	/** Parameters that the address leaves out because they are the default: a block names them. */
	params?: Record<string, string>;
}

interface Props {
	title: string;
	saved: Saved | undefined;
	size: Size;
	make: (ink: Ink, size: Size) => EChartsCoreOption;
}

export function ChartMenu({ title, saved, size, make }: Props): ReactNode {
	const name = saved?.title ?? title;
	const canChange = useCanChange();
	const block = useBlockOf({ kind: 'chart', caption: name }, saved?.params);
	const [isAsking, setAsking] = useState(false);
	const picture = (): Picture => {
		const ink = readInk();
		return { title: name, notes: saved?.notes ?? [], legend: saved?.legend?.() ?? [], size, ink,
			option: make(ink, size) };
	};
	const table = saved?.table;
	const items: [string, () => Promise<void>][] = [
		['PNG', async () => save(await pngOf(picture()), fileName(name, 'png'))],
		['SVG', async () => save(await svgOf(picture()), fileName(name, 'svg'))],
		...(table ? [['CSV of the points', async () => save(new Blob([csvText(table())],
			{ type: 'text/csv' }), fileName(name, 'csv'))] as [string, () => Promise<void>]] : []),
		['Copy link', async () => {
			await navigator.clipboard.writeText(location.origin + addressOf(block.here));
			toast('Link copied');
		}],
	];
	return (
		<div className="chart-menu">
			<Menu label="Save this chart" icon="more" isBare look="small" align="end"
				title="Save or share this chart">
				{(close) => <>
					{items.map(([text, act]) => (
						<button key={text} type="button" className="menu-item" onClick={() => {
							close();
							act().catch(toastError);
						}}>{text}</button>
					))}
					{canChange && block.isPossible && <>
						<hr className="menu-line" />
						<BoardItems block={block.block} onClose={close} onAsk={() => setAsking(true)} />
					</>}
				</>}
			</Menu>
			{isAsking && <BoardDialog block={block.block} onClose={() => setAsking(false)} />}
		</div>
	);
}
