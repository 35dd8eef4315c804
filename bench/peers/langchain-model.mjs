/** The scripted model as LangChain's chat model, and the tool as LangChain's tool. */
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { argumentText, callId, INPUT_SCHEMA, keepNote, stepAfter, TOOL_DESCRIPTION, TOOL_NAME } from '../workload.ts';

export class ScriptedChatModel extends BaseChatModel {
  constructor(steps) {
    super({});
    this.steps = steps;
  }

  _llmType() {
    return 'scripted';
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const last = messages.at(-1);
    const step = stepAfter(last?.getType() === 'tool' ? last.tool_call_id : undefined);
    const done = step > this.steps;
    // A provider of LangChain's parses the arguments' text; so does this one.
    const calls = done
      ? []
      : [{ type: 'tool_call', id: callId(step), name: TOOL_NAME, args: JSON.parse(argumentText(step)) }];
    const text = done ? 'Done.' : '';
    return { generations: [{ text, message: new AIMessage({ content: text, tool_calls: calls }) }] };
  }
}

export function langchainTool(called) {
  return tool(
    (note) => {
      called();
      return keepNote(note);
    },
    { name: TOOL_NAME, description: TOOL_DESCRIPTION, schema: INPUT_SCHEMA },
  );
}
