#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The dashboard's first page, walked in Chromium; see dashboard-overview.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard-overview.mjs');
