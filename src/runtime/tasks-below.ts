/**
 * The tasks of a run for somebody who reads both in one stream. What a task does is told behind the entry that started it, and before the
 * entries of the run above that come of it: its pause, its end, and the end of that run. Between these every run keeps its own order.
 */
import { type Entry, PilotageError } from '#core';
import type { RunState } from '#state';
import type { Below, Follower } from './follow.ts';
import { isUnreadable } from './readable.ts';

/** Where a task begins, as the run above has it. */
export interface TaskPlace {
  readonly task: string;
  readonly step: number;
  readonly call: number;
}

export interface BelowOptions<T> {
  /** Entries of the run before this position are not told, and nor are tasks that have ended by then. */
  readonly from: number;
  /** Reads one task. @param told its entries up to this position were told before it went on. */
  readonly read: (place: TaskPlace, told: number, onNews: () => void) => Follower<T>;
  /** There is something to tell. */
  readonly onNews: () => void;
}

export class TasksBelow<T> implements Below<T> {
  readonly #options: BelowOptions<T>;
  readonly #places = new Map<string, TaskPlace>();
  /** Tasks that are listened to, and of whose start nothing was told yet. */
  readonly #early = new Map<string, Follower<T>>();
  /** Tasks that the run has not heard the end of. */
  readonly #open = new Map<string, Follower<T>>();
  readonly #news = new Set<string>();
  /** How far tasks were told that have ended. A retry may make them go on. */
  readonly #told = new Map<string, number>();

  constructor(options: BelowOptions<T>) {
    this.#options = options;
  }

  get isPending(): boolean {
    return this.#news.size > 0;
  }

  hear(entry: Entry): void {
    if (entry.kind !== 'spawned' || this.#open.has(entry.task)) return;
    // Its driver asks its first model soon, and streams only for whoever listens by then.
    const reader = this.#reader(entry);
    this.#early.set(entry.task, reader);
    reader.open();
  }

  async *before(entry: Entry): AsyncGenerator<T, void> {
    const isTold = entry.seq >= this.#options.from;
    switch (entry.kind) {
      case 'task_ended':
        if (isTold) yield* this.#take(entry.task, Infinity);
        this.#drop(entry.task);
        return;
      case 'task_paused':
        if (isTold) yield* this.#take(entry.task, entry.asOf);
        return;
      case 'finished':
      case 'failed':
        if (isTold) for (const task of [...this.#open.keys()]) yield* this.#take(task, Infinity);
        return;
      default:
        return;
    }
  }

  after(entry: Entry, { tasks, fork }: RunState): void {
    // What a fork has taken over was done by tasks of the other run.
    if (entry.seq <= (fork?.entries ?? 0)) return;
    if (entry.kind === 'spawned') this.#add(entry);
    if (entry.kind !== 'reopened') return;
    for (const { id, end } of tasks) {
      const place = end === undefined ? this.#places.get(id) : undefined;
      if (place !== undefined) this.#add(place);
    }
  }

  async *pull(): AsyncGenerator<T, void> {
    const news = [...this.#news];
    for (const task of news) yield* this.#take(task);
  }

  close(): void {
    for (const task of [...this.#open.keys()]) this.#drop(task);
    for (const reader of this.#early.values()) reader.close();
  }

  #add(place: TaskPlace): void {
    const { task, step, call } = place;
    if (this.#open.has(task)) return;
    this.#places.set(task, { task, step, call });
    this.#open.set(task, this.#early.get(task) ?? this.#reader(place));
    this.#early.delete(task);
    this.#news.add(task);
  }

  #reader(place: TaskPlace): Follower<T> {
    const { task } = place;
    return this.#options.read(place, this.#told.get(task) ?? 0, () => {
      if (this.#open.has(task)) this.#news.add(task);
      this.#options.onNews();
    });
  }

  async *#take(task: string, upTo?: number): AsyncGenerator<T, void> {
    const reader = this.#open.get(task);
    this.#news.delete(task);
    if (reader === undefined) return;
    try {
      if (upTo === undefined) reader.open();
      yield* reader.take(upTo);
    } catch (error) {
      if (!isOfTask(error)) throw error;
      // What is wrong with a task is told to whoever reads it; it must not hide the run above.
      this.#drop(task);
    }
  }

  #drop(task: string): void {
    const reader = this.#open.get(task);
    if (reader === undefined) return;
    this.#told.set(task, reader.state?.head ?? 0);
    this.#open.delete(task);
    this.#news.delete(task);
    reader.close();
  }
}

function isOfTask(error: unknown): boolean {
  return isUnreadable(error) || PilotageError.is(error, 'run_not_found');
}
