// SPDX-License-Identifier: Apache-2.0
// build.mjs: every page of pages/ as one HTML file in dist/, with script and style inside; and the
// dashboard's front end as many files in dist/app (app.config.mjs).
//
// A page may load nothing: its policy names the hash of its own script and style and forbids
// everything else, so a page with a run's data in it opens from disk and sends nothing.
import { createHash } from 'node:crypto';
import {
	existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import app from './app.config.mjs';

const root = dirname(fileURLToPath(import.meta.url));
// Built in another folder and renamed as a whole, so that an incomplete build is never packed.
const dist = join(root, 'dist');
const fresh = join(root, 'node_modules/.dist-new'), old = join(root, 'node_modules/.dist-old');
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

async function page(file) {
	const html = readFileSync(join(root, 'pages', file), 'utf8');
	const entry = /<script type="module" src="([^"]+)"><\/script>\n?/.exec(html);
	if (!entry)
		throw new Error(`pages/${file} names no script`);
	const made = await build({
		root,
		configFile: false,
		logLevel: 'warn',
		build: {
			write: false,
			target: 'es2022',
			cssCodeSplit: false,
			modulePreload: false,
			assetsInlineLimit: 0,
			rollupOptions: { input: join(root, 'pages', entry[1]),
				output: { format: 'iife', inlineDynamicImports: true } },
		},
	});
	const parts = (Array.isArray(made) ? made[0] : made).output;
	const others = parts.filter((p) => p.type !== 'chunk' && !p.fileName.endsWith('.css'));
	if (others.length)
		throw new Error(`${file}: would load ${others.map((p) => p.fileName).join(', ')}`);
	const script = parts.filter((p) => p.type === 'chunk').map((p) => p.code).join('')
		.replaceAll('</script', '<\\/script').trim();
	const style = parts.filter((p) => p.type === 'asset').map((p) => p.source).join('').trim();
	const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; `
		+ "base-uri 'none'; form-action 'none'";
	const whole = html.replace(entry[0], '')
		.replace('<!--policy-->',
			() => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
		.replace('<!--style-->', () => `<style>${style}</style>`)
		.replace('<!--script-->', () => `<script>${script}</script>`);
	for (const mark of ['<!--policy-->', '<!--style-->', '<!--script-->'])
		if (!html.includes(mark))
			throw new Error(`pages/${file} has no ${mark}`);
	writeFileSync(join(fresh, basename(file)), whole);
	console.log(`${file}: ${Math.round(whole.length / 1024)} KiB`);
}

for (const folder of [fresh, old])
	rmSync(folder, { recursive: true, force: true });
mkdirSync(fresh, { recursive: true });
for (const file of readdirSync(join(root, 'pages')).filter((name) => name.endsWith('.html')))
	await page(file);
await build({ ...app, build: { ...app.build, outDir: join(fresh, 'app') } });
if (existsSync(dist))
	renameSync(dist, old);
renameSync(fresh, dist);
rmSync(old, { recursive: true, force: true });
