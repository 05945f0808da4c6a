// SPDX-License-Identifier: Apache-2.0
// app.config.mjs: the dashboard's front end, for `npm run build` (dist/app) and `npm run dev`.
//
// Nothing is inlined (the dashboard's policy is default-src 'self') and nothing comes from
// elsewhere. Each page is a chunk of its own; charts come with the pages that draw them.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';

const root = dirname(fileURLToPath(import.meta.url));

export default {
	root: join(root, 'pages/app'),
	base: '/',
	configFile: false,
	publicDir: false,
	logLevel: 'warn',
	cacheDir: join(root, 'node_modules/.vite/app'),
	plugins: [react()],
	// The sources are outside the page's folder; the development server serves them at this
	// path, which no checkout has.
	resolve: { alias: [{ find: /^\/profllm-src\//, replacement: `${join(root, 'src')}/` }] },
	server: {
		fs: { allow: [root] },
		// The API of a `profllm dashboard` at its usual address.
		proxy: { '/api': process.env.PROFLLM_DASHBOARD ?? 'http://127.0.0.1:8080' },
	},
	build: {
		outDir: join(root, 'dist/app'),
		emptyOutDir: true,
		target: 'es2022',
		assetsInlineLimit: 0,
		modulePreload: { polyfill: false },
		chunkSizeWarningLimit: 1000,
	},
};
