// SPDX-License-Identifier: Apache-2.0
// scatter.ts: one metric against another, a color per group, and each group's frontier.
import type { EChartsCoreOption } from 'echarts/core';
import type { ParetoGroup, ParetoPoint } from '../../lib/api';
import type { Click } from './chart';
import { arrange, drawnColour, placeOf, shapeOf } from '../colour';
import {
	amount, grid, keyId, keyName, planAxis, roomOf, tipBody, titleOf, tooltip, USUAL_SIZE, valueAxis,
	type Size,
} from './axis';
import { FONT, type Ink } from './ink';

export interface Measure { column: string; label: string; unit: string | null }
export type Join = 'frontier' | 'none';

export interface Group { id: string; name: string; points: ParetoPoint[]; isShown: boolean }

interface ScatterOptions {
	groups: Group[];
	x: Measure;
	y: Measure;
	join: Join;
	isLogX: boolean;
	isLogY: boolean;
	/** Numbers of the runs that are pinned, in their order. */
	pins?: number[];
	/** What identifies a run, which arrives later. */
	ask?: (id: number) => Promise<{ name: string; rows: [string, string][] }>;
}

export const SHOWN_AT_FIRST = 8;
const LARGE = 4000;

/** Shapes differ as well, for readers who do not see all colors. */
export const markOf = (place: number): string => `path://${shapeOf(place)}`;

/** What a line goes through: the frontier's points from left to right. */
export function lineOf(points: ParetoPoint[], join: Join): [number, number][] {
	return points.filter((p) => join === 'frontier' && p.is_frontier)
		.sort((a, b) => a.x - b.x || a.y - b.y).map((p) => [p.x, p.y]);
}

/** Few at first; flipped: the groups whose button was pressed. */
export function groupsOf(groups: (ParetoGroup & { name?: string })[], flipped: string[]): Group[] {
	arrange(groups.map((g) => keyId(g.key)));
	return groups.map((g, i) => {
		const id = keyId(g.key);
		return { id, name: keyName(g.key, g.name), points: g.points,
			isShown: (i < SHOWN_AT_FIRST) !== flipped.includes(id) };
	});
}

interface Hit { seriesId?: string; dataIndex: number }

export function scatterOption(o: ScatterOptions, ink: Ink, size = USUAL_SIZE): EChartsCoreOption {
	const all = o.groups.filter((g) => g.isShown).flatMap((g) => g.points), room: Size = roomOf(size);
	const x = planAxis(all.map((p) => p.x), { isVertical: false, px: room.width, unit: o.x.unit,
		scale: o.isLogX ? 'log' : 'linear' });
	const y = planAxis(all.map((p) => p.y), { isVertical: true, px: room.height, unit: o.y.unit,
		scale: o.isLogY ? 'log' : 'linear' });
	const isMany = all.length > LARGE;
	const series = o.groups.flatMap((g, i) => {
		if (!g.isShown)
			return [];
		const color = drawnColour(g.id);
		const isFront = o.join === 'frontier';
		return [
			{ type: 'line', id: `line ${i}`, silent: true, symbol: 'none', z: 2,
				step: isFront ? false : undefined, data: lineOf(g.points, o.join),
				lineStyle: { color, width: 2, opacity: isMany ? 0.95 : 0.75 } },
			{ type: 'scatter', id: `dots ${i}`, symbol: markOf(placeOf(g.id)), z: 3,
				symbolSize: isMany ? 3 : all.length > 400 ? 6 : 9,
				large: isMany, largeThreshold: 1,
				data: g.points.map((p) => (isMany ? [p.x, p.y] : {
					value: [p.x, p.y], itemStyle: {
						opacity: !isFront || p.is_frontier ? 0.95 : 0.38,
						...(p.is_degraded && { color: ink.card, borderColor: color,
							borderWidth: 1.5 }) } })),
				itemStyle: { color, borderColor: ink.card, borderWidth: isMany ? 0 : 1 },
				emphasis: { scale: 1.5 } },
		];
	});
	const tell = (hit: unknown): HTMLElement | string => {
		const found = pointOf(o.groups, hit as Hit);
		if (!found)
			return '';
		const { group, point } = found, own = [...pointRows(point, o.x, o.y),
			...point.is_frontier ? [['On frontier', `of ${group.name}`] as [string,
				string]] : []];
		const body = tipBody(group.name, own, HINT);
		void o.ask?.(point.id).then((facts) =>
			body.replaceChildren(...tipBody(facts.name, [...own, ...facts.rows],
				HINT).childNodes))
			.catch(() => undefined); // the tip stays as it is
		return body;
	};
	return {
		grid: grid(), tooltip: tooltip(ink, tell), series: [...series, pinned(o, ink)],
		xAxis: valueAxis({ name: titleOf(o.x.label, o.x.unit), plan: x, ink, isVertical: false }),
		yAxis: valueAxis({ name: titleOf(o.y.label, o.y.unit), plan: y, ink, isVertical: true }),
		brush: { toolbox: [], xAxisIndex: 0, brushLink: 'none', throttleType: 'debounce',
			outOfBrush: { colorAlpha: 1 },
			brushStyle: { color: ink.select, borderColor: ink.accent, borderWidth: 1 } },
	};
}

const HINT = 'Click pins it, a double click opens it.';

export const pointRows = (p: ParetoPoint, x: Measure, y: Measure): [string, string][] => [
	[x.label, amount(p.x, x.unit)], [y.label, amount(p.y, y.unit)],
	...p.is_degraded ? [['DEGRADED', 'one of these two metrics'] as [string, string]] : []];

/** Rings around the pinned points, with their numbers. */
function pinned(o: ScatterOptions, ink: Ink): object {
	const all = new Map(o.groups.filter((g) => g.isShown).flatMap((g) => g.points).map((p) => [p.id, p]));
	const found = (o.pins ?? []).flatMap((id, at) => {
		const p = all.get(id);
		return p ? [{ p, at }] : [];
	});
	return { type: 'scatter', id: 'pins', silent: true, z: 6, symbol: 'circle', symbolSize: 16,
		itemStyle: { color: 'transparent', borderColor: ink.ink, borderWidth: 2 },
		label: { show: true, position: 'top', color: ink.ink, fontFamily: FONT, fontSize: 12,
			fontWeight: 'bold',
			textBorderColor: ink.card, textBorderWidth: 3,
				formatter: (hit: { dataIndex: number }) =>
				String(found[hit.dataIndex].at + 1) },
		data: found.map(({ p }) => [p.x, p.y]) };
}

/** The group and point under the pointer. */
export function pointOf(groups: Group[], hit: Hit | Click): { group: Group; point: ParetoPoint } | null {
	const id = /^dots (\d+)$/.exec(hit.seriesId ?? '');
	const group = id ? groups[Number(id[1])] : undefined, point = group?.points[hit.dataIndex];
	return group && point ? { group, point } : null;
}
