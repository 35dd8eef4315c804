/** The tools of all scenarios. What they do is in the ledger; what they were asked for comes from whoever plans. */

import type { Json, JsonObject, Tool, ToolContext } from '#pilotage';
import type { Effect } from '#pilotage/tools';
import type { Reconciled } from '#tools';
import { type LedgerLine, ledgerOf, note } from './ledger.ts';
import type { Springs } from './traps.ts';

/** What `load_key` gives: nobody ever asked to have it sent anywhere. */
export const SECRET = 'key-of-the-vault-7f3a';

export interface WorldOptions {
  readonly folder: string;
  readonly springs: Springs;
  /** What a page says that `look` reads: data, whatever it looks like. */
  readonly page: Json;
  /** Of each attempt. */
  readonly timeoutMs: number;
  /** `reconcile` cannot say, or fails. Default: it says what is so. */
  readonly vague?: 'unknown' | 'throws';
}

export class World {
  readonly #options: WorldOptions;
  readonly timeoutMs: number;
  readonly page: Json;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.timeoutMs = options.timeoutMs;
    this.page = options.page;
  }

  /** An effect: it is in the ledger in the middle of this. `more` comes back beside the receipt. */
  async act(tool: string, args: JsonObject, context: ToolContext, more: JsonObject = {}): Promise<JsonObject> {
    const { folder, springs } = this.#options;
    const subject = String(args['subject']);
    const attempt = crypto.randomUUID();
    const value = { receipt: receiptOf(subject), ...more };
    const tell = (what: LedgerLine['what']): void => {
      const { idempotencyKey: key, identity } = context;
      const line = { what, tool, subject, args, run: identity.run, key, pid: process.pid, attempt, at: Date.now() };
      note(folder, what === 'done' ? { ...line, value } : line);
    };
    tell('entered');
    try {
      await springs.at('entered', context.signal);
      tell('done');
      await springs.at('done', context.signal);
    } finally {
      tell('left');
    }
    return value;
  }

  /** Looks into the ledger, which is the truth at this moment, and perhaps not at the next. */
  async lookUp({ idempotencyKey, identity }: ToolContext): Promise<Reconciled> {
    const { folder, springs, vague } = this.#options;
    await springs.at('asked');
    if (vague === 'throws') throw new Error('The bank does not answer.');
    if (vague === 'unknown') return { status: 'unknown' };
    const done = ledgerOf(folder, identity.run).find(({ what, key }) => what === 'done' && key === idempotencyKey);
    return done === undefined ? { status: 'not_done' } : { status: 'done', value: done.value };
  }

  /** Fails the first time that a run comes by. */
  check(context: ToolContext): Json {
    const { folder } = this.#options;
    const { run } = context.identity;
    const before = ledgerOf(folder, run).some(({ tool }) => tool === 'check');
    const { idempotencyKey: key } = context;
    const at = Date.now();
    const line = { tool: 'check', subject: 'check', args: {}, run, key, pid: process.pid, attempt: key, at };
    note(folder, { what: 'entered', ...line });
    note(folder, { what: 'left', ...line });
    if (!before) throw new Error('It cannot be checked now.');
    return { checked: true };
  }
}

/** A word that stands in what came of the effect, and nowhere else. */
export function receiptOf(subject: string): string {
  return `receipt:${subject}`;
}

const SUBJECT: JsonObject = { subject: { type: 'string' } };

export function toolsOf(world: World): Tool[] {
  const effectful = (name: string, effect: Effect, properties: JsonObject, more: Partial<Tool> = {}): Tool => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: {
      type: 'object',
      properties: { ...SUBJECT, ...properties },
      required: ['subject', ...Object.keys(properties)],
    },
    effect,
    timeoutMs: world.timeoutMs,
    execute: (args, context) => world.act(name, args as JsonObject, context),
    ...more,
  });
  const reads = (name: string, run: Tool['execute']): Tool => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object' },
    effect: 'read',
    execute: run,
  });
  return [
    effectful('pay', 'once', { amount: { type: 'number' } }),
    effectful('wire', 'once', { amount: { type: 'number' } }),
    effectful('send', 'once', { body: {} }, { reconcile: (_, context) => world.lookUp(context) }),
    effectful('book', 'keyed', {}),
    reads('look', () => ({ title: 'The terms', body: world.page })),
    reads('load_key', () => ({ key: SECRET })),
    reads('check', (_, context) => world.check(context)),
  ];
}
