/** `pilotage run`. */
import { userInfo } from 'node:os';
import { local } from '../core/identity.ts';
import { chooseModel } from './choose-model.ts';
import { follow, limitsOf, plannerFor, withRuntime } from './drive.ts';
import type { Options } from './options.ts';
import type { Terminal } from './terminal.ts';

/** @returns the exit code. */
export async function runCommand(goal: string, options: Options, terminal: Terminal): Promise<number> {
  const choice = chooseModel(options, process.env);
  const planner = await plannerFor(choice, options);
  return withRuntime(options, planner, terminal, async (runtime) => {
    if (choice === undefined) {
      terminal.note(
        'No model is set up, so a fixed survey of the folder follows; pilotage run --help says how to set one up.',
      );
    }
    const onCeiling = options.timeoutMs === undefined ? 'pause' : 'finish';
    const limits = { ...limitsOf(options), onCeiling } as const;
    const { session } = options;
    const identity = local(userName(), session === undefined ? {} : { session });
    const run = await runtime.start(goal, { identity, limits, conversation: session !== undefined });
    return follow(run, 1, options, terminal);
  });
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may give its user no name.
    return 'me';
  }
}
