/** `pilotage serve` as a user runs it. */
import { expect, it } from 'vitest';
import { createClient } from '#pilotage/client';
import { builtFile } from '../kit/built.ts';
import { makeFolder, type Started } from './command.ts';

const SERVER = builtFile('src/server/index.ts');
const CONFIG = `
import { api, bearerKeys } from '${SERVER}';
export default {
  planner: { driver: 'finish', payload: 'done' },
  journal: 'runs.db',
  server: { parts: [api({ path: '/api' })], authenticate: bearerKeys({ file: 'keys.json' }) },
};
`;

/** What it has said until now. */
function heard({ child }: Started): () => string {
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (said += text));
  return () => said;
}

it('answers this machine by default, and ends whole at a SIGTERM', async () => {
  const folder = makeFolder();
  folder.write('pilotage.config.mjs', "export default { planner: { driver: 'finish', payload: 'done' } };");
  const started = folder.start(['serve', '--config', 'pilotage.config.mjs', '--port', '0']);
  const said = heard(started);
  await started.untilOutput(/serves http:\/\/127\.0\.0\.1:(\d+)/);
  const port = said().match(/serves http:\/\/127\.0\.0\.1:(\d+)/)?.[1];
  const client = createClient({ url: `http://127.0.0.1:${port}` });
  const run = await client.runs.start('q');
  expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
  expect(await run.record()).toMatchObject({ identity: { tenant: 'local', user: 'local' } });
  const reader = createClient({ url: `http://127.0.0.1:${port}`, patienceMs: 0 }).session('talk');
  const read = (async () => {
    for await (const { type } of reader.events()) if (type === 'planner.finish') started.child.kill('SIGTERM');
  })();
  await reader.send('hello');
  // Whoever reads comes again, and would find the next server.
  await expect(read).rejects.toMatchObject({ code: 'connection_failed' });
  const { code, stderr } = await started.done;
  expect([code, stderr]).toEqual([0, expect.stringMatching(/\/runs +\d+ routes[\s\S]*SIGTERM[\s\S]*Done after/)]);
});

it('answers whom the configuration lets in, and says so as JSON lines', async () => {
  const folder = makeFolder();
  folder.write('pilotage.config.mjs', CONFIG);
  const { newBearerKey } = await import('#server');
  const { key, sha256 } = newBearerKey();
  folder.write('keys.json', JSON.stringify({ keys: [{ sha256, tenant: 'acme', user: 'ana' }] }));
  const started = folder.start(['serve', '--config', 'pilotage.config.mjs', '--port', '0', '--json']);
  const said = heard(started);
  await started.untilOutput(/"fact":"serving"/);
  const facts = said()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { fact: string; url?: string; group?: string });
  const url = `${facts.at(-1)?.url}/api`;
  expect(facts.map(({ fact }) => fact)).toEqual(['routes', 'serving']);
  expect((await fetch(`${url}/runs`)).status).toBe(401);
  const client = createClient({ url, headers: { authorization: `Bearer ${key}` } });
  expect(await (await client.runs.start('q')).record()).toMatchObject({ identity: { tenant: 'acme', user: 'ana' } });
  started.child.kill('SIGINT');
  expect((await started.done).code).toBe(0);
});

it('does not answer others whom nobody has let in, and names what is wrong with the configuration', async () => {
  const folder = makeFolder();
  expect(await folder.run(['serve', '--host', '0.0.0.0'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('server.authenticate'),
  });
  folder.write('wrong.mjs', "export default { planner: { driver: 'finish' }, server: { part: [] } };");
  expect(await folder.run(['serve', '--config', 'wrong.mjs'])).toMatchObject({
    stderr: expect.stringContaining('server.part'),
  });
  expect((await folder.run(['serve', '--help'])).stdout).toContain('--port <n>');
});
