/** Tools that let a run look at one folder, and at nothing else. They change nothing. */

import { realpathSync, statSync } from 'node:fs';
import { assertOptions, type OptionShape, PilotageError } from '#core';
import type { Tool } from './tool.ts';
import type { HardLinks } from './workspace-fence.ts';
import { gitLogTool } from './workspace-git.ts';
import { listFilesTool } from './workspace-list.ts';
import { readFileTool } from './workspace-read.ts';
import { searchFilesTool } from './workspace-search.ts';

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
