/** What a tool is given beside its arguments, and what it leaves behind beside its value. */
import type { ArtifactRef } from '../core/artifact.ts';
import type { Clock } from '../core/clock.ts';
import type { ArtifactRow } from '../core/context.ts';
import type { Identity } from '../core/identity.ts';
import type { ToolView } from '../core/tool-schema.ts';
import type { ArtifactStore } from '../journal/port.ts';
import type { ArtifactDescription, ToolContext } from '../tools/tool.ts';
import type { LazySignal } from './flight.ts';

/** The call that a context belongs to. */
interface OwnCall {
  readonly branch: { readonly tool: string };
  readonly idempotencyKey: string;
  readonly identity: Identity;
  readonly tools: ToolView;
}

interface Stores {
  readonly clock: Clock;
  readonly artifacts: ArtifactStore;
}

/** The context of one attempt. Everything in it that most tools never use is made when it is asked for. */
export class CallContext implements ToolContext {
  readonly idempotencyKey: string;
  readonly identity: Identity;
  readonly attempt: number;
  readonly #call: OwnCall;
  readonly #stores: Stores;
  readonly #lazy: LazySignal;
  #discovered: string[] | undefined;
  #saving: Promise<ArtifactRow>[] | undefined;

  constructor(call: OwnCall, stores: Stores, lazy: LazySignal, attempt: number) {
    this.idempotencyKey = call.idempotencyKey;
    this.identity = call.identity;
    this.attempt = attempt;
    this.#call = call;
    this.#stores = stores;
    this.#lazy = lazy;
  }

  get signal(): AbortSignal {
    return this.#lazy.signal;
  }

  get tools(): ToolView {
    return this.#call.tools;
  }

  /** A function of its own, as `saveArtifact`: tools take them out of the context. */
  get discover(): ToolContext['discover'] {
    return (names) => {
      this.#discovered ??= [];
      this.#discovered.push(...names);
    };
  }

  get saveArtifact(): ToolContext['saveArtifact'] {
    return (bytes, about) => this.#save(bytes, about);
  }

  /** Names as the tool gave them. */
  get discovered(): readonly string[] {
    return this.#discovered ?? [];
  }

  get hasSaved(): boolean {
    return this.#saving !== undefined;
  }

  /** What was stored, in the order in which it was asked for. Waits for what the tool did not wait for. */
  async saved(): Promise<readonly ArtifactRow[]> {
    const settled = await Promise.allSettled(this.#saving ?? []);
    return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  }

  #save(bytes: Uint8Array | string, { mime, fileName }: ArtifactDescription): Promise<ArtifactRef> {
    const { artifacts, clock } = this.#stores;
    const named = fileName === undefined ? {} : { fileName };
    const source = `tool: ${this.#call.branch.tool}`;
    const content = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    const stored = artifacts.put(this.identity, content, { mime, ...named, source });
    const saving = stored.then((ref): ArtifactRow => ({ ...ref, ...named, source, createdAt: clock.now() }));
    // A tool may go on without it: that is for the tool to say, and what it does not wait for must not end the process.
    saving.catch(() => {});
    this.#saving ??= [];
    this.#saving.push(saving);
    return stored;
  }
}
