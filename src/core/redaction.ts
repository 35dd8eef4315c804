/**
 * What is written leaves secrets out. One place says which texts of an entry are looked through, and for what:
 *
 * - Known values (keys that the process was given, texts of the program's own) are taken out everywhere.
 * - What only looks like a secret, and what the program's own patterns find, is taken out of errors, faults and remarks: nobody
 *   needs it there. The values, arguments and words that a run works with are left alone, unless the program asks for it: a call
 *   that is given `[redacted]` in place of an argument does something else.
 *
 * Ids, kinds and names are never changed, so that an entry can be folded whatever a rule removes.
 */
import { isUtf8 } from 'node:buffer';
import type { Control } from './control.ts';
import type { Branch, Decision } from './decision.ts';
import type { CallEnded, EntryBody, Paused } from './entry.ts';
import { describeThrown, type ErrorData, PilotageError } from './errors.ts';
import { asJson, deepFreeze, defined, isJsonObject, type Json, type JsonObject, mapTexts } from './json.ts';
import type { ModelOutput } from './model-output.ts';
import { assertOptions, type OptionShape } from './options.ts';
import type { Outcome } from './outcome.ts';
import { KnownSecrets, knownSecrets, LEAST_SECRET_CHARS, redactor } from './secrets.ts';

/** A text that is secret, a pattern of such texts, or a function that gives a text without what it must not have. */
export type RedactionRule = string | RegExp | ((text: string) => string);

/** Where patterns and shapes are looked for beside errors, faults and remarks. */
export type RedactedPart =
  /** What people ask: queries, goals, messages. */
  | 'goals'
  /** What calls and tasks come to. The planner gets them so. */
  | 'results'
  /** What models say beside their decisions, and what runs finish with. */
  | 'texts';

export interface RedactionOptions {
  readonly rules?: readonly RedactionRule[];
  readonly also?: readonly RedactedPart[];
}

const OPTIONS: OptionShape<RedactionOptions> = { rules: 'any?', also: 'any?' };
const PARTS: ReadonlySet<string> = new Set<RedactedPart>(['goals', 'results', 'texts']);
type Clean = (text: string) => string;

const looksSecret: Clean = redactor();

export class Redaction {
  readonly #own = new KnownSecrets();
  readonly #patterns: readonly RegExp[];
  readonly #functions: readonly Clean[];
  readonly #also: ReadonlySet<RedactedPart>;

  /** @throws PilotageError `invalid_config` for a value that is not a rule. */
  constructor(options: RedactionOptions = {}) {
    assertOptions('redact', options, OPTIONS);
    const { rules = [], also = [] } = options;
    if (!Array.isArray(rules))
      throw refusal('redact.rules is not a list', 'Give a list of texts, regular expressions or functions.');
    if (!Array.isArray(also) || !also.every((part) => PARTS.has(part))) {
      throw refusal('redact.also has an unknown value', `Give a list of some of ${[...PARTS].join(', ')}.`);
    }
    for (const [index, rule] of rules.entries()) assertRule(rule, index);
    for (const rule of rules) if (typeof rule === 'string') this.#own.add(rule);
    this.#patterns = rules.filter((rule) => rule instanceof RegExp).map(everywhere);
    this.#functions = rules.filter((rule) => typeof rule === 'function');
    this.#also = new Set(also);
  }

  /** Whether what a model says would be recorded as it is. */
  leaves(text: string): boolean {
    return (this.#also.has('texts') ? this.all : this.known)(text) === text;
  }

  /** The text without known values. */
  readonly known: Clean = (text) => this.#own.without(knownSecrets.without(text));

  /** The text without anything that is, or looks, secret. */
  readonly all: Clean = (text) => {
    let clean = looksSecret(this.known(text));
    // A pattern may also match where nothing is: no text becomes longer by that.
    for (const pattern of this.#patterns) clean = clean.replace(pattern, (found) => (found === '' ? '' : '[redacted]'));
    for (const rule of this.#functions) clean = applied(rule, clean);
    return clean;
  };

  error(error: ErrorData): ErrorData {
    const { code, message, data } = error;
    // A tool may throw any word as its code. No rule of the program's own makes another one of ours.
    const word = knownSecrets.without(code);
    const said = this.all(message);
    const more = data === undefined ? undefined : mapTexts(data, this.all);
    if (word === code && said === message && more === data) return error;
    return { code: word, message: said, ...(isJsonObject(more) ? { data: more } : {}) };
  }

  /** What was thrown, for somebody who looks at it outside of a run. */
  thrown(thrown: unknown): unknown {
    if (PilotageError.is(thrown)) {
      const told = thrown.toJSON();
      const clean = this.error(told);
      return clean === told ? thrown : PilotageError.fromData(clean);
    }
    const words = describeThrown(thrown);
    const clean = this.all(words);
    return clean === words ? thrown : new Error(clean);
  }

  /** What is put into the long-term store. */
  item(value: Json): Json {
    const clean = this.#of('results');
    return clean === undefined ? value : mapTexts(value, clean);
  }

  /** The payload of a signal, before it is stored. */
  signalled(value: Json): Json {
    const clean = this.#of('goals');
    return clean === undefined ? value : mapTexts(value, clean);
  }

  /** What is said to a run, before it is stored. */
  control(control: Control): Control {
    const { type, payload } = control;
    if (payload === undefined) return control;
    const clean = type === 'REDIRECT' || type === 'USER_MESSAGE' ? this.#of('goals') : this.#knownIn();
    return clean === undefined ? control : { ...control, payload: parted(payload, clean, ['token', 'task_id']) };
  }

  /** Redacts an artifact that is text, whatever its media type. Bytes without secrets are returned unchanged. */
  bytes(bytes: Uint8Array, mime: string): Uint8Array {
    const clean = this.#of('results');
    if (clean === undefined) return bytes;
    // What is no UTF-8 may be text of another kind; a character a byte leaves everything around a secret as it was.
    const encoding = isUtf8(bytes) ? 'utf8' : mime.startsWith('text/') ? 'latin1' : undefined;
    if (encoding === undefined) return bytes;
    const text = Buffer.from(bytes).toString(encoding);
    const changed = cleanText(text, clean, JSON_MIME.test(mime));
    return changed === text ? bytes : Buffer.from(changed, encoding);
  }

  /** The entry as it is written; the same one where nothing is to be taken out. */
  entry<E extends EntryBody>(body: E): E {
    const clean = this.#body(body);
    // What was frozen when it was captured is so in a copy too.
    if (clean !== body) for (const part of Object.values(clean)) deepFreeze(part);
    return clean as E;
  }

  #body(body: EntryBody): EntryBody {
    const known = this.#knownIn();
    switch (body.kind) {
      case 'started':
        return this.#started(body);
      case 'turn_started':
        return within(body, this.#of('goals'), ['query', 'history']);
      case 'moved':
      case 'plan_grown':
        return this.#move(body);
      case 'call_ended':
        return this.#ended(body);
      case 'failed':
      case 'call_away':
      case 'compaction_failed':
        return this.#withError(body);
      case 'overflowed':
      case 'model_away':
        return within(this.#withError(body), this.all, ['remarks'] as never);
      case 'repaired':
        return within({ ...body, problem: this.error(body.problem) }, this.all, ['reason']);
      case 'control':
        return this.#withError({ ...body, control: this.control(body.control) });
      case 'task_ended':
        return within(this.#withError(body), this.#of('results'), ['result']);
      case 'resumed':
        return this.#resumed(body);
      case 'wait_ended':
        return within(body, this.#of('goals'), ['payload'] as never);
      case 'event_passed':
        return within(this.#withError(body), this.#of('goals'), ['payload']);
      case 'call_waits':
        // Why an answer was not taken, in a schema's own words. Keys are compared as they are.
        if (body.waits.every(({ again }) => again === undefined)) return body;
        return { ...body, waits: body.waits.map((wait) => within(wait, this.all, ['again'])) };
      case 'call_kept':
        return within(body, this.#of('results'), ['value']);
      case 'approved':
        return within(body, known, ['payload', 'args', 'remember'] as never);
      case 'escalated':
        return within(body, known, ['to']);
      case 'paused':
        return this.#paused(
          within(body, TELLS_ERRORS.has(body.reason) ? this.all : known, ['payload', 'escalate'] as never),
        );
      case 'finished':
        return within(within(body, this.#of('texts'), ['payload']), this.all, ['metadata']);
      case 'unwinding':
        return { ...body, ending: this.#body(body.ending) as typeof body.ending };
      case 'compacted':
        return within(body, known, ['summary', 'made']);
      case 'shortened':
        return within(body, this.#of('results'), ['results'] as never);
      case 'spawned':
        return within(body, known, ['description']);
      case 'group_ended':
        return within(body, known, ['reason']);
      case 'recalled':
        return within(body, known, ['profile', 'items'] as never);
      case 'task_paused': {
        if (known === undefined) return body;
        return { ...body, pauses: body.pauses.map((pause) => within(pause, known, ['payload'])) };
      }
      // Numbers, ids and names: no text of anybody's.
      case 'call_began':
      case 'call_spent':
      case 'reminded':
      case 'ruled':
      case 'awaiting':
      case 'watched':
      case 'no_progress':
      case 'answering':
      case 'repinned':
      case 'reopened':
        return body;
      default:
        return body satisfies never;
    }
  }

  #withError<E extends { readonly error?: ErrorData }>(body: E): E {
    return body.error === undefined ? { ...body } : { ...body, error: this.error(body.error) };
  }

  #started(body: Extract<EntryBody, { kind: 'started' }>): EntryBody {
    return within(within(body, this.#of('goals'), ['query', 'history']), this.#knownIn(), [
      'context',
      'labels',
      'clientTools',
    ] as never);
  }

  #resumed(body: Extract<EntryBody, { kind: 'resumed' }>): EntryBody {
    const clean = within(body, this.#knownIn(), ['payload', 'args', 'nodes', 'value', 'remember'] as never);
    return clean.outcome === undefined ? clean : { ...clean, outcome: this.#outcome(clean.outcome) };
  }

  #move(body: Extract<EntryBody, { kind: 'moved' | 'plan_grown' }>): EntryBody {
    const known = this.#knownIn();
    const told = within(body, this.all, (body.kind === 'moved' ? TOLD : TOLD_BY_PARTS) as never);
    const said = within(within(told, this.#of('texts'), SAID), known, NOTED);
    if (said.kind === 'plan_grown') {
      return known === undefined ? said : { ...said, branches: said.branches.map((branch) => branchOf(branch, known)) };
    }
    const ended = this.#about(said.decision);
    if (known !== undefined) return { ...said, decision: decisionOf(ended, known, said.rejected !== undefined) };
    return ended === said.decision ? said : { ...said, decision: ended };
  }

  /** The metadata of an end say what a server said, as they do where the run has ended. */
  #about(decision: Decision): Decision {
    return decision.kind === 'finish' ? within(decision, this.all, ['metadata'] as never) : decision;
  }

  #ended(body: CallEnded): CallEnded {
    const outcome = this.#outcome(body.outcome);
    const ended = outcome === body.outcome ? body : { ...body, outcome };
    const clean = this.#knownIn();
    const { artifacts: rows, store } = body;
    if (clean === undefined || (rows === undefined && store === undefined)) return ended;
    const artifacts = rows?.map((row) => within(row, clean, ['fileName']));
    return { ...ended, ...defined({ artifacts, store: store && within(store, clean, ['reads', 'writes'] as never) }) };
  }

  #outcome(outcome: Outcome): Outcome {
    switch (outcome.kind) {
      case 'value': {
        const clean = this.#of('results');
        const told = within(outcome, clean, ['value']);
        if (clean === undefined || told.modelOutput === undefined) return told;
        return { ...told, modelOutput: outputOf(told.modelOutput, clean) };
      }
      case 'verdict':
        return within(outcome, this.#knownIn(), ['payload']);
      default: {
        const error = this.error(outcome.error);
        return error === outcome.error ? outcome : { ...outcome, error };
      }
    }
  }

  /** Why nobody knows of a call in doubt is what its tool has thrown; its arguments are shown as they are. */
  #paused(paused: Paused): Paused {
    const { reason, payload } = paused;
    if (reason !== 'in_doubt' || payload === undefined) return paused;
    const clean = within(payload, this.all, ['why']);
    return clean === payload ? paused : { ...paused, payload: clean };
  }

  /** What a part is cleaned with; `undefined`: nothing is known that it could hold. */
  #of(part: RedactedPart): Clean | undefined {
    return this.#also.has(part) ? this.all : this.#knownIn();
  }

  #knownIn(): Clean | undefined {
    return knownSecrets.isEmpty && this.#own.isEmpty ? undefined : this.known;
  }
}

/** The whole payload of such a pause says what a server or a tool said. */
const TELLS_ERRORS: ReadonlySet<string> = new Set(['model_unavailable', 'context_exhausted', 'plan_failed']);
const TOLD = ['remarks', 'fault', 'rejected'] as const;
const TOLD_BY_PARTS = ['remarks', 'fault'] as const;
const SAID = ['text', 'reasoning'] as const;
const NOTED = ['provenance', 'providerState'] as const;

const JSON_MIME = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

function cleanText(text: string, clean: Clean, isJson: boolean): string {
  const json = isJson ? jsonOf(text) : undefined;
  if (json === undefined) return clean(text);
  const changed = mapTexts(json, clean);
  return changed === json ? text : JSON.stringify(changed);
}

/** What calls itself JSON need not be any. */
function jsonOf(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** The object with every text of these fields redacted; the same object when nothing has changed. */
function within<T extends object>(of: T, clean: Clean | undefined, fields: readonly (keyof T)[]): T {
  if (clean === undefined) return of;
  let changed: T | undefined;
  for (const field of fields) {
    const value = of[field] as Json | undefined;
    if (value === undefined) continue;
    const cleaned = mapTexts(value, clean);
    if (cleaned !== value) changed = { ...(changed ?? of), [field]: cleaned };
  }
  return changed ?? of;
}

/** References stay what they are. */
function outputOf(output: ModelOutput, clean: Clean): ModelOutput {
  if (output.type !== 'content') return mapTexts(asJson(output), clean) as unknown as ModelOutput;
  return { ...output, value: output.value.map((part) => within(part, clean, OF_PARTS as never)) };
}

const OF_PARTS = ['text', 'url', 'fileName', 'providerOptions'] as const;

function parted(payload: JsonObject, clean: Clean, kept: readonly string[]): JsonObject {
  return within(
    payload,
    clean,
    Object.keys(payload).filter((key) => !kept.includes(key)),
  );
}

/** Redacts the texts of a decision, not its structure. A rejected decision may have any shape, and nothing of it is carried out. */
function decisionOf(decision: Decision, clean: Clean, isRejected: boolean): Decision {
  if (isRejected) return mapTexts(asJson(decision), clean) as unknown as Decision;
  switch (decision.kind) {
    case 'call_tool':
      return within(decision, clean, ['args', 'refusal'] as never);
    case 'call_parallel':
      return { ...decision, branches: decision.branches.map((branch) => branchOf(branch, clean)) };
    case 'spawn_task':
      return { ...decision, spec: within(decision.spec, clean, ['query', 'description']) };
    case 'request_pause':
      return within(decision, clean, ['payload']);
    case 'finish':
      return within(decision, clean, ['payload', 'metadata'] as never);
    default:
      return decision;
  }
}

function branchOf(branch: Branch, clean: Clean): Branch {
  return within(branch, clean, ['args', 'refusal', 'when', 'routes'] as never);
}

/** A rule that fails hides all of the text: it cannot be said what it would have left. */
function applied(rule: Clean, text: string): string {
  try {
    const clean: unknown = rule(text);
    return typeof clean === 'string' ? clean : '[redacted]';
  } catch {
    return '[redacted]';
  }
}

function everywhere(pattern: RegExp): RegExp {
  const flags = pattern.flags.replace('y', '');
  return new RegExp(pattern.source, flags.includes('g') ? flags : `${flags}g`);
}

function assertRule(rule: unknown, index: number): void {
  if (rule instanceof RegExp || typeof rule === 'function') return;
  if (typeof rule === 'string' && rule.trim().length >= LEAST_SECRET_CHARS) return;
  throw refusal(
    `redact.rules[${index}] is not a rule`,
    `Give a text of ${LEAST_SECRET_CHARS} characters and more, a regular expression, or a function.`,
  );
}

function refusal(what: string, remedy: string): PilotageError {
  return new PilotageError('invalid_config', `${what}. ${remedy}`);
}
