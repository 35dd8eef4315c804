/** Tools without an implementation: whoever reads the run carries their calls out, once. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ClientToolSpec, PilotageError } from '#core';
import { clientCalls, openCalls } from '#messages';
import { withTools } from '#pilotage/tools';
import type { Run } from '#runtime';
import { clientTool, type Tool, tool } from '#tools';
import { builtFile } from '../kit/built.ts';
import { call, finish, named, parallel, script } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { temporaryFile } from '../kit/files.ts';
import { bear } from '../kit/lives.ts';
import { entriesOf, outcomes, pausesOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { echo, make } from '../kit/tools.ts';
import { advanceUntil } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const outputSchema = z.object({
  color: z.string().refine((color) => color !== 'none', 'none is no colour'),
});
const inputSchema = z.object({ from: z.array(z.string()), most: z.number().default(1) });
const about = { name: 'pick', description: 'Has the user pick a colour.', inputSchema };
const pick = clientTool({ ...about, outputSchema });
const args = { from: ['red', 'blue'] };
const shown: ClientToolSpec = { name: 'shown', description: 'Shows.', inputSchema: { type: 'object' } };

const outcomeIn = async (run: Run, step = 0, index = 0) => (await run.state()).steps[step]?.calls[index]?.outcome;
const codeOf = (error: unknown): string => (error as PilotageError).code;

describe('a call of a client tool', () => {
  it('is parked with its arguments, and what the client answers is its value', async () => {
    const made = world({ planner: script(call('pick', args, 'call-1')), tools: [pick] });
    const run = await start(made);
    const [pause] = await pausesOf(run);
    const input = { ...args, most: 1 };
    expect(pause).toMatchObject({
      reason: 'client_tool',
      payload: { tool: 'pick', tool_call_id: 'call-1', args: input },
      schema: { required: ['color'] },
    });
    const state = await run.state();
    const token = pause?.token ?? '';
    expect(clientCalls(state)).toMatchObject([{ token, toolCallId: `${run.id}.call-1`, toolName: 'pick', input }]);
    expect(openCalls(state)).toEqual([{ toolCallId: 'call-1', toolName: 'pick', input, token }]);
    const waits = await made.runtime.waiting({ reason: 'client_tool' });
    expect(waits).toMatchObject([{ for: 'answer', tool: 'pick', kinds: ['answer', 'settle', 'reject'], token }]);
    for (const color of [7, 'none']) {
      const refused = await run.answer(token, { kind: 'answer', value: { color } }).catch(codeOf);
      expect(refused).toBe('payload_invalid');
    }
    await run.answer(token, { kind: 'answer', value: { color: 'red' } });
    expect(await run.answer(token, { kind: 'answer', value: { color: 'red' } }).catch(codeOf)).toBe('pause_not_found');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(await outcomeIn(run)).toMatchObject({ kind: 'value', value: { color: 'red' } });
    // Nothing of it happened here: there is nothing that could be in doubt.
    expect(await entriesOf(made.journal, run, 'call_began')).toEqual([]);
  });

  it('is told with its token, step and call', async () => {
    const run = await start(world({ planner: script(call('pick', args, 'call-1')), tools: [pick] }));
    const events = await collect(run);
    const kinds = ['tool.invoked', 'call.waiting', 'pause.requested'];
    const told = events.filter(({ type }) => kinds.includes(type));
    expect(told).toMatchObject([
      { type: 'tool.invoked', tool: 'pick', args },
      { type: 'call.waiting', step: 0, call: 0, tool: 'pick', waits: [{ for: 'answer', token: expect.any(String) }] },
      { type: 'pause.requested', reason: 'client_tool', payload: { tool_call_id: 'call-1' } },
    ]);
  });

  it('has the error that the client says', async () => {
    const run = await start(world({ planner: script(call('pick', args)), tools: [pick] }));
    const [{ token } = { token: '' }] = await pausesOf(run);
    const error = { code: 'no_screen', message: 'There is no screen.', data: { tries: 2 } };
    const wrong = [
      { happened: false as const },
      { happened: true as const, value: { color: 'red' } },
      { happened: true as const, value: 1, error },
      { happened: true as const, error: { code: '', message: 'x' } },
      { happened: true as const, error: { code: 'x' } as never },
    ];
    for (const said of wrong) expect(await run.settle(token, said).catch(codeOf)).toBe('payload_invalid');
    expect(await run.approve(token).catch(codeOf)).toBe('payload_invalid');
    await run.answer(token, { kind: 'settle', happened: true, error });
    await run.result();
    expect(await outcomeIn(run)).toEqual({ kind: 'error', error });
    const told = (await collect(run)).map(({ type }) => type).filter((type) => /^(tool|pause|call)\./.test(type));
    expect(told).toEqual(['tool.invoked', 'call.waiting', 'pause.requested', 'pause.resumed', 'tool.failed']);
  });

  it('is refused by whoever rejects it', async () => {
    const run = await start(world({ planner: script(call('pick', args)), tools: [pick] }));
    await pausesOf(run);
    await run.reject(undefined, { reason: 'Not now.' });
    await run.result();
    expect(await outcomeIn(run)).toMatchObject({
      kind: 'error',
      error: { code: 'tool_rejected', data: { reason: 'Not now.' } },
    });
  });

  it.each([
    ['once', 'unknown'],
    ['read', 'error'],
  ] as const)('is waited for no longer than its time limit (%s)', async (effect, kind) => {
    const made = world({ planner: script(call('pick', args)), tools: [{ ...pick, effect, timeoutMs: 60_000 }] });
    const run = await start(made);
    const [pause] = await pausesOf(run);
    expect(pause?.expiresAt).toBe(made.clock.now() + 60_000);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await outcomeIn(run)).toMatchObject({ kind, error: { code: 'tool_timeout' } });
    const late = await run.answer(pause?.token, { kind: 'answer', value: { color: 'red' } }).catch(codeOf);
    expect(late).toBe('run_ended');
  });

  it('is withdrawn when the user writes', async () => {
    const run = await start(
      world({ planner: script(call('pick', args)), tools: [{ ...pick, effect: 'read' as const }] }),
    );
    const [pause] = await pausesOf(run);
    await run.send('Never mind.');
    await run.result();
    expect(await outcomeIn(run)).toMatchObject({ kind: 'error', error: { code: 'superseded' } });
    expect(await run.answer(pause?.token, { kind: 'answer', value: { color: 'red' } }).catch(codeOf)).toBe(
      'superseded',
    );
  });

  it('is asked for after its approval, with the arguments of whoever approved it', async () => {
    const run = await start(world({ planner: script(call('pick', args)), tools: [{ ...pick, needsApproval: true }] }));
    const [gate] = await pausesOf(run);
    expect(gate?.reason).toBe('approval_required');
    await run.approve(gate?.token, { args: { from: ['green'] } });
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ reason: 'client_tool', payload: { args: { from: ['green'], most: 1 } } });
    expect(openCalls(await run.state())).toMatchObject([{ input: { from: ['green'], most: 1 } }]);
    await run.answer(pause?.token, { kind: 'answer', value: { color: 'green' } });
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value']);
  });

  it('is not made when its arguments do not fit', async () => {
    const run = await start(world({ planner: script(call('pick', { from: 'red' })), tools: [pick] }));
    await run.result();
    expect(await outcomeIn(run)).toMatchObject({ kind: 'error', error: { code: 'tool_invalid_args' } });
  });

  it('is given up when other calls are enough', async () => {
    const planner = script(parallel([{ tool: 'pick', args }, ...named('echo')], { join: { kind: 'first_success' } }));
    const run = await start(world({ planner, tools: [echo, pick] }));
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state())[1]).toBe('value');
  });

  it('stands beside other calls', async () => {
    const both = script(parallel([...named('echo'), { tool: 'pick', args }]));
    const run = await start(world({ planner: both, tools: [echo, pick] }));
    const [pause] = await pausesOf(run);
    expect((await run.state()).open?.calls[0]?.outcome.kind).toBe('value');
    await run.answer(pause?.token, { kind: 'answer', value: { color: 'red' } });
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value', 'value']);
  });

  it('ends with a cancel of its run', async () => {
    const run = await start(world({ planner: script(call('pick', args)), tools: [pick] }));
    const [pause] = await pausesOf(run);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(await run.answer(pause?.token, { kind: 'answer', value: { color: 'red' } }).catch(codeOf)).toBe('run_ended');
  });

  it('of a task is found and answered through the run above', async () => {
    const planner = script({ kind: 'spawn_task', task: 'foreground', spec: { query: 'below', description: 'below' } });
    const below = script(call('pick', args, 'below-1'));
    const made = world({
      planner: (run, signal) => (run.query === 'below' ? below : planner)(run, signal),
      tools: [pick],
    });
    const run = await start(made);
    await pausesOf(run);
    const [one, ...others] = clientCalls(await run.state());
    expect(one).toMatchObject({ toolCallId: `${one?.run}.below-1`, run: expect.stringContaining(run.id) });
    expect([others, one?.run === run.id]).toEqual([[], false]);
    await run.answer(one?.token, { kind: 'answer', value: { color: 'red' } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('is told of as large as it is', async () => {
    const long = 'x'.repeat(40_000);
    const run = await start(
      world({
        planner: script(call('pick', { from: [long] })),
        tools: [{ ...pick, outputSchema: undefined } as never],
      }),
    );
    await pausesOf(run);
    const [one] = clientCalls(await run.state());
    expect(one).toMatchObject({ input: null, stored: { artifactRef: expect.any(String) } });
    const stored = await run.artifact(String(one?.stored?.['artifactRef']));
    expect(new TextDecoder().decode(stored?.bytes)).toContain(long);
    await run.answer(one?.token, { kind: 'answer', value: { color: long } });
    await run.result();
    expect(await outcomeIn(run)).toMatchObject({ kind: 'value', artifact: { artifactRef: expect.any(String) } });
  });
});

describe('tools that a run is started with', () => {
  it('are offered beside those of the agent, recorded, and known to forks and replays', async () => {
    const names: (readonly string[])[] = [];
    const made = world({
      planner: (run) => {
        names.push(run.tools.list().map(({ name, client }) => (client === true ? `${name}!` : name)));
        return script(call('shown', { a: 1 }))(run, new AbortController().signal);
      },
      tools: [echo, pick],
    });
    const run = await start(made, { clientTools: [{ ...shown, outputSchema: { type: 'string' } }] });
    const [pause] = await pausesOf(run);
    expect(pause).toMatchObject({ payload: { tool: 'shown', args: { a: 1 } }, schema: { type: 'string' } });
    expect(await run.answer(pause?.token, { kind: 'answer', value: 1 }).catch(codeOf)).toBe('payload_invalid');
    await run.answer(pause?.token, { kind: 'answer', value: 'seen' });
    await run.result();
    expect(names[0]).toEqual(['echo', 'pick!', 'shown!']);
    const [started] = await entriesOf(made.journal, run, 'started');
    expect(started?.clientTools).toMatchObject([{ name: 'shown' }]);
    expect(await run.replay()).not.toHaveProperty('divergence');
    const fork = await run.fork({ step: 0, effects: 'allowed' });
    expect(await pausesOf(fork)).toMatchObject([{ payload: { tool: 'shown' } }]);
    const other = await run.fork({ result: { value: 'otherwise' } });
    await other.result();
    expect(await outcomeIn(other)).toMatchObject({ kind: 'value', value: 'otherwise' });
    const without = await start(made);
    await without.result();
    expect(await outcomeIn(without)).toMatchObject({ error: { code: 'tool_not_found' } });
  });

  it.each([
    ['the name of a tool', [{ ...shown, name: 'echo' }], 'tool_name_taken'],
    ['one name twice', [shown, shown], 'tool_name_taken'],
    ['a schema that is none', [{ ...shown, inputSchema: { type: 'nothing' } }], 'tool_schema_invalid'],
    ['no schema', [{ name: 'x', description: '' }], 'invalid_config'],
    ['a reserved name', [{ ...shown, name: '_finish' }], 'invalid_config'],
    ['an unknown key', [{ ...shown, execute: () => 1 }], 'invalid_config'],
    ['an effect that is none', [{ ...shown, effect: 'twice' }], 'invalid_config'],
    ['too many', Array.from({ length: 65 }, (_, index) => ({ ...shown, name: `t${index}` })), 'invalid_config'],
    ['too much', [{ ...shown, description: 'x'.repeat(300_000) }], 'invalid_config'],
  ])('are refused with %s', async (_, clientTools, code) => {
    const made = world({ planner: script(), tools: [echo] });
    expect(await start(made, { clientTools: clientTools as never }).catch(codeOf)).toBe(code);
    expect(await made.runtime.list()).toEqual([]);
  });

  it('come with a message of a session, or with the session', async () => {
    const made = world({ planner: script(call('shown')), tools: [] });
    const session = made.runtime.session('s', { clientTools: [shown] });
    const first = await session.send('one');
    await first.result();
    const [message] = (await session.uiMessages()).slice(-1);
    expect(message?.parts.at(-1)).toMatchObject({ toolName: 'shown', state: 'input-available' });
    await made.runtime.run(first.turn).answer(undefined, { kind: 'answer', value: 1 });
    await first.result();
    const other = { ...shown, name: 'other' };
    const second = await session.send('two', { clientTools: [other] });
    await second.result();
    expect(await outcomeIn(made.runtime.run(second.turn))).toMatchObject({ error: { code: 'tool_not_found' } });
  });
});

describe('a call that a client has, and whose process was killed', () => {
  it('is answered in another process, once', async () => {
    const path = temporaryFile();
    const program = builtFile('test/runtime/client-child.ts');
    const born = bear({ program, folder: path, args: [] }, () => born.child.kill('SIGKILL'));
    expect(await born.end).toBe(true);
    const journal = openJournal(path);
    const book = make('book', () => 'again', { effect: 'once' });
    const any = clientTool({ name: 'pick', description: 'Picks.', inputSchema: { type: 'object' } });
    const made = world({ planner: script(parallel(named('book', 'pick', 'shown'))), tools: [book, any], journal });
    const run = made.runtime.run('r');
    const calls = clientCalls(await run.state());
    expect(calls.map(({ toolName }) => toolName)).toEqual(['pick', 'shown']);
    for (const { token, toolName } of calls) await run.answer(token, { kind: 'answer', value: toolName });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state())).toEqual(['value', 'value', 'value']);
    expect(readFileSync(`${path}-effects`, 'utf8')).toBe('book\n');
    await made.runtime.close();
  });
});

describe('a tool without execute', () => {
  const bare = { description: 'Picks.', inputSchema: z.object({}) };

  it('is a client tool only when it says so', async () => {
    const message = /execute.*client: true/s;
    expect(() => world({ planner: script(), tools: { pick: bare } as never }).runtime).toThrow(message);
    expect(() => world({ planner: script(), tools: [{ ...bare, name: 'pick' } as never] })).toThrow(message);
    const run = await start(
      world({ planner: script(call('pick')), tools: withTools({ pick: bare }, { pick: { client: true } }) }),
    );
    expect(await pausesOf(run)).toMatchObject([{ reason: 'client_tool' }]);
  });

  it.each([
    ['execute', { execute: () => 1 }],
    ['retries', { retries: 2 }],
    ['costUsd', { costUsd: 1 }],
    ['background', { background: true }],
  ])('and with client, is refused with %s', (option, more) => {
    expect(() => world({ planner: script(), tools: [{ ...pick, ...more } as unknown as Tool] })).toThrow(
      new RegExp(`leave out ${option}`),
    );
  });
});

describe('a call in doubt', () => {
  it('may be settled with the error that it had', async () => {
    const lost = tool({
      name: 'lost',
      description: 'x',
      inputSchema: { type: 'object' },
      execute: () => {
        throw Object.assign(new Error('?'), { code: 'outcome_unknown' });
      },
    });
    const run = await start(world({ planner: script(call('lost'), finish('x')), tools: [lost] }));
    const [pause] = await pausesOf(run);
    await run.settle(pause?.token, { happened: true, error: { code: 'declined', message: 'The bank said no.' } });
    await run.result();
    expect(await outcomeIn(run)).toMatchObject({ kind: 'error', error: { code: 'declined' } });
  });
});
