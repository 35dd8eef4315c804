/** How a model without native calls writes a call, and what it is told of one that was not carried out for its form. */

/** The taught form of a call. It holds no valid JSON, so that a model which repeats it has not made a call. */
export const TAUGHT_FORM = `\`\`\`json
{"tool": "...", "args": {...}}
\`\`\``;

/** The taught form with a reason, which a call needs that was made before. */
export const AGAIN_FORM = '{"tool": "...", "args": {...}, "again": "..."}';

/** The refusal of a call that may change something, and was written in another form or only spoken of. @param tool safe to show. */
export function unsureCall(tool: string): string {
  return `The call of ${tool} was not made: it changes something, and such a call counts only in this form, as the end of your reply:
${TAUGHT_FORM}
Your reply had it in another form, or spoke of it. If you mean the call, reply with that block alone; if not, answer without it.`;
}

/** The refusal of a call that was made before. @param came its outcome, safe to show. */
export function repeatedCall(tool: string, step: number, came: string): string {
  return `The call of ${tool} was not made: the same call with the same arguments was made at step ${step + 1}. What came of it: ${came}
Go on with that. If it is to happen once more, reply with its block alone, and with the reason: ${AGAIN_FORM}`;
}
