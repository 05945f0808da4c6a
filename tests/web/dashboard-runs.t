#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Repeats as one row, many runs changed at once, and the list of columns; see dashboard-runs.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard-runs.mjs');
