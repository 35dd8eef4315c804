/** Typed lists (`a b - kind c`) and the tree of types that they may make. */
import type { TypeTree } from './model.ts';
import { found, invalidHddl, isList, type SourcePosition, type Tree, type Word, wordOf } from './tree.ts';

export interface TypedName {
  readonly name: Word;
  readonly type: Word | undefined;
}

const ROOT_TYPE = 'object';

/** `variables`: each name must begin with `?`; otherwise none may. */
export function readTypedList(items: readonly Tree[], variables: boolean): TypedName[] {
  const names: TypedName[] = [];
  let waiting: Word[] = [];
  for (let index = 0; index < items.length; index += 1) {
    const word = wordOf(items[index], variables ? 'a variable' : 'a name', placeOf(items, index));
    if (word.text !== '-') {
      checkName(word, variables);
      waiting.push(word);
      continue;
    }
    if (waiting.length === 0) throw invalidHddl(word.place, 'expected a name before "-"');
    index += 1;
    const type = typeAt(items, index, word.place);
    names.push(...waiting.map((name) => ({ name, type })));
    waiting = [];
  }
  return [...names, ...waiting.map((name) => ({ name, type: undefined }))];
}

function placeOf(items: readonly Tree[], index: number): SourcePosition {
  return (items[index] ?? items[0])?.place ?? { file: '', line: 1, column: 1 };
}

function checkName(word: Word, variables: boolean): void {
  const isVariable = word.text.startsWith('?') && word.text.length > 1;
  if (variables && !isVariable) throw invalidHddl(word.place, `expected a variable such as ?x, found ${found(word)}`);
  if (!variables && /^[?:]/.test(word.text)) throw invalidHddl(word.place, `expected a name, found ${found(word)}`);
}

function typeAt(items: readonly Tree[], index: number, after: SourcePosition): Word {
  const tree = items[index];
  if (tree !== undefined && isList(tree)) {
    throw invalidHddl(tree.place, `expected one type, found ${found(tree)}: "either" is outside the subset read here`);
  }
  const word = wordOf(tree, 'a type after "-"', after);
  if (/^[?:-]/.test(word.text)) throw invalidHddl(word.place, `expected a type, found ${found(word)}`);
  return word;
}

/** A type named only as a parent is declared by that. @throws hddl_invalid for a type that is its own ancestor */
export function readTypes(items: readonly Tree[]): TypeTree {
  const parents = new Map<string, Word[]>();
  for (const { name, type } of readTypedList(items, false)) {
    if (name.text === ROOT_TYPE) {
      if (type !== undefined && type.text !== ROOT_TYPE) throw invalidHddl(type.place, 'type object has no parent');
      continue;
    }
    const known = parents.get(name.text) ?? [];
    if (type !== undefined) known.push(type);
    parents.set(name.text, known);
  }
  for (const named of [...parents.values()].flat()) {
    if (!parents.has(named.text)) parents.set(named.text, []);
  }
  const tree = new Map<string, ReadonlySet<string>>([[ROOT_TYPE, new Set([ROOT_TYPE])]]);
  for (const type of parents.keys()) tree.set(type, ancestors(type, parents));
  return tree;
}

function ancestors(type: string, parents: ReadonlyMap<string, readonly Word[]>): ReadonlySet<string> {
  const reached = new Set([type, ROOT_TYPE]);
  const waiting = [type];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const parent of parents.get(next) ?? []) {
      if (parent.text === type) throw invalidHddl(parent.place, `type ${type} is its own ancestor`);
      if (reached.has(parent.text)) continue;
      reached.add(parent.text);
      waiting.push(parent.text);
    }
  }
  return reached;
}

/** The type's name, `object` where none is written. @throws hddl_invalid for a type that was not declared */
export function typeName(typed: TypedName, types: TypeTree): string {
  if (typed.type === undefined) return ROOT_TYPE;
  if (!types.has(typed.type.text)) {
    throw invalidHddl(typed.type.place, `unknown type ${found(typed.type)}: expected one of (:types …)`);
  }
  return typed.type.text;
}
