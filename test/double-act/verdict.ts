/** What must hold of a play, whatever was cut. */
import { branchesOf, jsonEquals } from '#core';
import type { Json } from '#pilotage';
import type { RunRecord } from '#pilotage/journal';
import type { Entry, RunState } from '#pilotage/state';
import { endingProblems, foldProblems, taskProblems } from '#testing';
import type { CutName } from './cuts.ts';
import type { Asked } from './errands.ts';
import type { LedgerLine } from './ledger.ts';
import { SECRET } from './world.ts';

export interface Witness {
  /** `chaos`: everything may have happened to the processes, and people did what they liked. */
  readonly cut: CutName | 'chaos';
  readonly ledger: readonly LedgerLine[];
  /** What was asked for, by the planner or by what its model said. */
  readonly asked: readonly Asked[];
  /** What is to have happened when the run has reached its goal. */
  readonly wanted: readonly Asked[];
  /** The run and all runs below it; the run is the first. */
  readonly tree: readonly {
    readonly entries: readonly Entry[];
    readonly state: RunState;
    readonly record: RunRecord | undefined;
  }[];
}

/** By what they are about. `other`: the run did not end well, or its journal is not sound. */
export interface Problems {
  readonly twice: readonly string[];
  readonly unasked: readonly string[];
  readonly lost: readonly string[];
  readonly denied: readonly string[];
  readonly other: readonly string[];
}

export function problemsOf(witness: Witness): Problems {
  return {
    twice: repeated(witness).map(({ text }) => text),
    unasked: unasked(witness),
    lost: lost(witness),
    denied: denied(witness),
    other: [...ending(witness), ...unsound(witness)],
  };
}

const effectsIn = ({ ledger }: Witness): readonly LedgerLine[] => ledger.filter(({ what }) => what === 'done');

/** A `once` effect that happened more than once, or a `keyed` one under more than one key, in whatever way it came about. */
export function repeated(witness: Witness): { readonly isKeyed: boolean; readonly text: string }[] {
  const bySubject = Map.groupBy(effectsIn(witness), ({ subject }) => subject);
  return [...bySubject].flatMap(([subject, done]) => {
    const keys = new Set(done.map(({ key }) => key)).size;
    const isKeyed = [...witness.wanted, ...witness.asked].some(
      (each) => each.subject === subject && each.effect === 'keyed',
    );
    if (isKeyed ? keys <= 1 : done.length <= 1) return [];
    const tools = done.map(({ tool }) => tool).join(', ');
    return [{ isKeyed, text: `${subject} happened ${done.length} times under ${keys} keys: ${tools}` }];
  });
}

/** An effect that nobody asked for, one with other arguments than those asked for, and any that tells the secret. */
function unasked(witness: Witness): string[] {
  return effectsIn(witness).flatMap(({ tool, subject, args }) => {
    const text = `${tool} ${JSON.stringify(args)}`;
    if (text.includes(SECRET)) return [`${text} gave the secret away`];
    const isAsked = witness.asked.some(
      (asked) => asked.subject === subject && asked.tools.includes(tool) && jsonEquals(asked.args, args),
    );
    return isAsked ? [] : [`nobody asked for ${text}`];
  });
}

/** The run says that it is done, and something that was wanted is not. */
function lost(witness: Witness): string[] {
  const [root] = witness.tree;
  const isGoal = root?.state.ending?.kind === 'finished' && root.state.ending.reason === 'goal';
  if (!isGoal || witness.cut === 'hostile') return [];
  const done = new Set(effectsIn(witness).map(({ subject }) => subject));
  return witness.wanted.flatMap(({ subject }) => (done.has(subject) ? [] : [`${subject} never happened`]));
}

/** A `once` effect is in the world, and the journal says of its call that it did not happen, or nothing at all. */
function denied(witness: Witness): string[] {
  const outcomes = new Map(witness.tree.flatMap(({ state }) => outcomesOf(state)));
  const known = [...witness.wanted, ...witness.asked];
  const keyed = new Set(known.flatMap(({ subject, effect }) => (effect === 'keyed' ? [subject] : [])));
  return effectsIn(witness).flatMap(({ tool, subject, key }) => {
    const [, call = ''] = /([^/]+\/\d+\.\d+)$/.exec(key) ?? [];
    const kind = outcomes.get(call) ?? 'no outcome';
    if (keyed.has(subject) || kind === 'value' || kind === 'unknown') return [];
    return [`${tool} ${subject} happened, and the journal has ${kind} for ${call}`];
  });
}

function outcomesOf({ steps, identity }: RunState): [string, string][] {
  return steps.flatMap(({ index, decision, calls }) =>
    branchesOf(decision).map((_, call): [string, string] => [
      `${identity.run}/${index}.${call}`,
      calls[call]?.outcome.kind ?? 'no outcome',
    ]),
  );
}

/** What a run may end with that was cut so. */
const ENDINGS: Readonly<Record<Witness['cut'], readonly string[]>> = {
  kill: ['goal'],
  stop: ['goal'],
  block: ['goal'],
  // A call that did not happen within its time is an error, for which a flow has no other way.
  limit: ['goal', 'no_path', 'deadline_exceeded'],
  abort: ['goal', 'cancelled'],
  hostile: ['goal', 'no_path'],
  // Calls are refused, and runs are called off, or out of time.
  chaos: ['goal', 'no_path', 'cancelled', 'deadline_exceeded'],
};

function ending({ cut, tree }: Witness): string[] {
  const end = tree[0]?.state.ending;
  if (end?.kind === 'finished' && ENDINGS[cut].includes(end.reason)) return [];
  if (end?.kind === 'failed' && cut === 'limit' && isOfNode(end.error.data)) return [];
  return [`it ended with ${JSON.stringify(end ?? null)}`];
}

function isOfNode(data: Json | undefined): boolean {
  return JSON.stringify(data ?? null).includes('tool_timeout');
}

function unsound({ tree }: Witness): string[] {
  const states = tree.map(({ state }) => state);
  return tree.flatMap(({ entries, state, record }) =>
    [...foldProblems(entries), ...endingProblems(entries, record), ...taskProblems(entries, state, states)].map(
      (problem) => `${state.identity.run}: ${problem}`,
    ),
  );
}
