#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Every page, light and dark, on SQLite and on PostgreSQL (PROFLLM_TEST_POSTGRES); see
// dashboard-pages-looks.mjs.
// suite: first
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0)');
else
	import('./dashboard-pages-looks.mjs');
