/**
 * The journal as programs see it: what people say, and what they are asked, stands whole in it, however large it is. In the store it is
 * an artifact from 32,768 bytes on, and the message or the entry has the reference. The artifact is stored first, and read with what refers to it.
 */
import {
  type ArtifactRef,
  type Control,
  decodeEntry,
  deepFreeze,
  defined,
  type Entry,
  encodedBytes,
  encodeEntry,
  isControl,
  isJsonObject,
  type Json,
  type JsonObject,
  LARGE_VALUE_BYTES,
  type Message,
  PilotageError,
  type Scope,
  systemClock,
} from '#core';
import type {
  Append,
  Claim,
  ClaimedRun,
  Examined,
  Journal,
  NewRun,
  Received,
  RepairRequest,
  Sending,
  Sent,
  SignalOptions,
  StoredText,
} from './port.ts';
import { assertJournal, hasEnded, runNotFound } from './rules.ts';
import { storedJsonIfAny, storeIfLarge } from './stored-json.ts';

/** A control, an answer, or a question, with what may be large in it. */
interface Spoken {
  readonly payload?: JsonObject;
  readonly args?: Json;
  readonly nodes?: JsonObject;
  readonly stored?: ArtifactRef;
}

/**
 * The journal with the whole content of controls, answers and questions, for whoever reads entries beside a runtime. A runtime does this
 * for the journal that it is given. `read` throws `artifact_not_found` when the store has a content no more.
 * @throws PilotageError `invalid_config` for a value that is not a journal.
 */
export function wholeJournal(journal: Journal): Journal {
  assertJournal(journal);
  return new WholeJournal(journal);
}

class WholeJournal implements Journal {
  readonly artifacts: Journal['artifacts'];
  readonly sessions: Journal['sessions'];
  readonly schedules: Journal['schedules'];
  readonly snapshots: Journal['snapshots'];
  readonly store: Journal['store'];
  readonly waits: Journal['waits'];
  readonly events: Journal['events'];
  readonly streams: Journal['streams'];
  readonly passing: Journal['passing'];
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
    this.artifacts = journal.artifacts;
    this.sessions = journal.sessions;
    this.schedules = journal.schedules;
    this.snapshots = journal.snapshots;
    this.store = journal.store;
    this.waits = journal.waits;
    this.events = journal.events;
    this.streams = journal.streams;
    this.passing = journal.passing;
  }

  async create(run: NewRun): Promise<Claim | undefined> {
    // Nobody has said anything to a run that only starts.
    if (run.entries.length === 1) return this.#journal.create(run);
    return this.#journal.create({ ...run, entries: await this.#withReferences(run.entries, run.identity) });
  }

  append(append: Append): Promise<void> | undefined {
    return append.entries.some(hasLarge) ? this.#appendSpoken(append) : this.#journal.append(append);
  }

  async #appendSpoken(append: Append): Promise<void> {
    const { identity } = (await this.#journal.get(append.run)) ?? {};
    const entries = identity === undefined ? append.entries : await this.#withReferences(append.entries, identity);
    await this.#journal.append({ ...append, entries });
  }

  async read(run: string, from?: number, limit?: number): Promise<Entry[]> {
    const entries = await this.#journal.read(run, from, limit);
    if (entries.every(isWhole)) return entries;
    const scope = await this.#scopeOf(run);
    return Promise.all(entries.map((entry) => this.#wholeEntry(entry, run, scope)));
  }

  async signal(run: string, message: Message, options?: SignalOptions): Promise<boolean> {
    return this.#journal.signal(run, await this.#signalled(run, message), options);
  }

  /** For a run that has ended nothing is stored: the signal is refused. */
  async #signalled(run: string, message: Message): Promise<Message> {
    if (!isControl(message) || !isLarge(message)) return message;
    const record = await this.#journal.get(run);
    if (record === undefined || hasEnded(record.status)) return message;
    return this.#withReference(message, record.identity);
  }

  /** A control whose content is gone comes without it, and with its reference. */
  async inbox(run: string): Promise<Received[]> {
    const received = await this.#journal.inbox(run);
    if (!received.some(({ message }) => isControl(message) && message.stored !== undefined)) return received;
    const scope = await this.#scopeOf(run);
    const whole = async (control: Control): Promise<Control> => (await this.#whole(control, scope)) ?? control;
    return Promise.all(
      received.map(async (each) => (isControl(each.message) ? { ...each, message: await whole(each.message) } : each)),
    );
  }

  async examine(run: string): Promise<Examined> {
    const examined = await this.#journal.examine(run);
    const { identity } = (await this.#journal.get(run)) ?? {};
    if (identity === undefined) return examined;
    const entries = await Promise.all(examined.entries.map((text) => this.#wholeText(text, run, identity)));
    return { ...examined, entries };
  }

  /** What cannot be read, or has lost its content, stays as it is. */
  async #wholeText({ seq, text }: StoredText, run: string, scope: Scope): Promise<StoredText> {
    if (!text.includes('"stored":{')) return { seq, text };
    try {
      return { seq, text: encodeEntry(await this.#wholeEntry(decodeEntry(text, seq), run, scope)) };
    } catch (error) {
      if (!PilotageError.is(error)) throw error;
      return { seq, text };
    }
  }

  async repair(request: RepairRequest): Promise<void> {
    const scope = await this.#scopeOf(request.run);
    return this.#journal.repair({ ...request, entries: await this.#withReferences(request.entries, scope) });
  }

  async send(sending: Sending): Promise<Sent> {
    const { tells } = sending;
    if (tells === undefined) return this.#journal.send(sending);
    const large = tells.map(async ({ run, message }) => ({ run, message: await this.#signalled(run, message) }));
    return this.#journal.send({ ...sending, tells: await Promise.all(large) });
  }

  startByKey: Journal['startByKey'] = (run, key) => this.#journal.startByKey(run, key);
  get: Journal['get'] = (run) => this.#journal.get(run);
  list: Journal['list'] = (query) => this.#journal.list(query);
  claim: Journal['claim'] = (request) => this.#journal.claim(request);

  claimDue: Journal['claimDue'] = async (request) => (await this.#journal.claimDue(request)).map(withWhole);
  claimParked: Journal['claimParked'] = async (request) => (await this.#journal.claimParked(request)).map(withWhole);

  now = (): number => this.#journal.now?.() ?? systemClock.now();
  nextDue: Journal['nextDue'] = (agents) => this.#journal.nextDue(agents);
  renew: Journal['renew'] = (leases, leaseMs) => this.#journal.renew(leases, leaseMs);
  release: Journal['release'] = (lease, park) => this.#journal.release(lease, park);
  prune: Journal['prune'] = (request) => this.#journal.prune(request);
  watch: Journal['watch'] = (run, wake) => this.#journal.watch(run, wake);
  watchSession: Journal['watchSession'] = (scope, wake) => this.#journal.watchSession(scope, wake);
  watchDue: Journal['watchDue'] = (wake) => this.#journal.watchDue(wake);
  watchRuns: Journal['watchRuns'] = (wake) => this.#journal.watchRuns(wake);
  close: Journal['close'] = () => this.#journal.close();

  async #scopeOf(run: string): Promise<Scope> {
    const record = await this.#journal.get(run);
    if (record === undefined) throw runNotFound(run);
    return record.identity;
  }

  #withReferences(entries: readonly Entry[], scope: Scope): Promise<Entry[]> {
    return Promise.all(entries.map((entry) => changed(entry, (spoken) => this.#withReference(spoken, scope))));
  }

  async #withReference<T extends Spoken>(spoken: T, scope: Scope): Promise<T> {
    if (!isLarge(spoken)) return spoken;
    const { payload: _, args: __, nodes: ___, ...rest } = spoken;
    const about = { fileName: 'said.json', source: 'control' };
    const stored = await storeIfLarge(contentOf(spoken), scope, this.artifacts, about);
    return stored === undefined ? spoken : ({ ...rest, stored } as Spoken as T);
  }

  /** @throws PilotageError `artifact_not_found`. */
  #wholeEntry(entry: Entry, run: string, scope: Scope): Promise<Entry> {
    return changed(entry, async (spoken) => {
      const whole = await this.#whole(spoken, scope);
      if (whole !== undefined) return whole;
      const artifactRef = spoken.stored?.artifactRef;
      throw new PilotageError(
        'artifact_not_found',
        `What was said in entry ${entry.seq} of run ${run} is the artifact ${artifactRef}, which is not in the store. Restore the journal from a backup, or repair the run.`,
        { data: { run, seq: entry.seq } },
      );
    });
  }

  async #whole<T extends Spoken>(spoken: T, scope: Scope): Promise<T | undefined> {
    const { stored, ...rest } = spoken;
    if (stored === undefined) return spoken;
    const content = await storedJsonIfAny({ ...stored }, scope, this.artifacts);
    return isJsonObject(content) ? deepFreeze({ ...rest, ...content } as Spoken as T) : undefined;
  }
}

function spokenIn(entry: Entry): Spoken | undefined {
  if (entry.kind === 'control') return entry.control;
  return entry.kind === 'resumed' || entry.kind === 'paused' || entry.kind === 'approved' ? entry : undefined;
}

/** False for an entry whose content was not read. */
export function isWhole(entry: Entry): boolean {
  return spokenIn(entry)?.stored === undefined;
}

/** The entry with another form of what was said in it, frozen. */
async function changed(entry: Entry, change: <T extends Spoken>(spoken: T) => Promise<T>): Promise<Entry> {
  switch (entry.kind) {
    case 'control': {
      const control = await change(entry.control);
      return control === entry.control ? entry : deepFreeze({ ...entry, control });
    }
    case 'resumed':
    case 'paused':
    case 'approved':
      return deepFreeze(await change<typeof entry>(entry));
    default:
      return entry;
  }
}

function contentOf({ payload, args, nodes }: Spoken): JsonObject {
  return defined({ payload, args, nodes });
}

function isLarge(spoken: Spoken): boolean {
  return encodedBytes(contentOf(spoken)) >= LARGE_VALUE_BYTES;
}

function hasLarge(entry: Entry): boolean {
  const spoken = spokenIn(entry);
  return spoken !== undefined && isLarge(spoken);
}

/** What has large content is read by itself. */
function withWhole(claimed: ClaimedRun): ClaimedRun {
  const { entries, ...rest } = claimed;
  return entries?.every(isWhole) === false ? rest : claimed;
}
