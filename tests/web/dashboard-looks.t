#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The Runs page on several screens, and its states, in Chromium; see dashboard-looks.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard-looks.mjs');
