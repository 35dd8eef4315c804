/** Calls in program code: which are meant, which only show or define how a call is written, and what variables around them hold. */
import { CodeText, isLooseObject, type Loose, type MutableLoose, NumberText, setField } from './loose-value.ts';
import { type ParseTool, plainName, propertiesOf, requiredOf } from './names.ts';
import { createReader, type ParseLimits, type ParseWork } from './reader.ts';
import { type Arguments, readValue } from './value-reader.ts';

/** Puts the values of variables that the text sets before the call in their place. */
export function fillVariables(args: Arguments, variables: Variables, at: number): Arguments {
  const fill = (value: Loose): Loose => (value instanceof CodeText ? (variables(value.text, at) ?? value) : value);
  const named: MutableLoose = {};
  for (const [name, value] of Object.entries(args.named)) setField(named, name, fill(value));
  return { positional: args.positional.map(fill), named };
}

export function isEmpty(args: Arguments): boolean {
  return args.positional.length + Object.keys(args.named).length === 0;
}

/** A signature or an empty pair of brackets: `f(a, b)`, `f(a=a)` in a sentence, and `f()` where arguments are needed. */
export function isMention(args: Arguments, tool: ParseTool, opensText: boolean): boolean {
  if (isEmpty(args)) return requiredOf(tool).length > 0;
  const { positional, named } = args;
  const names = Object.entries(named);
  if (positional.length === 0 && opensText) return false;
  const properties = new Set(Object.keys(propertiesOf(tool)).map(plainName));
  return (
    positional.every(
      (value) => value instanceof CodeText && (properties.has(plainName(value.text)) || isEllipsis(value)),
    ) &&
    names.every(
      ([key, value]) => value instanceof CodeText && (plainName(value.text) === plainName(key) || isEllipsis(value)),
    )
  );
}

const STAND_IN = /(?:^|[/_\W])(?:path[/_]to[/_]|your[_-]\w|your[/_ -].{0,40}here$)|^<[\w -]{1,60}>$/i;

/** Whether an argument stands for a value that somebody is to put in, as `path/to/your/file` does: an example, no call. */
export function hasStandIn(args: Arguments): boolean {
  return args.positional.some(isStandIn) || Object.values(args.named).some(isStandIn);
}

function isStandIn(value: Loose): boolean {
  return typeof value === 'string' && value.length < 200 && STAND_IN.test(value);
}

function isEllipsis(value: CodeText): boolean {
  return value.text === '...' || value.text === '…';
}

// Variables around a call: `city = "Paris"` on a line of its own, before `f(city)`.

/** What a name stands for at a place in the text; asked for only where a call has a bare name for an argument. */
export type Variables = (name: string, before: number) => Loose | undefined;

const ASSIGNMENT =
  /(?:^|\n)[ \t]{0,80}(?:(?:const|let|var|final|[A-Z]\w{0,40}(?:<[\w, ]{0,40}>)?(?:\[\])?|int|double|float|boolean|long)[ \t]{1,4})?([A-Za-z_$][\w$]{0,80})[ \t]{0,8}(?::[ \t]?\w{1,20}[ \t]?)?=(?!=)[ \t]{0,8}(?=["'\d[{\-TtFfN])/g;
const MAX_VARIABLES = 200;

export function variablesOf(text: string, limits: Required<ParseLimits>, work: ParseWork): Variables {
  let values: Map<string, { readonly at: number; readonly value: Loose }> | undefined;
  return (name, before) => {
    values ??= readAssignments(text, limits, work);
    const found = values.get(name);
    return found !== undefined && found.at < before ? found.value : undefined;
  };
}

function readAssignments(
  text: string,
  limits: Required<ParseLimits>,
  work: ParseWork,
): Map<string, { readonly at: number; readonly value: Loose }> {
  const values = new Map<string, { readonly at: number; readonly value: Loose }>();
  work.left -= text.length;
  for (const match of text.matchAll(ASSIGNMENT)) {
    const [whole, name] = match;
    if (name === undefined || values.size >= MAX_VARIABLES || work.left <= 0) break;
    const reader = createReader(text, match.index + whole.length, limits.maxDepth, work);
    const value = readLine(reader.text, reader.at) ?? readValue(reader, 'list');
    // A name with two values stands for neither.
    if (values.has(name)) values.set(name, { at: Number.POSITIVE_INFINITY, value: null });
    else if (value !== undefined && isLiteral(value) && !reader.isTruncated)
      values.set(name, { at: match.index, value });
  }
  return values;
}

const LITERAL =
  /(?:"([^"\\\n]{0,400})"|'([^'\\\n]{0,400})'|(-?\d{1,15}(?:\.\d{1,15})?)[LlFfDd]?|([Tt]rue|[Ff]alse))[ \t]{0,8}(?:;|\n|#|\/\/|$)/y;

/** A simple literal that ends with its line. */
function readLine(text: string, at: number): Loose | undefined {
  LITERAL.lastIndex = at;
  const match = LITERAL.exec(text);
  if (match === null) return undefined;
  const quoted = match[1] ?? match[2];
  if (quoted !== undefined) return quoted;
  if (match[3] !== undefined) return Number(match[3]);
  return match[4]?.toLowerCase() === 'true';
}

function isLiteral(value: Loose): boolean {
  if (value instanceof CodeText) return false;
  if (value instanceof NumberText || typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isLiteral);
  return isLooseObject(value) && Object.values(value).every(isLiteral);
}
