import { afterAll, describe, expect, it } from 'vitest';
import { restateDriver } from '#engine/restate';
import { createRuntime } from '#pilotage';
import type { Driver } from '#pilotage/engine';
import { type DriverEngine, driverConformance, expectCode } from '#testing';
import { freePort, RestateServer, restateBinary } from '../kit/restate.ts';

const NOBODY = 'http://127.0.0.1:1';
const binary = await restateBinary();

describe.skipIf(binary === undefined)('Restate', async () => {
  const server = binary === undefined ? undefined : await RestateServer.start(binary);
  afterAll(() => server?.remove());
  let engines = 0;

  /** Runs of a case have a service of their own, and its processes share one port, as behind a load balancer. */
  async function open(): Promise<DriverEngine> {
    const { ingress, admin } = server as RestateServer;
    engines += 1;
    const [service, port] = [`case_${engines}`, await freePort()];
    return {
      driver: () => restateDriver({ ingress, service, serve: { port, admin, sharesPort: true } }),
    };
  }

  for (const { name, run } of driverConformance({ open })) it(name, run);
});

describe('the driver for Restate', () => {
  it('says what is wrong with its options', async () => {
    expect(() => restateDriver({ ingress: 'localhost:8080' })).toThrow(/needs an address such as http:/);
    expect(() => restateDriver({ ingress: 'http://a', service: 'a/b' })).toThrow(/service "a\/b" needs letters/);
    expect(() => restateDriver({ ingress: 'http://a', serve: { port: 0, url: 'there' } })).toThrow(
      /url "there" needs an address/,
    );
    const driver = restateDriver({ ingress: 'http://127.0.0.1:1' });
    await expectCode(
      driver.start(async () => ({ next: 'done' })),
      'invalid_config',
    );
  });

  it('says that Restate cannot be reached', async () => {
    const driver = restateDriver({ ingress: NOBODY, serve: { port: 0, admin: NOBODY } });
    await expectCode(driver.wake('a'), 'engine_unavailable');
    await expectCode(
      driver.start(async () => ({ next: 'done' })),
      'engine_unavailable',
    );
    await driver.stop();
  });

  it('is checked where a runtime gets it', () => {
    expect(() => createRuntime({ planner: () => ({ kind: 'finish', reason: 'goal' }), driver: {} as Driver })).toThrow(
      /driver/,
    );
  });
});
