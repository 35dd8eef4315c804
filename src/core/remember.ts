/** What an answer says of questions to come, before anybody knows which question it answers. */
import { PilotageError } from './errors.ts';
import { encodedBytes, isJsonObject, type Json, type JsonObject } from './json.ts';

export const RULE_SCOPES = ['run', 'session', 'user'] as const;
/** For how long a rule holds: for this run, for all runs of its session, or for all runs of its user. */
export type RuleScope = (typeof RULE_SCOPES)[number];

/** What an answer says of questions to come. */
export interface Remember {
  readonly scope: RuleScope;
  /**
   * Which calls of the tool it is about: `exact`, those with the same arguments; `tool`, all of them; a JSON Schema, those whose arguments
   * fit it, as they are given and as the tool gets them. Default `exact`.
   */
  readonly match?: 'exact' | 'tool' | JsonObject;
  /** Milliseconds from 1 up. Default: as long as its scope. */
  readonly expiresInMs?: number;
}

export type RuleMatch = 'tool' | { readonly digest: string } | { readonly schema: JsonObject };

/** What was remembered with an answer, as its entry has it. */
export interface Remembered {
  readonly scope: RuleScope;
  readonly tool: string;
  readonly match: RuleMatch;
  readonly expiresInMs?: number;
}

const SCHEMA_BYTES = 8_192;
const FIELDS: ReadonlySet<string> = new Set(['scope', 'match', 'expiresInMs']);

/** @throws PilotageError `payload_invalid` for what cannot be remembered, and what to write instead. */
export function readRemember(given: Json | undefined): Required<Pick<Remember, 'scope' | 'match'>> & Remember {
  const wrong = whyNoRemember(given);
  if (wrong !== undefined) {
    const message = `Nothing was remembered, and the answer was not taken: ${wrong}. Write remember: { scope: 'run', match: 'exact' }.`;
    throw new PilotageError('payload_invalid', message, { data: { path: 'payload.remember' } });
  }
  return { match: 'exact', ...(given as unknown as Remember) };
}

function whyNoRemember(given: Json | undefined): string | undefined {
  if (!isJsonObject(given)) return 'remember is not an object';
  const other = Object.keys(given).find((key) => !FIELDS.has(key));
  if (other !== undefined)
    return `remember has no field ${JSON.stringify(other.slice(0, 60))}; it has scope, match and expiresInMs`;
  const { scope, match = 'exact', expiresInMs = 1 } = given;
  if (!RULE_SCOPES.some((known) => known === scope)) return `its scope is one of ${RULE_SCOPES.join(', ')}`;
  if (!(Number.isSafeInteger(expiresInMs) && (expiresInMs as number) >= 1))
    return 'expiresInMs is whole milliseconds from 1 up';
  if (match === 'exact' || match === 'tool') return undefined;
  if (!isJsonObject(match)) return "match is 'exact', 'tool' or a JSON Schema of the arguments";
  const bytes = encodedBytes(match);
  return bytes <= SCHEMA_BYTES ? undefined : `its schema has ${bytes} bytes; the most is ${SCHEMA_BYTES}`;
}
