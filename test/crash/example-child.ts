/**
 * The process that is killed: `node example-child.ts <example> <journal> <kill at>` runs an example as it stands, but what that takes for a journal in
 * memory is this file, and the process dies by SIGKILL before or after its n-th write. It says each entry when it is durable, and at its end how many
 * such moments there were.
 */
import { existsSync, writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { sqliteJournal } from '#journal/sqlite';
import type { Clock } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Entry } from '#pilotage/state';

const [example = '', path = '', killAt = ''] = process.argv.slice(2);

/** What changes a run, a schedule or a mailbox. */
const WRITES: ReadonlySet<string> = new Set(['create', 'append', 'send', 'startByKey', 'signal', 'put', 'move']);
const PARTS: ReadonlySet<string> = new Set(['schedules', 'events']);

const say = (line: string): void => void writeSync(1, `§ ${line}\n`);
let moments = 0;

function reach(): void {
  moments += 1;
  if (moments === Number(killAt)) process.kill(process.pid, 'SIGKILL');
}

function mortal<T extends object>(part: T): T {
  return new Proxy(part, {
    get(of, name) {
      const member: unknown = Reflect.get(of, name);
      if (PARTS.has(String(name))) return mortal(member as object);
      if (typeof member !== 'function') return member;
      if (!WRITES.has(String(name))) return member.bind(of);
      return async (written: { readonly entries?: readonly Entry[] }, ...more: unknown[]) => {
        reach();
        const result: unknown = await member.call(of, written, ...more);
        for (const { kind } of written.entries ?? []) say(kind);
        reach();
        return result;
      };
    },
  });
}

export function memoryJournal({ clock }: { readonly clock?: Clock } = {}): Journal {
  return mortal(sqliteJournal({ path, synchronous: 'normal', ...(clock === undefined ? {} : { clock }) }));
}

// What the example imports from the sources is what this process runs: the build, if it was built.
const [, root = '', suffix = ''] = /^(.*\/)test\/crash\/[^/]*(\.[jt]s)$/.exec(import.meta.url) ?? [];
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const [, source] = /\/(src\/.*)\.ts$/.exec(found.url) ?? [];
    if (source === undefined || context.parentURL?.includes('/examples/') !== true) return found;
    if (source === 'src/journal/memory') return next(import.meta.url, context);
    const url = new URL(`${source}${suffix}`, root);
    if (!existsSync(url)) throw new Error(`${source} is no entry of the build.`);
    return next(url.href, context);
  },
});
process.on('exit', () => say(`moments ${moments}`));
// The example imports this file, which must not wait for it.
void import(pathToFileURL(example).href);
