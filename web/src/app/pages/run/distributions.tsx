// SPDX-License-Identifier: Apache-2.0
// distributions.tsx: the distributions of a run's latencies. A metric that the verdict declares
// INVALID is grey, with the reason.
import { useCallback, type ReactNode } from 'react';
import type { EChartsCoreOption } from 'echarts/core';
import type { RunSketches, Sketch } from '../../../lib/api';
import { Chart } from '../../charts/chart';
import type { Ink } from '../../charts/ink';
import type { Size } from '../../charts/axis';
import { useGet } from '../../common/routes';
import { Num, Twin } from '../../common/twin';
import { Failure, Loading } from '../../parts/states';
import { count, measured } from '../../show';
import { choiceCodec, useUrlState } from '../../url';
import {
	MARKS, pointsOf, promptOption, quantileOf, sketchOption, turnOption, type Look,
} from './sketches';

const HEIGHT = 230;
const LOOKS: [Look, string][] = [['cdf', 'Cumulative'], ['histogram', 'Histogram']];
const lookCodec = choiceCodec<Look>(['cdf', 'histogram'], 'cdf');
const colour = (n: number): string => getComputedStyle(document.documentElement)
	.getPropertyValue(`--series-${n}`).trim();

function One({ s, look }: { s: Sketch; look: Look }): ReactNode {
	const points = pointsOf(s);
	const make = useCallback((ink: Ink, size: Size): EChartsCoreOption =>
		sketchOption(s, look, ink, colour(1), size), [s, look]);
	const marks = MARKS.flatMap(([p, name]): [string, number][] => {
		const v = quantileOf(points, p);
		return v === null ? [] : [[name, v]];
	});
	const title = `${s.label}, ${look === 'cdf' ? 'cumulative distribution' : 'histogram'}`;
	return (
		<figure className="sketch" data-metric={s.key} data-grey={s.is_spoiled || undefined}>
			<figcaption>
				<strong>{s.label} ({s.unit})</strong>
				<span className="dim">{marks.map(([name, v]) => (
					<span key={name} {...(s.is_spoiled && { 'data-spoiled': true })}>{name} <Num v={v} /></span>
				))}<span>{count(s.n, 'value')}</span></span>
			</figcaption>
			<Chart label={`${title}: ${marks.map(([name, v]) => `${name} ${measured(v)} ${s.unit}`).join(', ')}`}
				height={HEIGHT} make={make} saved={{ title, table: () => [['p', `${s.key}`],
					...points.map(([v, p]) => [p, v])] }} />
			{s.is_spoiled && <p className="warn-text small-text">Do not use {s.label}: {s.spoiled_by}</p>}
		</figure>
	);
}

function Requests({ by, isSpoiled }: { by: NonNullable<RunSketches['by_prompt']>; isSpoiled: boolean }): ReactNode {
	const make = useCallback((ink: Ink, size: Size): EChartsCoreOption =>
		promptOption(by, isSpoiled, ink, colour(1), size), [by, isSpoiled]);
	return (
		<figure className="sketch" data-grey={isSpoiled || undefined}>
			<figcaption><strong>TTFT over prompt tokens</strong>
				<span className="dim">{count(by.ttft_ms.length, 'request')}</span></figcaption>
			<Chart label={`TTFT over prompt tokens of ${count(by.ttft_ms.length, 'request')}`} height={HEIGHT}
				make={make} saved={{ title: 'TTFT over prompt tokens', table: () => [['prompt_tokens', 'ttft_ms'],
					...by.prompt_tokens.map((x, i) => [x, by.ttft_ms[i]])] }} />
		</figure>
	);
}

function Turns({ by, isSpoiled }: { by: NonNullable<RunSketches['by_turn']>; isSpoiled: boolean }): ReactNode {
	const make = useCallback((ink: Ink, size: Size): EChartsCoreOption =>
		turnOption(by, isSpoiled, ink, colour(1), size), [by, isSpoiled]);
	return (
		<figure className="sketch" data-grey={isSpoiled || undefined}>
			<figcaption><strong>Median TTFT by turn</strong></figcaption>
			<Chart label={`Median TTFT of ${count(by.turn.length, 'turn')}`} height={HEIGHT} make={make}
				saved={{ title: 'Median TTFT by turn', table: () => [['turn', 'ttft_ms_median', 'requests'],
					...by.turn.map((t, i) => [t, by.ttft_ms_median[i], by.n[i]])] }} />
		</figure>
	);
}

const TABLE_P = [0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1];

function Table({ metrics }: { metrics: Sketch[] }): ReactNode {
	const heads = TABLE_P.map((p) => ({ text: p === 0 ? 'Min' : p === 1 ? 'Max' : p === 0.5 ? 'Median'
		: `P${Number((p * 100).toFixed(1))}`, isNumber: true }));
	return <Twin title="Show as table" heads={[{ text: 'Metric' }, ...heads]} rows={metrics.map((s) => {
		const points = pointsOf(s);
		return [`${s.label} (${s.unit})`, ...TABLE_P.map((p) => <Num key={p} v={quantileOf(points, p)} />)];
	})} />;
}

export function Distributions({ id }: { id: number }): ReactNode {
	const answer = useGet('GET /api/data/experiments/{id}/sketches', `/api/data/experiments/${id}/sketches`);
	const [look, setLook] = useUrlState('dist', lookCodec);
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!answer.data)
		return <Loading what="Loading the distributions" />;
	const { metrics, by_prompt: byPrompt, by_turn: byTurn, missing } = answer.data;
	const isSpoiled = metrics.some((s) => s.key === 'ttft_ms' && s.is_spoiled);
	return (
		<section className="card" aria-label="Distributions">
			<div className="card-head">
				<h2>Distributions</h2>
				{metrics.length > 0 && <div className="segments push" role="group" aria-label="Drawing">
					{LOOKS.map(([key, name]) => (
						<button key={key} type="button" aria-pressed={look === key}
							onClick={() => setLook(key, { replace: true })}>{name}</button>
					))}
				</div>}
			</div>
			{metrics.length > 0 && <div className="sketches">
				{metrics.map((s) => <One key={s.key} s={s} look={look} />)}
				{byPrompt && byPrompt.ttft_ms.length > 0 && <Requests by={byPrompt} isSpoiled={isSpoiled} />}
				{byTurn && byTurn.turn.length > 1 && <Turns by={byTurn} isSpoiled={isSpoiled} />}
			</div>}
			{missing.length > 0 && <p className="dim small-text">{missing.join(' ')}</p>}
			{metrics.length > 0 && <Table metrics={metrics} />}
		</section>
	);
}
