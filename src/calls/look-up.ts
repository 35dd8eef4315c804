/** What became of a `once` call in doubt: found out from its tool, told to the planner, or asked of a person. */
import { fieldOf, type Json, LazySignal, type Outcome } from '#core';
import { isLater, type Later, type ReadyFunction, type Reconciled } from '#tools';
import type { Settled } from './attempt.ts';
import type { Call, DispatchPorts, WaitsAsk } from './call-ports.ts';
import { CallContext } from './context.ts';
import { type Doubt, inDoubt, type Unsure } from './doubt.ts';
import type { PauseAsk } from './gates.ts';
import { waitsForValue } from './later-value.ts';
import { outcomeOfValue, type ValuedCall } from './model-output.ts';
import { errorData, mayRetry, retryDelayMs, valueLost } from './outcome.ts';

interface LookedUp {
  /** `undefined`: nothing says what became of it. */
  readonly found: Outcome | Later | 'not_done' | undefined;
  readonly context: CallContext;
}

/** A call in doubt, with its arguments as its tool gets them and as they are shown. */
export interface Doubtful {
  readonly call: Call;
  readonly tool: ReadyFunction;
  readonly args: unknown;
  readonly given: Json;
  readonly since: number;
}

/** What it came to, with what the look-up made known; or the pause in which somebody is asked. */
export async function settleDoubt(
  { call, tool, args, given, since }: Doubtful,
  { why, otherwise, isAtWork }: Unsure,
  ports: DispatchPorts,
): Promise<
  PauseAsk | WaitsAsk | { readonly kind: 'settled'; readonly outcome: Outcome; readonly context?: CallContext }
> {
  const ask = (): Promise<LookedUp> => lookUp(call, tool, args, ports);
  // `not_done` says nothing about an attempt that is still running in this process.
  const { found, context } = await (isAtWork ? ask() : believed(call, ports, ask));
  if (isLater(found)) return waitsForValue(found, { call, tool, args, startedAt: since }, ports);
  if (found !== undefined && found !== 'not_done') return { kind: 'settled', outcome: found, context };
  if (found === 'not_done' && !isAtWork) return { kind: 'settled', outcome: otherwise };
  const doubt = doubtOf(call, given, since, why, tool.source.reconcile !== undefined);
  // Who retries a call whose outcome the planner was told to be unknown wants to know it.
  const isAgain = call.open.again?.includes(call.index) === true;
  const told = inDoubt(doubt, tool.source.inDoubt === 'tell' && !isAgain);
  return told.kind === 'pause' ? told : { kind: 'settled', outcome: told };
}

export function doubtOf(
  { branch, idempotencyKey }: Call,
  args: Json,
  since: number,
  why: string,
  canLookUp: boolean,
): Doubt {
  return { tool: branch.tool, args, key: idempotencyKey, since, why, canLookUp };
}

/**
 * What a look-up finds. That the call did not happen is believed only of those who cannot be at it any more: before that, a
 * process that stood still may wake up and go on.
 */
async function believed({ attempt }: Call, { lease }: DispatchPorts, ask: () => Promise<LookedUp>): Promise<LookedUp> {
  for (;;) {
    const { graceLeftMs } = lease;
    const looked = await ask();
    if (looked.found !== 'not_done' || graceLeftMs === 0) return looked;
    await attempt.pause(graceLeftMs);
    if (attempt.isLookUpOver) return { ...looked, found: undefined };
  }
}

/** Asks a `once` tool what became of a call in doubt, again if it fails in a way that may pass. */
async function lookUp(call: Call, tool: ReadyFunction, args: unknown, ports: DispatchPorts): Promise<LookedUp> {
  const { source, timeoutMs, safeRetries, backoff } = tool;
  for (let attempt = 1; ; attempt += 1) {
    const signal = new LazySignal();
    const context = new CallContext(call, ports, signal, 1);
    if (source.reconcile === undefined) return { found: undefined, context };
    const asked = await call.attempt.run<Reconciled, Settled<Reconciled>>(
      () => source.reconcile?.(args as never, context) as Reconciled | Promise<Reconciled>,
      (settled) => {
        context.end();
        return settled;
      },
      { timeoutMs, signal, isLookUp: true },
    );
    await context.untilStreamed();
    if (asked.kind === 'value') {
      return { found: await foundBy(asked.value, { call, tool, args }, ports), context };
    }
    if (attempt > safeRetries || !mayRetry(asked, undefined)) return { found: undefined, context };
    await call.attempt.pause(retryDelayMs(backoff, attempt, ports.random()));
  }
}

/** What a tool's answer says. It may be anything, and is read once. */
async function foundBy(answer: Reconciled, of: ValuedCall, ports: DispatchPorts): Promise<LookedUp['found']> {
  const status = fieldOf(answer, 'status');
  if (status !== 'done') return status === 'not_done' ? 'not_done' : undefined;
  let value: unknown;
  try {
    value = (answer as Reconciled & { readonly status: 'done' }).value;
  } catch (thrown) {
    return valueLost(errorData(thrown), of.tool);
  }
  return isLater(value) ? value : outcomeOfValue(value, of, ports);
}
