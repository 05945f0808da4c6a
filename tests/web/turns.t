#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Conversations on the pages of a run and on the dashboard; see turns.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./turns.mjs');
