// SPDX-License-Identifier: Apache-2.0
// kubernetes.mjs FILE: a manifest as a TypeScript program, to stdout. Each document is a literal of its kind's
// type from the npm package kubernetes-types, so that the compiler refuses keys that the kind does not have
// and values of other types.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const yaml = createRequire(join(process.cwd(), 'x.js'))('yaml');
yaml.parseAllDocuments(readFileSync(process.argv[2], 'utf8')).forEach((document, i) => {
	if (document.errors.length) throw document.errors[0];
	const object = document.toJS();
	const version = object.apiVersion.includes('/') ? object.apiVersion : `core/${object.apiVersion}`;
	console.log(`import { ${object.kind} as Kind${i} } from 'kubernetes-types/${version}';`);
	console.log(`export const document${i}: Kind${i} = ${JSON.stringify(object, null, 1)};`);
});
