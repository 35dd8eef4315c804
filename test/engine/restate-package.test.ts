import { registerHooks } from 'node:module';
import { expect, it } from 'vitest';
import { restateDriver } from '#engine/restate';

it('the package of Restate is named where it is not installed, and only those who carry out runs need it', async () => {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier === '@restatedev/restate-sdk' ? 'a-package-that-is-not-installed' : specifier, context),
  });
  try {
    const driver = restateDriver({ ingress: 'http://127.0.0.1:1', serve: { port: 0 } });
    await expect(driver.start(async () => ({ next: 'done' }))).rejects.toMatchObject({
      code: 'package_missing',
      message: expect.stringContaining('npm install @restatedev/restate-sdk'),
      data: { package: '@restatedev/restate-sdk' },
    });
    await expect(driver.wake('a')).rejects.toMatchObject({ code: 'engine_unavailable' });
  } finally {
    hooks.deregister();
  }
});
