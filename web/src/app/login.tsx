// SPDX-License-Identifier: Apache-2.0
// login.tsx: asks for a token: of the dashboard's token file, or of the URL that it printed when it started.
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
		<Dialog title="Log in" onClose={onClose}>
			<form className="stack" onSubmit={(event) => void submit(event)}>
				<p>This dashboard needs a token; ask the person who runs it for one. If you started it
					yourself, the token is in the URL that it printed,{' '}
					<code>{location.origin}/?token=…</code>, or in the file of --auth-token-file.</p>
				<input type="text" name="username" autoComplete="username" value="token" readOnly hidden />
				<label className="field">
					<span>Token</span>
					<input type="password" autoComplete="current-password" value={token} autoFocus
						onChange={(event) => setToken(event.target.value)} />
				</label>
				{wrong && <p className="bad-text" role="alert">{wrong}</p>}
				<div className="actions">
					<button type="submit" className="primary" disabled={!token.trim() || isSent}>
						Log in
					</button>
				</div>
			</form>
		</Dialog>
	);
}
