/** What the simulated tools share whose calls are noted outside: their frame, how the world is asked about a call, and how one fails. */
import type { Json, JsonObject } from '#core';
import { type Reconciled, type Tool, type ToolContext, ToolFailure } from '#tools';
import { atWork, type ToolWorld } from './deeds.ts';

type Framed = 'name' | 'description' | 'inputSchema' | 'execute' | 'reconcile';

/** The options of such a tool. `reconcile`: the world can be asked about its calls. */
export type ToolKind = Omit<Tool, Framed> & { readonly reconcile?: true };

export function plainTool(
  name: string,
  { reconcile, ...options }: ToolKind,
  inputSchema: JsonObject,
  world: ToolWorld,
  execute: (args: unknown, context: ToolContext) => Promise<Json>,
): Tool {
  return {
    ...options,
    ...(reconcile === undefined ? {} : { reconcile: (_, context) => whatIsKnown(context, world) }),
    name,
    description: `Does ${name}.`,
    inputSchema,
    execute: (args: unknown, context: ToolContext) => atWork(context, world, () => execute(args, context)),
  };
}

/** The world knows whether the call has taken effect. */
export function whatIsKnown(
  { idempotencyKey: key, identity: { run, tenant } }: ToolContext,
  { ledger }: ToolWorld,
): Reconciled {
  if (ledger.effects.has(key)) return { status: 'done', value: { run, tenant, id: 'done' } };
  ledger.notDone(key);
  return { status: 'not_done' };
}

/** @throws ToolFailure in each attempt, or in the first. */
export function failIfSaid(fails: 'once' | 'always' | undefined, attempt: number): void {
  if (fails === 'always') throw new ToolFailure('It cannot be done.', { code: 'refused' });
  if (fails === 'once' && attempt === 1) throw notNow();
}

export function notNow(): ToolFailure {
  return new ToolFailure('Not now.', { code: 'busy', retryable: true });
}
