/** Tools that let a run look at one folder, and at nothing else. They change nothing. */
import { realpathSync, statSync } from 'node:fs';
import { PilotageError } from '../core/errors.ts';
import type { Tool } from './tool.ts';
import { gitLogTool } from './workspace-git.ts';
import { listFilesTool } from './workspace-list.ts';
import { readFileTool } from './workspace-read.ts';
import { searchFilesTool } from './workspace-search.ts';

export interface WorkspaceOptions {
  /** The folder. Everything in it can be read, also hidden files; nothing outside of it can. */
  readonly root: string;
}

/**
 * `list_files`, `read_file`, `search_files` and `git_log` for one folder, all with the effect `read`. What they refuse is
 * the outcome `workspace_refused`, whose `data.reason` says why.
 * @throws PilotageError `invalid_config` when `root` is no folder.
 */
export function workspaceTools({ root }: WorkspaceOptions): Tool[] {
  const real = realFolder(root);
  return [listFilesTool(real), readFileTool(real), searchFilesTool(real), gitLogTool(real)];
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
  throw new PilotageError('invalid_config', `The workspace ${root} is no folder. Give an existing folder.`);
}
