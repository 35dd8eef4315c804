/**
 * The connection breaks where each message ends and after every fortieth byte of what is said, in both directions, and each time after other ones;
 * `PILOTAGE_CUT_BYTES=1` has it break after each, which takes a quarter of an hour.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { PostgresServer } from '../kit/postgres.ts';
import { cutEach, exchanges } from './cuts.ts';

const EVERY = Number(process.env['PILOTAGE_CUT_BYTES'] ?? 40);
const SEED = Number(process.env['PILOTAGE_SEED'] ?? Math.floor(Math.random() * EVERY));

describe('a connection that breaks after any byte', async () => {
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());

  it.each(
    exchanges.map((exchange, number) => ({ name: exchange.name, exchange, schema: `cut_${number}` })),
  )('loses nothing that was acknowledged, and nothing is done twice: $name', async ({ exchange, schema }) => {
    const report = await cutEach(exchange, { server, schema, everyBytes: EVERY, fromByte: SEED });
    console.log(`${exchange.name}: ${report.cuts} cuts, ${report.failed} of them were heard of, PILOTAGE_SEED=${SEED}`);
    expect(report.cuts).toBeGreaterThan(500 / EVERY);
    expect(report.failed).toBeGreaterThan(400 / EVERY);
  }, 1_800_000);
});
