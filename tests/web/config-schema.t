#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Configurations of experiments, judged by an independent validator; see config-schema.mjs.
if (process.env.WEB === '0')
	console.log('1..0 # SKIP this build has no pages (WEB=0), and with them no validator');
else
	import('./config-schema.mjs');
