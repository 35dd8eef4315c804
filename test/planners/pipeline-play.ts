/** Runs of a pipeline planner through a real runtime, with what its models were sent and what was recorded of its tries. */
import type {
  Branch,
  CallParallel,
  Entry,
  Json,
  Moved,
  PlanTry,
  Remark,
  RemarkPayloads,
  RemarkType,
  Step,
} from '#core';
import { type PipelineOptions, pipeline } from '#planners/pipeline';
import type { Run, RunResult, StartOptions } from '#runtime';
import { wholeMove } from '#state';
import type { ScriptedReply, ScriptedRequest } from '#testing';
import { type Tool, tool } from '#tools';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { start, type World, type WorldOptions, world } from '../kit/world.ts';

const input = {
  type: 'object',
  properties: { q: { type: 'string' }, limit: { type: 'integer' } },
  required: ['q'],
  additionalProperties: false,
} as const;

/** What ran, as `search x`, in order. */
export type Ran = string[];

/** Each tells what it does, and in which run, and gives its argument back; `broken` fails. */
export function toolsOf(
  ran: Ran | ((what: string, run: string) => unknown),
  names: readonly string[] = ['search', 'read', 'erase', 'broken'],
): Tool[] {
  return names.map((name) =>
    tool({
      name,
      description: `The tool ${name}.`,
      effect: 'read',
      inputSchema: input,
      execute({ q }, { identity }) {
        const what = `${name} ${String(q)}`;
        if (typeof ran === 'function') ran(what, identity.run);
        else ran.push(what);
        if (name === 'broken') throw new Error('it is broken');
        return { about: String(q) };
      },
    }),
  );
}

export type GivenStep = { readonly [key: string]: Json };

export const search = (id: string, q: Json = id, more: GivenStep = {}): GivenStep => ({
  id,
  type: 'tool',
  toolId: 'search',
  input: { q },
  ...more,
});
export const call = (toolId: string, id: string, more: GivenStep = {}): GivenStep => ({
  id,
  type: 'tool',
  toolId,
  input: { q: id },
  ...more,
});
export const end = (input: Json = 'the end', id = 'end'): GivenStep => ({ id, type: 'finish', input });

export const USAGE = { inputTokens: 100, outputTokens: 10 };

/** A plan as the arguments of `submit_plan`. */
export const plan = (...steps: readonly GivenStep[]): ScriptedReply => ({
  calls: [{ tool: 'submit_plan', args: { planId: 'p', steps } }],
  usage: USAGE,
});
export const words = (text: string): ScriptedReply => ({ text, usage: USAGE });
export const row = (step: GivenStep): string => JSON.stringify({ type: 'step', step });
/** A plan in lines, with the line that ends it. */
export const lines = (...rows: readonly (string | GivenStep)[]): ScriptedReply =>
  words([...rows.map((each) => (typeof each === 'string' ? each : row(each))), '{"type":"finish"}'].join('\n'));

/** An error that says that it may pass, as a provider's does. */
export function unavailable(): Error {
  return Object.assign(new Error('overloaded'), { isRetryable: true, statusCode: 503 });
}

export interface PlayOptions extends Omit<WorldOptions, 'planner'> {
  readonly pipeline: PipelineOptions;
  readonly start?: Partial<StartOptions> & { readonly query?: string };
}

export interface Played extends World {
  readonly run: Run;
  readonly result: RunResult;
  readonly steps: readonly Step[];
  readonly tries: readonly PlanTry[];
  readonly ran: Ran;
}

export function pipelineWorld({ pipeline: options, start: _, ...more }: PlayOptions): World & { readonly ran: Ran } {
  const ran: Ran = [];
  const planner = pipeline({ clock: new ImpatientClock(), ...options });
  return { ...world({ tools: toolsOf(ran), ...more, planner }), ran };
}

export async function play(options: PlayOptions): Promise<Played> {
  const made = pipelineWorld(options);
  const run = await start(made, { query: 'Find it', ...options.start });
  const result = await run.result();
  const { steps } = await run.state();
  const recorded = await movesOf(run, made);
  return { ...made, run, result, steps, tries: remarksIn(recorded, 'plan.try') };
}

/** All moves, the last one too, which is no step; a plan that grew as it was in the end. */
export async function movesOf(run: Run, { journal }: Pick<World, 'journal'>): Promise<readonly Moved[]> {
  return grownMoves(await journal.read(run.id));
}

export function grownMoves(entries: readonly Entry[]): readonly Moved[] {
  return entries.flatMap((entry, index) => (entry.kind === 'moved' ? [wholeMove(entry, entries, index + 1)] : []));
}

export function remarksIn<T extends RemarkType>(moves: readonly Pick<Step, 'remarks'>[], type: T): RemarkPayloads[T][] {
  return moves.flatMap(({ remarks = [] }) => remarks.filter((remark: Remark) => remark.type === type)) as never;
}

export async function remarksOf<T extends RemarkType>(played: Played, type: T): Promise<RemarkPayloads[T][]> {
  return remarksIn(await movesOf(played.run, played), type);
}

/** Everything that the request says. */
export function saidIn({ prompt }: Pick<ScriptedRequest, 'prompt'>): string {
  return prompt
    .map(({ content }) =>
      typeof content === 'string' ? content : content.map((part) => (part.type === 'text' ? part.text : '')).join('\n'),
    )
    .join('\n');
}

export function branchesIn(step: Step | undefined): readonly Branch[] {
  return (step?.decision as CallParallel | undefined)?.branches ?? [];
}
