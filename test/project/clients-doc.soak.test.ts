/** The programs of docs/clients.md, and of the README on the web, hold what the types of the package and of the clients promise. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { onSources, projectDir } from '../kit/project.ts';

/** What the programs of the README take from elsewhere in a user's project. Those of the page are whole. */
const GIVEN = `
  import { useChat } from '@ai-sdk/react';
  import { DefaultChatTransport } from 'ai';
  declare const runtime: import('${join(projectDir, 'src/index.ts')}').Runtime;
`;
const ON_THE_WEB = 'On the web';
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
  const programs = [
    ...programsOf('docs/clients.md'),
    ...programsOf('README.md').filter(({ heading }) => heading === ON_THE_WEB),
  ];
  const headings = ['AI SDK (`useChat`)', 'MCP', 'A2A', 'Webhooks', 'AG-UI', ON_THE_WEB];
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
    write(files[index] ?? '', `${heading === ON_THE_WEB ? GIVEN : ''}${code}export {};\n`);
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
