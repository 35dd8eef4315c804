/**
 * One of the processes of the chaos: `node actor.ts <folder> <database> <seed> <role>` works on whatever is due in the database, does what it
 * is told on standard input (a `keeper` does nothing but its schedules), and says what was acknowledged to it. What its tools bring about stands in the ledger of the folder.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime, type JsonObject, local, type Run, type ToolContext } from '#pilotage';
import { seededRandom } from '#testing';
import { type Place, Springs } from '../double-act/traps.ts';
import { World } from '../double-act/world.ts';
import { SAID, SCHEDULES, scheduleOf, TALK, TICK, tickAgent } from './calendar.ts';
import { agentsOf } from './kinds.ts';
import { openStore } from './store.ts';
import { STREAM } from './streaming.ts';
import { GRACE_MS, LEASE_MS, PAGE, STEPS } from './times.ts';
import { witnessed } from './witness.ts';
import { type Answer, type Command, faultOf, machineMs, type Said } from './words.ts';

const [folder = '', database = '', seed = '1', role = 'worker'] = process.argv.slice(2);
const TOOL_TIMEOUT_MS = 20_000;
const SLOWEST_MS = 300;
/** Of a schedule's run, which takes longer than from one fire time to the next at times. */
const SLOWEST_TICK_MS = 1_800;
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
  readonly #slowestMs: number;

  constructor(slowestMs: number) {
    super('', undefined);
    this.#slowestMs = slowestMs;
  }

  override at(_place: Place, signal?: AbortSignal): Promise<void> {
    return sleep(random() ** 3 * this.#slowestMs, undefined, signal === undefined ? {} : { signal });
  }
}

class TellingWorld extends World {
  override act(tool: string, args: JsonObject, context: ToolContext, more: JsonObject = {}): Promise<JsonObject> {
    say({ said: 'entered', run: context.identity.run, key: context.idempotencyKey, at: machineMs() });
    return super.act(tool, args, context, more);
  }
}

const worldOf = (slowestMs: number): TellingWorld =>
  new TellingWorld({ folder, springs: new Slowly(slowestMs), page: PAGE, timeoutMs: TOOL_TIMEOUT_MS });
const world = worldOf(SLOWEST_MS);
const journal = openStore(database);
const ticks = tickAgent(worldOf(SLOWEST_TICK_MS));
// Who is open and knows an agent goes on with what waits for its time.
const others = role === 'keeper' ? [] : agentsOf(world, random, (run, row) => say({ said: 'writes', run, row }));
const agents = [...others, ticks];
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
        ...(command.deadlineMs === undefined ? {} : { limits: { deadlineAt: Date.now() + command.deadlineMs } }),
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
    case 'read':
      return read(command);
    case 'goOn':
      await runtime.run(command.id).resume();
      return;
    case 'schedule':
      return keepTime(command);
    case 'say': {
      const { id, busy } = command;
      const context = { meta: { schedule: SAID, fire_time: id } };
      const sent = await runtime.session(TALK, { agent: TICK, context }).send(`Say ${id}.`, { id, busy });
      say({ said: 'spoken', id, turn: sent.turn });
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

async function read({ run, reader, from }: Extract<Command, { do: 'read' }>): Promise<void> {
  let isWhole = false;
  try {
    for await (const { index, value } of runtime.run(run).stream(STREAM, { from }))
      say({ said: 'row', reader, row: { index, value } });
    isWhole = true;
  } finally {
    say({ said: 'read', reader, isWhole });
  }
}

async function keepTime({ id, op }: Extract<Command, { do: 'schedule' }>): Promise<void> {
  if (op === 'trigger') {
    say({ said: 'triggered', run: (await runtime.schedules.trigger(id)).id });
    return;
  }
  const before = Date.now();
  let nextAt: number | null = null;
  try {
    ({ nextAt } = await runtime.schedules[op](id));
  } finally {
    const wallMs = Math.max(before, Date.now());
    say({ said: 'scheduled', id, op, wallMs, ...(nextAt === null ? {} : { nextAt }) });
  }
}

/** Whoever starts puts them, whatever has become of them. */
async function putSchedules(): Promise<void> {
  for (const schedule of SCHEDULES) {
    await runtime.schedules.put(scheduleOf(schedule, seed));
    say({ said: 'put', id: schedule.id, wallMs: Date.now() });
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
if (role === 'worker') runtime.work();
say({ said: 'ready' });
putSchedules().catch((error: unknown) => say(faultOf(error)));
