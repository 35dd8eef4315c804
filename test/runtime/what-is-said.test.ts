/** Questions that were withdrawn are shown no more, refusals say what to do, and what is approved is what was given. On SQLite. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { sqliteJournal } from '#journal/sqlite';
import { react } from '#planners/react';
import { createRuntime, type Run, type Runtime, type RuntimeOptions } from '#runtime';
import { type ScriptedModel, scriptedModel } from '#testing';
import { agent, agentTool, tool } from '#tools';
import { temporaryFile } from '../kit/files.ts';
import { pausesOf } from '../kit/run-record.ts';
import { until } from '../kit/waiting.ts';

function open(options: RuntimeOptions, path = temporaryFile()): Runtime {
  const journal = sqliteJournal({ path });
  const runtime = createRuntime({ ...options, journal });
  onTestFinished(async () => {
    await runtime.close();
    await journal.close();
  });
  return runtime;
}

function payTool(more: object = {}) {
  const paid: unknown[] = [];
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    effect: 'once',
    needsApproval: true,
    inputSchema: z.object({ amount: z.number() }),
    execute: (args) => {
      paid.push(args);
      return 'paid';
    },
    ...more,
  });
  return { pay, paid };
}

const asksFirst = () =>
  scriptedModel((_, index) =>
    index === 0 ? { calls: [{ tool: 'pay', args: { amount: 5 } }] } : { text: `reply ${index}` },
  );
const chats = () => scriptedModel((_, index) => ({ text: `reply ${index}` }));
const promptOf = ({ calls }: ScriptedModel): string => JSON.stringify(calls.at(-1)?.prompt.slice(1));
const messageOf = (said: Promise<unknown>): Promise<string> =>
  said.then(
    () => 'nothing was refused',
    (error: Error) => error.message,
  );

describe('what was said to a run that asks its user', () => {
  it('is told in the next run of its session in the same words, and of a question that a new goal withdrew that nobody answered it', async () => {
    const model = chats();
    const runtime = open({ planner: react({ model, converse: true }), memory: { strategy: 'window' } });
    const run = await runtime.start('hello');
    await run.result();
    await run.resume({ payload: { message: 'It is A-17.', photo: 'art_1' } });
    await run.result();
    await run.steer('REDIRECT', { goal: 'say goodbye' }, { until: 'applied' });
    await run.result();
    await (await runtime.start('and now?')).result();
    expect(promptOf(model)).toContain(JSON.stringify('It is A-17.\n{"photo":"art_1"}').slice(1, -1));
    expect(promptOf(model)).toContain('Nobody answered: the goal was changed while it waited for an answer.');
  });
});

describe('a question of a task', () => {
  async function asking() {
    const { pay, paid } = payTool();
    const below = asksFirst();
    const leaf = agent({ name: 'leaf', planner: react({ model: below }), tools: [pay] });
    const above = scriptedModel([{ calls: [{ tool: 'leaf', args: { input: 'pay' } }] }, { text: 'done' }]);
    const top = agent({
      name: 'top',
      planner: react({ model: above }),
      tools: [agentTool(leaf, { description: 'Pays.' })],
    });
    const run = await open({ agents: [top] }).start('pay it');
    const [asked] = await pausesOf(run);
    return { run, paid, below, token: asked?.token ?? '' };
  }

  for (const [type, payload, why] of [
    ['REDIRECT', { goal: 'pay nothing' }, 'the run above was given another goal'],
    ['USER_MESSAGE', { message: 'wait' }, 'the user wrote to the run above'],
  ] as const) {
    it(`is no pause of the run any more when it has taken a ${type}, and the refusal names that`, async () => {
      const { run, paid, below, token } = await asking();
      await run.steer(type, payload, { until: 'applied' });
      expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done' });
      const late = await messageOf(run.approve(token));
      expect(late).not.toContain('INJECT_CONTEXT');
      expect(promptOf(below)).toContain(why);
      expect(paid).toEqual([]);
    });
  }

  it('was withdrawn by what people said, as whoever answers it is told', async () => {
    const { run, token } = await asking();
    await run.steer('REDIRECT', { goal: 'pay nothing' });
    expect(await messageOf(run.approve(token))).toMatch(/withdrawn by REDIRECT .* has another token/);
  });
});

describe('a refused answer', () => {
  async function several(): Promise<{ run: Run; tokens: string[] }> {
    const { pay } = payTool({ outputSchema: z.object({ receipt: z.number() }) });
    const calls = [1, 2].map((amount) => ({ tool: 'pay', args: { amount } }));
    const run = await open({ planner: react({ model: scriptedModel([{ calls }]) }), tools: [pay] }).start('pay');
    const tokens = (await pausesOf(run)).map(({ token }) => token);
    return { run, tokens };
  }

  it('names the pauses that are open', async () => {
    const { run, tokens } = await several();
    expect(tokens).toHaveLength(2);
    for (const refused of [await messageOf(run.approve()), await messageOf(run.approve('pause_x'))]) {
      for (const token of tokens) expect(refused).toContain(`${token} (approval_required)`);
    }
  });

  it('names those of the tasks below, where several ask', async () => {
    const children = ['one', 'two'].map((name) =>
      agent({ name, planner: react({ model: scriptedModel([{ text: `${name}?` }]), converse: true }) }),
    );
    const calls = children.map(({ name }) => ({ tool: name, args: { input: 'go' } }));
    const tools = children.map((child) => agentTool(child, { description: 'Asks.' }));
    const top = agent({ name: 'top', planner: react({ model: scriptedModel([{ calls }]) }), tools });
    const run = await open({ agents: [top] }).start('ask');
    await until(async () => (await pausesOf(run)).length === 2);
    const tokens = (await pausesOf(run)).map(({ token }) => token);
    const refused = await messageOf(run.resume({ payload: { message: 'It is A-17.' } }));
    for (const token of tokens) expect(refused).toContain(`${token} (await_input)`);
  });

  it('does not say that a call has happened which nobody has made', async () => {
    const { run, tokens } = await several();
    const refused = await messageOf(run.answer(tokens[0] ?? '', { kind: 'answer', value: 'by hand' }));
    expect(refused).toMatch(/^The value of pay was refused: The value of pay does not fit its output schema/);
  });

  it('leads to the option that was meant, of the place where it was looked for', async () => {
    const { run, tokens } = await several();
    expect(await messageOf(run.resume({ message: 'hi' } as never))).toContain(
      "Write payload: { message: 'It is A-17.' }",
    );
    expect(await messageOf(run.reject(tokens[0], { args: {} } as never))).toContain(
      'It is args: { amount: 5 }, an option of approve',
    );
  });
});

describe('an approval', () => {
  it('shows the arguments as they were given, whatever its rule does with them', async () => {
    const { pay, paid } = payTool({
      needsApproval: (args: { amount: number }) => {
        args.amount = 999;
        return true;
      },
    });
    const run = await open({ planner: react({ model: asksFirst() }), tools: [pay] }).start('pay');
    const [asked] = await pausesOf(run);
    expect(asked?.payload).toEqual({ tool: 'pay', args: { amount: 5 }, digest: expect.any(String) });
    await run.approve(asked?.token);
    await run.result();
    expect(paid).toEqual([{ amount: 5 }]);
  });

  it('is carried out by another process also when the schema makes a default anew each time', async () => {
    const path = temporaryFile();
    const schema = () =>
      z.object({
        amount: z.number(),
        id: z.string().default(() => crypto.randomUUID()),
        at: z.number().default(() => Date.now()),
        by: z.string().default('ana'),
      });
    const asking = payTool({ inputSchema: schema() });
    const model = asksFirst();
    const first = open({ planner: react({ model }), tools: [asking.pay] }, path);
    const { id } = await first.start('pay');
    const [asked] = await pausesOf(first.run(id));
    await first.close();
    const shown = model.calls[0]?.tools?.find(({ name }) => name === 'pay');
    expect(shown).toMatchObject({ inputSchema: { properties: { id: { type: 'string' }, by: { default: 'ana' } } } });
    expect(JSON.stringify(shown)).not.toMatch(/"(id|at)":\{[^}]*"default"/);
    const { pay, paid } = payTool({ inputSchema: schema() });
    const second = open({ planner: react({ model }), tools: [pay] }, path);
    await second.run(id).approve(asked?.token);
    expect(await second.run(id).result()).toMatchObject({ status: 'finished' });
    expect(paid).toMatchObject([{ amount: 5, by: 'ana' }]);
  });
});
