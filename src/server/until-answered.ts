import type { Run } from '#runtime';

/** Resolves when the run has taken or refused an answer to each of these pauses, whoever gave it. @returns false when it ends without, or the client is gone. */
export async function untilAnswered(run: Run, tokens: readonly string[], signal: AbortSignal): Promise<boolean> {
  const open = new Set<unknown>(tokens);
  for await (const event of run.events({ tasks: true, overPauses: true, signal })) {
    if (event.type === 'pause.resumed') open.delete(event.token);
    if (event.type === 'control.rejected') open.delete(event.control.payload?.['token']);
    if (open.size === 0) return true;
  }
  return false;
}
