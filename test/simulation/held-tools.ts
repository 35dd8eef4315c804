/** Tools that ask in the middle of their work and stay open meanwhile. What they do and are given is noted outside, and checked at once. */
import type { Json } from '#core';
import type { Tool, ToolContext } from '#tools';
import { checkCall, checkIdentity } from './check-calls.ts';
import { checkEndGiven } from './check-waiting-calls.ts';
import { type ToolWorld, takeEffect } from './deeds.ts';
import { HELD_INPUT, HELD_KINDS, type HeldArgs, type HeldQuestion } from './held-kinds.ts';
import { checkTaken, type HeldEntry } from './held-ledger.ts';
import { notNow, plainTool } from './plain-tool.ts';
import { SCHEMAS } from './wait-args.ts';
import { endOf, isEndOfWait } from './waiting-tools.ts';

export function heldTools(world: ToolWorld): readonly Tool[] {
  return Object.entries(HELD_KINDS).map(([name, kind]) =>
    plainTool(name, kind, HELD_INPUT, world, (args, context) =>
      new OpenCall(name, args as HeldArgs, context, world).run(),
    ),
  );
}

/** One run of the function of such a tool. */
class OpenCall {
  readonly #tool: string;
  readonly #args: HeldArgs;
  readonly #context: ToolContext;
  readonly #world: ToolWorld;
  /** What each of its questions came to, in order. */
  readonly #got: Json[] = [];
  #asked = 0;
  /** It has failed, and listens to nobody. */
  #isOver = false;

  constructor(tool: string, args: HeldArgs, context: ToolContext, world: ToolWorld) {
    this.#tool = tool;
    this.#args = args;
    this.#context = context;
    this.#world = world;
  }

  async run(): Promise<Json> {
    const { process, ledger } = this.#world;
    const { identity, idempotencyKey: key, attempt } = this.#context;
    const { id, asks, first = false, catches = false, fails } = this.#args;
    const { run, tenant } = identity;
    const { effect = 'once', needsApproval } = HELD_KINDS[this.#tool] ?? {};
    ledger.tell(process.name, () => `${run}: ${this.#tool} ${id} is run, attempt ${attempt}`);
    checkIdentity(this.#context, ledger);
    checkCall(this.#tool, this.#args, this.#context, ledger, needsApproval !== undefined);
    const args = JSON.stringify(this.#args);
    ledger.attempted({ tool: this.#tool, effect, run, id, key, args, costMicroUsd: 0 }, process);
    const entry = ledger.held.enter({ order: ledger.next(), run, id, key, process });
    const enteredAt = ledger.now();
    if (first) await this.#work(enteredAt);
    for (const together of asks) {
      const asking = together.map((question) => this.#ask(question, entry));
      if (fails === 'hasty' && attempt === 1) {
        await Promise.race(asking.map((asked) => asked.catch(() => {})));
        this.#isOver = true;
        throw notNow();
      }
      const settled = await Promise.allSettled(asking);
      // Whoever was stopped while it asked does not go on as if nobody had answered.
      const failed = settled.find((one) => one.status === 'rejected' && !(catches && isEndOfWait(one.reason)));
      if (failed?.status === 'rejected') throw failed.reason;
    }
    if (fails !== undefined && attempt === 1) throw notNow();
    if (!first) await this.#work(enteredAt);
    return { run, tenant, id, got: this.#got };
  }

  async #work(enteredAt: number): Promise<void> {
    const { run, tenant } = this.#context.identity;
    const { id, ms = 0 } = this.#args;
    const value = { run, tenant, id, got: [] };
    const how = { ms, deaf: false, isRemote: false, enteredAt };
    await takeEffect({ tool: this.#tool, run, id }, how, this.#context, this.#world, value, () => {});
  }

  async #ask({ ask: question, shape, expiresInMs }: HeldQuestion, entry: HeldEntry): Promise<void> {
    const { ledger } = this.#world;
    const { ask, signal } = this.#context;
    const wait = this.#asked;
    this.#asked += 1;
    const asked = { question, hold: true, ...(expiresInMs === undefined ? {} : { expiresInMs }) };
    const answer = shape === undefined ? ask(asked) : ask({ ...asked, schema: SCHEMAS[shape] });
    let got: Json;
    let failure: { readonly thrown: unknown } | undefined;
    try {
      got = { how: 'answer', value: (await untilStopped<unknown>(answer, signal)) as Json };
    } catch (thrown) {
      failure = { thrown };
      const how = endOf(thrown);
      if (how === undefined) throw thrown;
      got = { how };
    }
    if (this.#isOver) return;
    const { run, id, key } = entry;
    checkEndGiven({ run, id, key, effect: HELD_KINDS[this.#tool]?.effect ?? 'once' }, wait + 1, got, ledger);
    checkTaken(entry, ledger);
    this.#got[wait] = got;
    if (failure !== undefined) throw failure.thrown;
  }
}

/** Nobody waits for an answer in a call that is stopped. */
function untilStopped<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    answer.then(resolve, reject);
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}
