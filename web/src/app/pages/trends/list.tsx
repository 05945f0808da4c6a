// SPDX-License-Identifier: Apache-2.0
// list.tsx: every series as one row: its newest unreviewed change, a small line with a dot at each
// change, its points. All lines share one axis, with a tick at each event of any of them. A click
// draws it in the large chart or removes it.
import { useState, type ReactNode } from 'react';
import type { TrendChange, TrendPoint, TrendSeries } from '../../../lib/api';
import { cssColour, placeOf as formOf } from '../../colour';
import { useIsBlock } from '../../common/block';
import { percent } from '../../common/interval';
import { Mark } from '../../common/mark';
import { count } from '../../show';
import { badgeOf, isOf, ONLY, placeOf, type Names, type Only, type TrendEvent } from './model';

const WIDTH = 220, HEIGHT = 24, AIR = 4, ROWS_SHOWN = 24;

type Place = (p: TrendPoint) => number;

function Sparkline({ s, place, events }: { s: TrendSeries; place: Place; events: TrendEvent[] }): ReactNode {
	const ys = s.points.map((p) => p.value), low = Math.min(...ys), high = Math.max(...ys);
	const across = (at: number): number => AIR + at * (WIDTH - 2 * AIR);
	const x = (i: number): number => across(place(s.points[i]));
	const y = (v: number): number => HEIGHT - AIR - ((v - low) / (high - low || 1)) * (HEIGHT - 2 * AIR);
	const tone = (c: TrendChange): string => (c.verdict === 'better' ? 'good' : c.verdict === 'worse' ? 'bad' : 'warn');
	return (
		<svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
			{events.map((e) => <line key={`${e.kind} ${e.text} ${e.place}`} className={`tick ${e.kind}`}
				x1={across(e.place)} x2={across(e.place)} y1="0" y2={HEIGHT} />)}
			<polyline points={ys.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(' ')} />
			{s.changes.map((c) => <circle key={c.index} cx={x(c.index)} cy={y(ys[c.index])} r="3.5"
				className={c.is_marked ? 'reviewed' : tone(c)} />)}
		</svg>
	);
}

/** With fewer points a series cannot have a change: three are needed on each side. */
const JUDGED_POINTS = 6;

function Badge({ s }: { s: TrendSeries }): ReactNode {
	const c = badgeOf(s);
	if (!c)
		return s.points.length < JUDGED_POINTS ? <span className="dim" title="Too few points to judge">–</span>
			: <span className="dim">no change</span>;
	const tone = c.verdict === 'better' ? 'good' : c.verdict === 'worse' ? 'bad' : 'warn';
	return <strong className={c.is_marked ? 'dim' : `${tone}-text`} data-value={c.effect ?? ''}>
		{(c.effect ?? 0) < 0 ? '▼' : '▲'} {percent(c.effect)}</strong>;
}

interface Props {
	series: TrendSeries[]; names: Names; isShown: (s: TrendSeries) => boolean;
	onToggle: (s: TrendSeries) => void; only: Only; onOnly: (only: Only) => void;
	place: Place; events: TrendEvent[];
}

export function SeriesList({ series, names, isShown, onToggle, only, onOnly, place, events }: Props): ReactNode {
	const [isAll, setAll] = useState(false);
	const isBlock = useIsBlock();
	const list = series.filter((s) => (isBlock ? isShown(s) : isOf(s, only)));
	const rows = isAll ? list : list.slice(0, ROWS_SHOWN);
	return (
		<div className="series-part">
			{!isBlock && <div className="segments" role="group" aria-label="Which series">
				{ONLY.map(([name, label]) => <button key={name} type="button" aria-pressed={only === name}
					onClick={() => onOnly(name)}>{label} {series.filter((s) => isOf(s, name)).length}</button>)}
			</div>}
			<ul className="series-list" aria-label="Series">{rows.map((s) => {
				const c = badgeOf(s);
				return (
					<li key={s.id}><button type="button" className="quiet" aria-pressed={isShown(s)}
						title={s.name} onClick={() => onToggle(s)}>
						<span className="num effect"><Badge s={s} /></span>
						<Mark form={formOf(s.id)} colour={cssColour(s.id)} isShown={isShown(s)} />
						<span className="name">{names.of.get(s.id) ?? s.name}</span>
						<Sparkline s={s} place={place} events={events} />
						<span className="dim num">{count(s.points.length, 'point')}</span>
						<span className="dim last">{c ? `${placeOf(c)}${c.is_marked ? ', reviewed' : ''}` : ''}</span>
					</button></li>
				);
			})}</ul>
			{list.length > ROWS_SHOWN && <button type="button" className="small" aria-expanded={isAll}
				onClick={() => setAll(!isAll)}>{isAll ? 'Show less' : `All ${list.length} series`}</button>}
		</div>
	);
}
