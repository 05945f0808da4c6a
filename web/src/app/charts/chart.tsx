// SPDX-License-Identifier: Apache-2.0
// chart.tsx: one chart. The option is made by pure functions (scatter.ts, trend.ts, ...); here it
// is put on the page, sized, and drawn again in the other theme.
import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { ECharts, EChartsCoreOption } from 'echarts/core';
import { useIsBlock } from '../common/block';
import { Failure } from '../parts/states';
import { useTheme } from '../theme';
import { USUAL_SIZE, type Size } from './axis';
import { readInk, type Ink } from './ink';
import { ChartMenu, type Saved } from './menu';

export interface Click { seriesId: string; dataIndex: number; data: unknown }

/** From, to, in the axis' unit. */
export type Part = [number, number];

export interface Area { x: [number, number]; y: [number, number] }

interface Props {
	/** Read out in place of the chart; the values are in its table. */
	label: string;
	height: number;
	make: (ink: Ink, size: Size) => EChartsCoreOption;
	onClick?: ((click: Click) => void) | undefined;
	onDouble?: ((click: Click) => void) | undefined;
	/** Elements over the chart, given its size. */
	over?: (size: Size) => ReactNode;
	/** Additional elements of a saved picture, and its points. */
	saved?: Saved;
	/** A rectangle was drawn (null: taken away). */
	onArea?: ((area: Area | null) => void) | undefined;
	area?: Area | null;
	/** Whether a drag draws a rectangle. */
	isBrushing?: boolean;
	/** Parallel axes, whose ids are their numbers: parts of one were chosen by a drag. */
	onAxis?: ((axis: number, parts: Part[]) => void) | undefined;
	/** The chosen parts of all axes. */
	axes?: Part[][] | null;
}

const BLOCK_HEIGHT = 360;

interface BrushEnd { areas: { coordRange?: [[number, number], [number, number]] }[] }
interface AxisPart { parallelAxisId?: string; intervals?: Part[] }

function listen(chart: ECharts, props: { current: Props }): void {
	for (const kind of ['click', 'dblclick'] as const)
		chart.on(kind, (event) => {
			const click = event as { seriesId?: string; dataIndex?: number; data?: unknown };
			const { onClick, onDouble } = props.current, act = kind === 'click' ? onClick : onDouble;
			if (click.seriesId !== undefined && click.dataIndex !== undefined)
				act?.({ seriesId: click.seriesId, dataIndex: click.dataIndex, data: click.data });
		});
	chart.on('brushEnd', (event) => {
		const range = (event as BrushEnd).areas[0]?.coordRange;
		props.current.onArea?.(range ? { x: range[0], y: range[1] } : null);
	});
	chart.on('axisareaselected', (event) => {
		const { parallelAxisId, intervals } = event as AxisPart;
		if (parallelAxisId !== undefined && intervals)
			props.current.onAxis?.(Number(parallelAxisId), intervals);
	});
}

/** Enables drawing by drag while wanted; ECharts forgets it with every new option. */
function arm(chart: ECharts, isBrushing: boolean): void {
	chart.dispatchAction({ type: 'takeGlobalCursor', key: 'brush',
		brushOption: isBrushing ? { brushType: 'rect', brushMode: 'single' } : { brushType: false } });
}

export function Chart(props: Props): ReactNode {
	const { label, make, isBrushing = false, area = null, axes = null, over, saved } = props;
	const isBlock = useIsBlock(), height = isBlock ? Math.min(props.height, BLOCK_HEIGHT) : props.height;
	const box = useRef<HTMLDivElement>(null);
	const now = useRef(props);
	const [chart, setChart] = useState<ECharts | null>(null);
	const [error, setError] = useState<unknown>(null);
	const [width, setWidth] = useState(USUAL_SIZE.width);
	const theme = useTheme();
	now.current = props;
	useEffect(() => {
		let made: ECharts | null = null, isGone = false;
		const follow = new ResizeObserver(() => {
			made?.resize();
			setWidth(made?.getWidth() ?? USUAL_SIZE.width);
		});
		import('./echarts').then(({ init }) => {
			if (isGone || !box.current)
				return;
			// Printed and exported charts use lines and text, not pixels.
			made = init(box.current, null, { renderer: isBlock ? 'svg' : 'canvas' });
			listen(made, now);
			follow.observe(box.current);
			setWidth(made.getWidth());
			setChart(made);
		}).catch(setError);
		return () => {
			isGone = true;
			follow.disconnect();
			made?.dispose();
		};
	}, [isBlock]);
	useEffect(() => {
		if (!chart)
			return;
		chart.setOption({ animation: false, ...make(readInk(), { width, height }) }, { notMerge: true });
		if (!now.current.onArea)
			return;
		arm(chart, isBrushing);
		chart.dispatchAction({ type: 'brush', areas: area ? [{ brushType: 'rect', xAxisIndex: 0,
			yAxisIndex: 0, coordRange: [area.x, area.y] }] : [] });
	}, [chart, make, theme, isBrushing, area, width, height]);
	useEffect(() => axes?.forEach((intervals, i) => chart?.dispatchAction({ type: 'axisAreaSelect',
		parallelAxisId: String(i), intervals }, { silent: true })), [chart, make, theme, axes]);
	if (error !== null)
		return <Failure error={error} title="The chart could not be loaded" />;
	return (
		<div className="chart">
			<ChartMenu title={label} saved={saved} size={{ width, height }} make={make} />
			<div ref={box} className="chart-box" role="img" aria-label={label} style={{ height }}
				data-drawn={chart !== null} />
			{over?.({ width, height })}
		</div>
	);
}
