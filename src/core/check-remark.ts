/** Whether a value is a remark. Any other value must not become an event, because readers of events go by the type. */
import { encodedBytes, isJsonObject, type Json, type JsonObject } from './json.ts';
import type { OwnRemarkType, Remark, RemarkPayloads, RemarkType } from './remark.ts';
import { readUsage } from './usage.ts';

/** What one remark of a planner's own may have as its data, in bytes of JSON. */
export const MAX_OWN_REMARK_BYTES = 32_768;
/** Remarks of a planner's own that one move may have. */
export const MAX_OWN_REMARKS = 100;

type Field = (value: Json | undefined) => boolean;
type KnownType = Exclude<RemarkType, OwnRemarkType>;

const text: Field = (value) => typeof value === 'string';
const number: Field = (value) => typeof value === 'number';
const told: Field = (value) => isJsonObject(value) && text(value['code']) && text(value['message']);
const listOf =
  (item: Field): Field =>
  (value) =>
    Array.isArray(value) && value.every(item);
const maybe =
  (field: Field): Field =>
  (value) =>
    value === undefined || field(value);

/** What readers take for granted of each remark of ours. */
const FIELDS: { readonly [K in KnownType]: { readonly [F in keyof RemarkPayloads[K]]-?: Field } } = {
  'planner.repair_guidance_injected': { tier: text, counter: text, count: number },
  'planner.repair_exhausted': { attempts: number, consecutiveArgFailures: number, reasons: listOf(text) },
  'planner.action_extra_field_dropped': { field: text },
  'planner.reply_repaired': { issues: listOf(told) },
  'planner.remark_dropped': { remark: text, why: text },
  'model.fallback': { from: text, to: text, error: told },
  'model.output_downgraded': { model: text, from: text, to: text },
  'model.usage_refused': { model: text, why: text },
  'plan.retrieved': { documents: number, tokens: number, cut: number, error: maybe(told) },
  'plan.try': {
    try: number,
    previous: maybe(number),
    purpose: text,
    model: text,
    template: (value) => isJsonObject(value) && text(value['id']) && number(value['version']),
    temperature: maybe(number),
    seed: maybe(number),
    prompt: text,
    output: text,
    latencyMs: number,
    usage: maybe((value) => readUsage(value).wrong === undefined),
    result: text,
    faults: listOf(told),
  },
  'plan.verified': {
    candidates: number,
    valid: number,
    chosen: maybe(number),
    scores: maybe(listOf((value) => value === null || number(value))),
    rejected: maybe(listOf((value) => isJsonObject(value) && number(value['try']) && text(value['reason']))),
    error: maybe(told),
  },
  'plan.fallback': { because: text, faults: listOf(told), planner: maybe(text) },
  'input.unreadable': { artifactRef: text, fileName: maybe(text) },
};

/** A name of somebody, a slash, and a name of theirs: letters, digits, and `.`, `_`, `-`, with further slashes between. */
const OWN_TYPE = /^[A-Za-z0-9][\w.-]*(?:\/[\w.-]+)+$/;
const MAX_TYPE_CHARS = 100;

/** Why `value` is not a remark, and what to write instead; `undefined` when it is a remark. */
export function whyNoRemark(value: Json): string | undefined {
  const type = isJsonObject(value) ? value['type'] : undefined;
  if (!isJsonObject(value) || typeof type !== 'string') {
    return 'A remark is an object with a type. Write { type: "yourname/what.happened", data }.';
  }
  if (isKnown(type)) return whyMisshapen(type, value);
  if (OWN_TYPE.test(type) && type.length <= MAX_TYPE_CHARS) return whyNotOwn(value);
  return (
    `${JSON.stringify(shortened(type))} is neither a remark type of Pilotage nor a name with a slash. Write { type: "yourname/what.happened", ` +
    `data }, with letters, digits, ".", "_" and "-", ${MAX_TYPE_CHARS} characters at most.`
  );
}

/** How `planner.remark_dropped` names what was dropped. */
export function remarkName(value: Json | undefined): string {
  const type = isJsonObject(value) ? value['type'] : undefined;
  return typeof type === 'string' ? shortened(type) : '';
}

export function isOwnRemark(remark: Remark): remark is Remark<OwnRemarkType> {
  return !isKnown(remark.type);
}

function isKnown(type: string): type is KnownType {
  return Object.hasOwn(FIELDS, type);
}

function whyMisshapen(type: KnownType, remark: JsonObject): string | undefined {
  const fields: Readonly<Record<string, Field>> = FIELDS[type];
  const wrong = Object.keys(fields).find((name) => fields[name]?.(remark[name]) === false);
  return wrong === undefined
    ? undefined
    : `The field ${wrong} of the remark is missing, or has the wrong type for ${type}.`;
}

function whyNotOwn({ type: _, data, ...rest }: JsonObject): string | undefined {
  const [other] = Object.keys(rest);
  if (other !== undefined)
    return `The remark has the field ${JSON.stringify(shortened(other))}; only type and data are kept. Put everything into data.`;
  if (data === undefined) return 'The remark has no data. Give a JSON value, or null.';
  const bytes = encodedBytes(data);
  if (bytes <= MAX_OWN_REMARK_BYTES) return undefined;
  return `The data of the remark has ${bytes} bytes of JSON; the most is ${MAX_OWN_REMARK_BYTES}. Give less, or a reference to the rest.`;
}

function shortened(name: string): string {
  return name.slice(0, MAX_TYPE_CHARS);
}
