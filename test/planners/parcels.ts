/** A small world for runs of the htn planner: parcels that are picked up, carried one way or another, and dropped. */
import { expect } from 'vitest';
import type { Json, JsonObject, Move, Planner, RunView, Step } from '#core';
import {
  type HtnDomain,
  type HtnOptions,
  type HtnState,
  type HtnTables,
  type HtnTask,
  htn,
  htnDomain,
} from '#planners/htn';
import type { RunResult } from '#runtime';
import { runView, toolView } from '#testing';
import type { Tool } from '#tools';
import { ask } from '../kit/ask.ts';
import { entriesOf } from '../kit/run-record.ts';
import { stepOfMove, value } from '../kit/steps.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const to =
  (place: string, from?: string) =>
  (state: HtnState, parcel: string): boolean => {
    if (from !== undefined && state.get('at', parcel) !== from) return false;
    state.set('at', parcel, place);
    return true;
  };

/** A parcel is at `home`, in `hand`, in the `town` (or at its `station`), or `delivered`. */
export const PARCELS: HtnDomain = htnDomain({
  operators: {
    pick: to('hand', 'home'),
    drive: to('town', 'hand'),
    train: to('station', 'hand'),
    walk: to('town'),
    drop: to('delivered', 'town'),
    post: to('delivered'),
    note: (state, parcel: string) => {
      state.set('noted', parcel, true);
      return true;
    },
  },
  tasks: {
    deliver: {
      'by hand': (state, parcel: string) =>
        state.get('at', parcel) === 'home'
          ? [
              ['pick', parcel],
              ['carry', parcel],
              ['note', parcel],
              ['drop', parcel],
            ]
          : undefined,
      'by post': (state, parcel: string) => (state.get('at', parcel) === 'delivered' ? undefined : [['post', parcel]]),
    },
    carry: {
      'by road': (_, parcel: string) => [['drive', parcel]],
      'by rail': (_, parcel: string) => [['train', parcel]],
      'on foot': (_, parcel: string) => [['walk', parcel]],
    },
  },
});

export const STATE: HtnTables = {
  at: [
    ['p1', 'home'],
    ['p2', 'home'],
  ],
  noted: [],
};

export const TODO: readonly HtnTask[] = [
  ['deliver', 'p1'],
  ['deliver', 'p2'],
];

export type Changes = Partial<Omit<HtnOptions, 'domain'>> & { readonly domain?: HtnDomain };

/** Every action has the tool of its name, but for `note`, which only changes the state. */
export function parcels(changes: Changes = {}): Planner {
  return htn({
    domain: PARCELS,
    state: () => STATE,
    todo: () => TODO,
    step: ([name, ...args]) => (name === 'note' ? undefined : { type: 'tool', toolId: name, input: { args } }),
    ...changes,
  });
}

export interface Tools {
  readonly tools: readonly Tool[];
  /** What was called, as `drive p1`. */
  readonly calls: readonly string[];
}

export const NAMES: readonly string[] = ['pick', 'drive', 'train', 'walk', 'drop', 'post'];

/** @param bad the calls that fail, as they are shown in `calls`. */
export function parcelTools(bad: readonly string[] = [], names: readonly string[] = NAMES): Tools {
  const calls: string[] = [];
  const tools = names.map((name) =>
    make(
      name,
      (given) => {
        const { args } = given as { args: readonly Json[] };
        const call = [name, ...args].join(' ');
        calls.push(call);
        if (bad.includes(call)) throw new Error(`${call} is not possible`);
        return `${call}: done`;
      },
      { effect: 'once' },
    ),
  );
  return { tools, calls };
}

const TOOLS = toolView([...NAMES, 'act']);
export const view = (steps: readonly Step[] = [], goal?: string): RunView =>
  runView({ tools: TOOLS, steps, ...(goal === undefined ? {} : { goal }) });

export interface Ended {
  readonly result: RunResult;
  readonly calls: readonly string[];
  /** The decisions, each as its calls. */
  readonly plans: readonly (readonly string[])[];
  readonly moves: readonly JsonObject[];
}

/** A run from start to end. */
export async function play(changes: Changes = {}, bad: readonly string[] = []): Promise<Ended> {
  const { tools, calls } = parcelTools(bad);
  const made = world({ planner: parcels(changes), tools });
  const run = await start(made);
  const result = await run.result();
  const moved = await entriesOf(made.journal, run, 'moved');
  expect(made.faults).toEqual([]);
  return {
    result,
    calls,
    plans: moved.map(({ decision }) => callsOf(decision)),
    moves: moved.map(({ provenance = {} }) => provenance),
  };
}

export function callsOf(decision: Move['decision']): string[] {
  const calls = decision.kind === 'call_parallel' ? decision.branches : decision.kind === 'call_tool' ? [decision] : [];
  return calls.map(({ tool, args }) => [tool, ...((args as { args: Json[] }).args ?? [])].join(' '));
}

/** Asks for one move after the other; every call gives what `outcome` says, by what is called. */
export async function playByHand(
  planner: Planner,
  outcome: (call: string) => ReturnType<typeof value> = () => value('done'),
  goals: (step: number) => string = () => 'hello',
): Promise<{ moves: Move[]; steps: Step[] }> {
  const steps: Step[] = [];
  const moves: Move[] = [];
  for (;;) {
    const given = view(steps, goals(steps.length));
    const move = await ask(planner, given);
    // The same view, the same decision; and no other use is made of the object.
    expect(await ask(planner, given)).toEqual(move);
    moves.push(move);
    if (move.decision.kind === 'finish') return { moves, steps };
    const calls = callsOf(move.decision);
    let isOver = false;
    const outcomes = calls.map((call) => {
      const ended = isOver
        ? ({ kind: 'skipped', error: { code: 'branch_not_started', message: 'no' } } as const)
        : outcome(call);
      isOver ||= ended.kind !== 'value';
      return ended;
    });
    steps.push(stepOfMove(steps.length, move, outcomes));
  }
}

/** The calls that deliver both. */
export const BOTH: readonly string[] = ['pick p1', 'drive p1', 'drop p1', 'pick p2', 'drive p2', 'drop p2'];
