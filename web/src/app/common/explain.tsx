// SPDX-License-Identifier: Apache-2.0
// explain.tsx: what a verdict or an answer means, how it is decided and what to do next: a link at
// the end of its sentence opens a panel. Limits are those of docs/metrics.md, docs/guide/compare.md and
// docs/guide/dashboard.md.
import { useState, type ReactNode } from 'react';
import { Dialog } from '../parts/dialog';

/** Words and what they mean, or a paragraph. */
type Part = string | [word: string, meaning: string][];
interface Topic { title: string; parts: Part[] }

export const TOPICS = {
	run: { title: 'VALID, DEGRADED, INVALID', parts: [
		'Every run judges itself: it looks for reasons to doubt its own numbers, each with a limit. A reason names the '
		+ 'metrics that it spoils; the verdict is that of the worst reason.', [
			['VALID', 'No reason speaks against the numbers.'],
			['DEGRADED', 'The named metrics are doubtful: read the reasons before you quote them. The others can be '
				+ 'used. In charts such points are hollow.'],
			['INVALID', 'Do not use the named metrics. No chart, ranking or comparison uses them unless '
				+ '“Include invalid” is on; they are counted where they are left out.'],
			['Would lead', 'An INVALID run that was left out looked better than all that count. Repeat it before you '
				+ 'trust the ranking.'],
		],
		'What to do: open the run. Its page has each reason with the measured value, the limit and what helps. '
		+ '“profllm doctor” shows what limits the machine that sends the load. Then repeat the run.',
		'A run that failed has no verdict: its page shows the stage, the reason and the end of the server’s log.',
	] },
	compare: { title: 'How two sides are compared', parts: [
		'Runs are compared with runs of the same configuration and load, and with no others. Each such pair gives one '
		+ 'ratio; the change is their geometric mean, with its 95 % interval. Runs on one start of a server count as '
		+ 'one sample, however many there are.', [
			['Better, worse, faster, slower', 'The interval excludes no change. “By less than 3 %”: the change is '
				+ 'there, and surely smaller than one that is worth naming (5 % for P99).'],
			['Differ by less than 3 %', 'The 90 % interval lies within 3 % on both sides: no change that matters.'],
			['Faster for some, slower for others', 'There is evidence of both. Read the table by configuration.'],
			['Not enough data', 'The data allow a gain as well as a loss. The reason says how many server sessions '
				+ 'would decide it.'],
			['Not comparable', 'The two sides did different work: the shares of failed requests differ by more than '
				+ '1 percentage point (0.1 for P99 and means), tokens per request by more than 5 %, or a smaller share '
				+ 'kept the goodput limits. Neither a gain nor a loss is reported. “Compare only equal work” keeps '
				+ 'the configurations in which both did the same.'],
			['Cannot be compared', 'The sides have no configuration in common. A column that is removed from “Match '
				+ 'on” no longer keeps them apart, but its effect is then part of the change.'],
		],
		'The primary metric is judged by itself. All others are adjusted for their number, so that twenty metrics do not '
		+ 'give one false finding.',
	] },
	winner: { title: 'How the leader is found', parts: [
		'Only runs of one workload are ranked: the same model, dataset and lengths. Repeats are one point, their median.', [
			['Leads', 'At that speed, or a higher one, no other color has a measured point as good. Nothing is '
				+ 'interpolated.'],
			['Level', 'Within 2 % of the best, or within the spread of the repeats.'],
			['Best of a load', 'The configuration of each row that is best at a load which at least half of the rows '
				+ 'were measured at: by the speed of a user at low load, by throughput per GPU at middle and high load, '
				+ 'unless another rank is chosen.'],
			['At need', 'The most throughput per GPU among the configurations that meet what was typed as needed.'],
			['~', 'Interpolated between two measured points. Nothing is shown above the measured range.'],
			['INVALID left out', 'Runs whose metrics are INVALID take no part. “Would lead” says that one of them looked '
				+ 'better than the leader.'],
		],
		'What to do: open the number, look at the verdict of the run, and repeat it before you decide on it.',
	] },
	failure: { title: 'What a failed run means', parts: [
		'The run ended before it had a result, so it has no metrics and no verdict. Charts, rankings and comparisons leave it '
		+ 'out and say how many they left out.', [
			['start', 'The server did not come up. The end of its log says why: too little GPU memory, a model that is '
				+ 'missing, an option that this version does not know.'],
			['ready', 'The server runs, but gave no good answer to the first request. Check the address, the name of the '
				+ 'model and the endpoint.'],
			['benchmark', 'The load ran, and too many requests failed. The reason counts them; the log of the server '
				+ 'usually has the cause.'],
		],
		'What to do: read the reason and the log, correct the configuration, and use “Launch again” or the command under '
		+ '“Reproduce”. A run that failed for a reason of its own, such as a machine that was taken away, can be repeated as it is.',
	] },
	impact: { title: 'What a parameter changes', parts: [
		'Configurations that differ in one parameter and in nothing else are paired. Each pair gives one ratio; the change is '
		+ 'their geometric mean, with its 95 % interval.', [
			['▲ ▼', 'The interval excludes no change. Green is better for this metric, red is worse.'],
			['No arrow', 'The pairs allow a gain as well as a loss.'],
			['Pairs', 'How many pairs there are. Fewer than three are not shown.'],
			['Changes with it', 'Parameters that had another value in every pair too. Their effect is part of the change '
				+ 'and cannot be separated.'],
			['Share of the variance', 'How much of the scatter of all runs goes with the parameter. Other parameters differ '
				+ 'too, so a share does not prove a cause.'],
		],
		'What to do: vary one parameter alone, three times or more, where a row is missing or its interval is wide.',
	] },
	table: { title: 'The table of runs', parts: [
		'Runs with the same configuration and version are one row: “×3” is the number of repeats, the value is their median, and '
		+ '± is half of their range. The arrow opens them; “Group repeats” turns this off.', [
			['Disc', 'VALID: no reason speaks against the numbers.'],
			['Half disc', 'DEGRADED: some metrics are doubtful; the page of the run says which and why.'],
			['Cross', 'INVALID: a metric with a wavy underline must not be used.'],
			['failed, partial', 'The run ended without a result, or some of its requests failed.'],
			['Bold', 'The best three of the column. They are marked only while the table shows one workload.'],
		],
		'Columns are those in which these runs differ, then the usual metrics. What all runs share is in the line above the table.',
	] },
	change: { title: 'How a change is found', parts: [
		'A series is one configuration over commits, versions or days. A change is a step in its level that is larger than '
		+ 'its noise (p < 0.00001) and at least 3 %, or 5 % for P99, with three points on each side.', [
			['Better, worse', 'The direction of the metric. A gain that comes with more failed requests or with other '
				+ 'work is only “changed”.'],
			['Also changed', 'What else differs between the three points on each side: driver, machine, packages, '
				+ 'settings. Look there before you blame the commit.'],
			['Before / after', 'Compares the runs since the previous change with those until the next one.'],
			['Review', 'Expected, known or not real: a reviewed change is no longer listed as new.'],
		],
		'A change is a candidate. “Command that confirms it” measures both versions in turn.',
	] },
	capacity: { title: 'How the number of GPUs follows', parts: [
		'For each configuration the highest request rate of one server is looked for at which all limits are kept.', [
			['From a search', 'A run of “search: {find: rate}” with these very limits measured that rate, with its 95 % '
				+ 'interval. It is used wherever there is one.'],
			['From loads', 'Between the highest load that kept the limits and the next one, which did not. The interval is '
				+ 'that bracket; with repeats it is narrower.'],
			['GPUs', 'As many servers as the asked rate needs, rounded up, times the GPUs of a server. The range follows '
				+ 'from the interval.'],
			['Headroom', 'What these servers carry beyond the asked rate.'],
			['Needs a higher load', 'The limits were kept at every measured load: the true rate is higher. Measure a '
				+ 'higher load, or search.'],
			['At most', 'So many GPUs are enough by what was measured, and no other configuration needs fewer. A higher '
				+ 'load may show that still fewer would do.'],
		],
		'A load at which more than 1 % of the requests failed is not kept, whatever its latencies.',
	] },
} satisfies Record<string, Topic>;

export function Explain({ topic, label = 'What this means' }: { topic: keyof typeof TOPICS; label?: string }): ReactNode {
	const [isOpen, setOpen] = useState(false), { title, parts }: Topic = TOPICS[topic];
	return (
		<>
			<button type="button" className="text explain" data-explain={topic} aria-haspopup="dialog"
				aria-label={`${label}: ${title}`} onClick={() => setOpen(true)}>{label}</button>
			{isOpen && <Dialog title={title} onClose={() => setOpen(false)}>
				{parts.map((part, i) => (typeof part === 'string' ? <p key={i}>{part}</p> : (
					<dl key={i} className="meanings">{part.map(([word, meaning]) => (
						<div key={word}><dt>{word}</dt><dd>{meaning}</dd></div>))}</dl>
				)))}
			</Dialog>}
		</>
	);
}
