/** Whether the server lives, and whether its journal answers. */
import { jsonAnswer } from './mount.ts';
import * as gives from './reply-shapes.ts';
import { type ApiRoute, jsonReply, route } from './route.ts';

const ANSWER_MS = 3_000;

const alive = route('get /healthz', {
  tag: 'health',
  summary: 'The server lives.',
  reply: jsonReply(gives.alive),
  handle: () => ({ alive: true as const }),
});

const ready = route('get /readyz', {
  tag: 'health',
  summary: 'The journal answers; 503 when it does not.',
  reply: jsonReply(gives.ready),
  handle: async ({ part }) => {
    const late = AbortSignal.timeout(ANSWER_MS);
    const isLate = new Promise<never>((_, reject) => late.addEventListener('abort', () => reject(late.reason)));
    try {
      await Promise.race([part.runtime.list({ limit: 1 }), isLate]);
      return { ready: true };
    } catch {
      return jsonAnswer({ ready: false }, 503, { 'retry-after': '1' });
    }
  },
});

export const HEALTH_ROUTES: readonly ApiRoute[] = [alive, ready];
