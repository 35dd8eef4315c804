/**
 * What the calls with an effect that earlier steps of a run have made came to, by tool and arguments: a plan that is made anew
 * takes that, and makes none of them a second time. Nothing of it is stored: it is read off the steps, of which each is looked
 * at once, and only when somebody asks.
 *
 * Arguments are equal also when the tool would get the same of both, since its schema fills in what one of them left out. And a
 * call that a person has changed answers to what was planned as well, for whoever plans anew may know nothing of the change.
 */

import { createHash } from 'node:crypto';
import {
  branchesOf,
  type CallPlace,
  type CallRecord,
  capture,
  type Effect,
  isJsonObject,
  type Json,
  type Outcome,
  type Step,
} from '#core';
import type { ArtifactStore } from '#journal';
import type { RunState } from '#state';
import type { ValueCheck } from '#tools';
import { argsInStep, plannedArgs } from './arguments.ts';

/** A short text that stands for a value. */

/** Equal for equal values, in whichever order their keys are. */
export function jsonDigest(value: Json): string {
  const sorted = JSON.stringify(value, (_, part: Json) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
  return createHash('sha256').update(sorted).digest('base64url');
}

export interface Earlier {
  /** The call that was made. */
  readonly place: CallPlace;
  /** What the new call comes to. Absent: it is made, under the idempotency key of the earlier one, which may have happened. */
  readonly outcome?: Outcome;
}

export interface EarlierPorts {
  readonly state: RunState;
  readonly artifacts: ArtifactStore;
  /** The present form of a recorded tool; `undefined` when it does not exist any more. */
  toolOf(tool: string): KnownTool | undefined;
}

export interface KnownTool {
  readonly name: string;
  readonly effect: Effect;
  readonly checkArgs: ValueCheck;
}

export class EarlierCalls {
  readonly #ports: EarlierPorts;
  /** By what the calls were made with. */
  readonly #made = new Map<string, Earlier>();
  /** By what was planned, where a person has changed it. */
  readonly #planned = new Map<string, Earlier>();
  #seen = 0;
  /** The last step that was looked at. */
  #last: Step | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(ports: EarlierPorts) {
    this.#ports = ports;
  }

  /** @param args as the tool is to get them, before its schema has filled in anything. */
  async find(tool: string, args: Json): Promise<Earlier | undefined> {
    // Questions are answered one after the other, since several calls of a plan may ask at once.
    this.#reading = this.#reading.then(() => this.#readOn());
    await this.#reading;
    const keys = await keysOf(tool, args, this.#ports.toolOf(tool)?.checkArgs);
    return first(keys, this.#made) ?? first(keys, this.#planned);
  }

  async #readOn(): Promise<void> {
    const { steps } = this.#ports.state;
    // A step that was opened again has other ends now.
    if (this.#last !== undefined && steps[this.#seen - 1] !== this.#last) this.#seen -= 1;
    for (; this.#seen < steps.length; this.#seen += 1) await this.#read(steps[this.#seen] as Step);
    this.#last = steps[this.#seen - 1];
  }

  async #read(step: Step): Promise<void> {
    for (const [call, branch] of branchesOf(step.decision).entries()) {
      const record = step.calls[call];
      const tool = record === undefined ? undefined : this.#ports.toolOf(branch.tool);
      const kept = record && tool && leftBy(record, tool.effect);
      if (record === undefined || tool === undefined || kept === undefined) continue;
      const place = record.reuses ?? { step: step.index, call };
      const left = kept === 'key' ? { place } : { place, outcome: record.outcome };
      // Arguments that are nowhere any more cannot be those of another call.
      const made = await argsInStep(step, call, this.#ports).catch(() => undefined);
      if (made !== undefined) await note(left, tool, made, this.#made, branch.reuse === true);
      // A key belongs to what was sent under it.
      if (kept === 'key' || step.given?.some((given) => given.call === call) !== true) continue;
      const planned = await plannedArgs(step, call, this.#ports).catch(() => undefined);
      if (planned !== undefined) await note(left, tool, planned, this.#planned, branch.reuse === true);
    }
  }
}

/**
 * @param isReuse a call that has left its key alone went under the key of an equal one before it, also where its end does not say
 * so.
 */
async function note(
  left: Earlier,
  { name, checkArgs }: KnownTool,
  args: Json,
  found: Map<string, Earlier>,
  isReuse: boolean,
): Promise<void> {
  for (const key of await keysOf(name, args, checkArgs)) {
    const before = found.get(key);
    if (left.outcome === undefined && before !== undefined && (isReuse || before.outcome !== undefined)) continue;
    found.set(key, left);
  }
}

function first(keys: readonly string[], found: ReadonlyMap<string, Earlier>): Earlier | undefined {
  const all = keys.flatMap((key) => found.get(key) ?? []);
  return all.find(({ outcome }) => outcome !== undefined) ?? all[0];
}

/** The arguments as they were written, and as the tool would get them, where that can be recorded. */
async function keysOf(tool: string, args: Json, check: ValueCheck | undefined): Promise<readonly string[]> {
  const written = keyOf(tool, args);
  const checked = await check?.(args);
  if (checked?.ok !== true) return [written];
  try {
    return [...new Set([written, keyOf(tool, capture(checked.value, 'args').json)])];
  } catch {
    return [written];
  }
}

function keyOf(tool: string, args: Json): string {
  return `${tool} ${jsonDigest(args)}`;
}

/** What a call leaves to an equal one: its outcome, its key, or nothing, since it did not happen. */
function leftBy({ outcome, attempts, reuses }: CallRecord, effect: Effect): 'outcome' | 'key' | undefined {
  if (effect !== 'once' && effect !== 'keyed') return undefined;
  if (outcome.kind === 'value') return 'outcome';
  if (effect === 'keyed') return attempts > 0 || outcome.kind === 'unknown' || reuses !== undefined ? 'key' : undefined;
  const hasHappened = outcome.kind === 'error' && VALUE_LOST.has(outcome.error.code);
  return hasHappened || outcome.kind === 'unknown' ? 'outcome' : undefined;
}

/** The tool has done its work, and what it gave could not be taken, or did not come in time. */
const VALUE_LOST: ReadonlySet<string> = new Set(['tool_invalid_output', 'unserializable', 'result_expired']);
