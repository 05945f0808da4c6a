// SPDX-License-Identifier: Apache-2.0
// login.tsx: asks for the token that the dashboard was started with.
import { useState, type FormEvent, type ReactNode } from 'react';
import { post } from './api';
import { Dialog } from './parts/dialog';
import { refresh } from './query';

export function Login({ onClose }: { onClose: () => void }): ReactNode {
	const [token, setToken] = useState('');
	const [wrong, setWrong] = useState('');
	const [isSent, setSent] = useState(false);
	const submit = async (event: FormEvent): Promise<void> => {
		event.preventDefault();
		setSent(true);
		try {
			await post('/api/login', { token: token.trim() });
			onClose();
			refresh();
		} catch (why) {
			setWrong(why instanceof Error ? why.message : String(why));
		}
		setSent(false);
	};
	return (
		<Dialog title="Token" onClose={onClose}>
			<form className="stack" onSubmit={(event) => void submit(event)}>
				<p>This dashboard is read with a token. Whoever runs it has it in the file given to
					{' '}<code>--auth-token-file</code>.</p>
				<input type="text" name="username" autoComplete="username" value="token" readOnly hidden />
				<label className="field">
					<span>Token</span>
					<input type="password" autoComplete="current-password" value={token} autoFocus
						onChange={(event) => setToken(event.target.value)} />
				</label>
				{wrong && <p className="bad-text" role="alert">{wrong}</p>}
				<div className="actions">
					<button type="submit" className="primary" disabled={!token.trim() || isSent}>
						Go on
					</button>
				</div>
			</form>
		</Dialog>
	);
}
