/** A model that chooses among methods. */
import { type AsksModels, defined, type JsonObject, type RunView } from '#core';
import type { LanguageModel, ModelEntry } from '#model';
import { parseToolArgs } from '#parse';
import type { ChooseMethod, HtnTask } from '#planners/htn';
import { userTurn } from '#prompt';
import { aboutTask, askerOf, asking, described, type HtnModelOptions } from './asker.ts';

/**
 * For `htn({ choose })`: asks the model which of the methods is to be tried first. An answer that names none is given on as
 * it is, so the first method is tried and the trace tells what was said. While the model is away, the run waits for it.
 * @throws PilotageError `invalid_config` for a value that is not a model, and for wrong prices.
 */
export function chooseWith(
  model: LanguageModel | ModelEntry,
  options: HtnModelOptions = {},
): ChooseMethod & AsksModels {
  const asker = askerOf(model, options);
  const choose: ChooseMethod = async (task, methods, run, signal) => {
    const asked = await asker.ask({
      prompt: [userTurn(promptFor(task, methods, run, options))],
      schema: schemaFor(methods),
      name: 'choice',
      parse: (text) => methodIn(text, methods),
      signal,
    });
    const { remarks, usage } = asked;
    const method = asked.ok ? asked.value : asked.reply.text;
    return { method, remarks, ...defined({ usage }) };
  };
  return asking(choose, asker);
}

function promptFor(task: HtnTask, methods: readonly string[], { goal }: RunView, options: HtnModelOptions): string {
  return [
    'Choose the way in which a task is to be done: the one that serves the goal best. The ways are:',
    ...methods.map((method) => `- ${method}${described(method, options)}`),
    aboutTask(goal, task),
    'Answer with {"method": …}, the name of one of the ways, as it is spelt above.',
  ].join('\n');
}

function schemaFor(methods: readonly string[]): JsonObject {
  return {
    type: 'object',
    required: ['method'],
    additionalProperties: false,
    properties: { method: { type: 'string', enum: methods } },
  };
}

/** @throws Error when the answer names none of the methods. */
function methodIn(text: string, methods: readonly string[]): string {
  const bare = text.trim();
  if (methods.includes(bare)) return bare;
  const method = parseToolArgs(text, { name: 'choice', inputSchema: schemaFor(methods) })?.args['method'];
  if (typeof method === 'string' && methods.includes(method)) return method;
  throw new Error('The answer does not name one of the ways.');
}
