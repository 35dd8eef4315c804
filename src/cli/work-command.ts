/** `pilotage work`: carries out due runs until it is told to stop, and gives back what it has then. */
import { defined, PilotageError, Redaction, Thrown } from '#core';
import { isJournalGone, isTransientStoreError, type Journal, mayComeBack } from '#journal';
import { createRuntime, type RunNews, type Runtime, type RuntimeOptions } from '#runtime';
import { GRACE_MS } from './follow-run.ts';
import { JournalWatch } from './journal-watch.ts';
import type { Options } from './options.ts';
import { findProject, journalOf, type Project, setUpProject, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { shortLine, terminalJson } from './text.ts';
import { engineOf } from './work-engine.ts';
import { type HealthServer, serveHealth } from './work-health.ts';
import { WorkCounts } from './work-metrics.ts';

const LOOPBACK = '127.0.0.1';
const DEFAULT_SLOTS = 10;
/** After the grace: for the journal to take what is given back. */
const GIVE_BACK_MS = 5_000;
const HURRIED_MS = 1_000;
/** Longer ones would be over at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** @returns the exit code. */
export async function workCommand(options: Options, terminal: Terminal): Promise<number> {
  const isHeard = options.port !== undefined || options.serve !== undefined;
  if (options.host !== undefined && !isHeard) throw new UsageError('--host goes with --port or --serve.');
  const driver = await engineOf(options);
  const project = await findProject(options);
  const { runtime } = await setUpProject(options, project, purposeOf(options, project));
  const { concurrency, agents, graceMs = GRACE_MS } = options;
  const slots = concurrency ?? runtime.maxLiveRuns ?? DEFAULT_SLOTS;
  // The default of a tenant would be less than what was asked for.
  const perTenant = runtime.maxLiveRunsPerTenant ?? concurrency;
  const made = { ...runtime, maxLiveRuns: slots, ...defined({ maxLiveRunsPerTenant: perTenant, driver }) };
  return withJournal(journalOf(options, project), (journal) => {
    return new Worker(made, journal, { slots, agents, graceMs }, terminal).work(options);
  });
}

/** A worker for configured agents alone needs no model of the main one. */
function purposeOf({ agents = [] }: Options, project: Project | undefined): { stored?: { agent: string } } {
  const [agent, ...others] = agents;
  const isMeant = agent !== undefined && others.length === 0 && (project !== undefined || agent === 'pipeline');
  return isMeant ? { stored: { agent } } : {};
}

interface WorkerOptions {
  readonly slots: number;
  readonly agents: readonly string[] | undefined;
  readonly graceMs: number;
}

type Stop = { readonly signal: NodeJS.Signals } | { readonly error: unknown };

class Worker {
  readonly #options: WorkerOptions;
  readonly #terminal: Terminal;
  readonly #counts: WorkCounts;
  readonly #watch: JournalWatch;
  readonly #runtime: Runtime;
  readonly #agents: readonly string[];
  readonly #redaction = new Redaction();
  #hasBegun = false;
  #isDraining = false;
  /** The exit code after a second signal. */
  #hurriedWith: number | undefined;
  /** The exit code, when all was said and only the journal is still to be closed. */
  #concluded: number | undefined;
  /** Runs that the journal did not take back while the worker drained. */
  #notTaken = 0;
  #lostWith = 'starting';
  #server: HealthServer | undefined;
  #stop: (stop: Stop) => void = () => {};
  /** Also when it is stopped before it has begun. */
  readonly #stopped = new Promise<Stop>((resolve) => {
    this.#stop = resolve;
  });

  constructor(made: RuntimeOptions, journal: Journal, options: WorkerOptions, terminal: Terminal) {
    this.#options = options;
    this.#terminal = terminal;
    this.#counts = new WorkCounts(options.slots);
    this.#watch = new JournalWatch(journal, {
      there: () => this.#begin(),
      lost: (error) => this.#lost(error),
      back: (awayMs) => this.#say('journal_back', { awayMs: Math.round(awayMs) }),
    });
    this.#agents = options.agents ?? namesOf(made);
    this.#runtime = createRuntime({
      ...made,
      journal,
      onFault: (error) => void this.#fault(error),
      onRun: (news) => this.#hear(news),
    });
  }

  /** @returns the exit code. */
  async work({ port, host = LOOPBACK }: Options): Promise<number> {
    const signals = (signal: NodeJS.Signals): void => this.#signalled(signal);
    process.on('SIGTERM', signals).on('SIGINT', signals);
    try {
      if (port !== undefined) this.#server = await serveHealth({ port, host }, this.#health());
      void this.#watch.look();
      return await this.#drain(await this.#stopped);
    } finally {
      this.#watch.stop();
      this.#server?.close();
      process.off('SIGTERM', signals).off('SIGINT', signals);
    }
  }

  #health(): Parameters<typeof serveHealth>[1] {
    return {
      reason: () => (this.#isDraining ? 'draining' : this.#watch.isThere ? undefined : this.#lostWith),
      metrics: () => {
        const { isThere, roundTripMs } = this.#watch;
        return this.#counts.text({ isDraining: this.#isDraining, isJournalThere: isThere, roundTripMs });
      },
    };
  }

  /** The journal has answered for the first time. */
  #begin(): void {
    if (this.#isDraining) return;
    const { agents, slots } = this.#options;
    try {
      this.#runtime.work(agents === undefined ? {} : { agents });
    } catch (error) {
      // Nothing is wrong with the names but that nobody has them.
      const isUnknown = PilotageError.is(error, 'agent_unknown');
      this.#stop({ error: isUnknown ? new UsageError(`--agent: ${error.message}`, { cause: error }) : error });
      return;
    }
    this.#hasBegun = true;
    this.#say('ready', { pid: process.pid, agents: this.#agents, slots, ...defined({ port: this.#server?.port }) });
  }

  #lost(error: unknown): void {
    const { code, message } = this.#wordsOf(error);
    this.#lostWith = code;
    const wasThere = this.#watch.roundTripMs !== undefined;
    // What was wrong from the start, or will never be right again, is for those who start the worker.
    if (isJournalGone(error) || !(wasThere || mayComeBack(error))) this.#stop({ error });
    else this.#say('journal_lost', { code, message });
  }

  #hear(news: RunNews): void {
    this.#counts.hear(news);
    const { type, run, tenant, agent } = news;
    if (type === 'claimed') {
      this.#say('run_claimed', { run, tenant, agent });
      return;
    }
    const { status, reasons, drivenMs } = news;
    if (this.#isDraining && status === 'broken') this.#notTaken += 1;
    const fact = status === 'finished' || status === 'failed' || status === 'cancelled' ? 'run_ended' : 'run_let_go';
    this.#say(fact, { run, tenant, agent, status, ...defined({ reasons }), drivenMs: Math.round(drivenMs) });
  }

  /** What comes of the journal's absence is counted, and not told once more. */
  async #fault(error: unknown): Promise<void> {
    const { code, message, isOurs, run } = this.#wordsOf(error);
    this.#counts.fault(isOurs ? code : 'other');
    if (isTransientStoreError(error) && !(await this.#watch.look())) return;
    this.#say('fault', { code, message, ...(run === undefined ? {} : { run }) });
  }

  #wordsOf(error: unknown): { code: string; message: string; isOurs: boolean; run: string | undefined } {
    const { code, name, message, isOurs, data } = Thrown.of(error);
    const run = data?.['run'];
    return {
      code: code ?? name,
      message: shortLine(this.#redaction.all(message), 500),
      isOurs: isOurs && code !== undefined,
      run: typeof run === 'string' ? run : undefined,
    };
  }

  #signalled(signal: NodeJS.Signals): void {
    if (!this.#isDraining) this.#stop({ signal });
    else this.#hurry(signal);
  }

  /** @returns the exit code. @throws what ended it, when that was no signal. */
  async #drain(stop: Stop): Promise<number> {
    this.#isDraining = true;
    // Who could not begin has nothing to give back.
    const say = this.#hasBegun ? this.#say.bind(this) : () => {};
    const { graceMs } = this.#options;
    const cause = 'signal' in stop ? { signal: stop.signal } : { code: this.#wordsOf(stop.error).code };
    const startedAt = performance.now();
    say('draining', { ...cause, live: this.#counts.live, graceMs });
    // A journal that is away takes nothing back, and is closed late: the leases run out then.
    const longestMs = Math.min(graceMs + GIVE_BACK_MS, LONGEST_TIMER_MS);
    setTimeout(() => this.#leave(EXIT.terminated), longestMs).unref();
    await this.#runtime.close({ graceMs });
    const isWhole = this.#notTaken === 0;
    if (isWhole) say('drained', { ms: Math.round(performance.now() - startedAt) });
    else say('cut_short', { runs: this.#notTaken });
    if ('error' in stop) throw stop.error;
    this.#concluded = this.#hurriedWith ?? (isWhole ? EXIT.goal : EXIT.terminated);
    return this.#concluded;
  }

  /** A second signal: what is under way is aborted, and given back if the journal takes it at once. */
  #hurry(signal: NodeJS.Signals): void {
    const code = signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
    this.#hurriedWith = code;
    setTimeout(() => this.#leave(code), HURRIED_MS).unref();
    void this.#runtime.close({ graceMs: 0 });
  }

  #leave(code: number): never {
    if (this.#concluded === undefined) this.#say('cut_short', { runs: this.#counts.live + this.#notTaken });
    process.exit(this.#concluded ?? code);
  }

  #say(fact: string, about: object): void {
    this.#terminal.note(terminalJson({ at: new Date().toISOString(), fact, ...about }));
  }
}

function namesOf({ planner, agents = [] }: RuntimeOptions): readonly string[] {
  const own = planner === undefined || typeof planner === 'function' ? [] : [planner.name];
  return [...own, ...agents.map(({ name }) => name)];
}
