/** Hooks for a program that keeps the messages of its sessions in a database of its own. */
import {
  assertOptions,
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

export interface HistoryHooks {
  /**
   * The turns before a turn of a session, oldest first, in place of what the session's runs say. Asked when the turn begins, and recorded with it. When it
   * throws, the turn does not begin (`history_failed`), and is tried again when the run is taken up again.
   */
  load?(about: { readonly identity: Identity }): Promise<readonly GivenTurn[]> | readonly GivenTurn[];
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

/** The entry with which a turn begins, with the turns that the program has. */
export async function turnWithOwnHistory(
  { identity }: RunState,
  load: NonNullable<HistoryHooks['load']>,
  { artifacts }: Pick<DriverDeps, 'artifacts'>,
): Promise<TurnStarted> {
  const history = await hooked('load', async () =>
    storedHistory(readHistory(await load({ identity })), identity, artifacts),
  );
  return { kind: 'turn_started', continues: { runs: [], turns: 0 }, history };
}

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
