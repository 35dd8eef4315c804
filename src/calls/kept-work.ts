/** `context.once`: a part of a call's work that is recorded when it is done, and not done again when the call's function runs again. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type CallKept, type CallPlace, capture, type Identity, type Json, PilotageError } from '#core';
import { type ArtifactStore, storedJson, storeIfLarge } from '#journal';
import type { RunState } from '#state';

export interface KeptPorts {
  readonly state: Pick<RunState, 'open'> & { readonly identity: Identity };
  readonly artifacts: ArtifactStore;
  /** By the place of the call and the name: what is on its way to the store. An attempt that is over may have recorded it. */
  readonly writing: Map<string, Promise<void>>;
  /** Durable when it resolves. @throws the journal's refusal. */
  write(body: CallKept): Promise<void> | undefined;
}

const MAX_NAME_CHARS = 200;

/** What a work waits for would never come: the attempt is not stopped in the middle of it. */
const inWork = new AsyncLocalStorage<true>();

export function isInWork(): boolean {
  return inWork.getStore() === true;
}

/** What the work has given, now or before. @throws what the work throws. */
export async function keptOnce(
  { step, call }: CallPlace,
  name: string,
  work: () => unknown,
  { state, artifacts, writing, write }: KeptPorts,
): Promise<Json> {
  if (!isName(name) || typeof work !== 'function') {
    const message = `context.once takes a name of 1 to ${MAX_NAME_CHARS} characters and a function: context.once('charge', () => charge(order)).`;
    throw new PilotageError('invalid_config', message);
  }
  const id = `${step}.${call}.${name}`;
  const onItsWay = (): Promise<void> | undefined => writing.get(id)?.catch(() => {});
  const recorded = (): Promise<Json> | Json | undefined => {
    const kept = state.open?.move.step === step ? state.open.kept : undefined;
    const known = kept?.find((one) => one.call === call && one.name === name);
    if (known === undefined) return undefined;
    return known.stored === true ? storedJson(known.value, state.identity, artifacts) : known.value;
  };
  while (writing.has(id)) await onItsWay();
  const before = recorded();
  if (before !== undefined) return before;
  const made = await inWork.run(true, async () => work());
  const { json } = capture(made === undefined ? null : made, `The value of context.once(${JSON.stringify(name)})`);
  const about = { fileName: `kept-${name}.json`, source: 'tool: context.once' };
  const stored = await storeIfLarge(json, state.identity, artifacts, about);
  // An attempt that was given up may have recorded it meanwhile, and that is what the function gets from now on.
  while (writing.has(id)) await onItsWay();
  const meanwhile = recorded();
  if (meanwhile !== undefined) return meanwhile;
  const value: Json = stored === undefined ? json : { ...stored };
  const written = write({
    kind: 'call_kept',
    step,
    call,
    name,
    value,
    ...(stored === undefined ? {} : { stored: true }),
  });
  if (written === undefined) return json;
  writing.set(id, written);
  try {
    await written;
  } finally {
    writing.delete(id);
  }
  return json;
}

/** Compared as it is, in every store. */
function isName(given: unknown): given is string {
  return typeof given === 'string' && given !== '' && given.length <= MAX_NAME_CHARS && given.isWellFormed();
}
