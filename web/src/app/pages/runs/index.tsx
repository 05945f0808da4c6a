// SPDX-License-Identifier: Apache-2.0
// The Runs page.
import './runs.css';
import type { ReactNode } from 'react';
import { RunsPage } from './page';

export default function Runs(): ReactNode {
	return <RunsPage />;
}
