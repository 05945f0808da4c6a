#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The pages of a real run, opened in Chromium; see pages.mjs.
// suite: alone
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./pages.mjs');
