/**
 * HDDL text as nested lists of words, each with its place, so that every later message can name the line; and the frame that
 * domains and problems share. Nesting is limited, so what walks a tree may recurse.
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
function readTree(text: string, file: string): List {
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

// The frame `(define (domain x) (:section …) …)`, and lists of `:key value`.

/** Sections by name, in file order. */
export interface Frame {
  readonly name: string;
  readonly root: List;
  readonly sections: readonly List[];
}

/** @throws hddl_invalid also for a section that is not one of `names`, and for a requirement that the reader does not meet */
export function readFrame(text: string, file: string, kind: 'domain' | 'problem', names: ReadonlySet<string>): Frame {
  const root = readTree(text, file);
  if (headOf(root) !== 'define')
    throw invalidHddl(root.place, `expected "(define (${kind} …) …)", found ${found(root)}`);
  const title = listOf(root.items[1], `(${kind} <name>)`, root.place);
  if (headOf(title) !== kind) throw invalidHddl(title.place, `expected (${kind} <name>), found ${found(title)}`);
  const name = nameOf(title.items[1], `the name of the ${kind}`, title.place).text;
  const sections = root.items.slice(2).map((item) => listOf(item, 'a section such as (:types …)', item.place));
  for (const section of sections) {
    if (names.has(headOf(section))) continue;
    throw invalidHddl(section.place, `found ${found(section)}: this section is outside the subset read here`);
  }
  const frame = { name, root, sections };
  checkRequirements(frame);
  return frame;
}

/** The one section of that name. @throws hddl_invalid for a second one */
export function oneSection(frame: Frame, name: string): List | undefined {
  const [first, second] = frame.sections.filter((section) => headOf(section) === name);
  if (second !== undefined) throw invalidHddl(second.place, `found a second (${name} …)`);
  return first;
}

/** What stands in the one section of that name. */
export function itemsIn(frame: Frame, name: string): readonly Tree[] {
  return oneSection(frame, name)?.items.slice(1) ?? [];
}

/** The `:key value` pairs of a list, by key in small letters. */
export type Sections = ReadonlyMap<string, { readonly key: Word; readonly value: Tree | undefined }>;

/** `:key value` pairs, from the item at `start`. Keys in small letters. */
export function readKeys(list: List, start: number, names: readonly string[]): Sections {
  const sections = new Map<string, { readonly key: Word; readonly value: Tree | undefined }>();
  for (let index = start; index < list.items.length; index += 2) {
    const key = wordOf(list.items[index], `one of ${names.join(' ')}`, list.place);
    const name = key.text.toLowerCase();
    if (!names.includes(name)) throw invalidHddl(key.place, `expected one of ${names.join(' ')}, found ${found(key)}`);
    if (sections.has(name)) throw invalidHddl(key.place, `found a second ${name}`);
    const value = list.items[index + 1];
    if (value !== undefined && !isList(value) && value.text.startsWith(':')) {
      throw invalidHddl(value.place, `expected the value of ${name}, found ${found(value)}`);
    }
    sections.set(name, { key, value });
  }
  return sections;
}

const REQUIREMENTS = new Set([
  ':strips',
  ':typing',
  ':hierarchy',
  ':htn',
  ':htn-method-prec',
  ':htn-method-pre',
  ':method-preconditions',
  ':negative-preconditions',
  ':disjunctive-preconditions',
  ':universal-preconditions',
  ':existential-preconditions',
  ':quantified-preconditions',
  ':conditional-effects',
  ':equality',
  ':adl',
  ':action-costs',
]);

function checkRequirements(frame: Frame): void {
  for (const item of itemsIn(frame, ':requirements')) {
    const word = wordOf(item, 'a requirement such as :typing', item.place);
    if (REQUIREMENTS.has(word.text.toLowerCase())) continue;
    throw invalidHddl(word.place, `requirement ${found(word)} is outside the subset read here`);
  }
}
