/** The tools of a recording: each call gives its recorded result, and does its thing in a world that is counted. */
import { setImmediate as tick } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Effect } from '#core';
import type { CrashRecord, CrashWorld } from '#testing';
import type { Tool, ToolContext } from '#tools';
import { type RecordedCall, type RecordedTool, type Recording, readArguments } from './recording.ts';

type Place = { readonly step: number; readonly call: number };

export class RecordedWorld {
  /** What should not have happened. */
  readonly problems: string[] = [];
  readonly #recording: Recording;
  readonly #record: CrashRecord;
  readonly #random: () => number;
  readonly #waiting: (() => void)[] = [];

  constructor(recording: Recording, record: CrashRecord, random: () => number) {
    this.#recording = recording;
    this.#record = record;
    this.#random = random;
  }

  /** The tools for one process: `world` is the world as that process reaches it. */
  tools(world: CrashWorld): Tool[] {
    const started = new Set<string>();
    return this.#recording.tools.map((tool) => this.#tool(tool, world, started));
  }

  #tool({ name, description, parameters }: RecordedTool, world: CrashWorld, started: Set<string>): Tool {
    const effect = effectOf(name);
    const execute: Tool['execute'] = async (args, context) => {
      const { result } = this.#called(name, args, context, started);
      await this.#anyOrder();
      // A keyed service knows a key that it has served.
      if (effect !== 'keyed' || world.count(context) === 0) await world.effect(context);
      return result;
    };
    const common = { name, description, inputSchema: parameters, effect, execute };
    if (effect !== 'once') return common;
    return {
      ...common,
      reconcile: (_, context) =>
        world.count(context) === 0
          ? { status: 'not_done' }
          : { status: 'done', value: this.#callAt(placeOf(context.idempotencyKey))?.result },
    };
  }

  /** The recorded call in this place. Notes what is wrong with its being made now. */
  #called(tool: string, args: unknown, { idempotencyKey, identity }: ToolContext, started: Set<string>): RecordedCall {
    const place = placeOf(idempotencyKey);
    const at = `call ${place.step}.${place.call} (${tool})`;
    const call = this.#callAt(place);
    if (call === undefined) throw new Error(`${at} is not in the recording`);
    if (call.tool !== tool) this.problems.push(`${at} is ${call.tool} in the recording`);
    if (!isDeepStrictEqual(readArguments(call.input), args)) this.problems.push(`${at} got other arguments`);
    if (started.has(idempotencyKey)) this.problems.push(`${at} was started twice by one process`);
    started.add(idempotencyKey);
    const isOver = this.#record
      .acknowledged(identity.run)
      .some((entry) => entry.kind === 'call_ended' && entry.step === place.step && entry.call === place.call);
    if (isOver) this.problems.push(`${at} was started although its result was recorded`);
    return call;
  }

  #callAt({ step, call }: Place): RecordedCall | undefined {
    return this.#recording.turns[step]?.calls[call];
  }

  /** Calls that run at once go on one by one, in a random order. */
  async #anyOrder(): Promise<void> {
    const mine = new Promise<void>((resolve) => this.#waiting.push(resolve));
    await tick();
    const chosen = Math.floor(this.#random() * this.#waiting.length);
    this.#waiting.splice(chosen, 1)[0]?.();
    await mine;
  }

  /**
   * Each call of the recording ran under one key of its own, and what must not happen twice happened once; a `read` may
   * run once more for each crash.
   */
  countProblems(crashes: number): string[] {
    const keys = Map.groupBy(this.#record.effects.keys(), (key) => nameOf(placeOf(key)));
    const problems: string[] = [];
    for (const [step, { calls }] of this.#recording.turns.entries()) {
      for (const [call, { tool }] of calls.entries()) {
        const place = nameOf({ step, call });
        const [key = '', ...others] = keys.get(place) ?? [];
        const times = this.#record.effects.get(key) ?? 0;
        const most = effectOf(tool) === 'read' ? 1 + crashes : 1;
        if (others.length > 0) problems.push(`call ${place} (${tool}) had ${1 + others.length} idempotency keys`);
        if (times < 1 || times > most) problems.push(`call ${place} (${tool}, ${effectOf(tool)}) ran ${times} times`);
      }
    }
    return problems;
  }
}

/** Every effect that a crash matters for, spread over the tools by their names. */
function effectOf(name: string): Effect {
  let sum = 0;
  for (const char of name) sum += char.codePointAt(0) ?? 0;
  return (['once', 'keyed', 'read'] as const)[sum % 3] ?? 'once';
}

/** An idempotency key ends with the step and the call. */
function placeOf(key: string): Place {
  const [step, call] = key.slice(key.lastIndexOf('/') + 1).split('.');
  return { step: Number(step), call: Number(call) };
}

function nameOf({ step, call }: Place): string {
  return `${step}.${call}`;
}
