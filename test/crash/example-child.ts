/**
 * The process that is killed: `node example-child.ts <example> <orders>` runs an example as it stands, but what that takes for a journal in memory is a
 * file. It says each entry when it is durable, and at the end of the example how many moments there were at which it could have died: before and after
 * each write.
 */
import { cpSync, existsSync, writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sqliteJournal } from '#journal/sqlite';
import type { Clock } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Entry } from '#pilotage/state';
import type { Orders } from './examples.ts';

const [example = '', orders = ''] = process.argv.slice(2);
const { journals, killAt, copies } = JSON.parse(orders) as Orders;

/** What changes a run, a schedule or a mailbox. */
const WRITES: ReadonlySet<string> = new Set(['create', 'append', 'send', 'startByKey', 'signal', 'put', 'move']);
const PARTS: ReadonlySet<string> = new Set(['schedules', 'events']);

const say = (line: string): void => void writeSync(1, `§ ${line}\n`);
let path = '';
let moments = 0;

function reach(): void {
  moments += 1;
  if (moments === killAt) process.kill(process.pid, 'SIGKILL');
  if (copies === undefined) return;
  cpSync(dirname(path), join(copies, String(moments)), { recursive: true });
  say(`moment ${moments}`);
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

const waiting = [...journals];
let isUnderWay = false;
/** An example is over when there is nothing left that its process would do. */
function next(): void {
  if (isUnderWay) throw new Error(`${example} waits for something that never comes.`);
  if (path !== '') say(`moments ${moments}`);
  const following = waiting.shift();
  if (following === undefined) return;
  path = following;
  moments = 0;
  isUnderWay = true;
  // Node asks once more what is left only when there was something to wait for.
  setImmediate(() => {});
  // The example imports this file, which must not wait for it. A module of another address is run anew.
  void import(`${pathToFileURL(example).href}?${waiting.length}`).then(() => {
    isUnderWay = false;
  });
}
process.on('beforeExit', next);
next();
