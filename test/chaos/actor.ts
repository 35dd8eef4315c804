/**
 * One of the processes of the chaos: `node actor.ts <folder> <database> <seed>` works on whatever is due in the database, does what it
 * is told on standard input, and says what was acknowledged to it. What its tools bring about stands in the ledger of the folder.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type JsonObject, local, type Run, type ToolContext } from '#pilotage';
import { seededRandom } from '#testing';
import { type Place, Springs } from '../double-act/traps.ts';
import { World } from '../double-act/world.ts';
import { agentsOf } from './kinds.ts';
import { GRACE_MS, LEASE_MS, PAGE, STEPS } from './times.ts';
import { witnessed } from './witness.ts';
import { type Answer, type Command, faultOf, machineMs, type Said } from './words.ts';

const [folder = '', database = '', seed = '1'] = process.argv.slice(2);
const TOOL_TIMEOUT_MS = 20_000;
const SLOWEST_MS = 300;
const TENANT = local('ana').tenant;
/** Longer than any round. */
const KEEP_MS = 600_000;

/** Nothing is lost when the other side is slow to read. */
function say(line: Said): void {
  let rest = Buffer.from(`${JSON.stringify(line)}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAGAIN') throw error;
      standStill(1);
    }
  }
}

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The wall clock of this process, which somebody sets. */
const machineNow = Date.now;
let aheadMs = 0;
Date.now = () => machineNow() + aheadMs;

const random = seededRandom(Number(seed));

/** Effects take their time, so that a process is cut in the middle of some. */
class Slowly extends Springs {
  override at(_place: Place, signal?: AbortSignal): Promise<void> {
    return sleep(random() ** 3 * SLOWEST_MS, undefined, signal === undefined ? {} : { signal });
  }
}

class TellingWorld extends World {
  override act(tool: string, args: JsonObject, context: ToolContext, more: JsonObject = {}): Promise<JsonObject> {
    say({ said: 'entered', run: context.identity.run, key: context.idempotencyKey, at: machineMs() });
    return super.act(tool, args, context, more);
  }
}

const world = new TellingWorld({
  folder,
  springs: new Slowly('', undefined),
  page: PAGE,
  timeoutMs: TOOL_TIMEOUT_MS,
});
const journal = sqliteJournal({ path: database, watchIntervalMs: 50 });
const agents = agentsOf(world);
const runtime = createRuntime({
  planner: () => ({ kind: 'finish', reason: 'no_path' }),
  agents,
  journal: witnessed(journal, say),
  leaseMs: LEASE_MS,
  takeoverGraceMs: GRACE_MS,
  limits: { steps: STEPS },
  onFault: (error) => say(faultOf(error)),
});

async function obey(command: Command): Promise<void> {
  switch (command.do) {
    case 'start':
      await runtime.start('See to the fee, the letter and the room.', {
        identity: local('ana', { run: command.id }),
        agent: command.kind,
        context: { args: {} },
      });
      say({ said: 'started', run: command.id });
      return;
    case 'control':
      await runtime.run(command.id).steer(command.type, command.type === 'USER_MESSAGE' ? { text: 'Go on.' } : {});
      return;
    case 'answer':
      await speak(runtime.run(command.id), command.token, command.answer);
      return;
    case 'signal': {
      const { key, id, payload } = command;
      // Whoever signals past the runtime is not told that a payload fits nobody.
      if (random() < 0.5) await runtime.signal(key, payload, { id, tenant: TENANT, keepMs: KEEP_MS });
      else await journal.events.signal({ tenant: TENANT, key, id, payload, keepMs: KEEP_MS });
      say({ said: 'happened', key, id });
      return;
    }
    case 'block':
      standStill(command.ms);
      return;
    case 'shift':
      aheadMs = command.ms;
      return;
    case 'wake':
      return;
    case 'close':
      await runtime.close();
      await journal.close();
      say({ said: 'did', what: 'close' });
      process.exit(0);
      break;
    default:
      command satisfies never;
  }
}

function speak(run: Run, token: string, answer: Answer): Promise<void> {
  if (answer === 'approve') return run.approve(token);
  if (answer === 'reject') return run.reject(token);
  if (typeof answer === 'object' && 'says' in answer) return run.answer(token, { kind: 'answer', value: answer.says });
  return answer === 'resume' ? run.resume({ token }) : run.settle(token, answer);
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const command = JSON.parse(line) as Command;
    obey(command)
      .catch((error: unknown) => say(faultOf(error)))
      .finally(() => say({ said: 'did', what: command.do }));
  })
  .on('close', () => process.exit(0));
runtime.work();
say({ said: 'ready' });
