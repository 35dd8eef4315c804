/** Calls in program code: which are meant, and which only show or define how a call is written. */
import { CodeText, type Loose, type MutableLoose, setField } from './loose-value.ts';
import { type ParseTool, plainName, propertiesOf, requiredOf } from './names.ts';
import type { Arguments } from './value-reader.ts';
import type { Variables } from './variables.ts';

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
