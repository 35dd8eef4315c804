/**
 * The variables of the default templates, made of what a planner may look at. Those that hold what is not the operator's are
 * whole frames, so that a template of any wording keeps them apart.
 */
import { defined, isJsonObject, type Json, type JsonObject, type RunView } from '#core';
import { PLAN_SCHEMA } from '#plans';
import {
  contextTurns,
  enclose,
  encloseJson,
  frame,
  framedWords,
  hintLines,
  jsonLine,
  quoted,
  steeringText,
  toolEntry,
} from '#prompt';
import type { PlanForm } from './request.ts';
import { messageText } from './retrieve.ts';
import type { TemplateVars } from './template.ts';

export interface PlanParts {
  readonly run: RunView;
  readonly form: PlanForm;
  readonly maxSteps: number;
  /** Steps of the type `internal` may be used. */
  readonly internal?: boolean;
  /** What was looked up, framed. */
  readonly retrieved?: string;
  /** What the run has done so far, framed. */
  readonly done?: string;
}

/** @throws PilotageError `memory_block_unserializable` for a context that is not JSON. */
export function planVariables({ run, form, maxSteps, internal = false, retrieved, done }: PlanParts): TemplateVars {
  return {
    goal: enclose('goal', run.goal),
    toolList: frame('available_tools', toolList(run)),
    limits: frame('plan_limits', quoted(limitLines(run, maxSteps).join('\n'))),
    'limits.maxSteps': maxSteps,
    internal: internal ? INTERNAL : NO_INTERNAL,
    schema: JSON.stringify(form === 'json' ? PLAN_SCHEMA : STEP_SCHEMA),
    example: form === 'json' ? JSON.stringify(EXAMPLE) : EXAMPLE_LINES,
    context: blocks([...contextBlocks(run), ...(retrieved === undefined ? [] : [retrieved])]),
    done: blocks(done === undefined ? [] : [done]),
  };
}

const INTERNAL = '`internal` is work that the program does itself, told what by `input`.';
const NO_INTERNAL = '`internal` is not to be used.';

const EXAMPLE: JsonObject = {
  planId: 'example',
  steps: [
    { id: 'find', type: 'tool', toolId: 'example_search', input: { text: 'tide tables' } },
    {
      id: 'read',
      type: 'tool',
      toolId: 'example_read',
      input: { url: { $from: 'find', path: '/hits/0/url' } },
    },
    { id: 'end', type: 'finish', input: { table: { $from: 'read', path: '/text' } } },
  ],
};
const EXAMPLE_LINES: string = [
  ...(EXAMPLE['steps'] as readonly Json[]).map((step) => ({ type: 'step', step })),
  { type: 'finish' },
]
  .map((line) => JSON.stringify(line))
  .join('\n');

/** What the schema of a plan says of one step. */
const STEP_SCHEMA: Json = stepSchema();

function stepSchema(): Json {
  const { properties } = PLAN_SCHEMA;
  const steps = isJsonObject(properties) ? properties['steps'] : undefined;
  return (isJsonObject(steps) ? steps['items'] : undefined) ?? {};
}

const MICRO_USD = 1_000_000;

function limitLines({ budget, context }: RunView, maxSteps: number): string[] {
  const { callsLeft, costMicroUsdLeft, deadlineAt } = budget;
  return [
    `At most ${maxSteps} steps.`,
    ...(callsLeft === undefined ? [] : [`Tools can be called ${callsLeft} times more.`]),
    ...(costMicroUsdLeft === undefined ? [] : [`${costMicroUsdLeft / MICRO_USD} USD are left to spend.`]),
    ...(deadlineAt === undefined ? [] : [`All is to be done by ${new Date(deadlineAt).toISOString()}.`]),
    ...hintLines(context.hints ?? {}),
  ];
}

function toolList({ tools }: RunView): string {
  const entries = tools.list().map((tool) => toolEntry(tool, 1));
  return entries.length === 0 ? 'No tools are available.' : entries.join('\n');
}

/** Each followed by an empty line; of none, nothing is left. */
function blocks(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n\n`).join('');
}

function contextBlocks({ context, history, inputs, trajectory }: RunView): string[] {
  const said = history.filter(({ text }) => text !== '').map(({ role, text }) => ({ role, text }));
  const attached = inputs.map(({ artifactRef, mime, sizeBytes, fileName }) => ({
    artifact_ref: artifactRef,
    mime,
    size_bytes: sizeBytes,
    ...defined({ file_name: fileName }),
  }));
  // The goal that a REDIRECT brought stands in its own place.
  const added = trajectory.steering
    .filter(({ control }) => control.type !== 'REDIRECT')
    .map((turn) => steeringText(turn, framedWords));
  return [
    ...contextTurns(context).map(messageText),
    ...(said.length === 0
      ? []
      : [`What was said before the goal, oldest first:\n${encloseJson('earlier_turns', lines(said))}`]),
    ...(attached.length === 0
      ? []
      : [`Attachments of the goal, by reference:\n${encloseJson('attachment', lines(attached))}`]),
    ...(added.length === 0 ? [] : [`What came in while the run went on:\n${added.join('\n')}`]),
  ];
}

function lines(values: readonly Json[]): string {
  return values.map(jsonLine).join('\n');
}
