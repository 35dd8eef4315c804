/** Runs whose calls write rows to one stream, both at once, while processes are killed. Each row says which attempt has written it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Tool, ToolContext } from '#pilotage';
import type { RunView } from '#pilotage/planner';
import type { Agent } from '#tools';

export const STREAM = 'rows';
/** Of each call. */
export const ROWS = 40;
const CALLS = 2;
const SLOWEST_MS = 60;

/** A row as it is written. */
export interface WrittenRow {
  /** Unique for each time that a tool was handed a call. */
  readonly by: string;
  /** From 1. */
  readonly n: number;
}

/** What whoever has written all rows gives. */
export interface Written {
  readonly by: string;
}

/** @param tell hears of each row before it is written. */
export function streamingAgent(
  random: () => number,
  tell: (run: string, row: WrittenRow) => void,
): Agent & { readonly name: 'streaming' } {
  const writes: Tool = {
    name: 'write',
    description: 'Writes rows.',
    inputSchema: { type: 'object' },
    effect: 'read',
    execute: (_, context) => writeRows(context, random, tell),
  };
  return {
    name: 'streaming',
    planner: {
      name: 'streaming',
      next: ({ trajectory }: RunView) =>
        trajectory.count === 0
          ? {
              kind: 'call_parallel',
              branches: Array.from({ length: CALLS }, (_, n) => ({ id: String(n), tool: 'write', args: {} })),
            }
          : { kind: 'finish', reason: 'goal' },
    },
    tools: [writes],
  };
}

async function writeRows(
  { stream, signal, identity }: ToolContext,
  random: () => number,
  tell: (run: string, row: WrittenRow) => void,
): Promise<Written> {
  const by = crypto.randomUUID();
  const rows = stream(STREAM);
  for (let n = 1; n <= ROWS; n += 1) {
    tell(identity.run, { by, n });
    await rows.write({ by, n });
    await sleep(random() * SLOWEST_MS, undefined, { signal });
  }
  return { by };
}
