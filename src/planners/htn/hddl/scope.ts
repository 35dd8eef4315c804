/** What names mean inside one action, method or problem: its variables, the objects known there, the predicates. */
import type { Atom, Signature, Term, TypeTree, Variable } from './model.ts';
import { found, invalidHddl, isList, type List, nameOf, type Tree, type Word, wordOf } from './tree.ts';
import { readTypedList, typeName } from './typed-list.ts';

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

/** `()` is the empty list of variables; a section that is left out is too. */
export function parametersOf(tree: Tree | undefined, owner: List): List {
  if (tree === undefined) return { items: [], place: owner.place };
  if (!isList(tree)) throw invalidHddl(tree.place, `expected a list of parameters, found ${found(tree)}`);
  return tree;
}
