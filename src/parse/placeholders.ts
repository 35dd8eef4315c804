/** Values that stand for others: what a template has where somebody is to put something in. */
import { CodeText, isLooseList, isLooseObject, type Loose } from './loose-value.ts';
import { plainName } from './names.ts';
import type { Arguments } from './value-reader.ts';

/**
 * Whether arguments are a template: one of the values is a placeholder as a whole, or all of them only repeat their keys or
 * types. A reply that is the call may have a made-up name such as `your_dataset`, which the model then means.
 */
export function isTemplate(args: Arguments, isWholeReply: boolean): boolean {
  const entries: [key: string, value: Loose][] = [
    ...args.positional.flatMap((value): [string, Loose][] =>
      isLooseObject(value) ? Object.entries(value) : [['', value]],
    ),
    ...Object.entries(args.named),
  ];
  if (entries.some(([key, value]) => holds(value, key, isPlaceholder))) return true;
  if (!isWholeReply && entries.some(([key, value]) => holds(value, key, isStandIn))) return true;
  return entries.length > 0 && entries.every(([key, value]) => isEcho(value, key, isWholeReply));
}

/** `["id1", "id2"]` for the argument `id`. */
function isNumbered(list: readonly Loose[], key: string): boolean {
  if (list.length < 2) return false;
  return list.every(
    (item) => typeof item === 'string' && /\d$/.test(item) && plainName(item.replace(/\d+$/, '')) === plainName(key),
  );
}

/** `{{ city | upper }}`. */
const FILTER = /^\w[\w.]{0,60}\s\|\s\w/;

type Test = (text: string, key: string) => boolean;

/** Whether the value, or one inside of it, passes the test. */
function holds(value: Loose, key: string, test: Test): boolean {
  if (typeof value === 'string') return value.length <= MAX_CHARS && test(value.trim(), key);
  if (value instanceof CodeText)
    return value.text.length <= MAX_CHARS && (FILTER.test(value.text) || test(value.text, key));
  if (isLooseList(value)) return value.some((item) => holds(item, key, test)) || isNumbered(value, key);
  return isLooseObject(value) && Object.entries(value).some(([inner, item]) => holds(item, inner, test));
}

const MAX_CHARS = 200;
/** `...`, `<city>`, `{{city}}`, `${city}`, `{city}`, `[insert city]`, `YOUR_CITY`, `your_city_here`. */
const PLACEHOLDER =
  /^(?:\.{3}|…|<\w[\w .:/-]{0,60}>|\{{1,2}\s?\w[\w .|()-]{0,60}\s?\}{1,2}|\$?\{\w[\w.]{0,60}\}|\[(?:your|insert|enter|fill)[\w ,'-]{0,60}\]|(?:insert|enter|put|type) [\w ]{1,60} here|(?:[\w/.-]+[/_.-])?your[_ -](?:[\w.]+[_ -]){0,4}here)$/i;
const YOURS = /^YOUR_[A-Z_]{1,60}$/;
/** `path/to/your/file`, `your_file`. */
const STAND_IN = /(?:^|[/_\W])(?:path[/_]to[/_]|your[_-]\w)/i;
/** A tag of a page, which somebody may well look for. */
const MARKUP =
  /^<\/?(?:a|b|br|body|code|div|em|form|h[1-6]|head|hr|html|i|img|input|li|link|meta|ol|p|pre|q|script|span|strong|style|svg|table|tbody|td|th|title|tr|u|ul|video)>$/i;
/** What marks a value as one to be put in when the rest of it is the key. */
const MARKS = /^[$%]|%$|_(?:value|here)$|^\[(?=.*\]$)|\]$/gi;
const X_ONLY = /^x{3,}$/i;

function isPlaceholder(text: string, key: string): boolean {
  if (PLACEHOLDER.test(text) || YOURS.test(text)) return !MARKUP.test(text) || plainName(text) === plainName(key);
  if (X_ONLY.test(text)) return true;
  const bare = text.replace(MARKS, '').replace(/(?<=^[A-Z_]+)_(?:ID|NAME|NUMBER)$/, '');
  return bare !== text && plainName(bare) === plainName(key);
}

const TYPE_NAMES: ReadonlySet<string> = new Set([
  'string',
  'str',
  'integer',
  'int',
  'number',
  'float',
  'boolean',
  'bool',
  'array',
  'object',
]);

function isStandIn(text: string): boolean {
  return STAND_IN.test(text);
}

function isEcho(value: Loose, key: string, isWholeReply: boolean): boolean {
  const text = value instanceof CodeText ? value.text : value;
  if (typeof text !== 'string') return false;
  if (TYPE_NAMES.has(text) || /^(?:value|arg|param)_?\d*$/i.test(text)) return true;
  return !isWholeReply && plainName(text) === plainName(key);
}
