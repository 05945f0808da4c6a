// SPDX-License-Identifier: Apache-2.0
// main.tsx: puts the dashboard on the page.
import './theme.css';
import './app.css';
import { createRoot } from 'react-dom/client';
import { App } from './frame';
import { followTheme } from './theme';

followTheme();
createRoot(document.getElementById('app')!).render(<App />);
