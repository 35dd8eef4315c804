/** What it takes to ask the planner for a move, and what it says on the way. */
import type { EntryBody, LazySignal, LoadedInput, SpokenDelta } from '#core';
import type { RunState } from '#state';
import type { AuthorisedTools } from '#tools';
import type { Attempt } from '../calls/attempt.ts';
import type { DriverDeps } from './driver-deps.ts';

export interface Ask {
  readonly deps: DriverDeps;
  readonly state: RunState;
  readonly tools: AuthorisedTools;
  readonly inputs: readonly LoadedInput[];
  readonly attempt: Attempt;
  /** The run's own signal, the same for each of its moves. */
  readonly signal: LazySignal;
  /** Where deltas go; without it the planner need not stream. */
  readonly tell: ((delta: SpokenDelta) => void) | undefined;
  /** The run is being ended, by a cancel or by its deadline, and not only given to another process. */
  readonly isEnding: () => boolean;
  /** Told when the move is a plan that the planner goes on with. */
  readonly grows: (growth: PlanGrowth) => void;
}

/** What a streaming planner has said of the move that it is at. */
export interface StreamedText {
  text: string;
  reasoning: string;
}

/** A planner that goes on with its plan while the beginning of it is carried out. */
export interface PlanGrowth {
  /** Called when there is something to take. */
  onMore: () => void;
  /** The planner has ended, or was given up. */
  readonly settled: Promise<void>;
  /** Everything was taken, and nothing more will come. */
  readonly isOver: boolean;
  take(): readonly EntryBody[];
}

/** @throws Error for a value that is not a delta: the planner has failed. */
export function say(given: SpokenDelta, said: StreamedText, ask: Ask): void {
  const delta = readDelta(given);
  if (delta.type === 'reset') {
    said.text = '';
    said.reasoning = '';
  } else said[delta.type] += delta.text;
  ask.tell?.(delta);
}

/** A copy, so that those who watch are told what was said and never what the planner holds. */
function readDelta(given: SpokenDelta): SpokenDelta {
  const { type } = given;
  if (type === 'reset') return { type };
  const { text }: { readonly text: unknown } = given;
  if ((type === 'text' || type === 'reasoning') && typeof text === 'string') return { type, text };
  throw new Error(
    'next() yielded a value that is not a delta; a delta is { type: "text" | "reasoning", text }, or { type: "reset" }',
  );
}
