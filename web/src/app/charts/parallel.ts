// SPDX-License-Identifier: Apache-2.0
// parallel.ts: parallel coordinates: a line per run through any number of axes.
import type { EChartsCoreOption } from 'echarts/core';
import type { Parallel, ParallelAxis } from '../../lib/api';
import type { Cell } from '../api';
import type { Condition } from '../filter';
import { arrange, drawnColour } from '../colour';
import { showValue } from '../show';
import { planAxis, roomOf, tipBody, tooltip, USUAL_SIZE } from './axis';
import { FONT, type Ink } from './ink';

/** Without the axes on which all lines meet in one point, except those that are kept. */
export function withoutConstant(p: Parallel, kept: readonly string[]): Parallel {
	const shown = p.axes.map((_, i) => i).filter((i) => kept.includes(p.axes[i].column)
		|| new Set(p.lines.map((line) => JSON.stringify(line.values[i] ?? null))).size > 1);
	return shown.length < 2 ? p : { ...p, axes: shown.map((i) => p.axes[i]),
		lines: p.lines.map((line) => ({ ...line, values: shown.map((i) => line.values[i]) })) };
}

export const isNumeric = (a: ParallelAxis): boolean => a.kind === 'number';

/** A category's name on its axis; null is one too. */
export const nameOf = (column: string, v: Cell): string => showValue(column, v);

/** The values on an axis of categories: the API's list, then further ones of the lines. */
export function categories(p: Parallel, index: number): Cell[] {
	const axis = p.axes[index];
	const values = axis.values ?? [];
	const known = new Set(values.map((v) => JSON.stringify(v)));
	const extra: Cell[] = [];
	for (const line of p.lines) {
		const v = line.values[index] ?? null,
			text = JSON.stringify(v);
		if (!known.has(text)) {
			known.add(text);
			extra.push(v);
		}
	}
	return [...values, ...extra];
}

/** The values of a category axis between two positions. */
export function chosen(values: Cell[], from: number, to: number): Cell[] {
	const low = Math.min(from, to),
		high = Math.max(from, to);
	return values.filter((_, i) => i >= Math.ceil(low - 0.5) && i <= Math.floor(high + 0.5));
}

/** A condition on an axis as parts of the axis. */
export function partsOf(p: Parallel, index: number, c: Condition | undefined): [number, number][] {
	const axis = p.axes[index];
	if (!c) return [];
	if ('in' in c && !isNumeric(axis))
		return categories(p, index).flatMap((v, i): [number, number][] =>
			c.in.includes(v) ? [[i, i]] : [],
		);
	if (!('range' in c)) return [];
	const end = (v: unknown, otherwise: number | null): number =>
		typeof v === 'number' ? v : (otherwise ?? 0);
	return [[end(c.range.min, axis.min), end(c.range.max, axis.max)]];
}

interface ParallelOptions {
	answer: Parallel;
	labels: string[];
	colourBy: number;
	/** One axis below the other, for narrow screens. */
	isStacked: boolean;
}

const LINES_FAINT = 300, NAME_PX_MIN = 60;
export const STACKED_PX = 68; /* from one axis to the next */

export function parallelOption(o: ParallelOptions, ink: Ink, size = USUAL_SIZE): EChartsCoreOption {
	const { answer, labels, colourBy, isStacked } = o;
	if (colourBy >= 0)
		arrange(categories(answer, colourBy).map((v) => nameOf(answer.axes[colourBy].column, v)));
	const opacity = answer.lines.length > LINES_FAINT ? 0.22 : 0.5;
	const axis = answer.axes.map((a, i) => {
		const inTwoLines = labels[i].replace(/ (\([^)]*\))$/, '\n$1'); // the unit below
		const name = isStacked ? labels[i] : inTwoLines;
		const common = { id: String(i), dim: i, name, realtime: false };
		if (!isNumeric(a))
			return {
				...common,
				type: 'category',
				data: categories(answer, i).map((v) => nameOf(a.column, v)),
			};
		const values = answer.lines
			.map((line) => line.values[i])
			.filter((v): v is number => typeof v === 'number');
		const ends = [a.min, a.max].filter((v): v is number => typeof v === 'number');
		const plan = planAxis([...values, ...ends], {
			isVertical: !isStacked,
			px: isStacked ? roomOf(size).width : roomOf(size).height,
			unit: a.unit,
		});
		return {
			...common,
			type: plan.scale === 'linear' ? 'value' : 'log',
			min: plan.min,
			max: plan.max,
			axisLabel: { customValues: plan.ticks, formatter: plan.format },
		};
	});
	const between = (size.width - 160) / Math.max(1, answer.axes.length - 1);
	return {
		parallel: {
			...(isStacked ? { layout: 'vertical', left: 24, right: 24, top: 30, bottom: 30 }
				: { left: 70, right: 90, top: 54, bottom: 24 }),
			parallelAxisDefault: {
				...(isStacked ? { nameLocation: 'start', nameGap: 0 } : { nameLocation: 'end', nameGap: 16 }),
				nameTruncate: { maxWidth: isStacked ? size.width : Math.max(NAME_PX_MIN, between - 8) },
				nameTextStyle: {
					...(isStacked && { align: 'left', verticalAlign: 'bottom', padding: [0, 0, 8, -16],
						textBorderColor: ink.card, textBorderWidth: 3 }),
					color: ink.ink,
					fontFamily: FONT,
					fontSize: 12,
					lineHeight: 14,
					fontWeight: 600,
				},
				axisLine: { lineStyle: { color: ink['line-strong'] } },
				axisTick: { show: false },
				axisLabel: {
					color: ink.dim,
					fontFamily: FONT,
					fontSize: 11,
					width: 110,
					overflow: 'truncate',
					textBorderColor: ink.card,
					textBorderWidth: 3,
				},
				areaSelectStyle: {
					width: 18,
					borderWidth: 1,
					borderColor: ink.accent,
					color: ink.accent,
					opacity: 0.25,
				},
			},
		},
		parallelAxis: axis,
		tooltip: tooltip(ink, (hit) => {
			const line = answer.lines[(hit as { dataIndex: number }).dataIndex];
			return line
				? tipBody(
						`Run ${line.id}`,
						answer.axes.map((a, i) => [
							labels[i],
							nameOf(a.column, line.values[i] ?? null),
						]),
					)
				: '';
		}),
		series: [
			{
				type: 'parallel',
				id: 'lines',
				smooth: 0.12,
				lineStyle: { width: 1.2, opacity },
				inactiveOpacity: 0.03,
				activeOpacity: 0.8,
				progressive: 500,
				data: answer.lines.map((line) => ({
					value: line.values.map((v, i) =>
						isNumeric(answer.axes[i])
							? typeof v === 'number'
								? v
								: '-'
							: nameOf(answer.axes[i].column, v),
					),
					lineStyle: {
						color:
							colourBy >= 0
								? drawnColour(
										showValue(
											answer.axes[
												colourBy
											].column,
											line.values[
												colourBy
											] ?? null,
										),
									)
								: ink.accent,
					},
				})),
			},
		],
	};
}
