/**
 * Reminders to a model that has made the same kind of fault several times in a row, or repeats itself. A reminder is the last turn
 * of one request and not part of the transcript, so that it is gone once it no longer applies.
 */
import type { LanguageModelV4Message } from '@ai-sdk/provider';
import type { Remark, RepairCounter, RepairTier, RunView } from '#core';
import { note, userTurn } from './frame.ts';

/** The texts hold for native calls and for calls in text, and name no tool: the run may have any, or none. */
export const GUIDANCE: Readonly<Record<RepairCounter, Readonly<Record<RepairTier, string>>>> = {
  finish: {
    reminder:
      'reminder: your attempt to finish was not accepted; the error says why. When the request is done, your reply is the answer itself, without a tool call.',
    warning:
      'warning: your attempts to finish were not accepted twice in a row. No call is needed to finish: a reply without a tool call is the answer. Correct what the error names.',
    critical:
      'critical: your attempts to finish were not accepted three times or more in a row. Make no call to finish. Write the whole answer as your next reply, corrected as the error says, or go on with the work.',
  },
  args: {
    reminder:
      "reminder: the arguments of your last call did not fit the tool's schema. The error in its result names each part that is wrong: correct those, and keep the rest.",
    warning:
      "warning: the arguments of your calls did not fit the tool's schema twice in a row. Compare them with the schema: every required argument, its exact name, its type. Leave out what the schema does not name.",
    critical:
      "critical: the arguments of your calls did not fit the tool's schema three times or more in a row. Do not send them again in this form. Send the required arguments alone, or take another tool; if none fits, say in your answer what cannot be done.",
  },
  multi_action: {
    reminder:
      'reminder: your last reply held several calls that could not be carried out together. When in doubt, make one call in a reply.',
    warning:
      'warning: your replies held several calls that could not be carried out together, twice in a row. Make one call, and wait for its result before the next.',
    critical:
      'critical: your replies held several calls that could not be carried out together, three times or more in a row. Your next reply must hold exactly one call, or an answer and no call.',
  },
  reply: {
    reminder:
      'reminder: nothing could be made of your last reply: it was empty, cut off, or not in a form that counts. Reply with an answer, or with a tool call if one is needed.',
    warning:
      'warning: nothing could be made of your last two replies: they were empty, cut off, or not in a form that counts. Keep the next one short: one call, or a short answer.',
    critical:
      'critical: nothing could be made of your last three replies or more: they were empty, cut off, or not in a form that counts. Write a short answer that says what you found, or make one call with short arguments, and nothing else.',
  },
};

/** In place of those of `finish`, where a call ends the run. */
export const FINISH_BY_CALL: Readonly<Record<RepairTier, string>> = {
  reminder:
    'reminder: your attempt to finish was not accepted; the error says why. When the request is done, make that call again, corrected, and alone in its reply.',
  warning:
    'warning: your attempts to finish were not accepted twice in a row. Correct what the error names, and make no other call beside it.',
  critical:
    'critical: your attempts to finish were not accepted three times or more in a row. Make that call alone, with the whole answer as its one argument, corrected as the error says, or go on with the work.',
};

/** The order of the blocks. */
const COUNTERS: readonly RepairCounter[] = ['finish', 'args', 'multi_action', 'reply'];

/** The tier of a reminder for a count of faults; `undefined` for 0. */
export function tierOf(count: number): RepairTier | undefined {
  if (count <= 0) return undefined;
  return count === 1 ? 'reminder' : count === 2 ? 'warning' : 'critical';
}

function goingRound({ period, times }: NonNullable<RunView['noProgress']>): string {
  return `reminder: your last ${period * times} steps made the same calls ${times} times over, and got the same results each time. To repeat them will bring nothing new. Do something else, or finish: say what you have found and what cannot be done.`;
}

export interface GuidanceTurn {
  readonly message: LanguageModelV4Message;
  /** A remark for each block about faults, in the order of the blocks. */
  readonly remarks: readonly Remark<'planner.repair_guidance_injected'>[];
}

/**
 * The last turn of a request whose run has made faults, or makes no progress; `undefined` when there is nothing to say. An
 * absent counter is 0.
 * @param endsByCall a call ends the run, and not a reply without one.
 */
export function guidanceTurn(
  counters: Readonly<Partial<Record<RepairCounter, number>>>,
  noProgress?: RunView['noProgress'],
  endsByCall = false,
): GuidanceTurn | undefined {
  const blocks = noProgress === undefined ? [] : [goingRound(noProgress)];
  const remarks: Remark<'planner.repair_guidance_injected'>[] = [];
  for (const counter of COUNTERS) {
    const count = counters[counter] ?? 0;
    const tier = tierOf(count);
    if (tier === undefined) continue;
    blocks.push((counter === 'finish' && endsByCall ? FINISH_BY_CALL : GUIDANCE[counter])[tier]);
    remarks.push({ type: 'planner.repair_guidance_injected', tier, counter, count });
  }
  return blocks.length === 0 ? undefined : { message: userTurn(note(blocks.join('\n\n'))), remarks };
}

/** The last turn of the last request of a run at a limit. */
export function lastMoveTurn(): LanguageModelV4Message {
  return userTurn(note(LAST_MOVE));
}

const LAST_MOVE =
  'This is your last reply: the run has reached its limit, and no call is carried out any more. Write the answer now. Say what you have found, and what is still open.';
