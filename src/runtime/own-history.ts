/** Hooks for a program that keeps the messages of its sessions in a database of its own. */
import {
  assertOptions,
  type Clock,
  defined,
  describeThrown,
  type Identity,
  type OptionShape,
  PilotageError,
  scopeKey,
  type Turn,
  type TurnStarted,
} from '#core';
import type { RunState } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { type GivenTurn, readHistory, storedHistory } from './given-history.ts';
import { spokenTurns } from './session-messages.ts';

/** What `history.load` is told. */
export interface HistoryRequest {
  readonly identity: Identity;
  /** The turns on the way to this one on its branch, oldest first, as many as `memory.turns` says: the ids of their runs. */
  readonly turns: readonly string[];
  /** Aborted when the turn is not to begin any more. */
  readonly signal: AbortSignal;
}

export interface HistoryHooks {
  /**
   * The turns before a turn of a session, oldest first, in place of what the session's runs say. Asked when the turn begins, and recorded with it. When it
   * throws, the turn does not begin (`history_failed`), and is tried again when the run is taken up again.
   */
  load?(about: HistoryRequest): Promise<readonly GivenTurn[]> | readonly GivenTurn[];
  /**
   * Called when a turn has ended, with all that was said and done in it, by the process that has ended it; `toModelMessages` of `pilotage/messages` makes
   * messages of it. It may be called for turns that are saved already (by their run), and not at all when the process dies then: `session.messages()` has them.
   */
  save?(about: { readonly identity: Identity; readonly turns: readonly Turn[] }): Promise<void> | void;
}

const HOOKS: OptionShape<HistoryHooks> = { load: 'function?', save: 'function?' };

/** @throws PilotageError `invalid_config`. */
export function assertHistoryHooks(hooks: HistoryHooks): void {
  assertOptions('createRuntime({ history })', hooks, HOOKS);
}

/**
 * The entry with which a turn begins, with the turns that the program has in the place of those of the session's runs.
 * @throws PilotageError `history_failed`.
 */
export async function withOwnHistory(
  { continues, ...started }: TurnStarted,
  { identity }: RunState,
  load: (about: Omit<HistoryRequest, 'signal'>) => ReturnType<NonNullable<HistoryHooks['load']>>,
  { artifacts }: Pick<DriverDeps, 'artifacts'>,
): Promise<TurnStarted> {
  const { runs, aside } = continues;
  const history = await hooked('load', async () => {
    const given: unknown = await load({ identity, turns: runs.map(({ run }) => run) });
    if (!Array.isArray(given)) throw new Error('it gave no list of turns. Give [] where there are none.');
    return storedHistory(readHistory(given as readonly GivenTurn[]), identity, artifacts);
  });
  return { ...started, continues: { runs: [], turns: 0, ...defined({ aside }) }, history };
}

/** How long a runtime that closes waits for saves. */
const SAVE_MS = 5_000;

/** Gives turns that have ended to the program, and waits for it when the runtime is closed. */
export class TurnSaves {
  readonly #hooks: HistoryHooks;
  readonly #deps: () => Pick<DriverDeps, 'journal' | 'artifacts' | 'told' | 'onFault'>;
  /** With the session of each. */
  readonly #underWay = new Map<Promise<void>, string>();

  constructor(hooks: HistoryHooks, deps: () => Pick<DriverDeps, 'journal' | 'artifacts' | 'told' | 'onFault'>) {
    this.#hooks = hooks;
    this.#deps = deps;
  }

  /** A fault of the program's own hook is told to `onFault`: the turn has ended whatever becomes of it. */
  ended(state: RunState): void {
    if (this.#hooks.save === undefined || !state.conversation || state.task !== null) return;
    const saved: Promise<void> = this.#save(state)
      .catch((error: unknown) => this.#deps().onFault(error))
      .finally(() => this.#underWay.delete(saved));
    this.#underWay.set(saved, scopeKey(state.identity));
  }

  /** With a session, the saves of that one alone: its next turn is to be given what was said before. */
  async settled(session?: Identity): Promise<void> {
    const key = session && scopeKey(session);
    const awaited = [...this.#underWay].filter(([, of]) => key === undefined || of === key);
    await Promise.all(awaited.map(([saved]) => saved));
  }

  /** Those that take too long are left alone, and `onFault` hears of it. */
  async close(clock: Clock): Promise<void> {
    if (this.#underWay.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = clock.after(SAVE_MS, () => {
      this.#deps().onFault(new PilotageError('history_failed', `history.save did not end within ${SAVE_MS} ms.`));
      resolve();
    });
    await Promise.race([this.settled(), promise]);
    stop();
  }

  async #save({ identity, head, turn, ending }: RunState): Promise<void> {
    const deps = this.#deps();
    const { told } = await deps.told.of(identity.run, head, identity, deps);
    const record = turn?.succeeds === undefined ? undefined : await deps.journal.get(turn.succeeds);
    const before = record && (await deps.told.of(record.identity.run, record.head, identity, deps));
    const goesOn = ending?.kind === 'finished' && ending.successor !== undefined;
    const turns = spokenTurns(told, before?.told, goesOn);
    await hooked('save', async () => this.#hooks.save?.({ identity, turns }));
  }
}

/** @throws PilotageError `history_failed`. */
async function hooked<T>(name: keyof HistoryHooks, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw new PilotageError('history_failed', `history.${name} has failed: ${describeThrown(cause)}`, { cause });
  }
}
