/** The bare loop: the least that anybody could write by hand for the workload. */
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { Ajv } from 'ajv';
import { INPUT_SCHEMA, keepNote, type Note, QUERY, TOOL_FOR_MODEL } from './workload.ts';

const fits = new Ajv().compile<Note>(INPUT_SCHEMA);

/** @returns the model's answer. */
export async function bareLoop(model: LanguageModelV4): Promise<string> {
  const messages: LanguageModelV4CallOptions['prompt'] = [{ role: 'user', content: [{ type: 'text', text: QUERY }] }];
  const tools = [TOOL_FOR_MODEL];
  while (true) {
    const { content } = await model.doGenerate({ prompt: messages, tools });
    const part = content[0];
    if (part?.type === 'text') return part.text;
    if (part?.type !== 'tool-call') throw new Error('The scripted model gave neither a call nor an answer.');
    const { toolCallId, toolName } = part;
    const input: unknown = JSON.parse(part.input);
    if (!fits(input)) throw new Error('The scripted model gave arguments that do not fit.');
    const value = await keepNote(input);
    messages.push(
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName, input }] },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'json', value } }] },
    );
  }
}
