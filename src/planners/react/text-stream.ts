/**
 * What a listener may see of the models: of one that writes its calls as text the words, never the calls; and of a reply
 * that failed for good nothing, whatever comes in its place.
 */
import type { SpokenDelta } from '../../core/planner.ts';
import type { ReadyModel } from '../../model/entry.ts';
import { ToolCallStream } from '../../parse/index.ts';
import { type Callable, parseTools } from './read-reply.ts';

/**
 * @param model says which model is speaking now.
 * @throws as `deltas`; a `reset` goes ahead of it when something was shown.
 */
export async function* proseOnly<T>(
  deltas: AsyncGenerator<SpokenDelta, T>,
  callable: Callable,
  model: () => ReadyModel,
): AsyncGenerator<SpokenDelta, T> {
  let stream: ToolCallStream | undefined;
  let isShown = false;
  try {
    for (;;) {
      let next: IteratorResult<SpokenDelta, T>;
      try {
        next = await deltas.next();
      } catch (error) {
        if (isShown) yield { type: 'reset' };
        throw error;
      }
      const { value, done } = next;
      if (done === true) {
        const rest = stream?.end().text ?? '';
        if (rest !== '') yield { type: 'text', text: rest };
        return value;
      }
      isShown = value.type !== 'reset';
      if (value.type !== 'text' || model().toolCalls === 'native') {
        if (value.type === 'reset') stream = undefined;
        yield value;
        continue;
      }
      stream ??= new ToolCallStream(parseTools(callable));
      const { text } = stream.push(value.text);
      if (text !== '') yield { type: 'text', text };
    }
  } finally {
    await deltas.return(undefined as never);
  }
}
