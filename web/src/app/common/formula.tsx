// SPDX-License-Identifier: Apache-2.0
// formula.tsx: a formula over columns in place of a column, "=output_throughput / power_w". The server
// reads it, says what is wrong with it, and in how many runs it has a value.
import type { ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Distribution } from '../../lib/api';
import { ApiError, post } from '../api';
import { asked } from '../filter';
import { count, measured } from '../show';
import { useFilter } from '../state';

const MEDIAN = 3; /* of the quantiles of a distribution */

export const isFormula = (text: string): boolean => text.startsWith('=');

interface Checked { formula: string; isGood: boolean; note: string }

/** What the server says about a formula, with the runs of the filter. */
export function useFormula(text: string): Checked {
	const formula = `=${text.slice(1).trim()}`, [filter] = useFilter(), isAsked = isFormula(text) && formula !== '=';
	const { data, error } = useQuery({ queryKey: ['formula', formula, filter], enabled: isAsked, retry: false,
		queryFn: ({ signal }) => post<Distribution>('/api/analysis/distribution',
			{ filter: asked(filter), metric: formula }, signal) });
	if (!isAsked)
		return { formula, isGood: false, note: 'Columns with + − * / ( ), min(a, b), max(a, b), log(a): '
			+ '=output_throughput / power_w' };
	if (error)
		return { formula, isGood: false, note: error instanceof ApiError ? error.message.replace(/^\/metric: /, '')
			: 'The server does not answer.' };
	if (!data)
		return { formula, isGood: false, note: 'Checking…' };
	const n = data.groups.reduce((sum, g) => sum + g.n, 0);
	return { formula, isGood: n > 0, note: n === 0 ? 'No run of the filter has a value: a column is missing there, or '
		+ 'it divides by zero.' : `${count(n, 'run')} of ${data.total}, median ${measured(data.groups[0].quantiles[MEDIAN])}` };
}

export function FormulaChoice({ text, action, onUse }: {
	text: string; action: string; onUse: (formula: string) => void;
}): ReactNode {
	const { formula, isGood, note } = useFormula(text);
	return (
		<div className="formula-choice">
			<p role="status" className={isGood || formula === '=' ? 'dim' : 'warn-text'}>{note}</p>
			<button type="button" className="small" disabled={!isGood} onClick={() => onUse(formula)}>{action}</button>
		</div>
	);
}
