/** `pilotage memory`: what is remembered of a user, for people to read and correct. */
import { FACTS, Redaction, type Store, type StoreItem, systemClock } from '#core';
import { storeOn } from '#runtime';
import type { Options } from './options.ts';
import { findProject, storedJournal, userName, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { shortLine, terminalJson } from './text.ts';

/** @returns the exit code. */
export async function memoryCommand(act: string, key: string, options: Options, terminal: Terminal): Promise<number> {
  const isLook = act === 'list' || act === 'show';
  if (act === 'set' && options.value === undefined) throw new UsageError('memory set needs --value.');
  if (act !== 'set' && options.value !== undefined) throw new UsageError('--value goes with memory set.');
  const project = await findProject(options);
  const opened = storedJournal(options, project, isLook ? 'look' : 'write');
  return withJournal(opened, async (journal) => {
    const { tenant = 'local', user = userName(), namespace = FACTS } = options;
    const deps = { journal, clock: systemClock, redaction: new Redaction() };
    const store = storeOn(deps, project?.store).of({ tenant, user });
    if (act === 'list') return list(store, user, options, terminal);
    const found = await theOne(store, key, options);
    if (act === 'set') {
      const where = found?.namespace ?? namespace;
      await store.put(where, key, options.value);
      terminal.note(`Remembered of ${shortLine(user, 60)}: ${shortLine(key, 80)} in ${JSON.stringify(where)}.`);
      return EXIT.goal;
    }
    if (found === undefined)
      throw new UsageError(`Nothing of ${shortLine(user, 60)} has the key ${JSON.stringify(key)}.`);
    if (act === 'show') {
      terminal.write(`${terminalJson(options.json ? found : found.value)}\n`);
      return EXIT.goal;
    }
    await store.delete(found.namespace, key);
    terminal.note(`Forgotten: ${shortLine(key, 80)}.`);
    return EXIT.goal;
  });
}

async function list(store: Store, user: string, options: Options, terminal: Terminal): Promise<number> {
  let count = 0;
  for await (const item of itemsIn(store, options)) {
    terminal.write(`${options.json ? terminalJson(item) : row(item)}\n`);
    count += 1;
  }
  if (count === 0 && !options.json) terminal.note(`Nothing is remembered of ${shortLine(user, 60)}.`);
  return EXIT.goal;
}

async function* itemsIn(store: Store, { namespace = [] }: Options): AsyncGenerator<StoreItem> {
  for (let after: StoreItem | undefined; ; ) {
    const page: StoreItem[] = await store.list(namespace, { limit: PAGE, ...(after === undefined ? {} : { after }) });
    yield* page;
    after = page.at(-1);
    if (page.length < PAGE) return;
  }
}

const PAGE = 1_000;

/** The item with the key, wherever it lies. @throws UsageError when several have it. */
async function theOne(store: Store, key: string, options: Options): Promise<StoreItem | undefined> {
  const found: StoreItem[] = [];
  for await (const item of itemsIn(store, options)) if (item.key === key) found.push(item);
  if (found.length <= 1) return found[0];
  const places = found.map(({ namespace }) => JSON.stringify(namespace)).join(', ');
  throw new UsageError(`Several items have the key ${JSON.stringify(key)}. Give --namespace with one of ${places}.`);
}

function row({ namespace, key, value, source, expiresAt }: StoreItem): string {
  const from = source === undefined ? '' : `  from ${shortLine(source.run, 80)}, step ${source.step + 1}`;
  const until = expiresAt === undefined ? '' : `  until ${new Date(expiresAt).toISOString()}`;
  const where = shortLine(namespace.join(' / '), 40);
  return `${where.padEnd(16)}  ${shortLine(key, 40).padEnd(16)}  ${shortLine(JSON.stringify(value), 120)}${from}${until}`;
}
