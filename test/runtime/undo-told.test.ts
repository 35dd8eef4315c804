/** What a run has undone is told to the turns after it, and shown to clients. */
import { expect, it } from 'vitest';
import { react } from '#planners/react';
import { trajectoryOf } from '#state';
import { scriptedModel } from '#testing';
import { bookings } from '../kit/undo.ts';
import { world } from '../kit/world.ts';

it('a later turn of the session, its messages and the trajectory have what was undone', async () => {
  const { tools, booked } = bookings();
  const model = scriptedModel([
    { calls: [{ id: 'a', tool: 'book', args: { what: 'hotel' } }] },
    { text: 'Nothing is booked.' },
  ]);
  const made = world({ planner: react({ model }), tools, onFail: 'undo', limits: { steps: 1, stepsPer: 'turn' } });
  const session = made.runtime.session('s', { identity: { tenant: 'local', user: 'ana' } });
  const first = await session.send('Book a hotel.');
  expect(await first.result()).toMatchObject({ reason: 'max_steps' });
  expect(booked).toEqual([]);
  const second = await session.send('What is booked?');
  expect(await second.result()).toMatchObject({ answer: 'Nothing is booked.' });
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('"toolName":"cancel"');
  const trajectory = trajectoryOf(await made.journal.read(first.turn));
  expect(trajectory.steps.map(({ undoes }) => undoes)).toEqual([undefined, { step: 0, call: 0 }]);
  expect(trajectory.ending).toMatchObject({ reason: 'max_steps', metadata: { undo: { undone: [{ tool: 'book' }] } } });
  expect(JSON.stringify(await session.messages())).toContain('"cancel"');
});
