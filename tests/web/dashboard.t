#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The dashboard's frame and its Runs page on a real dashboard, in Chromium; see dashboard.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard.mjs');
