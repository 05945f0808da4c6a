// SPDX-License-Identifier: Apache-2.0
// boxes.ts: the spread of a metric in each group, for a saved picture: whiskers from P5 to P95, a
// box from P25 to P75, the median, and dots at both ends.
import type { EChartsCoreOption } from 'echarts/core';
import type { DistributionGroup } from '../../lib/api';
import { drawnColour } from '../colour';
import { grid, isWide, keyId, keyName, planAxis, roomOf, titleOf, valueAxis, type Size } from './axis';
import { FONT, type Ink } from './ink';
import type { Measure } from './scatter';

const NAME_PX = 7, NAME_ROOM_PX = 220, ROW_PX = 44, ENDS_PX = 80;

export const boxesHeight = (groups: number): number => groups * ROW_PX + ENDS_PX;

export function boxesOption(groups: DistributionGroup[], x: Measure, ink: Ink,
	size: Size): EChartsCoreOption {
	const names = groups.map((g) => keyName(g.key, g.name));
	const left = Math.min(NAME_ROOM_PX, 24 + Math.max(0, ...names.map((n) => n.length)) * NAME_PX);
	const all = groups.flatMap((g) => g.quantiles);
	const plan = planAxis(all, { isVertical: false, px: roomOf(size).width - left, unit: x.unit,
		scale: isWide(all, x.unit) ? 'log' : 'linear' });
	const bar = (g: DistributionGroup, i: number, [from, to]: [number, number], width: number,
		opacity: number): object => ({
		type: 'line', silent: true, symbol: 'none', data: [[g.quantiles[from], i], [g.quantiles[to],
			i]],
		lineStyle: { color: drawnColour(keyId(g.key)), width, opacity, cap: 'butt' } });
	return {
		grid: { ...grid(), left },
		xAxis: valueAxis({ name: titleOf(x.label, x.unit), plan, ink, isVertical: false }),
		yAxis: { type: 'category', inverse: true, data: names, axisTick: { show: false },
			axisLine: { lineStyle: { color: ink['line-strong'] } },
			axisLabel: { color: ink.ink, fontFamily: FONT, fontSize: 12, width: left - 16,
				overflow: 'truncate' } },
		series: groups.flatMap((g, i) => (g.quantiles.length !== 7 ? [] : [
			bar(g, i, [1, 5], 1.5, 1), bar(g, i, [2, 4], 18, 0.35),
			{ type: 'scatter', silent: true, symbol: 'rect', symbolSize: [3, 18],
				data: [[g.quantiles[3], i]],
				itemStyle: { color: drawnColour(keyId(g.key)) } },
			{ type: 'scatter', silent: true, symbolSize: 4, data: [[g.quantiles[0], i],
				[g.quantiles[6], i]],
				itemStyle: { color: drawnColour(keyId(g.key)) } }])),
	};
}
