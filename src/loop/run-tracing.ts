/** A run as telemetry hears of it while this process drives it. What telemetry throws is a fault, and the run goes on. */
import {
  type CallPlace,
  defined,
  type Entry,
  fieldOf,
  isJsonObject,
  type Moved,
  type RunTrace,
  type Telemetry,
  type TracedAbout,
  type TracedPart,
  withTraceparent,
} from '#core';
import { grownMove, openBranches, type RunState, waitingCall } from '#state';
import type { DriverDeps } from './driver-deps.ts';

type Deps = Pick<DriverDeps, 'telemetry' | 'planner' | 'clock' | 'onFault'>;

/** How a part of the run has ended, when it has. */
type Settled<T> =
  | { readonly isThrown: false; readonly value: T }
  | { readonly isThrown: true; readonly error: unknown };

export class RunTracing {
  readonly #trace: RunTrace;
  readonly #state: RunState;
  readonly #deps: Deps;
  /** When calls that had waited went on, by their places. Milliseconds since the epoch. */
  readonly #wentOn = new Map<string, number>();
  /** The move that the planner was asked for, and has not made. */
  #asked: Pick<Moved, 'step' | 'startedAt'> | undefined;
  /** When this process took the run up. */
  readonly #since: number;

  constructor(telemetry: Telemetry, state: RunState, deps: Deps) {
    this.#trace = telemetry.of(state);
    this.#state = state;
    this.#deps = deps;
    this.#since = deps.clock.now();
  }

  /** Carries out a part of the run, once. */
  within<T>(part: TracedPart, work: () => T): T {
    let settled: Settled<T> | undefined;
    const { step, call } = part;
    if (call === undefined && this.#asked?.step !== step) this.#asked = { step, startedAt: this.#deps.clock.now() };
    try {
      this.#trace.within(part, () => {
        settled ??= settle(() => withTraceparent(this.traceparent(part), work));
      });
    } catch (error) {
      this.#deps.onFault(error);
    }
    const how = (settled as Settled<T> | undefined) ?? settle(work);
    if (how.isThrown) throw how.error;
    return how.value;
  }

  /** That of a part, or of the run itself. `undefined` where telemetry throws. */
  traceparent(part?: TracedPart): string | undefined {
    try {
      return this.#trace.traceparent(part);
    } catch (error) {
      this.#deps.onFault(error);
      return undefined;
    }
  }

  /** The journal has the entry, and the state has it not yet. */
  recorded(entry: Entry): void {
    this.#note(entry);
    try {
      this.#trace.recorded(entry, this.#about(entry));
    } catch (error) {
      this.#deps.onFault(error);
    }
    if (entry.kind === 'model_away' || entry.kind === 'paused') this.#asked = undefined;
  }

  #about(entry: Entry): TracedAbout {
    switch (entry.kind) {
      case 'moved':
        return this.#aboutMove(entry);
      case 'plan_grown':
        return this.#state.open === null ? {} : this.#aboutMove(grownMove(this.#state.open.move, entry));
      case 'model_away':
      case 'finished':
      case 'failed':
        return defined({ asked: this.#asked });
      case 'call_ended':
      case 'call_away':
      case 'call_waits':
        return this.#aboutCall(entry);
      default:
        return {};
    }
  }

  #aboutMove(move: Moved): TracedAbout {
    return move.growing === true ? {} : defined({ move, provider: this.#providerOf(move) });
  }

  #aboutCall(entry: CallPlace): TracedAbout {
    const { open } = this.#state;
    const decision = open?.move.decision;
    const isAgain = open?.again?.includes(entry.call);
    if (decision?.kind === 'spawn_task') return defined({ tool: decision.kind, isAgain });
    const { tool, args, callId } = openBranches(this.#state)[entry.call] ?? {};
    return defined({ tool, args, callId, isAgain, wentOnAt: this.#wentOnAt(entry) });
  }

  /** A process that died may have seen a wait end: then nobody knows when its call went on, but not before this one has the run. */
  #wentOnAt(at: CallPlace): number | undefined {
    const { open } = this.#state;
    const known = this.#wentOn.get(keyOf(at));
    if (known !== undefined || open === null) return known;
    const away = open.away.find(({ call }) => call === at.call);
    if (away !== undefined) return Math.max(away.retryAt, this.#since);
    return waitingCall(open, at.call) === undefined ? undefined : this.#since;
  }

  #note(entry: Entry): void {
    switch (entry.kind) {
      case 'wait_ended':
        this.#wentOn.set(keyOf(entry), entry.at);
        return;
      case 'call_away':
        this.#wentOn.delete(keyOf(entry));
        return;
      case 'resumed': {
        const { step, call } = this.#state.pauses.find(({ token }) => token === entry.token) ?? {};
        if (step !== undefined && call !== undefined) this.#wentOn.set(keyOf({ step, call }), entry.at);
        return;
      }
      case 'moved':
        this.#wentOn.clear();
        this.#asked = undefined;
        return;
      default:
        return;
    }
  }

  #providerOf({ provenance }: Moved): string | undefined {
    if (!isJsonObject(provenance)) return undefined;
    const name = provenance['modelName'] ?? provenance['model'];
    if (typeof name !== 'string') return undefined;
    const provider = fieldOf(this.#deps.planner.modelNamed?.(name)?.model, 'provider');
    return typeof provider === 'string' ? provider : undefined;
  }
}

/** `undefined` without telemetry, and where it throws. */
export function runTracing(state: RunState, deps: Deps): RunTracing | undefined {
  if (deps.telemetry === undefined) return undefined;
  try {
    return new RunTracing(deps.telemetry, state, deps);
  } catch (error) {
    deps.onFault(error);
    return undefined;
  }
}

/** For a runtime that is closed: its process may end now, and take with it what nobody has sent. */
export async function flushTelemetry({ telemetry, onFault }: Pick<Deps, 'telemetry' | 'onFault'>): Promise<void> {
  try {
    await telemetry?.flush?.();
  } catch (error) {
    onFault(error);
  }
}

function settle<T>(work: () => T): Settled<T> {
  try {
    return { isThrown: false, value: work() };
  } catch (error) {
    return { isThrown: true, error };
  }
}

function keyOf({ step, call }: CallPlace): string {
  return `${step}.${call}`;
}
