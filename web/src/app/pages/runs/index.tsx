// SPDX-License-Identifier: Apache-2.0
// The Runs page: which runs, and what they say.
import './runs.css';
import type { ReactNode } from 'react';
import { RunsPage } from './page';

export default function Runs(): ReactNode {
	return <RunsPage />;
}
