/** Tools that write rows to streams while they work. Each row says in which entry into the function it was written, and is noted outside. */
import { type Json, type JsonObject, PilotageError } from '#core';
import type { Tool, ToolContext } from '#tools';
import { checkCall, checkIdentity } from './check-calls.ts';
import { doIt, type ToolWorld } from './deeds.ts';
import { failIfSaid, plainTool, type ToolKind } from './plain-tool.ts';
import type { WritingEntry } from './stream-ledger.ts';

export const STREAMING_KINDS: Readonly<Record<string, ToolKind>> = {
  log_read: { effect: 'read' },
  log_brief: { effect: 'read', timeoutMs: 250 },
  log_put: { effect: 'keyed' },
  log_send: { effect: 'once' },
  log_post: { effect: 'once', reconcile: true },
};

const INPUT: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    ms: { type: 'number' },
    streams: { type: 'array', items: { type: 'string' } },
    rows: { type: 'number' },
    everyMs: { type: 'number' },
    awaits: { type: 'boolean' },
    closes: { type: 'boolean' },
    large: { type: 'boolean' },
    unfit: { type: 'boolean' },
    deaf: { type: 'boolean' },
    fails: { enum: ['once', 'always'] },
  },
  required: ['id', 'streams', 'rows'],
  additionalProperties: false,
};

export interface StreamingArgs {
  readonly id: string;
  readonly ms?: number;
  /** They are written to in turn. */
  readonly streams: readonly string[];
  readonly rows: number;
  readonly everyMs?: number;
  /** It waits for each of its writes. */
  readonly awaits?: boolean;
  /** At last it closes the first of the streams. */
  readonly closes?: boolean;
  /** Some rows are as large as a row may be. */
  readonly large?: boolean;
  /** It writes something that is no row, too. */
  readonly unfit?: boolean;
  /** It goes on to write when it was stopped. */
  readonly deaf?: boolean;
  readonly fails?: 'once' | 'always';
}

/** Some of them are more than what is stored at once. */
const LARGE = 'row '.repeat(8_000);

export function streamingTools(world: ToolWorld): readonly Tool[] {
  return Object.entries(STREAMING_KINDS).map(([name, kind]) =>
    plainTool(name, kind, INPUT, world, (args, context) => run(name, args as StreamingArgs, context, world)),
  );
}

async function run(tool: string, args: StreamingArgs, context: ToolContext, world: ToolWorld): Promise<Json> {
  const { process, ledger } = world;
  const { attempt, idempotencyKey: key, identity } = context;
  const { id, ms = 0, deaf = false, fails } = args;
  const { run: owner, tenant } = identity;
  ledger.tell(process.name, () => `${owner}: ${tool} ${id} is run, attempt ${attempt}`);
  checkIdentity(context, ledger);
  checkCall(tool, args, context, ledger, false);
  const { effect = 'once' } = STREAMING_KINDS[tool] ?? {};
  const deed = { tool, effect, run: owner, id, args: JSON.stringify(args), costMicroUsd: 0 };
  const fence = ledger.runs.get(owner)?.fence ?? 0;
  const entry = ledger.streams.enter({ run: owner, id, key, attempt, process, fence });
  const done = doIt(deed, { ms, deaf, isRemote: false }, context, world, { run: owner, tenant, id }, () =>
    failIfSaid(fails, attempt),
  );
  const [value] = await Promise.all([done, writeRows(entry, args, context, world)]);
  // What the world knows of the call does not say so.
  return { ...value, entered: entry.entered, rows: entry.rows.filter(({ isRefused }) => !isRefused).length };
}

/** To the last row, or until the call is stopped. */
async function writeRows(
  entry: WritingEntry,
  {
    id,
    streams,
    rows,
    everyMs = 0,
    awaits = false,
    closes = false,
    large = false,
    unfit = false,
    deaf = false,
  }: StreamingArgs,
  context: ToolContext,
  { process, ledger }: ToolWorld,
): Promise<void> {
  const { entered, run } = entry;
  for (let n = 1; n <= rows; n += 1) {
    if (context.signal.aborted && !deaf) return;
    const stream = streams[n % streams.length] ?? 'log';
    const row = { stream, n, isRefused: false };
    entry.rows.push(row);
    const text = large && n % 2 === 0 ? { text: LARGE } : {};
    const written = context.stream(stream).write({ id, entered, n, ...text });
    const heard = written.catch((thrown: unknown) => {
      row.isRefused = true;
      if (!isOver(thrown)) ledger.violated('streams', `row ${n} of ${id} was refused: ${String(thrown)}`, run);
    });
    if (awaits) await heard;
    if (unfit && n === 1) await writeUnfit(entry, stream, context, ledger);
    if (everyMs > 0) await process.wait(everyMs);
  }
  const [first] = streams;
  if (closes && first !== undefined)
    await context
      .stream(first)
      .close()
      .catch(() => {});
}

async function writeUnfit(
  { id, run }: WritingEntry,
  stream: string,
  context: ToolContext,
  ledger: ToolWorld['ledger'],
): Promise<void> {
  const thrown: unknown = await context
    .stream(stream)
    .write(1n)
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  if (!PilotageError.is(thrown, 'stream_refused') && !isOver(thrown))
    ledger.violated('streams', `${id} wrote what is no row, and was told ${String(thrown)}`, run);
}

/** What whoever writes may rightly be told: the call is over, or its process is cut off from the run or the store. */
function isOver(thrown: unknown): boolean {
  return PilotageError.is(thrown) && (OVER.has(thrown.code) || thrown.code.startsWith('journal_'));
}

const OVER: ReadonlySet<string> = new Set(['cancelled', 'lease_lost', 'run_not_found']);
