#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Ten tasks of a new user, walked in Chromium; see dashboard-tasks.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard-tasks.mjs');
