/** A process that dies at any moment, with its journal on Postgres. More scenarios, and SIGKILL: `crash.soak.test.ts`. */
import { describe, expect, it } from 'vitest';
import { postgresJournal } from '#journal/postgres';
import { assertCrashProof, type CrashScenario, crashEverywhere } from '#testing';
import { call, oneOfEach, ordered, outcomes } from '../crash/scenarios.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { emptied, sharedPool } from './emptied.ts';

const SMALL: CrashScenario = {
  name: 'a read and a payment, on Postgres',
  planner: ordered([call('read', { slot: 1 }), call('once', { slot: 2 })], outcomes),
  tools: oneOfEach,
  query: 'Pay.',
};

describe('a crash at every moment', async () => {
  const pool = sharedPool(await postgresUrl(), 2);
  const schemaFor = emptied(pool);

  it('loses and repeats nothing', async () => {
    const report = await crashEverywhere(
      {
        ...SMALL,
        journal: async (clock, store) => postgresJournal({ pool }, { clock, schema: await schemaFor(store) }),
      },
      { doubles: 0 },
    );
    assertCrashProof(report);
    expect(report.points.length).toBeGreaterThan(15);
  });
});
