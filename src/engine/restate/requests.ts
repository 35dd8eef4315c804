/** What is asked of Restate over HTTP. */
import { describeThrown, PilotageError } from '#core';

/** Whoever waits for a run must not wait for an engine that does not answer. */
const ANSWER_MS = 5_000;
const MOST_WORDS = 300;

/**
 * @param purpose what Restate is to do, for the error.
 * @throws PilotageError `engine_unavailable`.
 */
export async function asksRestate(url: string, purpose: string, body?: object): Promise<void> {
  let status = 0;
  let words: string;
  let cause: unknown;
  try {
    const response = await fetch(url, {
      method: 'POST',
      signal: AbortSignal.timeout(ANSWER_MS),
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    status = response.status;
    words = (await response.text()).slice(0, MOST_WORDS);
    if (response.ok) return;
  } catch (error) {
    cause = error;
    words = describeThrown(error instanceof Error && error.cause !== undefined ? error.cause : error);
  }
  const { origin } = new URL(url);
  const advice =
    status === 404 ? ' No process is registered there: give `admin` to `serve`, or register its address yourself.' : '';
  const said = status === 0 ? words : `it says ${status}: ${words}`;
  throw new PilotageError('engine_unavailable', `Restate at ${origin} did not ${purpose}: ${said}.${advice}`, {
    data: { status },
    cause,
  });
}
