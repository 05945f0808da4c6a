// SPDX-License-Identifier: Apache-2.0
// dropped.ts: files dropped on the page, folders with everything in them.

export interface Named { file: File; name: string }

const FILES_MAX = 10_000;

function readAll(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
	return new Promise((then, fail) => {
		const all: FileSystemEntry[] = [];
		const more = (): void => reader.readEntries((some) => {
			if (!some.length || all.length > FILES_MAX) {
				then(all);
			} else {
				all.push(...some);
				more();
			}
		}, fail);
		more();
	});
}

async function walk(entry: FileSystemEntry, path: string, out: Named[]): Promise<void> {
	if (out.length >= FILES_MAX)
		return;
	if (entry.isFile) {
		const file = await new Promise<File>((then, fail) =>
			(entry as FileSystemFileEntry).file(then, fail));
		out.push({ file, name: path + entry.name });
	} else {
		const inner = await readAll((entry as FileSystemDirectoryEntry).createReader());
		for (const e of inner)
			await walk(e, `${path}${entry.name}/`, out);
	}
}

/** Called within the drop: afterwards the browser has released the files. */
export async function droppedFiles(data: DataTransfer): Promise<Named[]> {
	const entries = [...data.items].map((item) => item.webkitGetAsEntry?.() ?? null);
	const plain = [...data.files];
	if (entries.some((e) => e?.isDirectory)) {
		const out: Named[] = [];
		for (const e of entries)
			if (e)
				await walk(e, '', out);
		return out;
	}
	return plain.map((file) => ({ file, name: file.name }));
}

export const pickedFiles = (list: FileList | null): Named[] =>
	[...list ?? []].map((file) => ({ file, name: file.webkitRelativePath || file.name }));
