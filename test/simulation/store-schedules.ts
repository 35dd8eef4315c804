/** The schedules of the one journal as a process sees them; what it changes is noted with how it was before. */
import type { Journal, ScheduleMove, ScheduleStore, StoredSchedule } from '#journal';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';
import type { ScheduleChange } from './schedule-ledger.ts';
import type { OperationName } from './script-world.ts';

export interface SchedulesBehind {
  readonly inner: Journal;
  /** Otherwise nobody can say what was before a change, and nothing is noted. */
  readonly isInOrder: boolean;
  readonly process: SimulatedProcess;
  readonly ledger: Ledger;
  readonly operation: <T>(name: OperationName, work: () => Promise<T>) => Promise<T>;
  readonly tell: (what: () => string) => void;
}

type Noted = Pick<ScheduleChange, 'how' | 'tenant' | 'id' | 'run' | 'isPaused'>;

export function simulatedSchedules(behind: SchedulesBehind): ScheduleStore {
  const { inner, process, ledger, operation } = behind;
  const { schedules } = inner;
  return {
    put: (schedule) =>
      operation('create', () => changing(behind, { how: 'put', ...nameOf(schedule) }, () => schedules.put(schedule))),
    get: (tenant, id) =>
      operation('get', async () => {
        const found = await schedules.get(tenant, id);
        ledger.schedules.read(process, found?.mark);
        return found;
      }),
    list: (query) => operation('read', () => schedules.list(query)),
    due: (agents, limit, after) =>
      operation('get', async () => {
        const due = await schedules.due(agents, limit, after);
        ledger.schedules.looked(process, { order: ledger.next(), at: due.readAt });
        return due;
      }),
    unfired: (agents, lateMs, limit) => operation('read', () => schedules.unfired(agents, lateMs, limit)),
    move: (move) =>
      operation('append', () =>
        changing(
          behind,
          {
            how: 'move',
            ...nameOf(move),
            ...(move.run === undefined ? {} : { run: move.run }),
            ...(move.isPaused === undefined ? {} : { isPaused: move.isPaused }),
          },
          () => schedules.move(move),
          (moved) => moved,
        ),
      ),
    delete: (tenant, id) =>
      operation('append', () => changing(behind, { how: 'delete', tenant, id }, () => schedules.delete(tenant, id))),
  };
}

function nameOf({ tenant, id }: Pick<StoredSchedule, 'tenant' | 'id'>): Pick<StoredSchedule, 'tenant' | 'id'> {
  return { tenant, id };
}

/** A start, or a message, with which its schedule moves on. */
export function firing<T>(
  behind: SchedulesBehind,
  fires: ScheduleMove | undefined,
  work: () => Promise<T>,
  hasMoved?: (value: T) => boolean,
): Promise<T> {
  if (fires === undefined || !behind.isInOrder) return work();
  const noted = { how: 'move', ...nameOf(fires), ...(fires.run === undefined ? {} : { run: fires.run }) } as const;
  return changing(behind, noted, work, hasMoved);
}

/** All three are asked for at once: a store that keeps the order has nothing between them. */
async function changing<T>(
  { inner, isInOrder, process, ledger, tell }: SchedulesBehind,
  noted: Noted,
  work: () => Promise<T>,
  hasChanged: (value: T) => boolean = () => true,
): Promise<T> {
  if (!isInOrder) return work();
  const { tenant, id } = noted;
  const common = {
    order: ledger.next(),
    at: ledger.now(),
    wallMs: process.wallMs(),
    look: ledger.schedules.lookOf(process),
  };
  const asked = [inner.schedules.get(tenant, id), work(), inner.schedules.get(tenant, id)] as const;
  const [before, value, after] = await Promise.all(asked);
  if (hasChanged(value)) {
    const readMs = ledger.schedules.readAt(process, before?.mark);
    ledger.schedules.changes.push({ ...noted, ...common, readMs, before, after });
    tell(() => `schedule ${id}: ${textOf(before)} becomes ${textOf(after)}`);
  }
  return value;
}

function textOf(schedule: StoredSchedule | undefined): string {
  if (schedule === undefined) return 'nothing';
  const { revision, isPaused, nextAt, lastRun } = schedule;
  const next = nextAt === null ? 'never' : new Date(nextAt).toISOString();
  return `revision ${revision}${isPaused ? ', paused' : ''}, next ${next}, last ${lastRun ?? '-'}`;
}
