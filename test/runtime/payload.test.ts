/** `run.payload(schema)` gives what a run has finished with as what the schema makes of it, or says what does not fit. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { Json } from '#core';
import type { Run } from '#runtime';
import { asks, finish, script } from '../kit/decisions.ts';
import { start, world } from '../kit/world.ts';

const ended = async (payload?: Json): Promise<Run> => start(world({ planner: script(finish(payload)) }));
const invoice = z.object({
  vendor: z.string(),
  at: z.iso.datetime().transform((at) => new Date(at)),
  open: z.boolean().default(true),
});
const stored = { vendor: 'Acme', at: '2026-01-02T03:04:05Z' };

it('gives the output of the schema, with its defaults and transforms, and leaves what is stored', async () => {
  const run = await ended(stored);
  const made = await run.payload(invoice);
  expect(made).toEqual({ vendor: 'Acme', at: new Date(stored.at), open: true });
  expect(made?.at.getUTCFullYear()).toBe(2026);
  expect(await run.payload()).toEqual(stored);
});

it('reads a large payload in full before it is checked', async () => {
  const many = Array.from({ length: 20_000 }, (_, index) => index);
  const run = await ended(many);
  expect(await run.result()).toMatchObject({ stored: true });
  expect(await run.payload(z.array(z.int()))).toHaveLength(many.length);
});

it('refuses one that does not fit, with what is wrong and how the run ended', async () => {
  const run = await ended({ vendor: 7, at: stored.at });
  const refused = {
    code: 'payload_invalid',
    data: { run: run.id, reason: 'goal', why: expect.stringMatching(/^\/vendor: /) },
  };
  await expect(run.payload(invoice)).rejects.toMatchObject(refused);
  const plain = { type: 'object', properties: { vendor: { type: 'string' } } } as const;
  await expect(run.payload(plain)).rejects.toMatchObject(refused);
  await expect(run.payload(z.object({}).refine(async () => false, 'sold out'))).rejects.toMatchObject({
    message: expect.stringContaining('sold out'),
  });
  expect(await run.payload(z.object({ vendor: z.number() }))).toEqual({ vendor: 7 });
});

it('gives nothing where the run gave nothing, and refuses what is no schema', async () => {
  expect(await (await ended()).payload(invoice)).toBeUndefined();
  expect(await (await start(world({ planner: script(asks) }))).payload(invoice)).toBeUndefined();
  const run = await ended(stored);
  await expect(run.payload(42 as never)).rejects.toMatchObject({ code: 'tool_schema_invalid' });
});
