/** Options with which a run is started. */

import {
  type Author,
  assertKnownKeys,
  assertLabels,
  assertOptions,
  assertTexts,
  assertUndoOptions,
  assertWhileAsked,
  type ClientToolSpec,
  type Identity,
  type InputFile,
  isOptionsRecord,
  type Labels,
  type Limits,
  type OptionShape,
  PilotageError,
  type PlanningHints,
  readMoment,
  readStartKey,
  type Skill,
  START_KINDS,
  type StartKey,
  type StartKind,
  spawnerOf,
  type UndoOptions,
  type WhileAsked,
} from '#core';
import type { Journal } from '#journal';
import type { MessageFile } from '#messages';
import type { GivenContext } from '../loop/inputs.ts';
import type { GivenTurn } from './given-history.ts';

export interface StartOptions extends UndoOptions {
  /**
   * The identity, with all four parts; `local('name')` makes one. Default, for a script: `local('local')`, so the tenant and the user are
   * named `local`. Leave the key out for it: an identity that is there and `undefined` is refused.
   */
  readonly identity?: Identity;
  readonly limits?: Limits;
  /** The name of one of the runtime's agents. Default: the first of them. */
  readonly agent?: string;
  /**
   * Earlier turns of the conversation, as `{ role, text }` or as messages of the AI SDK. Default: what the runs of the session said, if the
   * runtime has `memory`.
   */
  readonly history?: readonly GivenTurn[];
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
  /**
   * What a message of the user does to approvals and logins that are open. `withdraw`: they are closed as `superseded`, so that no call of theirs
   * is made, and the planner hears the message. `keep`: the message is heard when they have been answered. It is recorded with the run, and holds for its tasks. Default: what the
   * planner says, or else `withdraw`. A REDIRECT always withdraws them.
   */
  readonly whileAsked?: WhileAsked;
  /** Attachments: references of artifacts of the session, or bytes that are stored as such, or URLs, if the runtime fetches files (`files`). */
  readonly inputs?: readonly MessageFile[];
  /**
   * Tools of whoever starts the run, such as a page, which carries their calls out, beside those of the agent: at most 64. Each call is parked until
   * somebody says what it came to, by the token of its pause. They are recorded with the run; a fork and the run that goes on with it have them, tasks have not.
   */
  readonly clientTools?: readonly ClientToolSpec[];
  /** Who has written the query, as the program knows; models are told. A text is the name. */
  readonly author?: Author | string;
  /** Names and values by which `list({ labels })` finds the run: at most 32, of 64 and 256 characters. A fork keeps them; tasks have none of their owner's. */
  readonly labels?: Labels;
  /**
   * The run begins then, by the clock of the store, and is `pending` until then; one that lies in the past begins at once. A text has its
   * zone in it. It does not become a turn of its session's conversation.
   */
  readonly at?: Date | number | string;
  /** As long as a run of this key is under way, it is given back, and nothing is started. Keys are those of the tenant, as in the next three. */
  readonly singleton?: { readonly key: string };
  /**
   * When starts follow each other within `waitMs`, the last one runs, once, when that time is over after it, or `maxWaitMs` after the first. All get the
   * same run, which does not become a turn of its session's conversation.
   */
  readonly debounce?: { readonly key: string; readonly waitMs: number; readonly maxWaitMs?: number };
  /** No more than `limit` runs of this key begin within `perMs`, 1,000 at most: others begin later, in order. The run does not become a turn of its session's conversation. */
  readonly throttle?: { readonly key: string; readonly limit: number; readonly perMs: number };
  /** The same, but what is too much is refused with `rate_limited`, and `data.allowedAt` says when it would not be. */
  readonly rate?: { readonly key: string; readonly limit: number; readonly perMs: number };
  /**
   * The same request again, under the same key of the same user, gives the run that was started the first time, whether or not it has ended. Another request
   * under it is refused (`idempotency_conflict`). The id of the run follows from the key: `identity.run` is not used.
   */
  readonly idempotencyKey?: string;
}

/** What says when a run begins, or whether. */
export type BeginOptions = Pick<StartOptions, 'at' | 'idempotencyKey' | StartKind>;

const BEGIN: OptionShape<BeginOptions> = {
  ...({ at: 'any?', singleton: 'object?', debounce: 'object?', throttle: 'object?', rate: 'object?' } as const),
  idempotencyKey: 'text?',
};

/** The options of whatever begins in its turn. */
export const TURN_OPTIONS: OptionShape<Omit<StartOptions, keyof BeginOptions>> = {
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
  author: 'any?',
  labels: 'any?',
  whileAsked: 'any?',
  clientTools: 'list?',
  onFail: 'any?',
  undo: 'object?',
};

const START_OPTIONS: OptionShape<StartOptions> = { ...TURN_OPTIONS, ...BEGIN };
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

const HINTS: OptionShape<PlanningHints> = {
  ...({ constraints: 'text?', preferredOrder: 'list?', parallelGroups: 'list?', maxParallel: 'count?' } as const),
  ...({ disallowedTools: 'list?', preferredTools: 'list?', budget: 'object?' } as const),
};
const HINTED_BUDGET: OptionShape<NonNullable<PlanningHints['budget']>> = {
  ...({ steps: 'number?', costUsd: 'number?', latencyMs: 'number?' } as const),
};
const SKILL: OptionShape<Skill> = { name: 'any', title: 'any', description: 'any?', steps: 'any?' };
const FILE: OptionShape<InputFile> = { bytes: 'any', mime: 'any', fileName: 'any?' };
const ATTACHMENT: readonly string[] = [...Object.keys(FILE), 'artifactRef', 'sizeBytes', 'url'];
/** What else the reference of a stored value has. */
const ROW: readonly string[] = ['preview', 'source', 'createdAt'];

function assertContext(context: GivenContext): void {
  assertOptions('context', context, CONTEXT);
  const { hints, skills = [] } = context;
  assertHints(hints ?? {});
  for (const [index, skill] of skills.entries()) assertKnownKeys(`context.skills[${index}]`, skill, Object.keys(SKILL));
}

/** Advice that a planner could not read would end the run, or be dropped, when it is decided. */
function assertHints(hints: PlanningHints): void {
  assertOptions('context.hints', hints, HINTS);
  if (hints.budget !== undefined) assertOptions('context.hints.budget', hints.budget, HINTED_BUDGET);
  const { parallelGroups = [], ...named } = hints;
  for (const list of ['preferredOrder', 'preferredTools', 'disallowedTools'] as const) {
    if (named[list] !== undefined) assertTexts(`context.hints.${list}`, named[list], "['send_mail']");
  }
  for (const [index, group] of parallelGroups.entries()) {
    assertTexts(`context.hints.parallelGroups[${index}]`, group, "['search', 'read_file']");
  }
}

/** @throws PilotageError `invalid_config`. */
export function assertStartOptions(options: StartOptions): void {
  assertOptions('start', options, START_OPTIONS);
  assertWhileAsked(options.whileAsked, 'start');
  assertUndoOptions('start', options);
  const { context, inputs = [], scopes = [], labels } = options;
  if (labels !== undefined) assertLabels('start', labels);
  assertTexts('The option scopes of start', scopes, "['mail.send']");
  if (context !== undefined) assertContext(context);
  for (const [index, input] of inputs.entries()) {
    // What has no attachment in it is refused where attachments are stored.
    if (isOptionsRecord(input)) assertKnownKeys(`inputs[${index}]`, input, ATTACHMENT, ROW);
  }
}

export interface Begin {
  /** Milliseconds since the epoch, when it is known before the store is asked. */
  readonly startsAt?: number;
  readonly key?: StartKey;
  /** The run may begin later than it is stored. */
  readonly isLater: boolean;
}

/** @param now milliseconds since the epoch. @throws PilotageError `invalid_config`. */
export function readBegin(options: StartOptions, now: number): Begin {
  const kinds = START_KINDS.filter((kind) => options[kind] !== undefined);
  const [kind, other] = kinds;
  if (kind !== undefined && other !== undefined) throw together(kind, other);
  const isTimed = kind === 'debounce' || kind === 'throttle';
  const { at, conversation, idempotencyKey } = options;
  if (idempotencyKey !== undefined && (kind === 'singleton' || kind === 'debounce'))
    throw together('idempotencyKey', kind);
  if (at !== undefined && isTimed) throw together('at', kind);
  const isLater = isTimed || at !== undefined;
  if (isLater && conversation === true) {
    throw new PilotageError(
      'invalid_config',
      'A run that begins later does not become a turn of its conversation, which would wait for it: leave conversation out. A schedule with a session says something at a time.',
    );
  }
  const given = kind === undefined ? undefined : options[kind];
  return {
    isLater,
    ...(at === undefined ? {} : { startsAt: readMoment('The option at of start', at, now) }),
    ...(kind === undefined || given === undefined ? {} : { key: readStartKey(kind, given) }),
  };
}

function together(one: string, other: string): PilotageError {
  return new PilotageError(
    'invalid_config',
    `start takes either ${one} or ${other}: both say which run it is, or when it begins.`,
  );
}

/** With these begin the ids of runs that schedules start. */
export const SCHEDULED_RUN = 'schedule_';

// Ids that nobody may give to a run of their own, because a run that is there, or a schedule, may come to start one of that id.

/**
 * A run that is there already is not asked about: it may be that task.
 * @throws PilotageError `invalid_config` for the id of a task that another run may still start, or of a run of a schedule.
 */
export async function assertFreeId(journal: Journal, run: string): Promise<void> {
  if (run.startsWith(SCHEDULED_RUN)) {
    throw new PilotageError(
      'invalid_config',
      `The run id ${run} begins as those of runs that schedules start. Leave it out, and a fresh one is made.`,
      { data: { run } },
    );
  }
  const spawner = spawnerOf(run);
  if (spawner === undefined || (await journal.get(spawner)) === undefined) return;
  if ((await journal.get(run)) !== undefined) return;
  throw new PilotageError(
    'invalid_config',
    `The run id ${run} is kept for a task of the run ${spawner}. Leave it out, and a fresh one is made.`,
    { data: { run } },
  );
}
