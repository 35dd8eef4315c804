/** What a run is told of earlier runs of its session is what their own planners saw: looked at in the requests that reach the servers. */
import { dirname } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Entry, Json, JsonObject } from '#core';
import { local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import { builtFile } from '../kit/built.ts';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { bear } from '../kit/lives.ts';
import { bookings, chatSays, claudeSays, life, messagesOf, text, thinking, use } from '../kit/sessions.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';
import { wireServer } from '../wire/kit.ts';
import { base64, png } from '../wire/pictures.ts';

const WINDOW = { strategy: 'window' } as const;
const said = (value: unknown): string => JSON.stringify(value);

/** The parts of a type in the messages of a request to Anthropic. */
function partsIn(messages: readonly JsonObject[], type: string): JsonObject[] {
  return messages
    .flatMap(({ content }) => (Array.isArray(content) ? (content as readonly JsonObject[]) : []))
    .filter((part) => part['type'] === type);
}

describe('the transcript of a session', () => {
  it('has the ids that tools gave two runs ago, in other processes', async () => {
    const path = temporaryFile();
    const { tools, paid } = bookings();
    const first = await life({
      ...{ path, tools },
      answers: [
        claudeSays(text('I book it.'), use('toolu_a', 'book', { what: 'A' })),
        claudeSays(text('A is booked.')),
      ],
    });
    await first.say('book A');
    await first.close();
    const second = await life({
      ...{ path, tools },
      answers: [claudeSays(use('toolu_b', 'book', { what: 'B' })), claudeSays(text('B is booked.'))],
    });
    await second.say('book B');
    await second.close();
    const third = await life({
      ...{ path, tools },
      answers: [claudeSays(use('toolu_c', 'pay', { booking: 'bk-2' })), claudeSays(text('Paid.'))],
    });
    expect(await third.say('pay the second one')).toMatchObject({ status: 'finished', answer: 'Paid.' });
    const messages = messagesOf(third.requests[0]);
    expect(partsIn(messages, 'tool_use').map(({ id, name, input }) => [id, name, input])).toEqual([
      ['toolu_a', 'book', { what: 'A' }],
      ['toolu_b', 'book', { what: 'B' }],
    ]);
    const results = partsIn(messages, 'tool_result').map(({ tool_use_id: id, content }) => [id, said(content)]);
    expect(results).toEqual([
      ['toolu_a', expect.stringContaining('bk-1')],
      ['toolu_b', expect.stringContaining('bk-2')],
    ]);
    expect(said(messages)).toContain('I book it.');
    expect(said(messages)).toContain('A is booked.');
    expect(paid).toEqual(['bk-2']);
    await third.close();
  });

  it('begins as the requests of the turn before did, byte by byte', async () => {
    const path = temporaryFile();
    const { tools } = bookings();
    const made = await life({
      ...{ path, tools },
      answers: ['a', 'b', 'c'].flatMap((one) => [
        claudeSays(thinking('Hm.'), use(`toolu_${one}`, 'book', { what: one })),
        claudeSays(text(`${one} is booked.`)),
      ]),
    });
    for (const one of ['a', 'b', 'c']) await made.say(`book ${one}`);
    const sent = made.requests.map(messagesOf);
    expect(sent).toHaveLength(6);
    for (const [index, messages] of sent.slice(1).entries()) {
      const before = sent[index] as readonly JsonObject[];
      expect(messages.length).toBeGreaterThan(before.length);
      expect(said(messages.slice(0, before.length))).toBe(said(before));
    }
    await made.close();
  });

  it('gives signed reasoning back to its provider, and not to another one', async () => {
    const path = temporaryFile();
    const { tools } = bookings();
    const first = await life({
      ...{ path, tools },
      answers: [
        claudeSays(thinking('The cheap one.'), use('toolu_a', 'book', { what: 'A' })),
        claudeSays(thinking('Done.'), text('Booked.')),
        claudeSays(text('Nothing else.')),
      ],
    });
    await first.say('book A');
    await first.say('what else?');
    const own = partsIn(messagesOf(first.requests[2]), 'thinking');
    expect(own).toEqual([thinking('The cheap one.'), thinking('Done.')]);
    await first.close();
    const other = await life({ path, tools, with: 'openai', answers: [chatSays('Nothing.')] });
    await other.say('and now?');
    const sent = said(messagesOf(other.requests[0]));
    expect(sent).toContain('toolu_a');
    expect(sent).toContain('Booked.');
    expect(sent).not.toContain('The cheap one.');
    expect(sent).not.toContain('c2ln');
    await other.close();
  });

  it('has the picture of its first turn in the third, that of a message and that of a result', async () => {
    const path = temporaryFile();
    const shot = make('shot', async (_, { saveArtifact }) => saveArtifact(png(7), { mime: 'image/png' }), {
      toModelOutput: ({ output }) => ({
        type: 'content',
        value: [
          {
            type: 'file',
            mediaType: 'image/png',
            data: { type: 'reference', reference: { pilotage: (output as { artifactRef: string }).artifactRef } },
          },
        ],
      }),
    });
    const tools = [shot];
    const first = await life({
      ...{ path, tools },
      answers: [claudeSays(use('toolu_a', 'shot', {})), claudeSays(text('I see.')), claudeSays(text('Yes.'))],
    });
    await first.say('look', { inputs: [{ bytes: png(1), mime: 'image/png' }] });
    await first.say('and?');
    await first.close();
    const second = await life({ path, tools, answers: [claudeSays(text('It was black.'))] });
    await second.say('What was in the pictures?');
    const sent = said(messagesOf(second.requests[0]));
    expect(sent).toContain(base64(png(1)));
    expect(sent).toContain(base64(png(7)));
    await second.close();
  });

  it('is text for an agent without tools, whose requests may have no calls', async () => {
    const path = temporaryFile();
    const { tools } = bookings();
    const first = await life({
      ...{ path, tools },
      answers: [claudeSays(use('toolu_a', 'book', { what: 'A' })), claudeSays(text('Booked.'))],
    });
    await first.say('book A');
    await first.close();
    const second = await life({ path, answers: [claudeSays(text('Booking bk-1.'))] });
    await second.say('what did you book?');
    expect(second.requests[0]?.body).not.toHaveProperty('tools');
    const messages = messagesOf(second.requests[0]);
    expect(partsIn(messages, 'tool_use')).toEqual([]);
    expect(said(messages)).toContain('bk-1');
    await second.close();
  });

  it('is the same for a run whose process was killed, and which goes on in another', async () => {
    const server = await wireServer([
      claudeSays(thinking('First A.'), use('toolu_a', 'book', { what: 'A' })),
      claudeSays(text('A is booked.')),
      claudeSays(use('toolu_b', 'book', { what: 'B' })),
      claudeSays(text('B is booked.')),
    ]);
    onTestFinished(() => server.close());
    const program = builtFile('test/runtime/session-child.ts');
    const folder = dirname(temporaryFile());
    const first = bear({ program, folder, args: [server.url, 'first'] }, () => first.child.kill('SIGKILL'));
    expect(await first.end).toBe(true);
    const lines: string[] = [];
    const second = bear({ program, folder, args: [server.url, 'second'] }, (line) => lines.push(line));
    expect(await second.end).toBe(false);
    expect(lines).toEqual(['finished']);
    const [asked, goesOn] = server.requests.slice(2).map(messagesOf);
    expect(asked).toHaveLength(5);
    expect(said(asked)).toContain('bk-A');
    expect(said(goesOn?.slice(0, 5))).toBe(said(asked));
    expect(goesOn).toHaveLength(7);
  });

  it('has ids of its own where servers give the same ones again', async () => {
    const path = temporaryFile();
    const made = await life({
      path,
      with: 'openai',
      tools: [echo],
      answers: [1, 2, 3].flatMap((turn) => [
        chatSays('', [{ id: 'call_0', name: 'echo', args: { turn } }]),
        chatSays(`said ${turn}`),
      ]),
    });
    for (const turn of [1, 2, 3]) await made.say(`turn ${turn}`);
    const last = messagesOf(made.requests.at(-1));
    const calls = last.flatMap(({ tool_calls: asked }) =>
      Array.isArray(asked) ? asked.map(({ id }: { id: string }) => id) : [],
    );
    const results = last.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id]));
    expect(new Set(calls).size).toBe(3);
    expect(results).toEqual(calls);
    await made.close();
  });

  it('tells of calls that have not ended what is known of them', async () => {
    const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
    const held = holding();
    const model = scriptedModel([{ text: 'Understood.' }]);
    const journal = memoryJournal();
    const planner = watched(({ query, trajectory: { count } }) => {
      if (count > 0) return finish('done');
      return query === 'pay' ? call('pay') : call('hold');
    });
    const made = world({ planner, tools: [pay, held.tool], memory: WINDOW, journal });
    const identity = (run: string) => local('ana', { session: 's', run });
    await (await start(made, { query: 'pay', identity: identity('one') })).result();
    await start(made, { query: 'hold', identity: identity('two') });
    await held.entered;
    const asking = world({ planner: react({ model }), tools: [pay, held.tool], memory: WINDOW, journal });
    await (await start(asking, { query: 'how is it?', identity: identity('three') })).result();
    const sent = said(model.calls[0]?.prompt);
    expect(sent).toContain('call_open — It has not been made yet: it waits for an approval of pay.');
    expect(sent).toContain('call_open — It has no result yet: that turn is not finished.');
    expect(sent).toContain('(This is not finished: it waits for an approval of pay.)');
    held.release();
    await asking.runtime.close();
    await made.runtime.close();
  });

  it('tells the two ends of a plan with very many calls', async () => {
    const model = scriptedModel([{ text: 'Fine.' }]);
    const branches = Array.from({ length: 1_000 }, (_, index) => ({ tool: 'echo', args: { index } }));
    const wide = script({ kind: 'call_parallel', plan: 'p1', branches });
    const journal = memoryJournal();
    const made = world({ planner: wide, tools: [echo], memory: WINDOW, journal });
    const identity = (run: string) => local('ana', { session: 's', run });
    await (await start(made, { query: 'many', identity: identity('one') })).result();
    const seen: Json[] = [];
    const asking = world({
      planner: (view, signal) => {
        seen.push(view.history.length);
        return react({ model }).next(view, signal) as never;
      },
      ...{ tools: [echo], memory: WINDOW, journal },
    });
    await (await start(asking, { query: 'and?', identity: identity('two') })).result();
    const prompt = model.calls[0]?.prompt ?? [];
    const calls = prompt.flatMap(({ role, content }) =>
      role === 'assistant' ? content.filter(({ type }) => type === 'tool-call') : [],
    );
    expect(calls).toHaveLength(50);
    expect(said(prompt)).toContain('950 more calls of that step');
    expect(seen).toEqual([4]);
  });

  it('goes on without what a damaged run said', async () => {
    const base = memoryJournal();
    let damaged = '';
    const journal = changed(base, {
      read: async (run: string, ...rest: number[]) => {
        const entries = await base.read(run, ...rest);
        return run === damaged ? entries.map((entry): Entry => ({ ...entry, seq: entry.seq + 1 })) : entries;
      },
    }) as Journal;
    const model = scriptedModel([{ text: 'one said' }, { text: 'two said' }, { text: 'three said' }]);
    const first = world({ planner: react({ model }), memory: WINDOW, journal });
    const identity = (run: string) => local('ana', { session: 's', run });
    for (const run of ['one', 'two']) await (await start(first, { query: run, identity: identity(run) })).result();
    damaged = 'one';
    const second = world({ planner: react({ model }), memory: WINDOW, journal });
    await (await start(second, { query: 'three', identity: identity('three') })).result();
    const sent = said(model.calls[2]?.prompt);
    expect(sent).toContain('(The run is damaged.)');
    expect(sent).toContain('two said');
    expect(sent).not.toContain('one said');
  });

  it('is read once in a process, however many turns follow', async () => {
    const base = memoryJournal();
    const reads: string[] = [];
    const journal = changed(base, {
      read: (run: string, from?: number, limit?: number) => {
        // The first entry alone says whether the run is still the one that was read.
        if (limit !== 1) reads.push(run);
        return base.read(run, from, limit);
      },
    });
    const model = scriptedModel(({ prompt }) => ({ text: `said ${prompt.length}` }));
    const made = world({ planner: react({ model }), memory: WINDOW, journal });
    for (let turn = 1; turn <= 6; turn += 1) {
      reads.length = 0;
      const identity = local('ana', { session: 's', run: `turn-${turn}` });
      await (await start(made, { query: `turn ${turn}`, identity })).result();
      // That of the turn before, and the run's own.
      const others = new Set(reads.filter((run) => run !== identity.run));
      expect([...others]).toEqual(turn === 1 ? [] : [`turn-${turn - 1}`]);
    }
  });
});

describe('earlier turns that have no room', () => {
  const long = (turn: number): string => `answer ${turn}: ${'x'.repeat(2_000)}`;

  it('leave whole, the oldest first, and so many at once that the next requests begin alike', async () => {
    const path = temporaryFile();
    const made = await life({
      path,
      answers: Array.from({ length: 12 }, (_, index) => claudeSays(text(long(index + 1)))),
      // Half of it, three characters to a token: about nine thousand characters.
      react: { compaction: { budgetTokens: 6_000, summariser: scriptedModel(() => ({ text: 'no summary' })) } },
    });
    const told: number[][] = [];
    for (let turn = 1; turn <= 12; turn += 1) {
      await made.say(`turn ${turn}`);
      const sent = said(messagesOf(made.requests.at(-1)));
      told.push([...sent.matchAll(/answer (\d+): x+/g)].map(([, number]) => Number(number)));
      for (const [whole] of sent.matchAll(/answer \d+: x+/g)) expect(whole.length).toBeGreaterThanOrEqual(2_000);
    }
    expect(told.slice(0, 8)).toEqual([[], [1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [4, 5], [4, 5, 6], [4, 5, 6, 7]]);
    await made.close();
  });

  it('the newest alone is cut when it is too long by itself', async () => {
    const path = temporaryFile();
    const big = make('big', () => 'y'.repeat(20_000));
    const made = await life({
      path,
      tools: [big],
      answers: [
        claudeSays(use('toolu_a', 'big', {})),
        claudeSays(text(`the end ${'z'.repeat(9_000)}`)),
        claudeSays(text('Fine.')),
      ],
      react: { compaction: { budgetTokens: 4_000, summariser: scriptedModel(() => ({ text: 'no summary' })) } },
    });
    await made.say(`begin ${'w'.repeat(9_000)}`, {});
    await made.say('and?');
    const sent = said(messagesOf(made.requests.at(-1)));
    expect(sent).toContain('begin w');
    expect(sent).toContain('the end z');
    expect(sent).toContain('more characters');
    expect(sent).not.toContain('y'.repeat(2_000));
    expect(sent.length).toBeLessThan(14_000);
    await made.close();
  });
});
