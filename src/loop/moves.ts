/** The moves of a run's planner, one after another under the run's one signal, and the plan that it goes on with. */
import { type EntryBody, LazySignal, type SpokenDelta, type TurnStarted } from '#core';
import { nextStep, type OpenStep, type RunState } from '#state';
import type { AuthorisedTools } from '#tools';
import { Attempt } from '../calls/attempt.ts';
import type { Ask, MoveNeeds, PlanGrowth } from './ask.ts';
import { askPlanner } from './ask-planner.ts';
import type { DriverDeps } from './driver-deps.ts';
import { earlierTurns, hasEarlierTurns, NOTHING_BEFORE } from './earlier-turns.ts';
import { cutOff } from './growth.ts';
import { loadInputs } from './inputs.ts';
import type { GivenToRun, Kept } from './kept.ts';
import type { RunTracing } from './run-tracing.ts';
import { channelOf } from './said.ts';

export interface MovePorts {
  readonly deps: DriverDeps;
  readonly state: RunState;
  readonly kept: Kept;
  readonly tracing: RunTracing | undefined;
  tools(): AuthorisedTools;
  /** The run is being ended, by a cancel or by its deadline, and not only given to another process. */
  isEnding(): boolean;
  /** The planner has more of its plan. */
  onMore(): void;
}

const NOTHING_GIVEN: GivenToRun = Object.freeze({ inputs: Object.freeze([]), before: undefined });
const FIRST_TURN: GivenToRun = Object.freeze({ inputs: Object.freeze([]), before: NOTHING_BEFORE });

export class Moves {
  readonly #ports: MovePorts;
  readonly #attempt: Attempt;
  readonly #signal = new LazySignal();
  /** The planner, while it goes on with the plan of the open step. */
  #growth: PlanGrowth | undefined;
  #needs: MoveNeeds | undefined;
  readonly #grows = (growth: PlanGrowth): void => {
    this.#growth = growth;
    growth.onMore = this.#ports.onMore;
  };

  constructor(ports: MovePorts) {
    this.#ports = ports;
    this.#attempt = new Attempt(ports.deps.clock, () => {});
  }

  /** What the next move takes, when it was found to have no room. */
  get needs(): MoveNeeds | undefined {
    return this.#needs?.step === nextStep(this.#ports.state) ? this.#needs : undefined;
  }

  /** The planner goes on with a plan that is being carried out. */
  get isGrowing(): boolean {
    return this.#growth !== undefined;
  }

  /**
   * The entries of the planner's next move; `undefined` when there is nothing yet, or it was stopped: what the run needs is asked
   * again.
   */
  next(): readonly EntryBody[] | undefined | Promise<readonly EntryBody[] | undefined> {
    const { state, deps, kept } = this.#ports;
    if (kept.given === undefined) {
      if (state.context.inputs !== undefined || hasEarlierTurns(state) || isTurnToBegin(state)) return this.#load();
      kept.given = state.continues === null ? NOTHING_GIVEN : FIRST_TURN;
    }
    const loading = kept.media.load(state, deps.artifacts);
    if (loading !== undefined) return loading;
    // Stopped: why is in the inbox.
    return this.#attempt.aborted ? undefined : askPlanner(this.#ask(kept.given));
  }

  /** However long it takes: what was true before it, of the time too, may be so no more. */
  async #load(): Promise<readonly EntryBody[] | undefined> {
    const { state, deps, kept } = this.#ports;
    if (isTurnToBegin(state)) {
      return this.#attempt.run<TurnStarted, readonly EntryBody[] | undefined>(
        ({ signal }) => deps.turnStarted(state, signal),
        (settled) => {
          if (settled.kind === 'thrown') throw settled.error.value;
          // Stopped: why is in the inbox.
          return settled.kind === 'value' ? [settled.value] : undefined;
        },
        { signal: this.#signal },
      );
    }
    const inputs = await loadInputs(state.context.inputs ?? [], state.identity, deps.artifacts);
    const hasBefore = state.continues !== null || hasEarlierTurns(state);
    kept.given = { inputs, before: hasBefore ? await earlierTurns(state, deps) : undefined };
  }

  /** More of the plan that is being carried out. After a crash nobody goes on with it: it is whole as it is. */
  takeGrowth({ move: { step } }: OpenStep): readonly EntryBody[] {
    const growth = this.#growth;
    if (growth === undefined) return [cutOff(step)];
    const grown = growth.take();
    if (growth.isOver) this.#growth = undefined;
    return grown;
  }

  /** Until the planner has ended, or was given up. */
  async settle(): Promise<void> {
    await this.#growth?.settled;
  }

  abort(reason: unknown, isPatient: boolean): void {
    this.#attempt.abort(reason, isPatient);
  }

  #ask({ inputs, before }: GivenToRun): Ask {
    const { deps, state, kept, tools, isEnding } = this.#ports;
    const { run } = state.identity;
    deps.hub.begins(run, nextStep(state));
    const tell = deps.hub.mayWantTokens(run) ? this.#teller() : undefined;
    return {
      deps,
      state,
      tools: tools(),
      media: kept.media.view,
      inputs,
      before,
      cache: kept.cache,
      attempt: this.#attempt,
      signal: this.#signal,
      tracing: this.#ports.tracing,
      tell,
      isEnding,
      grows: this.#grows,
      lacks: (needs) => {
        this.#needs = needs;
      },
    };
  }

  /** Passes a move's deltas on, with the offset that shows a reader what it has missed. */
  #teller(): (delta: SpokenDelta) => void {
    const { deps, state } = this.#ports;
    const { run } = state.identity;
    const step = nextStep(state);
    const offsets = new Map<string, number>();
    return (spoken) => {
      if (spoken.type === 'reset') {
        offsets.clear();
        deps.hub.tell(run, { type: 'delta', step, delta: spoken, offset: 0 });
        return;
      }
      // A secret that comes in two pieces is seen by listeners, and is written nowhere.
      const delta = { ...spoken, text: deps.redaction.known(spoken.text) };
      const channel = channelOf(delta);
      const offset = offsets.get(channel) ?? 0;
      deps.hub.tell(run, { type: 'delta', step, delta, offset });
      offsets.set(channel, offset + delta.text.length);
    };
  }
}

/** A turn of a session that does not know yet what it goes on from. */
function isTurnToBegin({ turn, continues, history }: RunState): boolean {
  return turn !== null && continues === null && history.length === 0;
}
