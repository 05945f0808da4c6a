// SPDX-License-Identifier: Apache-2.0
// over-time.tsx: one run of each side over time: a strip for each quantity that both have, on one
// time axis.
import type { ReactNode } from 'react';
import { titleOf } from '../../charts/axis';
import { useGet } from '../../common/routes';
import { pathOf, spreadOf, ticksOf, topOf, xOf, type Strip, type View } from '../../common/series';
import type { SeriesTrack } from '../../../lib/api';
import { measured } from '../../show';
import { widthWithin } from './cdf';

const WIDTH_MOST = 640, LEFT = 4, HEIGHT = 64, AXIS = 22;

const useSeries = (run: number): ReturnType<typeof useGet<'GET /api/data/experiments/{id}/series'>> =>
	useGet('GET /api/data/experiments/{id}/series', `/api/data/experiments/${run}/series`);

/** Quantities of which both runs have more than a single sample, in the order of the first. */
export function commonTracks(a: SeriesTrack[], b: SeriesTrack[]): [SeriesTrack, SeriesTrack][] {
	const has = (t: SeriesTrack): boolean => t.y.filter((v) => v !== null).length > 1;
	return a.filter(has).flatMap((t): [SeriesTrack, SeriesTrack][] => {
		const other = b.find((o) => o.key === t.key && o.unit === t.unit && has(o));
		return other ? [[t, other]] : [];
	});
}

const meanText = (t: SeriesTrack): string => measured(spreadOf(t)?.mean ?? NaN);

function Track({ pair, view, names }: {
	pair: [SeriesTrack, SeriesTrack]; view: View; names: [string, string];
}): ReactNode {
	const [a] = pair, strip: Strip = { key: a.key, label: a.label, unit: a.unit,
		lines: pair.map((track) => ({ label: '', track })) };
	const width = widthWithin(WIDTH_MOST), top = topOf(strip, view);
	const frame = { view, width: width - LEFT, height: HEIGHT - 8, top };
	const title = a.unit === 'requests' ? a.label : titleOf(a.label, a.unit);
	return (
		<div className="over-time-track" data-track={a.key}>
			<p className="small-text"><span>{title}</span> <span className="dim">mean {names[0]} {meanText(a)},
				{' '}{names[1]} {meanText(pair[1])}</span></p>
			<svg className="multiple" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={`${title} over time: mean `
				+ `${names[0]} ${meanText(a)}, ${names[1]} ${meanText(pair[1])}`}>
				<line className="grid" x1={0} x2={width} y1={HEIGHT - 4} y2={HEIGHT - 4} />
				<g transform={`translate(${LEFT} 4)`}>
					{pair.map((t, i) => <path key={i} className={`line ${i ? '' : 'dim-side'}`} d={pathOf(t, frame)} />)}
				</g>
				<text x={LEFT} y={12}>{measured(top)}</text>
			</svg>
		</div>
	);
}

export function OverTime({ runs, names }: { runs: [number, number]; names: [string, string] }): ReactNode {
	const [a, b] = [useSeries(runs[0]), useSeries(runs[1])];
	if (!a.data || !b.data)
		return a.error || b.error ? <p className="dim">The time series could not be read.</p> : null;
	const pairs = commonTracks(a.data.tracks, b.data.tracks);
	if (!pairs.length)
		return <p className="dim">{[...a.data.missing, ...b.data.missing][0]
			?? 'These runs have no time series in common.'}</p>;
	const width = widthWithin(WIDTH_MOST);
	const view: View = [0, Math.max(a.data.duration_s, b.data.duration_s, 1e-3)];
	return (
		<figure className="over-time multiples-part" aria-label="Over time">
			{pairs.map((pair) => <Track key={pair[0].key} pair={pair} view={view} names={names} />)}
			<svg className="multiple" viewBox={`0 0 ${width} ${AXIS}`} aria-hidden="true">
				{ticksOf(view, width - LEFT).map(({ t, text }) => <text key={t} y={14} textAnchor={t === 0 ? 'start'
					: t > view[1] * 0.95 ? 'end' : 'middle'} x={LEFT + xOf(t, view, width - LEFT)}>{text}</text>)}
			</svg>
			<figcaption className="dim small-text">Since the start of each run: {names[0]} dashed (run {runs[0]}),
				{' '}{names[1]} solid (run {runs[1]})</figcaption>
		</figure>
	);
}
