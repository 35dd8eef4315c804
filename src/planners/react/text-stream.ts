/** What a listener may see of a model that writes its calls as text: the words, never the calls. */
import type { Delta } from '../../core/planner.ts';
import type { ToolView } from '../../core/tool-schema.ts';
import type { ReadyModel } from '../../model/entry.ts';
import { ToolCallStream } from '../../parse/index.ts';

/** @param model says which model is speaking now. */
export async function* proseOnly<T>(
  deltas: AsyncGenerator<Delta, T>,
  tools: ToolView,
  model: () => ReadyModel,
): AsyncGenerator<Delta, T> {
  let stream: ToolCallStream | undefined;
  try {
    for (;;) {
      const { value, done } = await deltas.next();
      if (done === true) {
        const rest = stream?.end().text ?? '';
        if (rest !== '') yield { type: 'text', text: rest };
        return value;
      }
      if (value.type !== 'text' || model().toolCalls === 'native') {
        if (value.type === 'reset') stream = undefined;
        yield value;
        continue;
      }
      stream ??= new ToolCallStream(tools.all());
      const { text } = stream.push(value.text);
      if (text !== '') yield { type: 'text', text };
    }
  } finally {
    await deltas.return(undefined as never);
  }
}
