/** Options with which a run is started. */

import {
  assertOptions,
  type Identity,
  type InputArtifact,
  type Limits,
  type OptionShape,
  PilotageError,
  spawnerOf,
  type Turn,
} from '#core';
import type { Journal } from '#journal';
import type { GivenContext, InputFile } from '../loop/inputs.ts';

export interface StartOptions {
  /**
   * The identity, with all four parts; `local('name')` makes one. Default, for a script: `local('local')`, so the tenant and the user are
   * named `local`. Leave the key out for it: an identity that is there and `undefined` is refused.
   */
  readonly identity?: Identity;
  readonly limits?: Limits;
  /** The name of one of the runtime's agents. Default: the first of them. */
  readonly agent?: string;
  /** Earlier turns of the conversation. Default: the turns that the session remembers, if the runtime has `memory`. */
  readonly history?: readonly Turn[];
  /** False: the run neither continues its session's conversation nor becomes a turn of it. Default true. */
  readonly conversation?: boolean;
  /** Scopes that the user holds. Default none. */
  readonly scopes?: readonly string[];
  /**
   * Aborting it cancels the run, and what is in flight, as `Run.cancel` does, as long as this runtime is open. A signal that is aborted
   * already starts nothing.
   */
  readonly signal?: AbortSignal;
  /** The priority, -1000 to 1000; a higher one is driven first. Default 0. */
  readonly priority?: number;
  /**
   * Context for the planner beside the query. A memory block with an `identity` of its own is refused when its tenant, user or
   * session differs.
   */
  readonly context?: GivenContext;
  /** Attachments: references of artifacts of the session, or bytes that are stored as such. */
  readonly inputs?: readonly (InputArtifact | InputFile)[];
}

export const START_OPTIONS: OptionShape<StartOptions> = {
  identity: 'any?',
  limits: 'object?',
  agent: 'text?',
  history: 'list?',
  conversation: 'flag?',
  scopes: 'list?',
  signal: 'signal?',
  priority: 'any?',
  context: 'object?',
  inputs: 'list?',
};
const CONTEXT: OptionShape<GivenContext> = {
  args: 'any?',
  meta: 'any?',
  hints: 'object?',
  externalMemory: 'any?',
  conversationMemory: 'any?',
  retrieved: 'any?',
  skills: 'list?',
  reasoningReplay: 'text?',
};

/** @throws PilotageError `invalid_config`. */
export function assertStartOptions(options: StartOptions): void {
  assertOptions('start', options, START_OPTIONS);
  if (options.context !== undefined) assertOptions('context', options.context, CONTEXT);
  const withheld: unknown = options.context?.hints?.disallowedTools;
  if (withheld !== undefined && !(Array.isArray(withheld) && withheld.every((name) => typeof name === 'string'))) {
    throw new PilotageError('invalid_config', 'context.hints.disallowedTools must be a list of names of tools.');
  }
  for (const [index, turn] of (options.history ?? []).entries()) {
    const isTurn = (turn?.role === 'user' || turn?.role === 'assistant') && typeof turn.text === 'string';
    if (isTurn) continue;
    const message = `history[${index}] is not a turn. Give { role, text }, with the role user or assistant.`;
    throw new PilotageError('invalid_config', message);
  }
}

/** Ids that nobody may give to a run of their own, because a run that is there may come to start a task of that id. */

/**
 * A run that is there already is not asked about: it may be that task.
 * @throws PilotageError `invalid_config` for the id of a task that another run may still start.
 */
export async function assertNoTaskId(journal: Journal, run: string): Promise<void> {
  const spawner = spawnerOf(run);
  if (spawner === undefined || (await journal.get(spawner)) === undefined) return;
  if ((await journal.get(run)) !== undefined) return;
  throw new PilotageError(
    'invalid_config',
    `The run id ${run} is kept for a task of the run ${spawner}. Leave it out, and a fresh one is made.`,
    { data: { run } },
  );
}
