// SPDX-License-Identifier: Apache-2.0
// hover.ts: what is under the pointer, with upstream's text and then ours.
import { facts, h, place } from '../lib/dom';
import { clock, duration, fixed2, seconds, short, whole } from '../lib/format';
import { DONE, latency, STATES, type Meta, type Requests } from './data';
import { category, gapAt, gapStart, HIGH, LOW, MID } from './lod';
import type { Track } from './tracks';
import { valueAt } from './tracks';

export interface Segment {
	type: string;
	start: number; // units from the first request's start
	end: number;
	index: number; // of the gap in its request, from 1; 0: another segment
}

const KIND_LABEL: Record<number, number> = { [LOW]: 0, [MID]: 1, [HIGH]: 2 };

/**
 * The segment of request i at time t; the nearest one of it elsewhere. next: the turn that follows
 * in its row, up to which there is a pause; -1: none.
 */
export function segmentAt(r: Requests, meta: Meta, i: number, t: number, next = -1): Segment {
	const start = r.start[i], token = start + r.ttft[i], end = start + latency(r, i);
	const over = start + r.whole[i];
	if (next >= 0 && t >= over)
		return { type: 'Pause before the next turn', start: over, end: r.start[next] - r.lead[next],
			index: 0 };
	if (t < start && r.lead[i] > 0)
		return { type: 'Queued in client', start: start - r.lead[i], end: start, index: 0 };
	if (t < token || r.first[i] === r.first[i + 1] && r.state[i] === DONE)
		return { type: 'TTFT', start, end: token, index: 0 };
	if (t >= end && r.state[i] !== DONE)
		return { type: 'Until it ended', start: end, end: start + r.whole[i], index: 0 };
	const k = Math.min(gapAt(r, i, t - token), r.first[i + 1] - 1);
	const from = gapStart(r, i, k), to = r.end[k];
	return { type: meta.labels[KIND_LABEL[category(r, to - from)]], start: token + from,
		end: token + to, index: k - r.first[i] + 1 };
}

function requestRows(r: Requests, meta: Meta, i: number, at: Segment): [string, string, string][] {
	const ns = (units: number): number => units * r.unitNs;
	const rows: [string, string, string][] = [
		['type', 'Type', at.type],
		['start', 'Start', clock(ns(at.start))],
		['end', 'End', clock(ns(at.end))],
		['duration', 'Duration', seconds(ns(at.end - at.start))],
		['prompt_tokens', 'Prompt Tokens', String(r.prompt[i])],
		['output_tokens', 'Output Tokens', String(r.output[i])],
		['request_start', 'Request Start Time', clock(ns(r.start[i]))],
		['request_end', 'Request End Time', clock(ns(r.start[i] + latency(r, i)))],
		['e2el', 'E2EL', duration(ns(latency(r, i)))],
		['ttft', 'TTFT', duration(ns(r.ttft[i]))],
	];
	if (r.session && r.session[i] >= 0)
		rows.splice(1, 0, ['session', 'Session', String(r.session[i])],
			['turn', 'Turn', String((r.turn?.[i] ?? 0) + 1)]);
	if (r.lead[i] > 0)
		rows.push(['waited', 'Due to sent', duration(ns(r.lead[i]))]);
	if (at.index)
		rows.push(['gap', 'Gap', `${whole(at.index)} of ${whole(r.first[i + 1] - r.first[i])}`]);
	if (r.answer[i] >= 0)
		rows.push(['answer', 'Answer after reasoning', duration(ns(r.answer[i]))]);
	if (r.state[i] !== DONE)
		rows.push(['state', 'State', STATES[r.state[i]]]);
	if (r.error[i])
		rows.push(['error', 'Error', meta.errors[r.error[i] - 1]]);
	return rows;
}

export class Hover {
	readonly element = h('div', { class: 'tip', id: 'tip', role: 'status' });

	constructor(private readonly r: Requests, private readonly meta: Meta) {
		this.hide();
	}

	hide(): void {
		this.element.hidden = true;
	}

	request(i: number, t: number, next: number, x: number, y: number): void {
		const { r, meta } = this, id = meta.facts['request_id_prefix'];
		this.element.replaceChildren(h('b', { 'data-field': 'request' }, `Req ${i}`),
			facts(requestRows(r, meta, i, segmentAt(r, meta, i, t, next))));
		if (id)
			this.element.append(h('div', { class: 'dim' }, `${id}${i}`));
		place(this.element, x, y);
	}

	track(track: Track, t: number, x: number, y: number): void {
		const values = valueAt(track, t);
		this.element.replaceChildren(h('b', {}, track.name), facts([
			['time', 'Time', clock(Math.max(0, t * this.r.unitNs))],
			...track.lines.map((line, k): [string, string, string] => [`${track.field}-${k}`,
				track.lines.length > 1 ? line.label : track.name,
				Number.isNaN(values[k]) ? '-' : `${track.unit === '%' ? fixed2(values[k])
					: short(values[k])}${track.unit}`]),
		]));
		place(this.element, x, y);
	}
}
