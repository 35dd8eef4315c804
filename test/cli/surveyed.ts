/** A folder with something in it for a survey. */
import { execFileSync } from 'node:child_process';
import { type Folder, makeFolder } from './command.ts';

export function project(): Folder {
  const folder = makeFolder();
  folder.write('README.md', '# A project\n');
  folder.write('package.json', '{ "name": "sample", "scripts": { "test": "vitest" }, "dependencies": { "a": "1" } }');
  folder.write('src/main.ts', '// TODO: write it\n');
  folder.write('src/deep/er/x.ts', 'x\n');
  folder.write('test/main.test.ts', 'x\n');
  folder.write('.env', 'KEY=value\n');
  folder.write('node_modules/a/index.js', '// TODO: not ours\n');
  const git = (...args: string[]): void => {
    const who = ['-c', 'user.name=Ana', '-c', 'user.email=ana@example.org'];
    execFileSync('git', [...who, ...args], { cwd: folder.path, stdio: 'pipe' });
  };
  git('init', '-q');
  git('add', 'README.md');
  git('commit', '-q', '-m', 'Begin *here*');
  return folder;
}
