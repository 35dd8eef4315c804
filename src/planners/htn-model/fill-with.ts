/** A model that solves a leaf with steps. */
import type { LanguageModelV4Message } from '@ai-sdk/provider';
import {
  type AsksModels,
  addUsage,
  defined,
  describeThrown,
  isJsonObject,
  type Json,
  type JsonObject,
  PilotageError,
  type PlanFault,
  type Remark,
  type RunView,
  type ToolView,
  type Usage,
} from '#core';
import type { LanguageModel, ModelEntry } from '#model';
import { parseToolArgs } from '#parse';
import type { FillLeaf, HtnStep, HtnTask } from '#planners/htn';
import { checkPlan, fault, planInvalid } from '#plans';
import { assistantTurn, enclose, frame, toolEntry, userTurn } from '#prompt';
import { aboutTask, askerOf, asking, described, type HtnModelOptions } from './asker.ts';

/**
 * For `htn({ fill })`: asks the model for the steps of the task, each a call of a tool or a message. Steps that no tool can
 * carry out go back to it once, with all that is wrong with them. When they are no good then either, the run fails with
 * `plan_invalid`. While the model is away, the run waits for it.
 * @throws PilotageError `invalid_config` for a value that is not a model, and for wrong prices.
 */
export function fillWith(model: LanguageModel | ModelEntry, options: HtnModelOptions = {}): FillLeaf & AsksModels {
  const asker = askerOf(model, options);
  const fill: FillLeaf = async (task, run, signal) => {
    const first = [userTurn(promptFor(task, run, options))];
    const remarks: Remark[] = [];
    let usage: Usage | undefined;
    let repair: readonly LanguageModelV4Message[] = [];
    for (;;) {
      const asked = await asker.ask({
        prompt: [...first, ...repair],
        schema: schemaFor(run.tools),
        name: 'steps',
        parse: (text) => stepsIn(text, run.tools),
        signal,
      });
      remarks.push(...asked.remarks);
      if (asked.usage !== undefined) usage = addUsage(usage, asked.usage);
      if (asked.ok) return { steps: asked.value, remarks, ...defined({ usage }) };
      if (repair.length > 0) throw asked.error;
      repair = repairTurns(asked.reply.text, asked.error);
    }
  };
  return asking(fill, asker);
}

function promptFor(task: HtnTask, { goal, tools }: RunView, options: HtnModelOptions): string {
  const entries = tools.list().map((tool) => toolEntry(tool, 1));
  return [
    'Give the steps by which a task is done. They are carried out one after the other; you do not see what they come to.',
    '- {"type": "tool", "toolId": …, "input": …} calls a tool with the arguments `input`.',
    '- {"type": "message", "input": …} says the text `input` to the user.',
    'The only tools there are:',
    frame('available_tools', entries.join('\n')),
    aboutTask(goal, task),
    `The task to be done is ${task[0]}${described(task[0], options)}`,
    'Answer with {"steps": […]}. Take the fewest steps that do it; none, if there is nothing to do.',
  ].join('\n');
}

const STEP_TYPES: readonly Json[] = ['tool', 'message'];

function schemaFor(tools: ToolView): JsonObject {
  const names = tools.list().map(({ name }) => name);
  const step = {
    type: 'object',
    required: ['type', 'input'],
    additionalProperties: false,
    properties: {
      type: { enum: STEP_TYPES },
      // An empty list of values is not a valid schema.
      ...(names.length === 0 ? {} : { toolId: { type: 'string', enum: names } }),
      input: { description: 'The arguments of the tool, or the words of the message.' },
    },
  };
  return {
    type: 'object',
    required: ['steps'],
    additionalProperties: false,
    properties: { steps: { type: 'array', items: step } },
  };
}

/** @throws PilotageError `plan_invalid` with all that is wrong. */
function stepsIn(text: string, tools: ToolView): readonly HtnStep[] {
  const given = parseToolArgs(text, { name: 'steps', inputSchema: schemaFor(tools) })?.args['steps'];
  if (!Array.isArray(given)) throw new PilotageError('plan_invalid', 'The answer has no list of steps.');
  const faults: PlanFault[] = [];
  const steps: HtnStep[] = [];
  for (const [index, step] of given.entries()) {
    const id = `step ${index + 1}`;
    if (!isJsonObject(step) || !STEP_TYPES.includes(step['type'] ?? null)) {
      faults.push(fault('step_type', `The ${id} is neither of the type tool nor of the type message.`, id));
      continue;
    }
    // Each by itself: it cannot refer to another, of which it does not know the id.
    const checked = checkPlan({ steps: [{ ...step, id }] }, { tools });
    if ('faults' in checked) faults.push(...checked.faults);
    else for (const { id: _, after: __, ...ready } of checked.plan.steps) steps.push(ready);
  }
  if (faults.length > 0) throw planInvalid(faults);
  return steps;
}

function repairTurns(reply: string, error: unknown): readonly LanguageModelV4Message[] {
  return [
    ...(reply.trim() === '' ? [] : [assistantTurn(reply)]),
    userTurn(
      `These steps cannot be carried out:\n${enclose('reply_error', describeThrown(error))}\nGive all steps again, with that put right.`,
    ),
  ];
}
