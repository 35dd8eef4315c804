/** Tools whose calls are made in the background: by a task that makes the one call, or by one that works by a plan. */
import type { Json, JsonObject, Planner } from '#core';
import type { AgentTool, Tool, ToolContext } from '#tools';
import { checkCall, checkIdentity } from './check-calls.ts';
import { doIt, type ToolWorld } from './deeds.ts';
import { failIfSaid, plainTool, type ToolKind } from './plain-tool.ts';

export const BACKGROUND_KINDS: Readonly<Record<string, ToolKind>> = {
  back_read: { effect: 'read' },
  back_put: { effect: 'keyed' },
  back_send: { effect: 'once' },
  back_post: { effect: 'once', reconcile: true },
  back_buy: { effect: 'keyed', costUsd: 0.0001 },
  back_asked: { effect: 'once', needsApproval: true, reconcile: true },
};

/** Carried out by a run that works by the plan that its arguments name. */
export const BACKGROUND_AGENT = 'back_carry';

const INPUT: JsonObject = {
  type: 'object',
  properties: { id: { type: 'string' }, ms: { type: 'number' }, fails: { enum: ['once', 'always'] } },
  required: ['id'],
  additionalProperties: false,
};

export interface BackgroundArgs {
  /** Unique in its run. */
  readonly id: string;
  readonly ms?: number;
  readonly fails?: 'once' | 'always';
}

export function backgroundTools(world: ToolWorld): readonly Tool[] {
  return Object.entries(BACKGROUND_KINDS).map(([name, kind]) =>
    plainTool(name, { ...kind, background: true }, INPUT, world, (args, context) =>
      run(name, args as BackgroundArgs, context, world),
    ),
  );
}

export function backgroundAgent(planner: Planner, tools: readonly Tool[]): AgentTool {
  return {
    name: BACKGROUND_AGENT,
    description: `Has ${BACKGROUND_AGENT} done.`,
    inputSchema: {
      type: 'object',
      properties: { id: { type: 'string' }, plan: { type: 'string' } },
      required: ['id', 'plan'],
      additionalProperties: false,
    },
    effect: 'pure',
    background: true,
    agent: { name: planner.name, planner, tools },
  };
}

async function run(tool: string, args: BackgroundArgs, context: ToolContext, world: ToolWorld): Promise<Json> {
  const { process, ledger } = world;
  const { identity, attempt } = context;
  const { id, ms = 0, fails } = args;
  const { run: owner, tenant } = identity;
  ledger.tell(process.name, () => `${owner}: ${tool} ${id} is run, attempt ${attempt}`);
  checkIdentity(context, ledger);
  const { effect = 'once', needsApproval, costUsd = 0 } = BACKGROUND_KINDS[tool] ?? {};
  checkCall(tool, args, context, ledger, needsApproval !== undefined);
  const costMicroUsd = Math.round(costUsd * 1_000_000);
  const deed = { tool, effect, run: owner, id, args: JSON.stringify(args), costMicroUsd };
  return doIt(deed, { ms, deaf: false, isRemote: false }, context, world, { run: owner, tenant, id }, () =>
    failIfSaid(fails, attempt),
  );
}
