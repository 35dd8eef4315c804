/** What names mean inside one action, method or problem: types, typed variables, the objects known there, the predicates. */
import type { Atom, Signature, Term, TypeTree, Variable } from './model.ts';
import {
  found,
  invalidHddl,
  isList,
  type List,
  nameOf,
  type Sections,
  type SourcePosition,
  type Tree,
  type Word,
  wordOf,
} from './tree.ts';

// Typed lists, `a b - kind c`, and the tree of types that they may make.

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

export interface Names {
  readonly types: TypeTree;
  readonly predicates: ReadonlyMap<string, Signature>;
  readonly objects: ReadonlyMap<string, string>;
}

export interface VariableScope {
  readonly names: Names;
  /** Innermost last: a quantifier's variables hide those of the same name outside it. */
  readonly variables: ReadonlyMap<string, Variable>;
  /** Shared by the scopes inside one another. */
  readonly counter: { slots: number };
}

export function newScope(names: Names): VariableScope {
  return { names, variables: new Map(), counter: { slots: 0 } };
}

/** The scope within `list`, a typed list of variables, and those variables. */
export function declare(
  scope: VariableScope,
  list: List,
): { readonly scope: VariableScope; readonly variables: readonly Variable[] } {
  const added = new Map<string, Variable>();
  for (const typed of readTypedList(list.items, true)) {
    const name = typed.name.text;
    if (added.has(name)) throw invalidHddl(typed.name.place, `variable ${name} is declared twice`);
    added.set(name, { slot: scope.counter.slots, type: typeName(typed, scope.names.types) });
    scope.counter.slots += 1;
  }
  const variables = new Map([...scope.variables, ...added]);
  return { scope: { ...scope, variables }, variables: [...added.values()] };
}

export function readTerm(tree: Tree, scope: VariableScope): Term {
  const word = wordOf(tree, 'a variable or an object', tree.place);
  if (word.text.startsWith('?')) {
    const variable = scope.variables.get(word.text);
    if (variable === undefined)
      throw invalidHddl(word.place, `unknown variable ${found(word)}: it is not a parameter here`);
    return variable.slot;
  }
  if (!scope.names.objects.has(word.text)) {
    throw invalidHddl(word.place, `unknown object ${found(word)}: expected a variable, a constant or an object`);
  }
  return word.text;
}

/** `(name term …)`, where `what` ("predicate", "task") and `known` say what the name may be. */
export function readUse(
  list: List,
  scope: VariableScope,
  what: string,
  known: ReadonlyMap<string, Signature>,
): { readonly name: Word; readonly args: readonly Term[] } {
  const name = nameOf(list.items[0], `the name of a ${what}`, list.place);
  const signature = known.get(name.text);
  if (signature === undefined) throw invalidHddl(name.place, `unknown ${what} ${found(name)}`);
  const args = list.items.slice(1);
  if (args.length !== signature.arity) {
    throw invalidHddl(name.place, `${what} ${name.text} takes ${signature.arity} arguments, found ${args.length}`);
  }
  return { name, args: args.map((arg) => readTerm(arg, scope)) };
}

export function readAtom(list: List, scope: VariableScope): Atom {
  const { name, args } = readUse(list, scope, 'predicate', scope.names.predicates);
  return { predicate: name.text, args };
}

/** `()` is the empty list of variables; `:parameters` that are left out are too. */
export function parametersOf(keys: Sections, owner: List): List {
  const tree = keys.get(':parameters')?.value;
  if (tree === undefined) return { items: [], place: owner.place };
  if (!isList(tree)) throw invalidHddl(tree.place, `expected a list of parameters, found ${found(tree)}`);
  return tree;
}
