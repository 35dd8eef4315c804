/** The files of `examples/cluster`: the program runs as it stands, the others are what their readers expect. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { makeFolder } from '../cli/command.ts';
import { postgresUrl } from '../kit/postgres.ts';
import { projectDir } from '../kit/project.ts';

const folder = join(projectDir, 'examples/cluster');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

it('three workers finish all orders, however often one of them is killed, and a page counts them', async () => {
  const env = { ...process.env, PILOTAGE_JOURNAL: await postgresUrl(), ORDERS: '30', KILL_MS: '1000' };
  const child = spawn(process.execPath, [join(folder, 'main.ts')], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: page = '' } = await lines.next();
  expect(page).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  let shown = '';
  while (!/<li>(pending|running|finished): \d+<\/li>/.test(shown)) shown = await (await fetch(page)).text();
  const { value: counts = '' } = await lines.next();
  const { finished, killed, ...others } = JSON.parse(counts);
  expect([finished, others]).toEqual([30, {}]);
  expect(killed).toBeGreaterThan(0);
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
  const sent = read('.dockerignore')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));
  const copied = lines.flatMap((line) => (line.startsWith('COPY ') ? line.split(' ').slice(1, -1) : []));
  expect(copied.toSorted()).toEqual(sent.toSorted());
  expect(copied.filter((name) => !existsSync(join(folder, name)))).toEqual([]);
});

it('the image has what the worker needs: the configuration that its commands name, and the packages', async () => {
  const { dependencies } = JSON.parse(read('package.json'));
  const own = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8'));
  expect(dependencies).toEqual({ pilotage: `^${own.version}`, pg: own.peerDependencies.pg });
  const named = [read('Dockerfile'), read('kubernetes.yaml')].map((text) => /--config"?, "?([\w.]+)/.exec(text)?.[1]);
  expect(named).toEqual(['agents.config.ts', 'agents.config.ts']);
  // Alone in its folder, as in the image.
  const image = makeFolder();
  for (const name of ['package.json', 'agents.config.ts']) image.write(name, read(name));
  expect(await image.run(['run', 'An order', '--config', 'agents.config.ts'])).toMatchObject({ code: 0 });
});
