/** The agent of the child processes: each of its runs is made from a number, and says what it must come to. */
import { setImmediate as turn } from 'node:timers/promises';
import type { Json, JsonObject, Tool, ToolContext } from '#pilotage';
import type { Branch, Decision, RunView } from '#pilotage/planner';
import type { Effect } from '#pilotage/tools';
import { seededRandom } from '#testing';
import { appendDurably, readLines } from '../kit/durable-lines.ts';
import { outcomes } from './scenarios.ts';

/** One line of the effects file: something that happened in the world. */
export interface EffectLine {
  readonly tool: string;
  readonly run: string;
  readonly slot: string;
  readonly key: string;
}

export const runId = (seed: number, index: number): string => `run_${seed}_${index}`;

/** What the run with this id decides, in order. Runs start tasks, and those tasks too, but no further down. */
export function plan(run: string): Decision[] {
  const [id = '', ...path] = run.split('.');
  const [, seed = '0', index = '0'] = id.split('_');
  const place = path.reduce((sum, part) => sum * 31 + Number(part) + 1, 0);
  const random = seededRandom(Number(seed) * 1_009 + Number(index) + place * 7_919);
  const [steps, choices] = path.length === 0 ? [7, 10] : [2, path.length === 2 ? 10 : 8];
  return Array.from({ length: steps }, (_, step) => decide(Math.floor(random() * choices), step));
}

function decide(choice: number, step: number): Decision {
  const args = (name: string): JsonObject => ({ slot: `${step}.${name}` });
  const branch = (tool: string, more: Partial<Branch> = {}): Branch => ({ id: tool, tool, args: args(tool), ...more });
  switch (choice) {
    case 0:
      return { kind: 'request_pause', reason: 'approval_required', payload: { step } };
    case 1:
      return { kind: 'call_tool', tool: 'pay', args: args('alone') };
    case 2:
      return { kind: 'call_tool', tool: 'book', args: args('alone') };
    case 3:
      return { kind: 'call_tool', tool: 'heavy', args: args('alone') };
    case 4:
      return { kind: 'call_parallel', branches: [branch('look'), branch('pay'), branch('book'), branch('send')] };
    case 5:
      return {
        kind: 'call_parallel',
        branches: [branch('pay'), branch('book'), branch('look')],
        join: { kind: 'keyed', keys: ['a', 'b', 'c'] },
      };
    case 6:
      return {
        kind: 'call_parallel',
        branches: [branch('pay'), branch('book'), branch('look')],
        join: { kind: 'first_success' },
      };
    case 8:
      return { kind: 'spawn_task', task: 'foreground', spec: { description: 'one', query: 'go' } };
    case 9:
      return {
        kind: 'call_parallel',
        branches: [taskBranch('left'), branch('pay'), branch('look'), taskBranch('right')],
      };
    default:
      return {
        kind: 'call_parallel',
        branches: [
          branch('heavy'),
          branch('send', { after: ['heavy'] }),
          { id: 'last', tool: 'book', args: { slot: `${step}.last`, of: { $from: 'heavy', path: '/done' } } },
        ],
      };
  }
}

function taskBranch(description: string): Branch {
  return {
    id: description,
    tool: '_spawn_task',
    args: { kind: 'foreground', spec: { description, query: 'go' } },
  };
}

export function planner(run: RunView): Decision {
  const decision = plan(run.identity.run)[run.trajectory.count];
  return decision ?? { kind: 'finish', reason: 'goal', payload: outcomes(run) };
}

const EFFECT_OF: Readonly<Record<string, Effect>> = {
  look: 'read',
  book: 'keyed',
  heavy: 'keyed',
  pay: 'once',
  send: 'once',
};

export function effectOf(tool: string): Effect {
  return EFFECT_OF[tool] ?? 'once';
}

/** The value of a tool: what it was asked for, and some of them much more. */
export function resultOf(tool: string, slot: string): JsonObject {
  const done = `${tool} ${slot}`;
  return tool === 'heavy' ? { done, text: done.repeat(4_000) } : { done };
}

/** @param say told of each effect, after it is on disk. */
export function tools(effectsFile: string, say: (line: string) => void): Tool[] {
  const run = async (tool: string, args: JsonObject, context: ToolContext): Promise<Json> => {
    const slot = String(args['slot']);
    await turn();
    if (effectOf(tool) !== 'read') {
      const line: EffectLine = { tool, run: context.identity.run, slot, key: context.idempotencyKey };
      appendDurably(effectsFile, JSON.stringify(line));
      say(`effect ${line.run} ${slot}`);
      await turn();
    }
    return resultOf(tool, slot);
  };
  return Object.entries(EFFECT_OF).map(([name, effect]) => {
    const tool: Tool = {
      name,
      description: `The tool ${name}.`,
      inputSchema: { type: 'object' },
      effect,
      execute: (args, context) => run(name, args as JsonObject, context),
    };
    if (name !== 'send') return tool;
    // Looks in the world whether it was done.
    return {
      ...tool,
      reconcile: (args, { idempotencyKey }) =>
        readEffects(effectsFile).some(({ key }) => key === idempotencyKey)
          ? { status: 'done', value: resultOf(name, String((args as JsonObject)['slot'])) }
          : { status: 'not_done' },
    };
  });
}

export function readEffects(path: string): EffectLine[] {
  return readLines(path) as EffectLine[];
}
