#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Boards and saved views, walked in Chromium; see dashboard-boards.mjs.
// suite: first
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard-boards.mjs');
