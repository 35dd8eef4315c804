/** Something has happened outside: checked, and accepted in one commit. Whoever waits for it goes on where a process can drive it. */
import {
  assertOptions,
  assertSignal,
  capture,
  type Json,
  local,
  type OptionShape,
  PilotageError,
  type Redaction,
} from '#core';
import type { Journal, Signalled } from '#journal';
import { issuesOf } from '../loop/answer-kinds.ts';

export interface SignalDetails {
  /** The same signal again has the same id, and changes nothing. Default: a fresh one. */
  readonly id?: string;
  /** Whose runs hear it. Default that of `local`. */
  readonly tenant?: string;
  /** How long it is kept when nobody waits, and its id known, in milliseconds. Default a week. */
  readonly keepMs?: number;
}

/** What became of a signal. */
export interface SignalResult extends Signalled {
  readonly id: string;
}

const OPTIONS: OptionShape<SignalDetails> = { id: 'text?', tenant: 'text?', keepMs: 'whole?' };
const KEEP_MS = 7 * 24 * 60 * 60 * 1_000;
const PAGE = 200;

/** @throws PilotageError `payload_invalid`, `invalid_config`, `unserializable`, `signals_full`, or a store error: nothing was stored then. */
export async function sendSignal(
  { journal, redaction }: { readonly journal: Journal; readonly redaction: Redaction },
  key: string,
  payload: unknown,
  options: SignalDetails,
): Promise<SignalResult> {
  assertOptions('signal', options, OPTIONS);
  const { id = `signal_${crypto.randomUUID().replaceAll('-', '')}`, keepMs = KEEP_MS } = options;
  const { tenant = local('-').tenant } = options;
  const said = redaction.signalled(capture(payload, 'signal.payload').json);
  assertSignal({ key, id, payload: said });
  await assertFits(journal, { tenant, key }, said);
  return { id, ...(await journal.events.signal({ tenant, key, id, payload: said, keepMs })) };
}

/**
 * Nobody takes what fits none of those who wait now; what nobody waits for yet is looked at by who comes.
 * @throws PilotageError `payload_invalid`.
 */
async function assertFits(
  journal: Journal,
  { tenant, key }: { readonly tenant: string; readonly key: string },
  payload: Json,
): Promise<void> {
  /** What the schemas say that were asked. */
  const said = new Map<string, string>();
  for (let after = 0; ; ) {
    const page = await journal.waits.list({ tenant, key, for: 'event', limit: PAGE, after });
    for (const { schema } of page) {
      if (schema === undefined) return;
      const text = JSON.stringify(schema);
      if (said.has(text)) continue;
      const issues = issuesOf(schema, payload);
      if (issues === undefined) return;
      said.set(text, issues);
    }
    after = page.at(-1)?.number ?? after;
    if (page.length < PAGE) break;
  }
  const [why] = said.values();
  if (why === undefined) return;
  throw new PilotageError(
    'payload_invalid',
    `The signal ${JSON.stringify(key)} was refused, and nothing was stored: its payload does not fit what waits for it. ${why}`,
    { data: { key } },
  );
}
