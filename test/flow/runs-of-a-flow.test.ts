/** What stands in the place of an engine with inlets and a registry of runs: identities, the journal, and a runtime that closes. */
import { describe, expect, it } from 'vitest';
import { edge, type Flow, flow, node } from '#flow';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, local } from '#pilotage';
import { temporaryFile } from '../kit/files.ts';
import { failureOf, placed } from '../kit/flows.ts';

const NUMBER = { type: 'number' } as const;
const twice = node('twice', { effect: 'pure', execute: (value: number) => 2 * value });
const plus = node('plus', { effect: 'pure', execute: (value: number) => value + 1 });

const named = (name: string): Flow<number, number> =>
  flow({ name, inputSchema: NUMBER, entry: twice, exit: plus, edges: [edge(twice, plus)] });

describe('an input', () => {
  it('RT-10 W87 needs the identity that is named, and there is one entry for it', async () => {
    const made = named('once');
    const runtime = placed([made]);
    expect((await failureOf(made.run(runtime, 1, { identity: undefined } as never))).code).toBe('identity_required');
    expect(await runtime.list()).toEqual([]);
    const both = { name: 'two', inputSchema: NUMBER, entry: [twice, plus] as never, exit: plus, edges: [] };
    expect(() => flow(both)).toThrow(expect.objectContaining({ code: 'flow_invalid' }));
  });
});

describe('a flow that is run again', () => {
  it('RT-11 gives the same run for the same identity; a closed runtime starts nothing, and is closed twice alike', async () => {
    const made = named('again');
    const path = temporaryFile();
    const runtime = placed([made], { journal: path });
    const identity = local('ana');
    expect([await made.run(runtime, 1, { identity }), await made.run(runtime, 1, { identity })]).toEqual([3, 3]);
    expect(await runtime.list()).toHaveLength(1);
    await runtime.close();
    await runtime.close();
    expect((await failureOf(made.run(runtime, 1, { identity: local('ana') }))).code).toBe('runtime_closed');
    const journal = sqliteJournal({ path });
    expect(await journal.list({})).toHaveLength(1);
    await journal.close();
  });
});

describe('the runs of flows', () => {
  it('RT-30 are found in the journal by their ids, across flows; another flow of the same name is refused, an unknown one too', async () => {
    const [first, second] = [named('first'), named('second')];
    const runtime = placed([first, second]);
    const ids: string[] = [];
    for (let input = 0; input < 20; input += 1) {
      const run = await [first, second][input % 2]?.start(runtime, input, { identity: local('ana') });
      ids.push(run?.id ?? '');
    }
    for (const [input, id] of ids.entries()) {
      await runtime.run(id).result();
      expect(await runtime.run(id).payload()).toBe(2 * input + 1);
    }
    const listed = await runtime.list({ limit: 200 });
    expect(new Set(listed.map(({ identity }) => identity.run))).toEqual(new Set(ids));
    expect(listed.filter(({ agent }) => agent === 'first')).toHaveLength(10);
    expect((await failureOf(named('third').run(runtime, 1, { identity: local('ana') }))).code).toBe('agent_unknown');
    const given = { agents: [first, named('first')], journal: temporaryFile() };
    expect(() => createRuntime(given)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
  });
});
