// Installs from the lock file when nothing is installed yet, so that `npm run demo` and `npm test` work on a fresh clone.
// Runs on the machine's own Node, before this project's Node 24 is there: plain JavaScript, no dependency.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

if (!existsSync(`${root}node_modules/.bin/node`)) {
  process.stderr.write('Nothing is installed yet: npm ci\n');
  const install = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    // npm's own lines go to standard error, so that what the demo prints stays clean.
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (install.error) throw install.error;
  process.exitCode = install.status ?? 1;
}
