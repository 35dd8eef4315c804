/** What the package gives and where: a root that one can read, and every name at one place. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { describe, expect, it } from 'vitest';
import { projectDir, readManifest } from '../kit/project.ts';

interface Exported {
  readonly name: string;
  readonly isType: boolean;
}

/** Names that a file exports, each by name: `export *` would hide what is added. */
function exportedBy(path: string): Exported[] {
  const { program } = parseSync(path, readFileSync(join(projectDir, path), 'utf8'));
  return program.body.flatMap((node): Exported[] => {
    if (node.type === 'ExportAllDeclaration' || node.type === 'ExportDefaultDeclaration') {
      throw new Error(`${path} exports without a name: list the names.`);
    }
    if (node.type !== 'ExportNamedDeclaration') return [];
    const isTypes = node.exportKind === 'type';
    const listed = node.specifiers.map(({ exported, exportKind }) => ({
      name: exported.type === 'Literal' ? exported.value : exported.name,
      isType: isTypes || exportKind === 'type',
    }));
    return [...listed, ...declared(node.declaration).map((name) => ({ name, isType: isTypes }))];
  });
}

type Declaration = Extract<
  ReturnType<typeof parseSync>['program']['body'][number],
  { type: 'ExportNamedDeclaration' }
>['declaration'];

function declared(declaration: Declaration): string[] {
  if (declaration === null) return [];
  if (declaration.type === 'VariableDeclaration') {
    return declaration.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []));
  }
  return 'id' in declaration && declaration.id?.type === 'Identifier' ? [declaration.id.name] : [];
}

/** The entries of the package and the source of each. */
function faces(): [string, string][] {
  return Object.entries(readManifest().exports).flatMap(([entry, target]): [string, string][] => {
    const path = /"\.\/dist\/([^"]+)\.js"/.exec(JSON.stringify(target))?.[1];
    return path === undefined ? [] : [[entry, `src/${path}.ts`]];
  });
}

describe('what the package exports', () => {
  it('the root has at most 25 values and 60 types', async () => {
    const root = exportedBy('src/index.ts');
    const values = root.filter(({ isType }) => !isType).map(({ name }) => name);
    const types = root.filter(({ isType }) => isType).map(({ name }) => name);
    expect(values.sort()).toEqual(Object.keys(await import('#pilotage')).sort());
    expect(values.length).toBeLessThanOrEqual(25);
    expect(types.length).toBeLessThanOrEqual(60);
    // A root that has lost what every program begins with would be small as well.
    expect(values).toEqual(
      expect.arrayContaining(['createRuntime', 'agent', 'tool', 'react', 'local', 'PilotageError']),
    );
    expect(types).toEqual(expect.arrayContaining(['Run', 'Runtime', 'RuntimeOptions', 'RunResult', 'Tool']));
  });

  it('no name is exported by two entries', () => {
    const entries = faces();
    expect(entries.length).toBeGreaterThan(15);
    const places = new Map<string, string[]>();
    for (const [entry, path] of entries) {
      const exported = exportedBy(path);
      expect(exported, path).not.toEqual([]);
      for (const { name } of exported) places.set(name, [...(places.get(name) ?? []), entry]);
    }
    expect([...places].filter(([, at]) => at.length > 1)).toEqual([]);
  });

  it('every entry is built, and nothing is built that is no entry but the command', () => {
    const config = readFileSync(join(projectDir, 'tsdown.config.ts'), 'utf8');
    const built = Array.from(config.matchAll(/'(src\/[^']+\.ts)'/g), ([, path = '']) => path);
    expect(built.sort()).toEqual([...faces().map(([, path]) => path), 'src/cli/main.ts'].sort());
  });

  it.each([
    'SqliteJournal',
    'foldProblems',
    'DEFAULT_RETRIES',
    'DEFAULT_TIMEOUT_MS',
    'historyOf',
  ])('%s is nobody else’s', (hidden) => {
    const names = faces().flatMap(([, path]) => exportedBy(path).map(({ name }) => name));
    expect(names).not.toContain(hidden);
  });
});
