// SPDX-License-Identifier: Apache-2.0
// spark.tsx: a very small line chart, with its last value in large type.
import type { ReactNode } from 'react';
import { measured } from '../show';
import { bytesText } from './traces';

const WIDTH = 220, HEIGHT = 44;

const valueText = (unit: string, v: number): string =>
	(unit === 'bytes' ? bytesText(v) : `${measured(v)}${unit && ` ${unit}`}`);

interface Props { label: string; unit: string; points: [number, number][] }

export function Spark({ label, unit, points }: Props): ReactNode {
	const last = points[points.length - 1];
	const xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
	const x0 = xs[0], across = xs[xs.length - 1] - x0 || 1;
	const low = Math.min(0, ...ys), high = Math.max(...ys), up = high - low || 1;
	const path = points.map(([x, y]) => `${(((x - x0) / across) * WIDTH).toFixed(1)},`
		+ `${(HEIGHT - 2 - ((y - low) / up) * (HEIGHT - 4)).toFixed(1)}`).join(' ');
	return (
		<figure className="spark">
			<figcaption><span className="dim">{label}</span>
				<strong className="num" data-value={last?.[1]}>{last ? valueText(unit, last[1]) : '–'}</strong></figcaption>
			<svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
				aria-label={`${label}: now ${last ? valueText(unit, last[1]) : 'nothing'}, up to ${valueText(unit, high)}`}>
				<polyline points={path} />
			</svg>
		</figure>
	);
}
