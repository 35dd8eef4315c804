/** The way to the server breaks in the middle of an exchange, or swallows all that is sent. Every byte: `cut-connections.soak.test.ts`. */
import { afterAll, describe, expect, it } from 'vitest';
import { PostgresServer } from '../kit/postgres.ts';
import { cutEach, exchanges } from './cuts.ts';

describe('a connection that breaks', async () => {
  const server = await PostgresServer.start(['fsync=off', 'full_page_writes=off']);
  afterAll(() => server.remove());

  it.each(
    exchanges.map((exchange, number) => ({ name: exchange.name, exchange, schema: `cut_${number}` })),
  )('loses nothing that was acknowledged, and nothing is done twice: $name', async ({ exchange, schema }) => {
    const report = await cutEach(exchange, { server, schema, everywhere: false });
    expect(report.cuts).toBeGreaterThan(30);
    expect(report.failed).toBeGreaterThan(20);
  });
});
