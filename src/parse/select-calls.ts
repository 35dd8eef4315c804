/** Which of the calls that were found are meant: those of tools that were given, each once, the final version. */
import { jsonEquals } from '#core';
import type { FittedArguments } from './fit-arguments.ts';
import type { FoundCall } from './found-call.ts';
import { isSameList } from './place.ts';

export interface FittedCall {
  readonly found: FoundCall;
  readonly fitted: FittedArguments;
}

export interface Selection {
  readonly kept: readonly FittedCall[];
  readonly repeated: readonly FittedCall[];
  /** Calls of tools that are not there, told only where no other call is, or in one list with it. */
  readonly unknown: readonly FittedCall[];
}

export function selectCalls(calls: readonly FittedCall[], text: string): Selection {
  const known = calls.filter(({ found }) => found.tool !== undefined);
  const whole = known.filter(({ found }) => !found.isTruncated);
  const ready = whole.filter(({ fitted }) => !fitted.issues.some(({ code }) => code === 'unresolved'));
  const groups = dropVariants(groupCalls(ready.length > 0 ? ready : whole.length > 0 ? whole : known, text), text);
  return { ...dropRepeats(groups), unknown: calls.filter((call) => isToldUnknown(call.found, known.length)) };
}

function isToldUnknown({ tool, form }: FoundCall, known: number): boolean {
  return tool === undefined && (known === 0 || form === 'exact');
}

type Group = readonly FittedCall[];

/** Calls with only commas, brackets and spaces between them are one list. */
function groupCalls(calls: readonly FittedCall[], text: string): readonly Group[] {
  const groups: FittedCall[][] = [];
  let last: FittedCall | undefined;
  for (const call of calls) {
    const group = groups.at(-1);
    if (last !== undefined && group !== undefined && isSameList(last.found.end, call.found.start, text))
      group.push(call);
    else groups.push([call]);
    last = call;
  }
  return groups;
}

const VARIANT =
  /\b(?:for example|for instance|e\.g\.|alternatively|(?:if|in case) you (?:want|need|prefer|would like|wish)|you (?:can|could) also)\b/i;
const INTRODUCTION_CHARS = 300;

/** Behind the answer, calls that the text introduces as an example or an alternative are not meant. */
function dropVariants(groups: readonly Group[], text: string): readonly Group[] {
  return groups.filter((group, index) => {
    const before = groups[index - 1]?.at(-1)?.found.end;
    const start = group[0]?.found.start;
    if (before === undefined || start === undefined) return true;
    return !VARIANT.test(text.slice(Math.max(before, start - INTRODUCTION_CHARS), start));
  });
}

/** An equal call is the same call, unless the model gave the two calls different ids. */
function dropRepeats(groups: readonly Group[]): Pick<Selection, 'kept' | 'repeated'> {
  const kept: FittedCall[] = [];
  const repeated: FittedCall[] = [];
  for (const call of groups.flat()) (kept.some((other) => isSameCall(other, call)) ? repeated : kept).push(call);
  return { kept, repeated };
}

function isSameCall(left: FittedCall, right: FittedCall): boolean {
  return (
    left.found.tool === right.found.tool &&
    (left.found.callId === right.found.callId || left.found.callId === undefined || right.found.callId === undefined) &&
    jsonEquals(left.fitted.args, right.fitted.args)
  );
}
