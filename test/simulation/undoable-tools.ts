/** Tools whose calls can be undone, and those that undo them. What they do is noted outside, as of any tool. */
import type { Json, JsonObject } from '#core';
import type { Tool, ToolContext } from '#tools';
import { checkCall, checkIdentity } from './check-calls.ts';
import { doIt, type ToolWorld } from './deeds.ts';
import { failIfSaid, plainTool, type ToolKind } from './plain-tool.ts';

type Kind = ToolKind & { readonly undoneBy?: string };

export const UNDOABLE_KINDS: Readonly<Record<string, Kind>> = {
  hold_put: { effect: 'keyed', undoneBy: 'free_put' },
  hold_send: { effect: 'once', undoneBy: 'free_post' },
  hold_post: { effect: 'once', undoneBy: 'free_send', reconcile: true },
  hold_look: { effect: 'pure' },
  free_put: { effect: 'keyed' },
  free_post: { effect: 'once', reconcile: true },
  free_send: { effect: 'once' },
};

const INPUT: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    ms: { type: 'number' },
    undoMs: { type: 'number' },
    fails: { enum: ['once', 'always'] },
    undoFails: { enum: ['once', 'always', 'unnamed'] },
  },
  required: ['id'],
  additionalProperties: false,
};

export interface UndoableArgs {
  readonly id: string;
  readonly ms?: number;
  readonly undoMs?: number;
  readonly fails?: 'once' | 'always';
  readonly undoFails?: 'once' | 'always' | 'unnamed';
}

export function undoableTools(world: ToolWorld): readonly Tool[] {
  return Object.entries(UNDOABLE_KINDS).map(([name, kind]) => undoableTool(name, kind, world));
}

function undoableTool(name: string, { undoneBy, ...kind }: Kind, world: ToolWorld): Tool {
  const undoing = undoneBy === undefined ? {} : { undo: (args: unknown) => undoOf(args as UndoableArgs, undoneBy) };
  return plainTool(name, { ...kind, ...undoing }, INPUT, world, (args, context) =>
    run(name, args as UndoableArgs, context, world),
  );
}

/** Some calls have nothing to be undone, and of some nobody can say how. */
function undoOf({ id, undoMs, undoFails }: UndoableArgs, tool: string): { tool: string; args: JsonObject } {
  if (undoFails === 'unnamed') throw new Error('Nobody knows how.');
  return {
    tool,
    args: {
      id: `${id}.undo`,
      ...(undoMs === undefined ? {} : { ms: undoMs }),
      ...(undoFails === undefined ? {} : { fails: undoFails }),
    },
  };
}

async function run(tool: string, args: UndoableArgs, context: ToolContext, world: ToolWorld): Promise<Json> {
  const { process, ledger } = world;
  const { identity, attempt } = context;
  const { id, ms = 0, fails } = args;
  const { run: owner, tenant } = identity;
  ledger.tell(process.name, () => `${owner}: ${tool} ${id} is run, attempt ${attempt}`);
  checkIdentity(context, ledger);
  checkCall(tool, args, context, ledger, false);
  const { effect = 'once' } = UNDOABLE_KINDS[tool] ?? {};
  const deed = { tool, effect, run: owner, id, args: JSON.stringify(args), costMicroUsd: 0 };
  return doIt(deed, { ms, deaf: false, isRemote: false }, context, world, { run: owner, tenant, id }, () =>
    failIfSaid(fails, attempt),
  );
}
