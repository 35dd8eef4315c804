/** A call that has been made, and whose value comes later: by a signal, or because its tool is asked for it again and again. */
import { defined, type Json, type LaterValue, LazySignal, type Outcome, PilotageError, timeAfter } from '#core';
import type { WaitState } from '#state';
import { isLater, jsonSchemaOf, type Later, type ReadyFunction } from '#tools';
import type { Call, DispatchPorts, WaitsAsk } from './call-ports.ts';
import { CallContext } from './context.ts';
import { outcomeOfValue } from './model-output.ts';
import { failedOutcome, mayRetry, settledError } from './outcome.ts';

interface Waiting {
  readonly call: Call;
  readonly tool: ReadyFunction;
  readonly args: unknown;
  readonly startedAt: number;
}

/** The call has been made: what it waits for. @param wait the number of the wait: above 1 when `poll` says what is waited for from now on. */
export function waitsForValue(later: Later, of: Waiting, { clock, onFault }: Ports, wait = 1): WaitsAsk {
  const { key, pollEveryMs, expiresInMs } = later;
  const now = clock.now();
  // The call has been made, and a signal still brings its value: so it does not fail.
  if (pollEveryMs !== undefined && of.tool.source.poll === undefined) onFault(nobodyPolls(of, later));
  const expiresAt = expiresInMs === undefined ? undefined : timeAfter(now, expiresInMs);
  return asked({ key, ...defined({ pollEveryMs: of.tool.source.poll && pollEveryMs, expiresAt }) }, wait, of, now);
}

type Ports = Pick<DispatchPorts, 'clock' | 'onFault'>;

function nobodyPolls({ call, tool: { schema } }: Waiting, { key, pollEveryMs }: Later): PilotageError {
  const { name: tool } = schema;
  const message = `The tool ${tool} gave later({ key: ${JSON.stringify(key)}, pollEveryMs: ${pollEveryMs} }) and has no poll, so that it is never asked for the value: a signal for the key alone brings it. Give the tool a poll, or leave pollEveryMs out.`;
  return new PilotageError('invalid_config', message, { data: { run: call.identity.run, tool, key } });
}

function asked(later: LaterValue, wait: number, { tool, startedAt }: Waiting, now: number, again?: string): WaitsAsk {
  const { key, pollEveryMs, expiresAt = Number.POSITIVE_INFINITY } = later;
  const next = Math.min(expiresAt, pollEveryMs === undefined ? Number.POSITIVE_INFINITY : timeAfter(now, pollEveryMs));
  const until = next === Number.POSITIVE_INFINITY ? undefined : next;
  const { outputSchema } = tool.source;
  const schema = outputSchema && jsonSchemaOf(outputSchema, `The tool ${tool.schema.name}`);
  return {
    kind: 'waits',
    waits: [{ wait, for: 'event', key, ...defined({ until, schema, again }) }],
    startedAt,
    later,
  };
}

/** What has come of the wait: the value, the end of the time, or a further wait. `undefined`: the call waits for no value. */
export function valueOrWait(
  of: Waiting,
  ports: DispatchPorts,
): Outcome | WaitsAsk | Promise<Outcome | WaitsAsk> | undefined {
  const { later, waits = [] } = of.call.waiting ?? {};
  const last = waits.at(-1);
  if (later === undefined || last?.end === undefined) return undefined;
  const { end } = last;
  const { name } = of.tool.schema;
  if (end.ended === 'event') return signalled(of, { later, last, payload: end.payload }, ports);
  if (end.ended === 'superseded') {
    const message = `${name} was called, and its value was waited for no more, since the user wrote or the goal was changed.`;
    // It is not made a second time for an equal one.
    const isOnce = of.tool.effect === 'once' || of.call.waiting?.once === true;
    return { kind: isOnce ? 'unknown' : 'error', error: { code: 'superseded', message } };
  }
  const now = ports.clock.now();
  if (later.expiresAt !== undefined && later.expiresAt <= now) return expired(name, later);
  return poll(of, later, last.wait, ports);
}

/** A payload that the code of the output schema refuses is not the value: the call waits for the next signal. */
async function signalled(
  of: Waiting,
  { later, last, payload }: { readonly later: LaterValue; readonly last: WaitState; readonly payload: Json },
  ports: DispatchPorts,
): Promise<Outcome | WaitsAsk> {
  const checked = await of.tool.checkValue?.(payload);
  if (checked?.ok !== false) return outcomeOfValue(payload, of, ports);
  return asked(later, last.wait + 1, of, ports.clock.now(), checked.why);
}

function expired(tool: string, { key }: LaterValue): Outcome {
  const message = `${tool} was called, and its value, ${JSON.stringify(key)}, did not come in time.`;
  return { kind: 'error', error: { code: 'result_expired', message, data: { key } } };
}

async function poll(of: Waiting, later: LaterValue, wait: number, ports: DispatchPorts): Promise<Outcome | WaitsAsk> {
  const { call, tool, args } = of;
  const { source, timeoutMs } = tool;
  const signal = new LazySignal();
  const context = new CallContext(call, ports, signal, 1);
  const stillOpen = (): WaitsAsk => asked(later, wait + 1, of, ports.clock.now());
  return call.attempt.run(
    () => source.poll?.(later.key, args as never, context),
    (settled): Outcome | WaitsAsk | Promise<Outcome> => {
      context.end();
      if (settled.kind === 'value') {
        const { value } = settled;
        if (value === undefined) return stillOpen();
        return isLater(value) ? waitsForValue(value, of, ports, wait + 1) : outcomeOfValue(value, of, ports);
      }
      if (call.attempt.aborted || mayRetry(settled, undefined)) return stillOpen();
      return failedOutcome(settledError(settled, tool, undefined), tool.schema.name, 1);
    },
    { timeoutMs, signal },
  );
}
