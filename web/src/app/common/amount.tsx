// SPDX-License-Identifier: Apache-2.0
// amount.tsx: a field for a number above 0 that counts once it is whole: on Enter, or when it is left.
import { useState, type FormEvent, type ReactNode } from 'react';
import { toast } from '../parts/toast';

interface Props {
	label: string; unit: string; value: number | null; onValue: (v: number | null) => void;
	placeholder?: string;
	/** The label is read out and not shown. */
	isBare?: boolean;
}

export function Amount({ label, unit, value, onValue, placeholder = 'any', isBare = false }: Props): ReactNode {
	const [typed, setTyped] = useState<string | null>(null);
	const settle = (): void => {
		const words = typed?.trim(), v = Number(words), next = words ? v : null;
		setTyped(null);
		if (words && !(Number.isFinite(v) && v > 0))
			toast(`${label}: “${words}” is not a number above 0, such as 2.5, so nothing was changed.`, 'bad');
		else if (typed !== null && next !== value)
			onValue(next);
	};
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		settle();
	};
	return (
		<form className="limit" onSubmit={submit}>
			<label><span className={isBare ? 'unseen' : ''}>{label}</span>
				<input inputMode="decimal" size={4} placeholder={placeholder} value={typed ?? value ?? ''}
					onChange={(e) => setTyped(e.target.value)} onBlur={settle} /></label>
			{unit && <span className="dim">{unit}</span>}
		</form>
	);
}
