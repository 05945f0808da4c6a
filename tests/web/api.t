#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Every route of the dashboard's OpenAPI document, asked; see api.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0), and with them no validator');
else
	import('./api.mjs');
