/** What keeps the runs of a worker moving, when that is not the worker itself: Restate, by the options of the command. */
import type { Driver } from '#runtime';
import type { Options } from './options.ts';
import { UsageError } from './terminal.ts';

/** @returns `undefined`: the worker looks for due runs itself. @throws UsageError; PilotageError as `restateDriver` does. */
export async function engineOf({
  engine,
  ingress,
  serve,
  engineAdmin,
  engineUrl,
  host,
}: Options): Promise<Driver | undefined> {
  if (engine === undefined) {
    const given = { '--ingress': ingress, '--serve': serve, '--engine-admin': engineAdmin, '--engine-url': engineUrl };
    const [stray] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
    if (stray !== undefined) throw new UsageError(`${stray} goes with --engine restate.`);
    return undefined;
  }
  if (engine !== 'restate')
    throw new UsageError(`There is no engine ${engine}. Give --engine restate, or leave it out.`);
  if (ingress === undefined || serve === undefined) {
    throw new UsageError(
      '--engine restate needs --ingress, where Restate takes requests, and --serve, the port on which it reaches this worker.',
    );
  }
  const { restateDriver } = await import('#engine/restate');
  const reached = {
    ...(host === undefined ? {} : { host }),
    ...(engineAdmin === undefined ? {} : { admin: engineAdmin }),
  };
  return restateDriver({
    ingress,
    serve: { port: serve, ...reached, ...(engineUrl === undefined ? {} : { url: engineUrl }) },
  });
}
