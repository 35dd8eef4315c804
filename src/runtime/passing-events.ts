/** Events of what passes and is never recorded: tokens, pieces of results, progress. */
import type { EventPayloads, RunEvent } from '#core';
import { event, nextStep, type RunState } from '#state';
import type { Notice } from '../loop/notices.ts';

/** What the journal has brought already may be ahead of the driver's notices: nothing comes after the end of its call. */
function isUnderWay({ run, step, call }: EventPayloads['tool.chunk'], { identity, open, tasks }: RunState): boolean {
  if (run === identity.run) return open?.move.step === step && open.calls[call] === null;
  return tasks.every(({ id, end }) => end === undefined || (run !== id && !run.startsWith(`${id}.`)));
}

export function passingEvent(
  notice: Exclude<Notice, { type: 'entry' | 'exit' }>,
  state: RunState,
): readonly RunEvent[] {
  const at = { seq: state.head, at: state.updatedAt };
  if (notice.type === 'late') {
    const { step, call, tool } = notice;
    return [event('tool.late', at, state.identity, { step, call, tool })];
  }
  if (notice.type === 'progress') return [event('task.progress', at, state.identity, notice.progress)];
  if (notice.type === 'chunk') {
    return isUnderWay(notice.chunk, state) ? [event('tool.chunk', at, state.identity, notice.chunk)] : [];
  }
  const { step, delta, offset } = notice;
  // The step's decision was read from the journal already: the text is in it.
  if (step < nextStep(state) || state.ending !== null) return [];
  if (delta.type === 'reset') return [event('token.reset', at, state.identity, { step })];
  if (delta.type === 'input') {
    const { callId, tool, text } = delta;
    return [event('tool.input', at, state.identity, { step, callId, tool, text, offset })];
  }
  return [event('token', at, state.identity, { step, channel: delta.type, text: delta.text, offset })];
}
