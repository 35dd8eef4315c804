/** What must hold of the runs of the killed processes. Each problem is a sentence that names the run. */

import { isTaskTool } from '#core';
import type { Json } from '#pilotage';
import type { Journal, RunRecord } from '#pilotage/journal';
import type { Entry, RunState } from '#pilotage/state';
import { endingProblems, foldProblems, taskProblems } from '#testing';
import { type EffectLine, effectOf, plan, resultOf } from './agent.ts';
import { outcomes } from './scenarios.ts';

/** One run: what the journal has, what the processes said of it before they died, and what happened in the world. */
export interface Witness {
  readonly entries: readonly Entry[];
  readonly state: RunState;
  readonly record: RunRecord | undefined;
  /** The states of the run at the top and of all runs below it. */
  readonly tree: readonly RunState[];
  /** The whole payload that it finished with. */
  readonly told: Json | undefined;
  /** `ack <run> <seq> <kind>`. */
  readonly said: readonly string[];
  readonly effects: readonly EffectLine[];
}

export function problemsOf(witness: Witness): string[] {
  return [...journalProblems(witness), ...endProblems(witness), ...worldProblems(witness)];
}

export function summaryOf(witnesses: readonly Witness[]): string {
  const sum = (count: (witness: Witness) => number): number =>
    witnesses.reduce((total, each) => total + count(each), 0);
  const repeated = sum(({ effects }) => effects.length - new Set(effects.map(({ key }) => key)).size);
  const unknown = sum(({ state }) => calls(state).filter(({ kind }) => kind === 'unknown').length);
  return (
    `${witnesses.length} runs (${witnesses.filter(({ state }) => state.task !== null).length} of them tasks), ${sum(({ entries }) => entries.length)} entries, ${sum(({ said }) => said.length)} said, ` +
    `${sum(({ effects }) => effects.length)} effects (${repeated} of keyed tools repeated), ${unknown} unknown outcomes`
  );
}

/** A large payload is an artifact. */
export async function payloadOf({ ending, identity }: RunState, journal: Journal): Promise<Json | undefined> {
  const payload = ending?.kind === 'finished' ? ending.payload : undefined;
  if (typeof payload !== 'object' || payload === null || !('artifactRef' in payload)) return payload;
  const stored = await journal.artifacts.get(identity, String(payload.artifactRef));
  return stored === undefined ? undefined : (JSON.parse(Buffer.from(stored.bytes).toString()) as Json);
}

function journalProblems({ entries, state, record, said, tree }: Witness): string[] {
  const problems = [
    ...foldProblems(entries),
    ...endingProblems(entries, record),
    ...taskProblems(entries, state, tree),
  ];
  for (const line of said) {
    const [, , seq, kind] = line.split(' ');
    if (entries[Number(seq) - 1]?.kind !== kind) problems.push(`the entry of "${line}" is lost`);
  }
  return problems.map((problem) => `${state.identity.run}: ${problem}`);
}

interface CallEnd {
  readonly id: string;
  readonly tool: string;
  readonly slot: string;
  readonly kind: string;
  readonly value: unknown;
}

/** Every call of a tool that the run planned, with what became of it. */
function calls(state: RunState): CallEnd[] {
  return plan(state.identity.run).flatMap((decision, step) => {
    const branches =
      decision.kind === 'call_parallel' ? decision.branches : decision.kind === 'call_tool' ? [decision] : [];
    return branches.flatMap(({ tool, args }, call) => {
      if (isTaskTool(tool)) return [];
      const outcome = state.steps[step]?.calls[call]?.outcome;
      const value = outcome?.kind === 'value' ? outcome.value : undefined;
      const slot = String((args as { slot: string }).slot);
      return { id: `${state.identity.run} ${step}.${call}`, tool, slot, kind: outcome?.kind ?? 'missing', value };
    });
  });
}

/** It reached its goal by the steps of its plan, and told what each came to. */
function endProblems({ state, told }: Witness): string[] {
  const { run } = state.identity;
  const problems: string[] = [];
  const { ending } = state;
  if (ending?.kind !== 'finished' || ending.reason !== 'goal')
    problems.push(`${run} ended with ${JSON.stringify(ending)}`);
  if (state.steps.length !== plan(run).length) problems.push(`${run} took ${state.steps.length} steps`);
  for (const [index, decision] of plan(run).entries()) {
    const step = state.steps[index];
    if (JSON.stringify(step?.decision) !== JSON.stringify(decision)) problems.push(`${run} step ${index} is another`);
    const ends = step?.calls.map(({ outcome }) => outcome.kind) ?? [];
    const unknown = ends.includes('unknown');
    const race = decision.kind === 'call_parallel' && decision.join?.kind === 'first_success';
    const fine = decision.kind === 'request_pause' ? 'verdict' : 'value';
    // A branch that needs an unknown one is skipped; the losers of a race are cancelled.
    const odd = race
      ? ends.includes('value')
        ? []
        : ends
      : ends.filter((kind) => kind !== fine && kind !== 'unknown' && !unknown);
    if (odd.length > 0) problems.push(`${run} step ${index} came to ${ends.join(', ')}`);
  }
  if (JSON.stringify(told) !== JSON.stringify(outcomes({ trajectory: state })))
    problems.push(`${run} told something else`);
  return problems;
}

/** What happened in the world, against what the journal says. */
function worldProblems({ state, effects: lines }: Witness): string[] {
  const problems: string[] = [];
  const keys = new Map<string, string>();
  for (const { id, tool, slot, kind, value } of calls(state)) {
    const effect = effectOf(tool);
    const done = lines.filter((line) => line.slot === slot && line.tool === tool);
    for (const { key } of done) {
      const other = keys.get(key);
      if (other !== undefined && other !== id) problems.push(`${id} has the key of ${other}`);
      keys.set(key, id);
    }
    if (new Set(done.map(({ key }) => key)).size > 1) problems.push(`${id} (${tool}) ran under two keys`);
    if (effect === 'once' && done.length > 1) problems.push(`${id} (${tool}) was done ${done.length} times`);
    if (effect !== 'read' && kind === 'value' && done.length === 0) problems.push(`${id} (${tool}) was never done`);
    if (kind === 'unknown' && tool !== 'pay') problems.push(`${id} (${tool}) is unknown`);
    const text = JSON.stringify(value);
    if (kind === 'value' && tool !== 'heavy' && text !== JSON.stringify(resultOf(tool, slot))) {
      problems.push(`${id} (${tool}) has the value ${text}`);
    }
  }
  const planned = new Set(calls(state).map(({ tool, slot }) => `${tool} ${slot}`));
  const strange = lines.filter(({ tool, slot }) => !planned.has(`${tool} ${slot}`));
  return strange.length === 0 ? problems : [...problems, `${state.identity.run}: ${strange.length} effects of no call`];
}
