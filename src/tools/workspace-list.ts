import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { encodedBytes, type JsonObject } from '#core';
import { type Tool, tool } from './tool.ts';
import { MAX_RESULT_BYTES } from './workspace-fence.ts';
import { type Found, UNNAMEABLE, walk } from './workspace-walk.ts';

const MAX_DEPTH = 32;

/** Value: `{ entries: { path, type, sizeBytes?, note? }[], next?: { after } }`. */
export function listFilesTool(root: string): Tool {
  return tool({
    name: 'list_files',
    description:
      'Lists the files and folders below a folder of the workspace, with sizes. Folders of tools and dependencies ' +
      '(.git, node_modules, dist …) are not walked into; list one by its path. When `next` is in the result, pass its `after` to go on.',
    effect: 'read',
    tags: ['workspace'],
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Folder, relative to the workspace. Default: the workspace itself.' },
        depth: { type: 'integer', minimum: 1, maximum: MAX_DEPTH, description: 'Levels of folders. Default 1.' },
        after: { type: 'string', description: 'Go on after this path: `next.after` of the result before.' },
      },
      additionalProperties: false,
    },
    async execute(args, { signal }) {
      const { path = '.', depth = 1, after } = args as { path?: string; depth?: number; after?: string };
      const entries: JsonObject[] = [];
      let bytes = 0;
      for await (const found of walk(root, path, { depth, signal, ...(after !== undefined && { after }) })) {
        const entry = await describe(root, found);
        bytes += encodedBytes(entry) + 1;
        const last = entries.at(-1);
        if (bytes > MAX_RESULT_BYTES && last !== undefined) return { entries, next: { after: last['path'] } };
        entries.push(entry);
      }
      return { entries };
    },
  });
}

async function describe(root: string, found: Found): Promise<JsonObject> {
  if (found.type !== 'file') return { ...found };
  try {
    const { size } = await lstat(join(root, found.path));
    return { ...found, sizeBytes: size };
  } catch {
    // Gone since its folder was read, or a name that cannot be spelled.
    return { ...found, note: found.path.includes('\uFFFD') ? UNNAMEABLE : 'is gone' };
  }
}
