/** Who uses a handle, and what a program lets them do to the runs that it leads to: tasks below a run, and runs that go on where it has ended. */
import { assertCaller, type Caller, type ControlType, mayKnow, type RunEvent } from '#core';
import { runNotFound } from '#journal';
import type { RunHost } from './run-host.ts';

/** Asked of each run, by its id. */
export interface Gate {
  /** A run that may not be read is left out of what is read, and by a handle of its own it is not found. */
  mayRead(run: string): Promise<boolean>;
  /** @throws whatever the sender of such a control is to be told. */
  assertMaySend(type: ControlType, run: string): Promise<void>;
}

export interface HandleOptions {
  /** As the program has authenticated it. Default: the program itself. */
  readonly as?: Caller;
  /** What the caller may not do to single runs. Default: nothing is kept from it. */
  readonly gate?: Gate;
}

/**
 * Whoever may not know of a run is told what is told of runs that do not exist.
 * @throws PilotageError `run_not_found`, `identity_required` or `scope_invalid`.
 */
export function assertMayRead(host: RunHost, run: string, options: HandleOptions): Promise<void> | undefined {
  return options.as === undefined && options.gate === undefined ? undefined : assertKnown(host, run, options);
}

async function assertKnown({ deps, fleet }: RunHost, run: string, { as, gate }: HandleOptions): Promise<void> {
  if (as !== undefined) {
    // Whose a run is never changes.
    const record = fleet.driven(run) ?? (await deps.journal.get(run));
    const known = assertCaller(as);
    if (record === undefined || !mayKnow(known, record.identity)) throw runNotFound(run);
  }
  if ((await gate?.mayRead(run)) === false) throw runNotFound(run);
}

/** The events of those runs that may be read. The first run's own are not asked about. */
export function admitted<E extends RunEvent>(
  events: AsyncGenerator<E, void>,
  first: string,
  gate: Gate | undefined,
): AsyncGenerator<E, void> {
  return gate === undefined ? events : asked(events, first, gate);
}

async function* asked<E extends RunEvent>(
  events: AsyncGenerator<E, void>,
  first: string,
  gate: Gate,
): AsyncGenerator<E, void> {
  const known = new Map([[first, true]]);
  for await (const event of events) {
    const { run } = event.identity;
    let isAdmitted = known.get(run);
    if (isAdmitted === undefined) {
      isAdmitted = await gate.mayRead(run);
      known.set(run, isAdmitted);
    }
    if (isAdmitted) yield event;
  }
}
