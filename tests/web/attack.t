#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Requests made from the OpenAPI document, most of them mutated, against a dashboard; see attack.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0), and with them no validator');
else
	import('./attack.mjs');
