/** Tools that let a run look at one folder, and at nothing else. They change nothing. */

import { realpathSync, statSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { assertOptions, encodedBytes, type JsonObject, type OptionShape, PilotageError } from '#core';
import { type Tool, tool } from './tool.ts';
import { type HardLinks, MAX_RESULT_BYTES } from './workspace-fence.ts';
import { gitLogTool } from './workspace-git.ts';
import { readFileTool } from './workspace-read.ts';
import { searchFilesTool } from './workspace-search.ts';
import { type Found, UNNAMEABLE, walk } from './workspace-walk.ts';

export interface WorkspaceOptions {
  /** The folder. Everything in it can be read, also hidden files; nothing outside of it can. */
  readonly root: string;
  /**
   * What happens with a file that has a second name: a hard link, which may lie outside of the folder. Default `refuse`.
   * `read` is for folders whose files are linked on purpose, such as a `node_modules` of pnpm.
   */
  readonly hardLinks?: HardLinks;
}

const OPTIONS: OptionShape<WorkspaceOptions> = { root: 'text', hardLinks: 'any?' };

/**
 * `list_files`, `read_file`, `search_files` and `git_log` for one folder, all with the effect `read`. A refusal is the
 * outcome `workspace_refused`, whose `data.reason` says why.
 * @throws PilotageError `invalid_config` when `root` is not a folder.
 */
export function workspaceTools(options: WorkspaceOptions): Tool[] {
  assertOptions('workspaceTools', options, OPTIONS);
  const { root, hardLinks = 'refuse' } = options;
  if (hardLinks !== 'refuse' && hardLinks !== 'read') {
    throw new PilotageError('invalid_config', `hardLinks is ${String(hardLinks)}; give 'refuse' or 'read'.`);
  }
  const real = realFolder(root);
  const fence = { root: real, hardLinks };
  return [listFilesTool(real), readFileTool(fence), searchFilesTool(fence), gitLogTool(fence)];
}

function realFolder(root: string): string {
  try {
    const real = realpathSync(root);
    if (statSync(real).isDirectory()) return real;
  } catch (cause) {
    throw new PilotageError('invalid_config', `The workspace ${root} cannot be read. Give an existing folder.`, {
      cause,
    });
  }
  throw new PilotageError('invalid_config', `The workspace ${root} is not a folder. Give an existing folder.`);
}

const MAX_DEPTH = 32;

/** Value: `{ entries: { path, type, sizeBytes?, note? }[], next?: { after } }`. */
function listFilesTool(root: string): Tool {
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
