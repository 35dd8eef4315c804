/** The files of `examples/cluster`: the program runs as it stands, the others are what their readers expect. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { postgresUrl } from '../kit/postgres.ts';
import { projectDir } from '../kit/project.ts';

const folder = join(projectDir, 'examples/cluster');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

it('three workers finish all orders, however often one of them is killed', async () => {
  const env = { ...process.env, PILOTAGE_JOURNAL: await postgresUrl(), ORDERS: '12', KILL_MS: '1500' };
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'main.ts')], { env });
  const [page, counts] = stdout.trim().split('\n');
  expect(page).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(JSON.parse(counts ?? '')).toMatchObject({ finished: 12 });
});

it('the manifests can be read, and give a worker more time to end than its grace', () => {
  const [deployment, budget] = parseAllDocuments(read('kubernetes.yaml')).map((one) => {
    expect(one.errors).toEqual([]);
    return one.toJS();
  });
  const { spec } = deployment.spec.template;
  const [worker] = spec.containers;
  const grace = Number(worker.args[worker.args.indexOf('--grace') + 1]);
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(
    grace + 5 + Number(worker.lifecycle.preStop.exec.command[1]),
  );
  expect([worker.readinessProbe.httpGet.path, worker.livenessProbe.httpGet.path]).toEqual(['/readyz', '/healthz']);
  expect(budget.spec.selector).toEqual(deployment.spec.selector);
  const [compose] = parseAllDocuments(read('compose.yaml'));
  expect(compose?.errors).toEqual([]);
  const { services } = compose?.toJS() as { services: Record<string, { stop_grace_period?: string }> };
  expect(Number.parseInt(services['worker']?.stop_grace_period ?? '', 10)).toBeGreaterThan(25);
});

it('the image starts the worker itself, which hears what it is told', () => {
  const lines = read('Dockerfile').split('\n');
  const known = /^(#|FROM |WORKDIR |ENV |COPY |RUN |USER |EXPOSE |ENTRYPOINT \[|CMD \[|HEALTHCHECK |$)/;
  expect(lines.filter((line) => !known.test(line))).toEqual([]);
  for (const name of ['ENTRYPOINT', 'CMD']) {
    const line = lines.find((one) => one.startsWith(`${name} `)) ?? '';
    expect(JSON.parse(line.slice(name.length))).toEqual(expect.any(Array));
  }
});
