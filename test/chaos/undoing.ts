/** Runs that undo what they have done: some reach their goal, the others find no way, fail, are called off, or run out of time. */
import type { JsonObject, Tool } from '#pilotage';
import type { Decision, RunView } from '#pilotage/planner';
import type { Agent } from '#tools';
import type { Asked } from '../double-act/errands.ts';
import { receiptOf, type World } from '../double-act/world.ts';

/** What becomes of a run, by the number at the end of its id. */
export const FATES = ['goal', 'no way', 'failure', 'cancel', 'deadline'] as const;
export type Fate = (typeof FATES)[number];

export function fateOf(run: string): Fate {
  return FATES[Number(run.split('_').at(-1)) % FATES.length] ?? 'goal';
}

/** By when a run with this fate has to be done. */
export const DEADLINE_MS = 2_500;
/** Most are called off, or out of time, before. */
const LINGERS_MS = 8_000;
/** Clocks are set by minutes, and undoing is not to be stopped over that. */
const MOST_MS = 3_600_000;

interface Errand {
  readonly tool: 'charge' | 'reserve';
  readonly subject: string;
}
const FIRST: readonly Errand[] = [
  { tool: 'charge', subject: 'deposit' },
  { tool: 'reserve', subject: 'seat' },
];
const SECOND: Errand = { tool: 'charge', subject: 'rest' };
/** No two of them are made at once with the last ones: so there is an order to be undone in. */
const THIRD: Errand = { tool: 'reserve', subject: 'meal' };
export const UNDOABLE: readonly Errand[] = [...FIRST, SECOND, THIRD];

/** By what an errand is undone. */
export const UNDOING = { charge: 'refund', reserve: 'unreserve' } as const;

export function undoingOf(subject: string): string {
  return `undo ${subject}`;
}

const EFFECTS = { charge: 'once', reserve: 'keyed' } as const;

/** What a run is to bring about when it reaches its goal. */
export function undoableAsks(): readonly Asked[] {
  return UNDOABLE.map(({ tool, subject }) => ({ subject, effect: EFFECTS[tool], tools: [tool], args: { subject } }));
}

/** What it does to undo that. */
export function undoAsks(): readonly Asked[] {
  return UNDOABLE.map(({ tool, subject }) => ({
    subject: undoingOf(subject),
    effect: EFFECTS[tool],
    tools: [UNDOING[tool]],
    args: undoArgs({ subject }, { receipt: receiptOf(subject) }),
  }));
}

function undoArgs({ subject }: JsonObject, { receipt = null }: JsonObject): JsonObject {
  return { subject: undoingOf(String(subject)), receipt };
}

export function undoingAgent(world: World): Agent & { readonly name: 'undoing' } {
  const acts = (name: string, effect: 'once' | 'keyed', more: Partial<Tool> = {}): Tool => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object', properties: { subject: { type: 'string' } }, required: ['subject'] },
    effect,
    timeoutMs: world.timeoutMs,
    execute: (args, context) => world.act(name, args as JsonObject, context),
    ...more,
  });
  const undone = ([name, by]: [string, string]): Tool[] => {
    const effect = EFFECTS[name as Errand['tool']];
    const undo: Tool['undo'] = (args, value) => ({ tool: by, args: undoArgs(args as JsonObject, value as JsonObject) });
    return [acts(name, effect, { undo }), acts(by, effect)];
  };
  const lingers: Tool = {
    name: 'linger',
    description: 'Waits for a while.',
    inputSchema: { type: 'object' },
    effect: 'read',
    execute: async (_, context) => {
      await context.sleep({ forMs: LINGERS_MS });
      return null;
    },
  };
  return {
    name: 'undoing',
    planner: { name: 'undoing', next: undoingPlanner },
    tools: [...Object.entries(UNDOING).flatMap(undone), lingers],
    onFail: 'undo',
    undo: { timeoutMs: MOST_MS },
  };
}

function undoingPlanner({ identity, trajectory }: RunView): Decision {
  const call = ({ tool, subject }: Errand): Decision => ({ kind: 'call_tool', tool, args: { subject } });
  switch (trajectory.count) {
    case 0:
      return {
        kind: 'call_parallel',
        branches: FIRST.map(({ tool, subject }) => ({ id: subject, tool, args: { subject } })),
      };
    case 1:
      return call(SECOND);
    case 2:
      return call(THIRD);
    default:
  }
  const fate = fateOf(identity.run);
  const isDone = UNDOABLE.every(({ subject }) => JSON.stringify(trajectory.steps).includes(`"${receiptOf(subject)}"`));
  if (fate === 'failure') throw new Error('It cannot be planned any further.');
  if (trajectory.count === 3 && (fate === 'cancel' || fate === 'deadline'))
    return { kind: 'call_tool', tool: 'linger', args: {} };
  return { kind: 'finish', reason: fate === 'goal' && isDone ? 'goal' : 'no_path' };
}
