// SPDX-License-Identifier: Apache-2.0
// chips.tsx: the filter in words, each part with a button that removes it.
import type { ReactNode } from 'react';
import { EVERYTHING, isCondition, withoutPart, type And } from '../../filter';
import { Icon } from '../../parts/icon';
import { conditionText, filterText } from './view';

interface Props {
	filter: And;
	label: (column: string) => string;
	onFilter: (next: And) => void;
	onEdit: () => void;
}

export function Chips({ filter, label, onFilter, onEdit }: Props): ReactNode {
	return (
		<div className="chips" role="group" aria-label="Filters in use">
			{filter.and.map((part, i) => {
				const text = filterText(part, label);
				return (
					<span className="chip" key={JSON.stringify(part)}>
						<button type="button" className="chip-text" title={`${text}. Edit`}
							onClick={onEdit}>
							{isCondition(part) ? (
								<><span className="chip-name">
									{part.column === '*' ? 'any text' : label(part.column)}
								</span> {conditionText(part)}</>
							) : text}
						</button>
						<button type="button" className="chip-out" aria-label={`Remove ${text}`}
							onClick={() => onFilter(withoutPart(filter, i))}>
							<Icon name="cross" />
						</button>
					</span>
				);
			})}
			{filter.and.length > 1 && <button type="button" className="quiet small"
				onClick={() => onFilter(EVERYTHING)}>Clear all</button>}
			<button type="button" className="quiet small" onClick={onEdit}>
				<Icon name="plus" />{filter.and.length ? 'And, or, not' : 'Filter'}
			</button>
		</div>
	);
}
