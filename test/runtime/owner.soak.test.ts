/** Whose processes live, asked of real ones, also in other PID namespaces. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { local } from '#core';
import { memoryJournal } from '#journal';
import { isDeadOwner, ownerName, SURROUNDINGS } from '#runtime';
import { VirtualClock } from '#testing';
import { call, script, watched } from '../kit/decisions.ts';
import { doorUrl } from '../kit/project.ts';
import { startedEntry } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, quiet } from '../kit/waiting.ts';
import { world } from '../kit/world.ts';

const OWNER = doorUrl('#runtime');
const folder = mkdtempSync(join(tmpdir(), 'pilotage-owner-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

describe.runIf(SURROUNDINGS.boot !== undefined)('on Linux', () => {
  const tell = `import('${OWNER}').then(({ ownerName, isDeadOwner }) => {
    console.log(JSON.stringify({ name: ownerName(), dead: isDeadOwner(process.argv[1] ?? '') }));
    if (process.argv[2] === 'stay') setInterval(() => {}, 1000);
  })`;

  it('a process of this namespace is dead as soon as it is gone, and lives until then', async () => {
    const { child, said } = await process_(process.execPath, ['-e', tell, '', 'stay']);
    expect(isDeadOwner(said.name)).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isDeadOwner(said.name)).toBe(true);
    expect(isDeadOwner(ownerName())).toBe(false);
    // The number is somebody else's now.
    expect(isDeadOwner(said.name.replace(/^([^:]*):\d+:/, `$1:${process.pid}:`))).toBe(true);
  });

  const canUnshare = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', '--kill-child', 'true']).status === 0;

  it.runIf(canUnshare)(
    'one of another PID namespace of this machine lives, seen from here and from there',
    async () => {
      const unshared = [
        '--pid',
        '--fork',
        '--mount-proc',
        '--kill-child',
        process.execPath,
        '-e',
        tell,
        ownerName(),
        'stay',
      ];
      const { child, said } = await process_('unshare', unshared);
      expect(said.dead).toBe(false);
      expect(said.name.split(':')[0]).toBe(encodeURIComponent(hostname()));
      expect(isDeadOwner(said.name)).toBe(false);
      // Its number there may be nobody's here.
      expect(isDeadOwner(said.name.replace(/^([^:]*):\d+:/, `$1:${2 ** 22 - 1}:`))).toBe(false);
      child.kill('SIGKILL');
      await once(child, 'exit');
      expect(isDeadOwner(said.name)).toBe(false);
    },
  );

  it.runIf(canUnshare)(
    'a run of a living owner there is not taken by resume, and gone on with when its lease is over',
    async () => {
      const unshared = ['--pid', '--fork', '--mount-proc', '--kill-child', process.execPath, '-e', tell, '', 'stay'];
      const { said } = await process_('unshare', unshared);
      const clock = new VirtualClock();
      const journal = memoryJournal({ clock });
      const claim = { owner: said.name, leaseMs: 60_000 };
      await journal.create({
        identity: local('ana', { run: 'r' }),
        priority: 0,
        entries: [startedEntry('r', 0)],
        claim,
      });
      const planner = watched(script(call('pay')));
      const ran: number[] = [];
      const pay = make('pay', () => ran.push(clock.now()), { effect: 'once' });
      const began = clock.now();
      const run = world({ planner, tools: [pay], journal, clock }).runtime.run('r');
      await run.resume();
      clock.advance(59_000);
      await quiet();
      expect([planner.views, ran]).toEqual([[], []]);
      await advanceUntil(clock, async () => (await run.state()).ending !== null);
      expect(ran).toEqual([expect.any(Number)]);
      expect((ran[0] ?? 0) - began).toBeGreaterThanOrEqual(60_000);
    },
  );

  it.runIf(spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0)(
    'nothing is found out with the /proc of another namespace',
    () => {
      const { stdout } = spawnSync('unshare', [
        '--pid',
        '--fork',
        '--kill-child',
        process.execPath,
        '-e',
        tell,
        ownerName(),
      ]);
      const said = JSON.parse(String(stdout)) as Said;
      expect(said.dead).toBe(false);
      expect(said.name.split(':').slice(1, 5)).toEqual(['1', '', '', '']);
    },
  );
});

interface Said {
  readonly name: string;
  readonly dead: boolean;
}

/** Starts it and waits for its line. */
async function process_(program: string, args: readonly string[]): Promise<{ child: ChildProcess; said: Said }> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], cwd: folder });
  children.push(child);
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, said: JSON.parse(String(text)) as Said };
}
