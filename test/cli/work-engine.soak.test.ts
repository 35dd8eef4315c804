/** A worker whose runs Restate wakes. */
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { RestateServer, restateBinary } from '../kit/restate.ts';
import { due, startWorker, type Working, workFolder } from './working.ts';

const running: Working[] = [];
afterEach(async () => {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.splice(0).map(({ done }) => done));
});

const binary = await restateBinary();

describe.skipIf(binary === undefined)('with a Restate server', () => {
  it('carries out what is due, and is told of it by Restate', async () => {
    const server = await RestateServer.start(String(binary));
    try {
      const folder = workFolder();
      const journal = join(folder.path, 'runs.db');
      const engine = [
        '--engine',
        'restate',
        '--ingress',
        server.ingress,
        '--serve',
        '0',
        '--engine-admin',
        server.admin,
      ];
      const worker = startWorker(folder, journal, ...engine);
      running.push(worker);
      await worker.first('ready');
      const runs = await due(folder, journal, 'quick', 3);
      const ended = await worker.many('run_ended', 3);
      expect(ended.map(({ run }) => run).sort()).toEqual([...runs].sort());
      expect(worker.facts('fault')).toEqual([]);
      worker.child.kill('SIGTERM');
      expect((await worker.done).code).toBe(0);
    } finally {
      await server.remove();
    }
  });
});
