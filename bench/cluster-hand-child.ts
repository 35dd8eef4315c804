/** `node cluster-hand-child.ts <JSON>`: the hand-written lease loop, as many times at once as the other workers have slots, until nothing is due. */
import pg from 'pg';
import { cpuMsSince, machineMs } from './cluster-agent.ts';
import type { ChildOptions, Said } from './cluster-child.ts';
import { type Group, Hand } from './cluster-hand.ts';

export interface HandOptions extends ChildOptions {
  /** What each run appends, one after another. */
  readonly groups: readonly Group[];
}

const { url, slots, groups } = JSON.parse(process.argv[2] ?? '') as HandOptions;
const pool = new pg.Pool({ connectionString: url, max: slots });
const hand = new Hand(pool);
let cpuBefore = process.cpuUsage();
const say = (said: Said): void => void process.send?.(said);

process.on('message', (what) => void carryOut(String(what)));
process.on('disconnect', () => process.exit());
await Promise.all(Array.from({ length: slots }, () => pool.query('SELECT 1')));
say({ did: 'start' });

async function carryOut(what: string): Promise<void> {
  if (what === 'open') cpuBefore = process.cpuUsage();
  say({ did: what, cpuMs: cpuMsSince(cpuBefore) });
  if (what === 'open') await Promise.all(Array.from({ length: slots }, (_, index) => loop(`${process.pid}-${index}`)));
}

async function loop(owner: string): Promise<void> {
  for (;;) {
    const run = await hand.claim(owner);
    if (run === undefined) return;
    let { head } = run;
    for (const bodies of groups) head = await hand.append(run, head, bodies);
    await hand.release(run);
    say({ tells: 'letGo', run: run.id, value: 'finished', atMs: machineMs() });
  }
}
