/** What a worker counts, and the counts in the text format of Prometheus (0.0.4). */
import type { RunNews } from '#runtime';

type Status = Extract<RunNews, { type: 'let_go' }>['status'];

const ENDED: readonly Status[] = ['finished', 'failed', 'cancelled'];
const LEFT: readonly Status[] = ['waiting', 'paused', 'given_back', 'lost', 'broken'];

export interface WorkerState {
  readonly isDraining: boolean;
  readonly isJournalThere: boolean;
  /** How long the last look took that was answered. */
  readonly roundTripMs: number | undefined;
}

export class WorkCounts {
  readonly #slots: number;
  #claimed = 0;
  #live = 0;
  readonly #letGo = new Map<string, number>([...ENDED, ...LEFT].map((status) => [status, 0]));
  readonly #faults = new Map<string, number>();

  constructor(slots: number) {
    this.#slots = slots;
  }

  get live(): number {
    return this.#live;
  }

  hear(news: RunNews): void {
    if (news.type === 'claimed') {
      this.#claimed += 1;
      this.#live += 1;
      return;
    }
    this.#live -= 1;
    countOne(this.#letGo, news.status);
  }

  fault(code: string): void {
    countOne(this.#faults, code);
  }

  text({ isDraining, isJournalThere, roundTripMs }: WorkerState): string {
    const by = (label: string, statuses: readonly Status[]): Sample[] =>
      statuses.map((status) => [`{${label}="${status}"}`, this.#letGo.get(status) ?? 0]);
    const faults = [...this.#faults].map(([code, count]): Sample => [`{code="${code}"}`, count]);
    return [
      family('gauge', 'runs_live', 'Runs that are driven now.', [['', this.#live]]),
      family('gauge', 'slots', 'Runs that may be driven at once.', [['', this.#slots]]),
      family('counter', 'runs_claimed_total', 'Runs that were taken up.', [['', this.#claimed]]),
      family('counter', 'runs_ended_total', 'Runs that have ended here.', by('status', ENDED)),
      family('counter', 'runs_let_go_total', 'Runs that were let go of before they had ended.', by('reason', LEFT)),
      family('counter', 'faults_total', 'Faults, by their codes.', faults),
      family('gauge', 'draining', '1 while the worker claims nothing more.', [['', Number(isDraining)]]),
      family('gauge', 'journal_up', '1 while the journal answers.', [['', Number(isJournalThere)]]),
      family(
        'gauge',
        'journal_round_trip_seconds',
        'How long the journal took for the last look at it.',
        roundTripMs === undefined ? [] : [['', roundTripMs / 1_000]],
      ),
    ].join('');
  }
}

type Sample = readonly [labels: string, value: number];

/** Codes and statuses are plain words: nothing in a label needs to be escaped. */
function family(type: 'gauge' | 'counter', name: string, help: string, samples: readonly Sample[]): string {
  const full = `pilotage_${name}`;
  const lines = samples.map(([labels, value]) => `${full}${labels} ${value}\n`);
  return `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${lines.join('')}`;
}

function countOne(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
