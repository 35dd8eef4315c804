/** Tools that wait in the middle of their work, and tools whose value comes later. What they do and are given is noted outside, and checked at once. */
import { type Effect, type Json, PilotageError } from '#core';
import { never } from '#testing';
import { later, type Reconciled, type Tool, type ToolContext, ToolFailure } from '#tools';
import { checkCall, checkIdentity } from './check-calls.ts';
import { checkEndGiven, checkGoesOn, checkKept, checkPartEntered, checkPolled } from './check-waiting-calls.ts';
import { atWork, doIt, pause, type ToolWorld } from './deeds.ts';
import { type Doing, keyOf, LATER_INPUT, type LaterArgs, SCHEMAS, WAIT_INPUT, type WaitArgs } from './wait-args.ts';

interface Kind extends Pick<Tool, 'effect' | 'concurrency' | 'needsApproval'> {
  readonly reconcile?: true;
}

/** They wait in the middle of their work. */
export const WAITING_KINDS: Readonly<Record<string, Kind>> = {
  wait_look: { effect: 'pure' },
  wait_read: { effect: 'read', concurrency: 1 },
  wait_put: { effect: 'keyed' },
  wait_send: { effect: 'once' },
  wait_post: { effect: 'once', reconcile: true },
  wait_asked: { effect: 'once', needsApproval: true, reconcile: true },
};

interface LaterKind extends Pick<Tool, 'effect' | 'outputSchema' | 'costUsd'> {
  readonly polls?: true;
  readonly reconcile?: true;
}

/** Their values come later. */
export const LATER_KINDS: Readonly<Record<string, LaterKind>> = {
  later_read: { effect: 'read', polls: true },
  later_put: { effect: 'keyed', polls: true, outputSchema: SCHEMAS.thing },
  later_send: { effect: 'once' },
  later_post: { effect: 'once', polls: true, reconcile: true, costUsd: 0.0001 },
};

export function waitingTools(world: ToolWorld): readonly Tool[] {
  return [
    ...Object.entries(WAITING_KINDS).map(([name, kind]) => waitingTool(name, kind, world)),
    ...Object.entries(LATER_KINDS).map(([name, kind]) => laterTool(name, kind, world)),
  ];
}

/** The name under which the world knows a part of a call's work. */
export function partKey(key: string, part: string): string {
  return `${key}#${part}`;
}

function waitingTool(name: string, { reconcile, ...kind }: Kind, world: ToolWorld): Tool {
  const { effect = 'once', needsApproval } = kind;
  const made: Tool = {
    ...kind,
    name,
    description: `Does ${name}.`,
    inputSchema: WAIT_INPUT,
    execute: (args: unknown, context: ToolContext) => {
      const waiting = new WaitingCall(name, effect, args as WaitArgs, context, world);
      return waiting.run(needsApproval !== undefined);
    },
  };
  if (reconcile === undefined) return made;
  return { ...made, reconcile: (args: unknown, context: ToolContext) => whatIsDone(args as WaitArgs, context, world) };
}

/** One run of the function of such a tool. */
class WaitingCall {
  readonly #tool: string;
  readonly #effect: Effect;
  readonly #args: WaitArgs;
  readonly #context: ToolContext;
  readonly #world: ToolWorld;
  readonly #enteredAt: number;
  /** What each of its waits came to, in order. */
  readonly #got: Json[] = [];
  #waits = 0;

  constructor(tool: string, effect: Effect, args: WaitArgs, context: ToolContext, world: ToolWorld) {
    this.#tool = tool;
    this.#effect = effect;
    this.#args = args;
    this.#context = context;
    this.#world = world;
    this.#enteredAt = world.ledger.now();
  }

  async run(isGated: boolean): Promise<Json> {
    const { process, ledger } = this.#world;
    const { identity, idempotencyKey: key } = this.#context;
    const { id, does, catches = false } = this.#args;
    const { run } = identity;
    ledger.tell(process.name, () => `${run}: ${this.#tool} ${id} is run`);
    checkIdentity(this.#context, ledger);
    checkCall(this.#tool, this.#args, this.#context, ledger, isGated);
    checkGoesOn({ run, id, key, effect: this.#effect }, process, ledger);
    const args = JSON.stringify(this.#args);
    ledger.attempted(
      { tool: this.#tool, effect: this.#effect, run, id, key, args, costMicroUsd: 0, waits: true },
      process,
    );
    for (const together of does) {
      const settled = await Promise.allSettled(together.map((doing) => this.#do(doing)));
      const failed = settled.find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected' && !(catches && isEndOfWait(failed.reason))) throw failed.reason;
    }
    return { run, tenant: identity.tenant, id, got: this.#got };
  }

  #do(doing: Doing): Promise<unknown> {
    const { run } = this.#context.identity;
    if ('part' in doing) return this.#part(doing);
    if ('sleepMs' in doing) {
      return this.#wait(this.#context.sleep({ forMs: doing.sleepMs }), () => ({ how: 'time' }));
    }
    if ('ask' in doing) {
      const { ask: question, shape, expiresInMs } = doing;
      const asked = { question, ...(expiresInMs === undefined ? {} : { expiresInMs }) };
      const answer =
        shape === undefined ? this.#context.ask(asked) : this.#context.ask({ ...asked, schema: SCHEMAS[shape] });
      return this.#wait(answer, (value) => ({ how: 'answer', value: value as Json }));
    }
    const { event, shape, timeoutMs } = doing;
    const awaited = { key: keyOf(event, run, this.#args.id), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    const came =
      shape === undefined ? this.#context.event(awaited) : this.#context.event({ ...awaited, schema: SCHEMAS[shape] });
    return this.#wait(came, (value) => ({ how: 'event', value: value as Json }));
  }

  /** Notes what the next wait of the call came to: it is what is recorded of that wait. */
  async #wait(waiting: Promise<unknown>, read: (value: unknown) => Json): Promise<void> {
    const wait = this.#waits;
    this.#waits += 1;
    let failure: { readonly thrown: unknown } | undefined;
    let got: Json;
    try {
      got = read(await waiting);
    } catch (thrown) {
      failure = { thrown };
      const how = endOf(thrown);
      if (how === undefined) throw thrown;
      got = { how };
    }
    const { identity, idempotencyKey: key } = this.#context;
    const call = { run: identity.run, id: this.#args.id, key, effect: this.#effect };
    checkEndGiven(call, wait + 1, got, this.#world.ledger);
    this.#got[wait] = got;
    if (failure !== undefined) throw failure.thrown;
  }

  /** A part of the work is an effect of its own. */
  async #part({ part, ms = 0, big = false }: Extract<Doing, { part: string }>): Promise<void> {
    const { process, ledger } = this.#world;
    const { identity, idempotencyKey: key } = this.#context;
    const call = { run: identity.run, id: this.#args.id, key, effect: this.#effect };
    const value = await this.#context.once(part, () =>
      atWork(this.#context, this.#world, async () => {
        checkPartEntered(call, part, process, ledger);
        await this.#takeEffect(partKey(key, part), part, ms);
        return { part, nth: ledger.next(), ...(big ? { text: BIG } : {}) };
      }),
    );
    checkKept(call, part, value, ledger);
  }

  async #takeEffect(key: string, part: string, ms: number): Promise<void> {
    const { process, ledger, graceMs } = this.#world;
    const { identity, signal } = this.#context;
    const { run } = identity;
    const call = this.#world.nextCall();
    await pause(ms / 2, process, signal);
    this.#world.mayDie(call, false);
    if (!process.alive) return never();
    this.#world.mayFreeze(call);
    await process.wait(0);
    ledger.request(key, run, process, { enteredAt: this.#enteredAt, graceMs })();
    ledger.tell(process.name, () => `${run}: ${part} of ${this.#args.id} takes effect`);
    this.#world.mayDie(call, true);
    if (!process.alive) return never();
    await pause(ms / 2, process, signal);
  }
}

/** Over the bound from which values are stored as artifacts. */
const BIG = 'much '.repeat(7_000);

const ENDS: Readonly<Record<string, string>> = {
  question_declined: 'declined',
  question_expired: 'timeout',
  event_timeout: 'timeout',
  superseded: 'superseded',
};

/** How the wait has ended that throws this; `undefined`: it has not, and something else went wrong. */
export function endOf(thrown: unknown): string | undefined {
  return PilotageError.is(thrown) ? ENDS[thrown.code] : undefined;
}

export function isEndOfWait(thrown: unknown): boolean {
  return endOf(thrown) !== undefined;
}

/** Whoever asks the world records what is done, and the rest is done when the call is made again. */
async function whatIsDone(
  { does }: WaitArgs,
  context: ToolContext,
  { ledger, process }: ToolWorld,
): Promise<Reconciled> {
  const { idempotencyKey: key, identity } = context;
  for (const doing of does.flat()) {
    if (!('part' in doing)) continue;
    const { part } = doing;
    const isDone = ledger.effects.has(partKey(key, part));
    ledger.tell(process.name, () => `${identity.run}: the world says that ${part} is ${isDone ? 'done' : 'not done'}`);
    if (isDone) await context.once(part, () => ({ part, found: true }));
    else ledger.partNotDone(partKey(key, part));
  }
  ledger.notDone(key);
  return { status: 'not_done' };
}

function laterTool(name: string, { reconcile, polls, ...kind }: LaterKind, world: ToolWorld): Tool {
  const { effect = 'once' } = kind;
  const keyed = (context: ToolContext, { id, key }: LaterArgs): string => keyOf(key, context.identity.run, id);
  const waits = (context: ToolContext, args: LaterArgs): unknown => {
    const { pollEveryMs, expiresInMs } = args;
    return later({
      key: keyed(context, args),
      ...(polls !== true || pollEveryMs === undefined ? {} : { pollEveryMs }),
      ...(expiresInMs === undefined ? {} : { expiresInMs }),
    });
  };
  const made: Tool = {
    ...kind,
    name,
    description: `Does ${name}.`,
    inputSchema: LATER_INPUT,
    execute: (given: unknown, context: ToolContext) =>
      atWork(context, world, async () => {
        const args = given as LaterArgs;
        await begin(name, effect, args, context, world);
        return waits(context, args);
      }),
  };
  const polling =
    polls === true
      ? { poll: (_: string, args: unknown, context: ToolContext) => poll(args as LaterArgs, context, world) }
      : {};
  if (reconcile === undefined) return { ...made, ...polling };
  const looks = (args: unknown, context: ToolContext): Reconciled => {
    const { idempotencyKey: key } = context;
    if (world.ledger.effects.has(key)) return { status: 'done', value: waits(context, args as LaterArgs) };
    world.ledger.notDone(key);
    return { status: 'not_done' };
  };
  return { ...made, ...polling, reconcile: looks };
}

/** The work that somebody else goes on with. */
async function begin(
  tool: string,
  effect: Effect,
  args: LaterArgs,
  context: ToolContext,
  world: ToolWorld,
): Promise<void> {
  const { process, ledger } = world;
  const { identity, idempotencyKey: key } = context;
  const { id, ms = 0, readyMs } = args;
  const { run, tenant } = identity;
  ledger.tell(process.name, () => `${run}: ${tool} ${id} is run`);
  checkIdentity(context, ledger);
  checkCall(tool, args, context, ledger, false);
  checkGoesOn({ run, id, key, effect }, process, ledger);
  const costMicroUsd = Math.round((LATER_KINDS[tool]?.costUsd ?? 0) * 1_000_000);
  const deed = { tool, effect, run, id, args: JSON.stringify(args), costMicroUsd };
  await doIt(deed, { ms, deaf: false, isRemote: false }, context, world, { run, tenant, id }, () => {});
  ledger.isReadyAt(key, readyMs);
}

/** Looks whether the value is there. */
async function poll(args: LaterArgs, context: ToolContext, { process, ledger }: ToolWorld): Promise<Json | undefined> {
  const { identity, idempotencyKey: key } = context;
  const { run, tenant } = identity;
  const { id, pollFails, readyMs } = args;
  const times = ledger.polled(key);
  ledger.tell(process.name, () => `${run}: ${id} is polled for the ${times}th time`);
  checkPolled({ run, id, key, effect: 'read' }, process, ledger);
  await process.wait(10);
  if (pollFails === 'always') throw new ToolFailure('It was lost.', { code: 'lost' });
  if (pollFails === 'once' && times === 1) throw new ToolFailure('Not now.', { code: 'busy', retryable: true });
  // Whoever began it may have died before anybody knew when it is ready.
  if (ledger.now() < ledger.isReadyAt(key, readyMs)) return undefined;
  return { run, tenant, id, polled: true };
}
