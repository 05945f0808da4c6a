#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The pages beside Runs: light and dark, narrow, axe finds nothing; see dashboard-pages-looks.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard-pages-looks.mjs');
