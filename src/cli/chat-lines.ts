/** What a line of a chat says: a message, or something about the session. */

import type { Json } from '#core';
import type { BusyMode } from '#runtime';

/** An answer to a pause of a turn. `token`: which; needed only when several are open. */
export type ChatAnswer =
  | { readonly kind: 'approve'; readonly token?: string; readonly args?: Json }
  | { readonly kind: 'reject'; readonly token?: string; readonly reason?: string }
  | { readonly kind: 'answer'; readonly token?: string; readonly value: Json }
  | { readonly kind: 'settle'; readonly token?: string; readonly happened: boolean; readonly value?: Json }
  | { readonly kind: 'resume'; readonly token?: string };

export type ChatLine =
  | { readonly kind: 'message'; readonly text: string; readonly busy?: BusyMode }
  | ChatAnswer
  | { readonly kind: 'edit'; readonly turn: number; readonly text: string }
  | { readonly kind: 'regenerate'; readonly turn?: number }
  | { readonly kind: 'switch'; readonly branch: number }
  | { readonly kind: 'title'; readonly text: string }
  | { readonly kind: 'turns' }
  | { readonly kind: 'branches' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'help' }
  | { readonly kind: 'quit' }
  | { readonly kind: 'wrong'; readonly why: string };

/** `undefined` for an empty line. */
export function readChatLine(line: string): ChatLine | undefined {
  const text = line.trim();
  if (text === '') return undefined;
  if (!text.startsWith('/')) return { kind: 'message', text };
  if (text.startsWith('//')) return { kind: 'message', text: text.slice(1) };
  const [name, rest] = cut(text.slice(1));
  return slashLine(name, rest);
}

/** The first word, and what comes behind it. */
function cut(text: string): readonly [string, string] {
  const [, word = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
  return [word, rest];
}

function slashLine(name: string, rest: string): ChatLine {
  switch (name) {
    case 'queue':
    case 'steer':
    case 'interrupt':
      return rest === '' ? wrong(name, 'a message') : { kind: 'message', text: rest, busy: name };
    case 'turns':
    case 'branches':
    case 'stop':
    case 'help':
    case 'quit':
      return rest === '' ? { kind: name } : wrong(name, 'no further words');
    case 'title':
      return rest === '' ? wrong(name, 'a title') : { kind: 'title', text: rest };
    case 'edit': {
      const [number, text] = cut(rest);
      const turn = counted(number);
      return turn === undefined || text === ''
        ? wrong(name, 'the number of a turn, and a message')
        : { kind: 'edit', turn, text };
    }
    case 'regenerate': {
      const turn = counted(rest);
      if (rest !== '' && turn === undefined) return wrong(name, 'the number of a turn');
      return { kind: 'regenerate', ...(turn === undefined ? {} : { turn }) };
    }
    case 'switch': {
      const branch = counted(rest);
      return branch === undefined ? wrong(name, 'the number of a branch') : { kind: 'switch', branch };
    }
    case 'approve':
    case 'reject':
    case 'answer':
    case 'settle':
    case 'resume':
      return answerLine(name, rest);
    default:
      return {
        kind: 'wrong',
        why: `There is no /${name}; /help lists what there is. // begins a message with a slash.`,
      };
  }
}

function wrong(name: string, wanted: string): ChatLine {
  return { kind: 'wrong', why: `/${name} takes ${wanted}.` };
}

function counted(word: string): number | undefined {
  return /^[1-9]\d{0,8}$/.test(word) ? Number(word) : undefined;
}

function answerLine(name: ChatAnswer['kind'], rest: string): ChatLine {
  const [first, behind] = cut(rest);
  const isNamed = first.startsWith('pause_');
  const which = isNamed ? { token: first } : {};
  const said = isNamed ? behind : rest;
  switch (name) {
    case 'approve': {
      const args = json(said);
      if (said !== '' && args === undefined) return wrong(name, 'arguments as JSON, or nothing');
      return { kind: name, ...which, ...(args === undefined ? {} : { args }) };
    }
    case 'reject':
      return { kind: name, ...which, ...(said === '' ? {} : { reason: said }) };
    case 'answer': {
      const value = json(said);
      return value === undefined
        ? wrong(name, 'a value as JSON, such as "a text" or 7')
        : { kind: name, ...which, value };
    }
    case 'settle':
      return settleLine(which, said);
    case 'resume':
      return said === '' ? { kind: name, ...which } : wrong(name, 'no further words');
    default:
      return name satisfies never;
  }
}

function settleLine(which: { readonly token?: string }, said: string): ChatLine {
  const [what, rest] = cut(said);
  const value = json(rest);
  if (what === 'did-not-happen' && rest === '') return { kind: 'settle', ...which, happened: false };
  if (what !== 'happened' || (rest !== '' && value === undefined)) {
    return wrong('settle', 'happened, with a value as JSON if there is one, or did-not-happen');
  }
  return { kind: 'settle', ...which, happened: true, ...(value === undefined ? {} : { value }) };
}

/** `undefined` for a text that cannot be read as JSON. */
function json(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
