/** The programs of docs/clients.md, of docs/scaling.md on databases, and of the README on the web, hold what the types of the package and of the clients promise. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { onSources, projectDir } from '../kit/project.ts';

/** What the programs of the README take from elsewhere in a user's project. Those of the page are whole. */
const GIVEN_ON_THE_WEB = `
  import { useChat } from '@ai-sdk/react';
  import { DefaultChatTransport } from 'ai';
  declare const runtime: import('${join(projectDir, 'src/index.ts')}').Runtime;
`;
const ON_THE_WEB = 'On the web';
/** The programs under this heading of docs/scaling.md go on from each other. */
const DATABASES = 'From a file to a database';
const GIVEN_OF_DATABASES = `
  import { agents } from './agents.ts';
  declare const pool: import('pg').Pool;
`;
const GIVEN: Readonly<Record<string, string>> = { [ON_THE_WEB]: GIVEN_ON_THE_WEB, [DATABASES]: GIVEN_OF_DATABASES };
const AGENTS = `
  import type { Agent } from 'pilotage';
  export declare const clerk: Agent;
  export const agents: readonly Agent[] = [];
`;
const TSCONFIG = {
  extends: '../tsconfig.json',
  compilerOptions: {
    ...{ jsx: 'react-jsx', lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'] },
    ...{ isolatedDeclarations: false, declaration: false, noUnusedLocals: false },
  },
};

interface Program {
  readonly heading: string;
  readonly kind: string;
  readonly code: string;
}

function programsOf(page: string): Program[] {
  return readFileSync(join(projectDir, page), 'utf8')
    .split(/^## /m)
    .flatMap((section) => {
      const heading = section.slice(0, section.indexOf('\n'));
      const blocks = section.matchAll(/^```(tsx?)\n([\s\S]*?)^```/gm);
      return Array.from(blocks, ([, kind = '', code = '']) => ({ heading, kind, code }));
    });
}

it('type-checks every program', async () => {
  const databases = programsOf('docs/scaling.md').filter(({ heading }) => heading === DATABASES);
  expect(databases.length).toBeGreaterThanOrEqual(3);
  const programs = [
    ...programsOf('docs/clients.md'),
    ...programsOf('README.md').filter(({ heading }) => heading === ON_THE_WEB),
    { heading: DATABASES, kind: 'ts', code: databases.map(({ code }) => code).join('') },
  ];
  const headings = ['AI SDK (`useChat`)', 'MCP', 'A2A', 'Webhooks', 'AG-UI', ON_THE_WEB, DATABASES];
  expect(new Set(programs.map(({ heading }) => heading))).toEqual(new Set(headings));
  expect(programs.length).toBeGreaterThanOrEqual(10);
  // Inside the project, so that its packages are found.
  const folder = mkdtempSync(join(projectDir, '.pilotage-clients-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const write = (name: string, code: string): void =>
    writeFileSync(
      join(folder, name),
      onSources(code, (source) => `../${source}`),
    );
  const files = programs.map(({ kind }, index) => `program-${index}.${kind}`);
  for (const [index, { heading, code }] of programs.entries())
    write(files[index] ?? '', `${GIVEN[heading] ?? ''}${code}export {};\n`);
  for (const name of ['agents.ts', 'clerk.ts']) write(name, AGENTS);
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...TSCONFIG, files, include: [] }));
  const told = await promisify(execFile)(join(projectDir, 'node_modules/.bin/tsc'), [
    '-p',
    folder,
    '--pretty',
    'false',
  ]).catch((failed: unknown) => failed);
  expect(told).toEqual({ stdout: '', stderr: '' });
});
