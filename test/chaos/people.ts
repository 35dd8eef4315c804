/** People and the outside: start runs, say things to them, call them off, and make things happen that runs wait for. */
import type { ControlType } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import type { Member } from './crew.ts';
import { type KindName, kinds } from './kinds.ts';
import { DEADLINE_MS, fateOf } from './undoing.ts';
import type { Testimony } from './verdict.ts';
import { postOf } from './waiting.ts';

const LIVE_RUNS = 16;
/** How likely at each look. */
const SAYS = 0.04;
const CONTROLS: readonly ControlType[] = ['CANCEL', 'PAUSE', 'USER_MESSAGE', 'USER_MESSAGE', 'REDIRECT'];
/** Runs that undo are short, and are to be met in the middle of that. */
const STARTED: readonly KindName[] = [...kinds, 'undoing'];

export interface PeopleOptions {
  readonly seed: number;
  readonly heard: Testimony;
  readonly random: () => number;
  /** Somebody through whom it can be said now. */
  able(): Member | undefined;
}

export class People {
  readonly #options: PeopleOptions;
  #happenings = 0;

  constructor(options: PeopleOptions) {
    this.#options = options;
  }

  /** Looks once. */
  async look(journal: Journal): Promise<void> {
    const { heard, random } = this.#options;
    const found = await journal.list({ status: ['pending', 'running', 'waiting', 'paused'], limit: 200 });
    // A task that is called off below a run makes most planners begin it anew, and that is their right.
    const live = found.filter(({ identity }) => heard.starts.has(identity.run)).map(({ identity }) => identity.run);
    if (live.length < LIVE_RUNS) this.#start();
    this.#happen();
    this.#say();
    this.#callOff(live);
    const told = this.#pick(live);
    if (told !== undefined && random() < 0.1) this.#control(told, this.#pick(CONTROLS) ?? 'CANCEL');
  }

  #start(): void {
    const { seed, heard, able } = this.#options;
    const id = `run_${seed}_${heard.starts.size}`;
    const kind = this.#pick(STARTED) ?? 'parallel';
    heard.starts.set(id, kind);
    const isInTime = kind !== 'undoing' || fateOf(id) !== 'deadline';
    able()?.tell({ do: 'start', id, kind, ...(isInTime ? {} : { deadlineMs: DEADLINE_MS }) });
  }

  #control(id: string, type: ControlType): void {
    const { heard, able } = this.#options;
    if (type === 'CANCEL') heard.cancels.set(id, (heard.cancels.get(id) ?? 0) + 1);
    able()?.tell({ do: 'control', id, type });
  }

  /** Those whose fate it is, once. */
  #callOff(live: readonly string[]): void {
    const { starts, cancels } = this.#options.heard;
    const run = live.find((id) => starts.get(id) === 'undoing' && fateOf(id) === 'cancel' && !cancels.has(id));
    if (run !== undefined && this.#options.random() < 0.1) this.#control(run, 'CANCEL');
  }

  /** Something happens outside for one of the runs, early, late, twice, or in a way that does not fit. */
  #happen(): void {
    const { heard, random, able } = this.#options;
    const run = this.#pick([...heard.starts].flatMap(([id, kind]) => (kind === 'waiting' ? [id] : [])));
    if (run === undefined || random() > 0.2) return;
    this.#happenings += 1;
    const payload = random() < 0.2 ? 'nothing that fits' : { n: this.#happenings };
    const signal = { do: 'signal', key: postOf(run), id: `post ${this.#happenings}`, payload } as const;
    const times = random() < 0.3 ? 2 : 1;
    for (let time = 0; time < times; time += 1) able()?.tell(signal);
  }

  /** Something in the session into which a schedule sends, now and then through two processes at once. */
  #say(): void {
    const { heard, random, able } = this.#options;
    if (random() > SAYS) return;
    const id = `word-${heard.talk.words}`;
    heard.talk.words += 1;
    const said = { do: 'say', id, busy: random() < 0.5 ? 'queue' : 'steer' } as const;
    const times = random() < 0.3 ? 2 : 1;
    for (let time = 0; time < times; time += 1) able()?.tell(said);
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.#options.random() * list.length)];
  }
}
