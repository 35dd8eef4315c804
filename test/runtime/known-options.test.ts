/** A word that is spelt wrong is not passed over in silence: wherever a handle or a runtime takes options. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { flow, node } from '#flow';
import { postgresJournal } from '#journal/postgres';
import { createRuntime } from '#pilotage';
import { react } from '#planners/react';
import { rules } from '#planners/rules';
import { scriptedModel } from '#testing';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const ANY = node('any', { inputSchema: {}, execute: () => 1 });

/** A rule with a word of another library. */
const ruleOf = (word: string): never =>
  Object.fromEntries([
    ['id', 'a'],
    [word, () => null],
  ]) as never;

async function paused() {
  const made = world({
    planner: script(call('gated', { n: 1 })),
    tools: [make('gated', (args) => args, { needsApproval: true })],
  });
  const run = await start(made);
  const result = await run.result();
  const token = result.status === 'paused' ? (result.pauses[0]?.token ?? '') : '';
  return { ...made, run, token };
}

describe('an unknown option', () => {
  it('of approve is refused with its name and the right ones, and nothing is answered', async () => {
    const { run, token } = await paused();
    const answered = run.approve(token, { arg: { n: 2 } } as never);
    await expect(answered).rejects.toMatchObject({
      code: 'invalid_config',
      message:
        'approve has no option "arg". Did you mean args? Its options are args, digest, remember, payload, reason.',
    });
    expect((await run.state()).pauses).toHaveLength(1);
    await run.approve(token, { args: { n: 2 } });
    expect((await run.result()).status).toBe('finished');
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ value: { n: 2 } });
  });

  type Made = Awaited<ReturnType<typeof paused>>;
  const wrong = { odd: 1 } as never;
  it.each<[string, (made: Made) => unknown]>([
    ['reject', ({ run, token }) => run.reject(token, wrong)],
    ['resume', ({ run }) => run.resume(wrong)],
    ['settle', ({ run, token }) => run.settle(token, { happened: true, odd: 1 } as never)],
    ['steer', ({ run }) => run.steer('USER_MESSAGE', { message: 'x' }, wrong)],
    ['pause', ({ run }) => run.pause(wrong)],
    ['cancel', ({ run }) => run.cancel({ resaon: 'x' } as never)],
    ['fork', ({ run }) => run.fork(wrong)],
    ['the result of fork', ({ run }) => run.fork({ result: wrong })],
    ['replay', ({ run }) => run.replay(wrong)],
    ['repair', ({ run }) => run.repair({ by: 'me', odd: 1 } as never)],
    ['events', ({ run }) => run.events(wrong)],
    ['start', ({ runtime }) => runtime.start('q', { identity: local('ana'), limit: {} } as never)],
    ['context', ({ runtime }) => runtime.start('q', { identity: local('ana'), context: wrong })],
    ['run', ({ runtime }) => runtime.run('r', wrong)],
    ['list', ({ runtime }) => runtime.list(wrong)],
    ['tasks.spawn', ({ runtime }) => runtime.tasks.spawn('q', { identity: local('ana'), key: 'x' } as never)],
    ['tasks.list', ({ runtime }) => runtime.tasks.list(local('ana'), wrong)],
  ])('of %s is refused, and so is what is no object at all', async (of, ask) => {
    const made = await paused();
    const runs = (await made.runtime.list()).length;
    await expect((async () => ask(made))()).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining(`${of} has no option`),
    });
    expect([(await made.runtime.list()).length, (await made.run.state()).pauses.length]).toEqual([runs, 1]);
  });

  it.each<[object, RegExp]>([
    [{ scopes: [1] }, /scopes of start is a list of other things than texts; give a list of texts/],
    [{ context: { hints: { preferredTools: 'search' } } }, /preferredTools of context.hints is "search"; give a list/],
    [{ context: { hints: { preferredOrder: [{}] } } }, /context.hints.preferredOrder is a list of other things/],
    [{ context: { hints: { parallelGroups: ['a'] } } }, /context.hints.parallelGroups\[0\] is "a"/],
    [{ context: { hints: { constraints: ['Be brief.'] } } }, /constraints of context.hints is a list; give a text/],
    [{ context: { hints: { maxParallel: 0 } } }, /maxParallel of context.hints is the number 0/],
    [{ context: { hints: { budget: { costUsd: 'little' } } } }, /costUsd of context.hints.budget is "little"/],
    [{ history: [{ role: 'user', content: 'Hi.', name: 'ana' }] }, /history\[0\] has no option "name"/],
    [{ history: [{ role: 'assistant', content: 'Hi.', tool_calls: [] }] }, /history\[0\] has no option "tool_calls"/],
  ])('start refuses what would be dropped, or end the run: %j', async (options, message) => {
    const { runtime } = world({ planner: script() });
    await expect(runtime.start('q', { identity: local('ana'), ...options } as never)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(message),
    });
    expect(await runtime.list()).toEqual([]);
  });

  it('a fork says what it does with effects in one of two words', async () => {
    const { run } = await paused();
    await expect(run.fork({ effects: 'allow' } as never)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('effects of fork is "allow"; give held or allowed'),
    });
  });

  it.each<[object, RegExp]>([
    [{ scopes: 'mail.send' }, /The tool t: `scopes` is "mail.send"; give a list of texts, such as \['mail.send'\]/],
    [{ tags: [1] }, /`tags` is a list of other things than texts/],
    [{ mimeTypes: 'text/csv' }, /`mimeTypes` is "text\/csv"/],
  ])('a tool is refused with what its runs would stumble over: %j', (options, message) => {
    expect(() => world({ planner: script(), tools: [{ ...make('t', () => 1), ...options } as never] })).toThrow(
      message,
    );
  });

  it.each<[() => unknown, RegExp]>([
    [() => rules({ rules: [ruleOf('when')] }), /no option "when"\. Write match/],
    [() => rules({ rules: [ruleOf('then')] }), /no option "then"\. Write toPlanStep/],
    [
      () => react({ model: scriptedModel([]), compaction: { budget: 5 } as never }),
      /"budget"\. Did you mean budgetTokens\?/,
    ],
    [() => node({ name: 'a', execute: () => 1 } as never, undefined as never), /node takes its name first/],
    [
      () => flow({ name: 'f', inputSchema: {}, entry: ANY, exit: ANY, onFailedPlan: 'stop' as never }),
      /The flow f has the onFailedPlan "stop"; use fail or pause/,
    ],
  ])('what was meant is said: %s', (make, message) => {
    expect(make).toThrow(message);
  });

  it('resume is told where words go', async () => {
    const { run } = await paused();
    await expect(run.resume({ message: 'Oslo' } as never)).rejects.toThrow(
      /no option "message"\. Write payload: \{ message/,
    );
  });

  it.each([null, 7, 'yes', []])('answers that are no object are refused: %j', async (answer) => {
    const { run, token } = await paused();
    for (const ask of [
      () => run.approve(token, answer as never),
      () => run.resume(answer as never),
      () => run.cancel(answer as never),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: 'invalid_config' });
    }
  });
});

describe('a word that has little in common with any option', () => {
  it.each([
    ['port', () => createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), port: 1 } as object)],
    ['headers', () => createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), headers: {} } as object)],
  ])('%s: none is proposed', (_, make) => {
    expect(make).toThrow(expect.not.objectContaining({ message: expect.stringContaining('Did you mean') }));
    expect(make).toThrow(/has no option/);
  });

  it('neighbours that were exchanged are one change', () => {
    expect(() => local('ana', { sessoin: 'chat' } as object)).toThrow(/Did you mean session\?/);
    expect(() => local('ana', { rnu: 'chat' } as object)).toThrow(/Did you mean run\?/);
  });
});

describe('postgresJournal', () => {
  it('says in which of its arguments an option stands', () => {
    const url = 'postgres://app@127.0.0.1:1/app';
    expect(() => postgresJournal({ url, schema: 'agents' } as { url: string })).toThrow(
      'postgresJournal takes schema in its second argument. Write postgresJournal({ url }, { schema: … }).',
    );
    expect(() => postgresJournal({ url }, { url } as object)).toThrow(
      'postgresJournal takes url in its first argument. Write postgresJournal({ url }, { … }).',
    );
  });
});
