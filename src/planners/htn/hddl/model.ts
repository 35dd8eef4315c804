/** A domain and a problem as they were read: names checked, variables numbered, nothing yet tied to the search. */
import type { SourcePosition } from './tree.ts';

/** A number is the slot of a variable in the bindings of its action or method; a string is the name of an object. */
export type Term = number | string;

export interface Variable {
  readonly slot: number;
  readonly type: string;
}

export interface Atom {
  readonly predicate: string;
  readonly args: readonly Term[];
}

export type Condition =
  | { readonly kind: 'and'; readonly of: readonly Condition[] }
  | { readonly kind: 'or'; readonly of: readonly Condition[] }
  | { readonly kind: 'not'; readonly of: Condition }
  | { readonly kind: 'fact'; readonly atom: Atom }
  | { readonly kind: 'equal'; readonly left: Term; readonly right: Term }
  | { readonly kind: 'forall'; readonly variables: readonly Variable[]; readonly of: Condition }
  | { readonly kind: 'exists'; readonly variables: readonly Variable[]; readonly of: Condition };

export type HddlEffect =
  | { readonly kind: 'and'; readonly of: readonly HddlEffect[] }
  | { readonly kind: 'add'; readonly atom: Atom }
  | { readonly kind: 'delete'; readonly atom: Atom }
  | { readonly kind: 'forall'; readonly variables: readonly Variable[]; readonly of: HddlEffect }
  | { readonly kind: 'when'; readonly condition: Condition; readonly of: HddlEffect };

export interface TaskUse {
  readonly task: string;
  readonly args: readonly Term[];
}

export interface HddlAction {
  readonly name: string;
  readonly parameters: readonly Variable[];
  readonly precondition: Condition;
  readonly effect: HddlEffect;
  /** How many variables it has, those of its quantifiers with them. */
  readonly slots: number;
}

export interface HddlMethod {
  readonly name: string;
  readonly task: TaskUse;
  readonly parameters: readonly Variable[];
  readonly precondition: Condition;
  readonly subtasks: readonly TaskUse[];
  readonly slots: number;
}

export interface HddlDomain {
  readonly name: string;
  readonly types: TypeTree;
  /** Name to type, in file order. */
  readonly constants: ReadonlyMap<string, string>;
  readonly predicates: ReadonlyMap<string, Signature>;
  readonly tasks: ReadonlyMap<string, Signature>;
  readonly methods: readonly HddlMethod[];
  readonly actions: ReadonlyMap<string, HddlAction>;
}

export interface HddlProblem {
  /** The constants of the domain first, then the objects, in file order. */
  readonly objects: ReadonlyMap<string, string>;
  readonly init: readonly { readonly predicate: string; readonly args: readonly string[] }[];
  readonly parameters: readonly Variable[];
  readonly constraint: Condition;
  readonly subtasks: readonly TaskUse[];
  readonly goal: Condition | undefined;
  readonly slots: number;
}

/** How many arguments a predicate, a task or an action takes. */
export interface Signature {
  readonly arity: number;
  readonly place: SourcePosition;
}

/** For each type, the types it is a kind of, itself with them. */
export type TypeTree = ReadonlyMap<string, ReadonlySet<string>>;
