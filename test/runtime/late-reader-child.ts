/**
 * A process that drives a run whose planner says what it is told to: `node late-reader-child.ts <journal> <start|unread|work>`. Each line of its input is a
 * delta, `call`, or `end`; each is answered with a line when the planner has gone on from it. `start` starts the run and reads it, `work` takes it over.
 */
import { createInterface } from 'node:readline';
import { type Delta, local, type Planner } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { make } from '../kit/tools.ts';

const [, , place = '', mode = ''] = process.argv;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = (line: string): void => void process.stdout.write(`${line}\n`);

const planner: Planner = {
  name: 'told',
  async *next({ trajectory, streaming }) {
    tell(`asked ${trajectory.count} ${String(streaming)}`);
    let text = '';
    for (;;) {
      const { value = 'end' } = await lines.next();
      if (value === 'end') return { decision: { kind: 'finish', reason: 'goal', payload: text }, text };
      if (value === 'call') return { decision: { kind: 'call_tool', tool: 'echo', args: {}, callId: 'c1' }, text };
      const delta = JSON.parse(value) as Delta;
      if (delta.type === 'text') text += delta.text;
      if (delta.type === 'reset') text = '';
      yield delta;
      tell('said');
    }
  },
};

const echo = make('echo', () => 'done', { effect: 'pure' });
// Without a reader of its own it says when it has heard of one elsewhere.
const journal = mode === 'unread' ? sqliteJournal({ path: place }) : place;
const runtime = createRuntime({ planner, tools: [echo], journal, leaseMs: 1_000, takeoverGraceMs: 0 });
if (mode === 'work') {
  runtime.work();
  tell('works');
  // Until the process is ended from outside.
  setInterval(() => undefined, 60_000);
} else {
  const run = await runtime.start('q', { identity: local('ana', { session: 's', run: 'late' }) });
  if (typeof journal !== 'string') {
    const stop = journal.passing.watchWanted(() => {
      stop();
      tell('read');
    });
  }
  if (mode === 'start') for await (const _ of run.events());
  const { status } = await run.result();
  tell(status);
  await runtime.close();
}
