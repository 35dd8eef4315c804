import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { posix } from 'node:path';
import { type ESTree, parseSync, Visitor } from 'rolldown/utils';

export interface Import {
  /** The importing file, from the project folder. */
  readonly from: string;
  readonly line: number;
  /** As written. */
  readonly specifier: string;
  readonly target:
    | { readonly kind: 'file'; readonly path: string }
    | { readonly kind: 'builtin'; readonly name: string }
    | { readonly kind: 'package'; readonly name: string };
  /** Names that are asked for, `*` for all of them; none when the module is only loaded. */
  readonly names: readonly string[];
  /** Leaves nothing behind when types are stripped. `import { type A }` does: the module is still loaded. */
  readonly typesOnly: boolean;
}

/** Files by the names of the package's `imports`: the doors of the rooms. */
export type Doors = Readonly<Record<string, string>>;

function targetOf(from: string, specifier: string, doors: Doors): Import['target'] {
  // A door that is not in the manifest leads to no file, which the check reports.
  if (specifier.startsWith('#')) return { kind: 'file', path: posix.normalize(doors[specifier] ?? specifier) };
  if (/^\.{0,2}\//.test(specifier)) return { kind: 'file', path: posix.join(posix.dirname(from), specifier) };
  if (specifier.startsWith('node:') || builtinModules.includes(specifier)) return { kind: 'builtin', name: specifier };
  const [scope = '', name = ''] = specifier.split('/');
  return { kind: 'package', name: specifier.startsWith('@') ? `${scope}/${name}` : scope };
}

const nameOf = (node: ESTree.ModuleExportName): string => (node.type === 'Literal' ? node.value : node.name);

/**
 * Every import of a file: declarations, re-exports, dynamic imports, imports inside types, and calls that load a module.
 * Throws when it cannot be parsed.
 */
export function importsOf(from: string, doors: Doors): Import[] {
  const text = readFileSync(from, 'utf8');
  const { program, errors } = parseSync(from, text);
  const [error] = errors;
  if (error) throw new Error(`${from} cannot be parsed: ${error.message}`);

  const found: Import[] = [];
  const add = (start: number, specifier: string, typesOnly: boolean, names: readonly string[] = ['*']): void => {
    const line = text.slice(0, start).split('\n').length;
    found.push({ from, line, specifier, target: targetOf(from, specifier, doors), names, typesOnly });
  };
  new Visitor({
    ImportDeclaration: ({ start, source, importKind, specifiers }) => {
      const names = specifiers.map((one) => (one.type === 'ImportSpecifier' ? nameOf(one.imported) : '*'));
      add(start, source.value, importKind === 'type', names);
    },
    ExportAllDeclaration: (node) => add(node.start, node.source.value, node.exportKind === 'type'),
    ExportNamedDeclaration: ({ start, source, exportKind, specifiers }) => {
      const names = specifiers.map(({ local }) => nameOf(local));
      if (source) add(start, source.value, exportKind === 'type', names);
    },
    // A computed specifier cannot be followed; the rules hold for those that are written out.
    ImportExpression: (node) => {
      if (node.source.type === 'Literal') add(node.start, String(node.source.value), false);
    },
    CallExpression: ({ start, callee, arguments: [argument] }) => {
      const name = callee.type === 'MemberExpression' ? callee.property : callee;
      const loads = name.type === 'Identifier' && ['require', 'getBuiltinModule'].includes(name.name);
      if (loads && argument?.type === 'Literal') add(start, String(argument.value), false);
    },
    TSImportType: (node) => add(node.start, node.source.value, true),
  }).visit(program);
  return found;
}

/** Groups of files that reach each other through their imports, each sorted. One depth-first walk with an explicit stack (Tarjan). */
export function cyclesOf(imports: readonly Import[]): string[][] {
  const next = new Map<string, string[]>();
  for (const { from, target } of imports) {
    if (target.kind !== 'file') continue;
    next.set(from, [...(next.get(from) ?? []), target.path]);
    if (!next.has(target.path)) next.set(target.path, []);
  }

  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const isOpen = new Set<string>();
  const cycles: string[][] = [];
  const lower = (file: string, to: number): void => {
    lowest.set(file, Math.min(lowest.get(file) ?? to, to));
  };
  const enter = (file: string): { file: string; rest: string[] } => {
    order.set(file, order.size);
    lower(file, order.size - 1);
    open.push(file);
    isOpen.add(file);
    return { file, rest: [...(next.get(file) ?? [])] };
  };
  const leave = (file: string): void => {
    if (lowest.get(file) !== order.get(file)) return;
    const group = open.splice(open.lastIndexOf(file));
    for (const member of group) isOpen.delete(member);
    if (group.length > 1 || next.get(file)?.includes(file)) cycles.push(group.sort());
  };

  for (const root of next.keys()) {
    if (order.has(root)) continue;
    const walk = [enter(root)];
    for (let top = walk.at(-1); top !== undefined; top = walk.at(-1)) {
      const file = top.rest.pop();
      if (file === undefined) {
        walk.pop();
        leave(top.file);
        const parent = walk.at(-1);
        if (parent) lower(parent.file, lowest.get(top.file) ?? 0);
      } else if (!order.has(file)) {
        walk.push(enter(file));
      } else if (isOpen.has(file)) {
        lower(top.file, order.get(file) ?? 0);
      }
    }
  }
  return cycles;
}
