/** What is said to a run that is there: stopped, resumed, told, answered. */
import { defined } from '#core';
import { toldError } from '../problem.ts';
import type { AnswerTaken } from './reply-shapes.ts';
import * as gives from './reply-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRoute, jsonReply, none, route } from './route.ts';
import { assertAdmin, listedFor, shownPage, userMessageIn } from './visiting.ts';

const tag = 'controls';
const reply = none;

const cancel = route('post /runs/{run}/cancel', {
  tag,
  action: 'control',
  summary: 'Ends the run as cancelled.',
  body: asks.runCancel,
  isBodyOptional: true,
  reply,
  handle: ({ body }, { run }) => run.cancel(body) as Promise<undefined>,
});

const cancelCall = route('post /runs/{run}/cancel-call', {
  tag,
  action: 'control',
  summary: 'Cancels one call of the step under way, and nothing else.',
  body: asks.cancelCall,
  reply,
  handle: ({ body: { which, ...options } }, { run }) => run.cancelCall(which, options) as Promise<undefined>,
});

const pause = route('post /runs/{run}/pause', {
  tag,
  action: 'control',
  summary: 'Pauses the run at its next step boundary, or before the call that is named.',
  body: asks.pauseRun,
  isBodyOptional: true,
  reply,
  handle: ({ body }, { run }) => run.pause(body) as Promise<undefined>,
});

const resume = route('post /runs/{run}/resume', {
  tag,
  action: 'control',
  summary: 'Resumes the run: answers its pause if there is one, or goes on with what has failed or was cut off.',
  body: asks.resumeRun,
  isBodyOptional: true,
  reply,
  handle: ({ body }, { run }) => run.resume(body) as Promise<undefined>,
});

const retry = route('post /runs/{run}/retry', {
  tag,
  action: 'control',
  summary: 'Carries out again what has failed of the plan of the run.',
  body: asks.retryRun,
  isBodyOptional: true,
  reply,
  handle: ({ body }, { run }) => run.retry(body) as Promise<undefined>,
});

const send = route('post /runs/{run}/send', {
  tag,
  action: 'answer',
  summary: 'Says something to the run: to one that asks its user it is the answer.',
  body: asks.saying,
  reply,
  handle: ({ body: { until, ...message } }, { run }) =>
    run.send(userMessageIn(message), defined({ until })) as Promise<undefined>,
});

const steer = route('post /runs/{run}/steer', {
  tag,
  action: 'control',
  summary: 'Sends a control of any type, such as REDIRECT with its goal.',
  body: asks.steer,
  reply,
  handle: ({ body: { type, payload, until } }, { run }) =>
    run.steer(type, payload, defined({ until })) as Promise<undefined>,
});

const answer = route('post /runs/{run}/answer', {
  tag,
  action: 'answer',
  summary: 'Answers a question of the run, or of a task below it.',
  body: asks.giveAnswer,
  reply,
  handle: ({ body }, { run }) => run.answer(body.token, body.answer, defined({ id: body.id })) as Promise<undefined>,
});

const diagnosis = route('get /runs/{run}/diagnosis', {
  tag,
  action: 'manage',
  summary:
    'What is wrong with a run that cannot be read, and what a repair would do; null when nothing is. For an admin.',
  reply: jsonReply(gives.diagnosis),
  handle: async ({ visit }, { run }) => {
    assertAdmin(visit, 'look into a run that is broken');
    return { diagnosis: (await run.diagnose()) ?? null };
  },
});

const repair = route('post /runs/{run}/repair', {
  tag,
  action: 'manage',
  summary:
    'Sets aside what cannot be read of a run, and pauses it; says what was done. Who has done it is recorded. For an admin.',
  body: asks.repairing,
  isBodyOptional: true,
  reply: jsonReply(gives.diagnosis),
  handle: async ({ visit, body }, { run }) => {
    assertAdmin(visit, 'repair a run');
    const { tenant, user } = visit.owner;
    return { diagnosis: (await run.repair({ by: `${tenant}/${user}`, ...body })) ?? null };
  },
});

const answers = route('post /answers', {
  tag: 'waiting',
  summary: 'Answers several questions, of several runs: each is taken or refused by itself.',
  body: asks.answerSeveral,
  reply: jsonReply(gives.answersTaken),
  handle: async ({ visit, body }) => {
    const items = body.answers.map(async ({ run: id, token, answer: given }): Promise<AnswerTaken> => {
      const about = { run: id, ...defined({ token }) };
      try {
        const { run } = await visit.run(id, 'answer');
        await run.answer(token, given);
        return { ...about, taken: true };
      } catch (error) {
        const { code, message } = toldError(error);
        return { ...about, taken: false, refused: { code, detail: message } };
      }
    });
    return { items: await Promise.all(items) };
  },
});

const waiting = route('get /waiting', {
  tag: 'waiting',
  action: 'read',
  summary:
    'All that the runs of the visitor wait for, oldest first: questions with what they take as answers, times, and events.',
  query: asks.waitingQuery,
  reply: jsonReply(gives.allWaits),
  handle: async ({ visit, query }) => {
    const { tenant: _tenant, user: _user, session: _session, limit = 50, after, ...wanted } = query;
    const owner = listedFor(visit, query);
    if (owner === undefined) return { items: [] };
    type Asked = Parameters<typeof visit.runtime.waiting>[0];
    return shownPage(
      limit,
      after?.toString(),
      (place) => visit.runtime.waiting({ ...owner, ...wanted, ...(place && { after: Number(place) }), limit } as Asked),
      ({ number }) => `${number}`,
      ({ run }) => visit.sees(run),
    );
  },
});

export const CONTROL_ROUTES: readonly ApiRoute[] = [
  cancel,
  cancelCall,
  pause,
  resume,
  retry,
  send,
  steer,
  answer,
  diagnosis,
  repair,
  answers,
  waiting,
];
