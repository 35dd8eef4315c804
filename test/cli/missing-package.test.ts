/** The command where an optional package is not installed: it says which, and that it was called wrongly, not that a run failed. */
import { expect, it } from 'vitest';
import { withoutPackageFlags } from '../kit/missing-package.ts';
import { makeFolder } from './command.ts';

it('names the package, and what installs it, with the exit code of wrong use', async () => {
  const args = ['list', '--journal', 'postgres://nobody@127.0.0.1:1/none'];
  const { code, stdout, stderr } = await makeFolder().start(args, { NODE_OPTIONS: withoutPackageFlags('pg') }).done;
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('needs the package pg: run `npm install pg`. (package_missing)');
});
