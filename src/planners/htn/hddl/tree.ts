/**
 * HDDL text as nested lists of words, each with its place, so that every later message can name the line. Comments are
 * dropped here. Nesting is limited, so what walks a tree may recurse.
 */
import { PilotageError } from '#core';

/** Line and column count from 1. */
export interface SourcePosition {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface Word {
  readonly text: string;
  readonly place: SourcePosition;
}

export interface List {
  readonly items: readonly Tree[];
  readonly place: SourcePosition;
}

export type Tree = Word | List;

const MAX_NESTING = 200;
const TOKEN = /[()]|[^\s();]+|;[^\n]*|\n/g;

export function invalidHddl(place: SourcePosition, message: string): PilotageError {
  const { file, line, column } = place;
  return new PilotageError('hddl_invalid', `${file}:${line}:${column}: ${message}`, { data: { file, line, column } });
}

export function isList(tree: Tree): tree is List {
  return 'items' in tree;
}

/** What was found in place of what was expected, for a message. */
export function found(tree: Tree): string {
  if (!isList(tree)) return `"${tree.text.slice(0, 40)}"`;
  const head = tree.items[0];
  return head === undefined ? 'an empty list' : isList(head) ? 'a list' : `(${head.text.slice(0, 40)} …)`;
}

export function listOf(tree: Tree | undefined, what: string, after: SourcePosition): List {
  if (tree === undefined) throw invalidHddl(after, `expected ${what}, found the end of the list`);
  if (!isList(tree)) throw invalidHddl(tree.place, `expected ${what}, found ${found(tree)}`);
  return tree;
}

export function wordOf(tree: Tree | undefined, what: string, after: SourcePosition): Word {
  if (tree === undefined) throw invalidHddl(after, `expected ${what}, found the end of the list`);
  if (isList(tree)) throw invalidHddl(tree.place, `expected ${what}, found ${found(tree)}`);
  return tree;
}

/** A name of the author's: not a keyword, not a variable. */
export function nameOf(tree: Tree | undefined, what: string, after: SourcePosition): Word {
  const word = wordOf(tree, what, after);
  if (/^[:?]|^-$/.test(word.text)) throw invalidHddl(word.place, `expected ${what}, found ${found(word)}`);
  return word;
}

/** The first word of a list in small letters, or '' where there is none. Keywords may be written in any case. */
export function headOf(list: List): string {
  const head = list.items[0];
  return head === undefined || isList(head) ? '' : head.text.toLowerCase();
}

/** Reads the one list that a file holds. @throws hddl_invalid */
export function readTree(text: string, file: string): List {
  const open: { items: Tree[]; place: SourcePosition }[] = [];
  let root: List | undefined;
  let line = 1;
  let lineStart = 0;
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0];
    if (token.startsWith(';')) continue;
    if (token === '\n') {
      line += 1;
      lineStart = match.index + 1;
      continue;
    }
    const place: SourcePosition = { file, line, column: match.index - lineStart + 1 };
    const parent = open.at(-1);
    if (parent === undefined && root !== undefined) throw invalidHddl(place, 'expected the end of the file');
    if (token === '(') {
      if (open.length === MAX_NESTING) throw invalidHddl(place, `lists are nested deeper than ${MAX_NESTING}`);
      const list = { items: [], place };
      open.push(list);
      if (parent === undefined) root = list;
      else parent.items.push(list);
    } else if (parent === undefined) {
      throw invalidHddl(place, `expected "(define …)", found "${token.slice(0, 40)}"`);
    } else if (token === ')') {
      open.pop();
    } else {
      parent.items.push({ text: token, place });
    }
  }
  const unclosed = open.at(-1);
  if (unclosed !== undefined) throw invalidHddl(unclosed.place, 'this list is not closed: expected ")"');
  if (root === undefined) throw invalidHddl({ file, line: 1, column: 1 }, 'expected "(define …)", found an empty file');
  return root;
}
