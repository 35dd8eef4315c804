/** A temp folder `root` with a secret beside it, which no tool may ever show. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { type Json, type JsonObject, skillView } from '#core';
import { type ToolContext, ToolFailure } from '#tools';
import { workspaceTools } from '#tools/workspace';
import { noStore, noStream, noWaits } from '../kit/tools.ts';

export const SECRET = 'the-secret-outside';

export interface Scene {
  readonly base: string;
  readonly root: string;
  write(path: string, content: string | Uint8Array): void;
  call(tool: string, args?: JsonObject, signal?: AbortSignal): Promise<JsonObject>;
  /** What the refusal of a call says; fails when the call gives a value. */
  refusal(tool: string, args?: JsonObject): Promise<ToolFailure>;
}

export function makeScene(): Scene {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'pilotage-workspace-')));
  afterAll(() => rmSync(base, { recursive: true, force: true }));
  const root = join(base, 'root');
  mkdirSync(join(base, 'outside'), { recursive: true });
  mkdirSync(root);
  writeFileSync(join(base, 'outside', 'secret.txt'), `${SECRET}\n`);
  writeFileSync(join(base, 'secret.txt'), `${SECRET}\n`);
  return { base, root, write, call, refusal };

  function write(path: string, content: string | Uint8Array): void {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  async function call(tool: string, args: JsonObject = {}, signal?: AbortSignal): Promise<JsonObject> {
    const found = workspaceTools({ root }).find(({ name }) => name === tool);
    if (found === undefined) throw new Error(`no tool ${tool}`);
    return (await found.execute(args as Record<string, Json>, contextOf(signal))) as JsonObject;
  }
  async function refusal(tool: string, args: JsonObject = {}): Promise<ToolFailure> {
    const settled = await call(tool, args).then(
      (value) => new Error(`got ${JSON.stringify(value)}`),
      (error: unknown) => error,
    );
    if (settled instanceof ToolFailure) return settled;
    throw settled;
  }
}

export function contextOf(signal: AbortSignal = new AbortController().signal): ToolContext {
  const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
  const tools = { list: () => [], all: () => [], get: () => undefined };
  const saveArtifact = () => Promise.reject(new Error('A workspace tool stores nothing.'));
  const model = (): never => {
    throw new Error('A workspace tool asks no model.');
  };
  const none = {
    saveArtifact,
    artifact: async () => undefined,
    store: noStore,
    stream: () => noStream,
    model,
    spent: async () => {},
    ...noWaits,
  };
  const quiet = { emit: () => {}, discover: () => {}, ...none };
  return {
    signal,
    idempotencyKey: 'k',
    identity,
    attempt: 1,
    tools,
    meta: {},
    skills: skillView(),
    handles: {},
    ...quiet,
  };
}
