/**
 * What the calls with an effect that earlier steps of a run have made came to, by tool and arguments: a plan that is made anew
 * takes that, and makes none of them a second time. Nothing of it is stored: it is read off the steps, of which each is looked
 * at once, and only when somebody asks.
 */
import { branchesOf } from '../core/decision.ts';
import type { Json } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import type { CallPlace, CallRecord, Step } from '../core/step.ts';
import type { Effect } from '../core/tool-schema.ts';
import type { ArtifactStore } from '../journal/port.ts';
import type { RunState } from '../view/state.ts';
import { argsInStep } from './call-args.ts';
import { digestOf } from './digest.ts';

export interface Earlier {
  /** The call that was made. */
  readonly place: CallPlace;
  /** What the new call comes to. Absent: it is made, under the idempotency key of the earlier one, which may have happened. */
  readonly outcome?: Outcome;
}

export interface EarlierPorts {
  readonly state: RunState;
  readonly artifacts: ArtifactStore;
  /** Under which name a recorded tool is known today, and what a call of it does; `undefined` when there is none. */
  effectOf(tool: string): { readonly name: string; readonly effect: Effect } | undefined;
}

export class EarlierCalls {
  readonly #ports: EarlierPorts;
  readonly #found = new Map<string, Earlier>();
  #seen = 0;
  #reading: Promise<void> = Promise.resolve();

  constructor(ports: EarlierPorts) {
    this.#ports = ports;
  }

  /** @param args as the tool is to get them. */
  async find(tool: string, args: Json): Promise<Earlier | undefined> {
    // One after the other: several calls of a plan may ask at once.
    this.#reading = this.#reading.then(() => this.#readOn());
    await this.#reading;
    return this.#found.get(keyOf(tool, args));
  }

  async #readOn(): Promise<void> {
    const { steps } = this.#ports.state;
    for (; this.#seen < steps.length; this.#seen += 1) await this.#read(steps[this.#seen] as Step);
  }

  async #read(step: Step): Promise<void> {
    for (const [call, branch] of branchesOf(step.decision).entries()) {
      const record = step.calls[call];
      const tool = record === undefined ? undefined : this.#ports.effectOf(branch.tool);
      const kept = record && tool && leftBy(record, tool.effect);
      if (record === undefined || tool === undefined || kept === undefined) continue;
      const args = await argsInStep(step, call, this.#ports).catch(() => undefined);
      // Arguments that are nowhere any more cannot be those of another call.
      if (args === undefined) continue;
      const key = keyOf(tool.name, args);
      const place = record.reuses ?? { step: step.index, call };
      if (kept === 'key' && this.#found.get(key)?.outcome !== undefined) continue;
      this.#found.set(key, kept === 'key' ? { place } : { place, outcome: record.outcome });
    }
  }
}

function keyOf(tool: string, args: Json): string {
  return `${tool} ${digestOf(args)}`;
}

/** What a call leaves to an equal one: its outcome, its key, or nothing, since it did not happen. */
function leftBy({ outcome, attempts, reuses }: CallRecord, effect: Effect): 'outcome' | 'key' | undefined {
  if (effect !== 'once' && effect !== 'keyed') return undefined;
  if (outcome.kind === 'value') return 'outcome';
  if (effect === 'keyed') return attempts > 0 || outcome.kind === 'unknown' || reuses !== undefined ? 'key' : undefined;
  const hasHappened = outcome.kind === 'error' && VALUE_LOST.has(outcome.error.code);
  return hasHappened || outcome.kind === 'unknown' ? 'outcome' : undefined;
}

/** The tool has done its work, and what it gave could not be taken. */
const VALUE_LOST: ReadonlySet<string> = new Set(['tool_invalid_output', 'unserializable']);
