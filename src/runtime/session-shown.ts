/** A session as its clients show it: the events of its turns as far as they are recorded, put together to messages. */
import {
  type Author,
  defined,
  type ErrorData,
  type InputArtifact,
  messageFiles,
  messageParts,
  messageWords,
  queryWords,
  type RunEvent,
  type Scope,
  type StreamRow,
  type TurnFile,
  wordsIn,
} from '#core';
import type { RunRecord } from '#journal';
import {
  artifactUrl,
  dataUrl,
  type HeardWords,
  referenceIn,
  type TurnChunkOptions,
  TurnChunks,
  type TurnUIMessage,
  UIAssembly,
  type UIPart,
} from '#messages';
import type { RunState } from '#state';
import { admitted, type HandleOptions } from './gate.ts';
import { followRows } from './read-stream.ts';
import { followEvents } from './run-events.ts';
import type { RunHost } from './run-host.ts';
import { activeRecords } from './session-turns.ts';

export interface ShownOptions {
  /** The address under which clients read a file. Default: its bytes as a data URL, or `artifact:` with its reference. */
  readonly fileUrl?: (file: TurnFile) => string;
  /** Words for the client about an error that a run has recorded. Default: its code and its message. */
  readonly errorText?: (error: ErrorData) => string;
}

/** A turn that several runs go on with is shown up to the first run that may not be read. */
type Showing = ShownOptions & Pick<HandleOptions, 'gate'>;

/** The stream of a run whose rows are data parts of its messages. */
export const DATA_STREAM = 'data';
/** Files up to this size are shown by their bytes, where they have no address. */
const MAX_DATA_URL_BYTES = 4_194_304;

/** The messages of the turns on the branch on which the session is, at most the last `limit` runs of them, and all of the first turn. */
export async function shownMessages(
  host: RunHost,
  scope: Scope,
  limit: number,
  options: Showing,
): Promise<TurnUIMessage[]> {
  const records = [...(await activeRecords(host.deps.journal, scope, limit))];
  let before = records[0]?.turnOrigin?.succeeds;
  while (before !== undefined) {
    const record = await host.deps.journal.get(before);
    if (record !== undefined) records.unshift(record);
    before = record?.turnOrigin?.succeeds;
  }
  const turns: RunRecord[][] = [];
  for (const record of records) {
    const last = turns.at(-1);
    if (last !== undefined && last.at(-1)?.identity.run === record.turnOrigin?.succeeds) last.push(record);
    else turns.push([record]);
  }
  const shown = await Promise.all(turns.map(async (runs) => shownTurn(host, await runsToShow(runs, options), options)));
  const messages = shown.flat();
  if (options.fileUrl === undefined) await fillFiles(host, scope, messages);
  return messages;
}

async function runsToShow(runs: readonly RunRecord[], { gate }: Showing): Promise<readonly RunRecord[]> {
  if (gate === undefined) return runs;
  const shown: RunRecord[] = [];
  for (const run of runs) {
    if (!(await gate.mayRead(run.identity.run))) break;
    shown.push(run);
  }
  return shown;
}

async function shownTurn(host: RunHost, runs: readonly RunRecord[], options: Showing): Promise<TurnUIMessage[]> {
  const messages: TurnUIMessage[] = [];
  const assemblies = new Map<string, UIAssembly>();
  const [first] = runs;
  const metadata = defined({ run: first?.identity.run, turn: first?.turn });
  const chunkOptions = turnOptions(options, defined({ turn: first?.turn }));
  let state: RunState | undefined;
  const chunks = new TurnChunks(
    {
      chunk: (chunk, id) => {
        if (chunk.type !== 'start') return assemblies.get(id)?.hear(chunk);
        const assembly = new UIAssembly(id, chunk.messageMetadata);
        assemblies.set(id, assembly);
        messages.push(assembly.message);
      },
      heard: (said) => messages.push(userMessage(said, state, metadata, chunkOptions.fileUrl)),
    },
    chunkOptions,
  );
  for (const { identity } of runs) {
    const follower = followEvents(host, identity.run, { from: 1, tasks: true, follow: false });
    const events: RunEvent[] = [];
    for await (const event of admitted(follower.follow(), identity.run, options.gate)) events.push(event);
    ({ state } = follower);
    const hasCalls = events.some(({ type }) => type === 'tool.invoked');
    hearWithRows(chunks, events, hasCalls ? await dataRows(host, identity.run) : []);
  }
  chunks.pause();
  // What is under way has nothing to show yet; a client refuses a message without parts.
  return messages.filter(({ parts }) => parts.some(({ type }) => type !== 'step-start'));
}

function turnOptions({ fileUrl, errorText }: ShownOptions, metadata: TurnUIMessage['metadata'] = {}): TurnChunkOptions {
  return {
    metadata,
    fileUrl: fileUrl ?? artifactUrl,
    errorText: errorText ?? (({ code, message }) => `${code} — ${message}`),
  };
}

/** Rows of a call stand before its end. */
function hearWithRows(chunks: TurnChunks, events: readonly RunEvent[], rows: readonly StreamRow[]): void {
  const left = [...rows];
  for (const event of events) {
    if (left.length > 0 && event.path === undefined && isEnd(event)) {
      const own = left.filter(({ step, call }) => step === event.step && call === event.call);
      for (const row of own) {
        left.splice(left.indexOf(row), 1);
        chunks.data(row);
      }
    }
    chunks.hear(event);
  }
  for (const row of left) chunks.data(row);
}

function isEnd(event: RunEvent): event is Extract<RunEvent, { type: 'tool.completed' | 'tool.failed' }> {
  return event.type === 'tool.completed' || event.type === 'tool.failed';
}

async function dataRows({ deps: { journal } }: RunHost, run: string): Promise<readonly StreamRow[]> {
  const rows: StreamRow[] = [];
  const waiting = (news: Promise<void>): Promise<void> => news;
  for await (const row of followRows({ journal, waiting }, { run, name: DATA_STREAM }, { follow: false }))
    rows.push(row);
  return rows;
}

function userMessage(
  { place, control }: HeardWords,
  state: RunState | undefined,
  { run, turn }: { readonly run?: string; readonly turn?: number },
  fileUrl: (file: TurnFile) => string,
): TurnUIMessage {
  const { id, text, files, author } = control === undefined ? begunBy(state) : saidBy(control);
  const parts = [
    ...(text === '' && files.length > 0 ? [] : [{ type: 'text' as const, text, state: 'done' as const }]),
    ...files.map((file): UIPart => {
      const { mime, fileName } = file;
      return {
        type: 'file',
        mediaType: mime,
        url: fileUrl({ type: 'file', ...file }),
        ...defined({ filename: fileName }),
      };
    }),
  ];
  return { id: id ?? `${run}:${place}`, role: 'user', metadata: defined({ run, turn, author }), parts };
}

interface Said {
  readonly id?: string;
  readonly text: string;
  readonly files: readonly InputArtifact[];
  readonly author?: Author;
}

function begunBy(state: RunState | undefined): Said {
  if (state === undefined) return { text: '', files: [] };
  const { query, notice, context, author, turn } = state;
  const id = turn?.messages?.[0]?.id;
  return {
    text: queryWords({ query, notice }),
    files: context.inputs ?? [],
    ...defined({ id, author: author ?? undefined }),
  };
}

function saidBy({ type, payload = {}, turnMessage }: NonNullable<HeardWords['control']>): Said {
  if (type === 'REDIRECT') return { text: wordsIn({ message: payload['goal'] ?? '' }), files: [] };
  const { author } = messageParts(payload);
  return { text: messageWords(payload), files: messageFiles(payload), ...defined({ id: turnMessage?.id, author }) };
}

/** The bytes of small files, for those that are to be shown as they are. */
async function fillFiles(host: RunHost, scope: Scope, messages: readonly TurnUIMessage[]): Promise<void> {
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type !== 'file') continue;
    const reference = referenceIn(part.url);
    if (reference === undefined || reference.sizeBytes > MAX_DATA_URL_BYTES) continue;
    const found = await host.deps.artifacts.get(scope, reference.artifactRef).catch(() => undefined);
    if (found !== undefined) part.url = dataUrl({ mime: part.mediaType }, found.bytes);
  }
}
