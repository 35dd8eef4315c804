/**
 * One of several processes on a journal. `crowd-child.ts <folder> work` carries on with due runs until it is killed;
 * `crowd-child.ts <folder> speak <voice> <acts>` says and answers things at random, and tells what became of each.
 */
import { Thrown } from '#core';
import type { Run, Runtime } from '#runtime';
import { seededRandom } from '#testing';
import { crowdRuntime } from './crowd-agents.ts';

const [, , folder = '', role = '', voiceText = '', actsText = ''] = process.argv;

/** One act of a voice, as it is told in a line of JSON. */
export interface Act {
  readonly kind: 'message' | 'goal' | 'context' | 'payload' | 'approve' | 'reject' | 'cancel';
  readonly run: string;
  /** What was said, unlike all else that is said. */
  readonly words: string;
  /** Milliseconds since the epoch. */
  readonly begunAt: number;
  readonly endedAt: number;
  /** The code of the refusal. Absent: it was accepted. */
  readonly refused?: string;
}

type Kind = Act['kind'];
const KINDS: readonly Kind[] = [
  ...(['message', 'message', 'message', 'message', 'goal', 'context', 'payload', 'payload'] as const),
  ...(['approve', 'approve', 'approve', 'approve', 'reject', 'cancel'] as const),
];

const SAYS: Readonly<Record<Kind, (run: Run, words: string, pick: () => number) => Promise<void>>> = {
  message: (run, message) => run.steer('USER_MESSAGE', { message }),
  goal: (run, goal) => run.steer('REDIRECT', { goal }),
  context: (run, fact) => run.steer('INJECT_CONTEXT', { fact }),
  payload: (run, message) => run.resume({ payload: { message } }),
  approve: async (run, reason, pick) => run.approve(await questionOf(run, pick), { reason }),
  reject: async (run, reason, pick) => run.reject(await questionOf(run, pick), { reason }),
  cancel: (run, reason) => run.cancel({ reason }),
};

/** A question that is open now, and perhaps not any more when it is answered. */
async function questionOf(run: Run, pick: () => number): Promise<string | undefined> {
  const { pauses } = await run.state();
  return pauses[Math.floor(pick() * pauses.length)]?.token;
}

async function speak(runtime: Runtime, voice: number, acts: number): Promise<void> {
  const random = seededRandom(voice);
  for (let count = 0; count < acts; count += 1) {
    const runs = (await runtime.list()).filter(({ status }) => status !== 'finished' && status !== 'failed');
    const chosen = runs[Math.floor(random() * runs.length)];
    if (chosen === undefined) return;
    const kind = KINDS[Math.floor(random() * KINDS.length)] as Kind;
    // A run that is cancelled is over: it is a task, or the last act of one voice.
    if (kind === 'cancel' && chosen.parent === undefined) continue;
    const words = `voice ${voice}, act ${count}`;
    const begunAt = Date.now();
    const refused = await SAYS[kind](runtime.run(chosen.identity.run), words, random).then(
      () => undefined,
      (error: unknown) => Thrown.of(error).code ?? String(error),
    );
    const act: Act = {
      kind,
      run: chosen.identity.run,
      words,
      begunAt,
      endedAt: Date.now(),
      ...(refused === undefined ? {} : { refused }),
    };
    process.stdout.write(`${JSON.stringify(act)}\n`);
  }
}

const runtime = crowdRuntime(folder);
if (role === 'work') runtime.work();
else {
  await speak(runtime, Number(voiceText), Number(actsText));
  await runtime.close();
}
