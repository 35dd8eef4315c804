/** One play: a scenario, cut at the moments of a seed, until its run has ended and nothing can come of it any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PauseNotice } from '#runtime';
import { foldEntries } from '#state';
import { seededRandom, treeOf } from '#testing';
import type { PlaySettings, Said } from './actor.ts';
import type { Actor } from './actors.ts';
import { type CutName, GRACE_MS, LEASE_MS, type Script, script } from './cuts.ts';
import { ledgerOf } from './ledger.ts';
import { Voiced } from './model.ts';
import { answerTo, missingIn, openAttempts } from './person.ts';
import type { Scenario } from './scenarios.ts';
import type { Stage } from './stage.ts';
import type { Trap } from './traps.ts';
import { type Problems, problemsOf } from './verdict.ts';

export interface PlayReport {
  readonly scenario: string;
  readonly cut: CutName;
  readonly seed: number;
  readonly script: Script;
  /** What was done to its processes, and how often: nothing, when the run never came by the place. */
  readonly made: Made;
  /** Effects that happened. */
  readonly effects: number;
  /** Calls in doubt that somebody settled. */
  readonly settled: number;
  readonly problems: Problems;
}

/** `say`: something hostile was said. */
export type Made = Readonly<Partial<Record<Trap['act'] | 'say', number>>>;

const PATIENCE_MS = 60_000;
const LOOK_MS = 10;
/** Nobody has renewed a lease for so long that it is over. */
const LEASE_OVER_MS = LEASE_MS + 30;
/** Whoever does not take the run over within this time has no need to: it waits for somebody. */
const CLAIM_MS = 3_000;
/** Told of a process that lost its run while it stood still, or while others wrote. */
const EXPECTED_FAULTS: readonly string[] = ['lease_lost', 'runtime_closed', 'run_ended', 'pause_not_found'];

/** @param plan default: that of the seed. */
export async function play(
  stage: Stage,
  scenario: Scenario,
  cut: CutName,
  seed: number,
  plan: Script = script(cut, seededRandom(seed)),
): Promise<PlayReport> {
  const voice = scenario.voice && new Voiced(scenario.voice, plan.page, plan.slip);
  const id = stage.newPlay(voice);
  const settings: PlaySettings = {
    play: id,
    scenario: scenario.name,
    page: plan.page,
    baseUrl: stage.baseUrl,
    leaseMs: LEASE_MS,
    takeoverGraceMs: GRACE_MS,
    timeoutMs: plan.timeoutMs,
    ...(plan.vague === undefined ? {} : { vague: plan.vague }),
    ...(plan.deadlineMs === undefined ? {} : { deadlineMs: plan.deadlineMs }),
  };
  const course = new Course(stage, settings, plan);
  const faults = await course.run();
  const wanted = scenario.asks(plan.page);
  const ledger = ledgerOf(stage.folder, id);
  const asked = voice === undefined ? wanted : voice.asked;
  const problems = problemsOf({ cut, ledger, asked, wanted, tree: await treeIn(stage, id) });
  return {
    scenario: scenario.name,
    cut,
    seed,
    script: plan,
    made: cut === 'hostile' ? { ...course.made, say: 1 } : course.made,
    effects: ledger.filter(({ what }) => what === 'done').length,
    settled: course.settled,
    problems: { ...problems, other: [...problems.other, ...faults] },
  };
}

async function treeIn({ journal }: Stage, run: string) {
  if ((await journal.get(run)) === undefined) return [];
  const ids = await treeOf(journal, run);
  return Promise.all(
    ids.map(async (id) => {
      const entries = await journal.read(id);
      return { entries, state: foldEntries(entries), record: await journal.get(id) };
    }),
  );
}

/** The course of a play: who acts, who stands still, who has to be answered. */
class Course {
  readonly #stage: Stage;
  readonly #settings: PlaySettings;
  readonly #script: Script;
  readonly #cast: Actor[] = [];
  readonly #traps = new Map<Actor, Trap>();
  readonly #still = new Set<Actor>();
  readonly #open = new Map<string, PauseNotice>();
  /** Who was told the answer to which pause. */
  readonly #asked = new Map<string, Actor>();
  readonly #faults: string[] = [];
  readonly #deeds: Promise<void>[] = [];
  readonly #listening: (() => void)[] = [];
  /** By the one that came last. */
  #isClaimed = false;
  #hasEnded = false;
  made: Made = {};
  settled = 0;

  constructor(stage: Stage, settings: PlaySettings, plan: Script) {
    this.#stage = stage;
    this.#settings = settings;
    this.#script = plan;
  }

  /** @returns what went wrong. */
  async run(): Promise<readonly string[]> {
    await this.#enter();
    const until = performance.now() + PATIENCE_MS;
    while (!this.#isOver()) {
      if (performance.now() > until) {
        const open = [...this.#open.values()].map(({ payload }) => JSON.stringify(payload));
        this.#faults.push(`it did not end in ${PATIENCE_MS} ms; paused for ${open.join(', ') || 'nothing'}`);
        break;
      }
      this.#answer();
      await sleep(LOOK_MS);
    }
    await Promise.all(this.#deeds);
    await this.#stage.clear(this.#settings.play, this.#cast, this.#hasEnded);
    for (const stop of this.#listening) stop();
    return this.#faults;
  }

  /** Nothing can happen any more. */
  #isOver(): boolean {
    if (!this.#hasEnded || this.#still.size > 0) return false;
    return openAttempts(ledgerOf(this.#stage.folder, this.#settings.play), this.#stage).length === 0;
  }

  /** The next one comes on the stage: the first starts the run, others take it over. */
  async #enter(): Promise<void> {
    const { trap, second, resume } = this.#script;
    const isFirst = this.#cast.length === 0;
    const next = await this.#stage.nextActor(this.#cast);
    const own = isFirst ? trap : this.#cast.length === 1 ? second : undefined;
    if (own !== undefined) this.#traps.set(next, own);
    this.#cast.push(next);
    this.#isClaimed = false;
    this.#listening.push(next.listen(this.#settings.play, (said) => this.#hear(next, said)));
    const more = { settings: this.#settings, ...(own === undefined ? {} : { trap: own }) };
    next.tell(isFirst ? { do: 'start', ...more } : { do: 'take', resume, ...more });
  }

  #hear(actor: Actor, said: Said): void {
    switch (said.said) {
      case 'trap':
        this.#deed(this.#cut(actor));
        return;
      case 'claimed':
        if (actor === this.#cast.at(-1)) this.#isClaimed = true;
        return;
      case 'ended':
        this.#hasEnded = true;
        return;
      case 'paused':
        for (const pause of said.pauses) this.#open.set(pause.token, pause);
        return;
      case 'did':
        if (said.what === 'start') this.#deed(this.#cutFromOutside(actor));
        if (said.what === 'wake') this.#still.delete(actor);
        if (said.fault !== undefined) this.#fault(said.fault, `${said.what}: ${said.fault}`);
        return;
      case 'fault':
        this.#fault(said.code, `${said.code}: ${said.message}`);
        return;
      default:
    }
  }

  #fault(code: string, text: string): void {
    if (!EXPECTED_FAULTS.some((expected) => code.includes(expected))) this.#faults.push(`a fault was told: ${text}`);
  }

  #deed(deed: Promise<void>): void {
    this.#deeds.push(deed.catch((error: unknown) => void this.#faults.push(String(error))));
  }

  #count(act: Trap['act']): void {
    this.made = { ...this.made, [act]: (this.made[act] ?? 0) + 1 };
  }

  /** The process has said that it is where it is cut, and does so itself. */
  async #cut(actor: Actor): Promise<void> {
    const act = this.#traps.get(actor)?.act ?? 'kill';
    this.#count(act);
    const { play } = this.#settings;
    if (act === 'kill') {
      await actor.end;
      await this.#takeOver(true);
    } else if (act === 'stop' || act === 'block') await this.#stand(actor);
    else if (this.#script.cut === 'abort') actor.tell({ do: 'cancel', play });
  }

  async #cutFromOutside(actor: Actor): Promise<void> {
    const { afterMs, cut } = this.#script;
    if (afterMs === undefined) return;
    await sleep(afterMs);
    if (this.#hasEnded) return;
    const act = cut === 'kill' ? 'kill' : 'stop';
    this.#count(act);
    actor.signal(act === 'kill' ? 'SIGKILL' : 'SIGSTOP');
    if (act === 'stop') return this.#stand(actor);
    await actor.end;
    await this.#takeOver(true);
  }

  /** The next one comes when the lease is over, unless it is to find out itself that the owner is dead. */
  async #takeOver(isDead = false): Promise<void> {
    if (!isDead || !this.#script.resume) await sleep(LEASE_OVER_MS);
    await this.#enter();
  }

  async #untilClaimed(until: number): Promise<void> {
    while (!this.#isClaimed && !this.#hasEnded && performance.now() < until) await sleep(LOOK_MS);
  }

  /** Somebody else takes over, while this one stands still for a while. */
  async #stand(actor: Actor): Promise<void> {
    this.#still.add(actor);
    const since = performance.now();
    await this.#takeOver();
    await this.#untilClaimed(since + CLAIM_MS);
    const ms = this.#traps.get(actor)?.ms ?? this.#script.stillMs;
    await sleep(Math.max(0, ms - LEASE_OVER_MS));
    actor.tell({ do: 'wake', play: this.#settings.play });
    // One that is stopped just as it is told to go on would stand still for good.
    for (; this.#still.has(actor) && !actor.isDead; await sleep(LOOK_MS)) actor.signal('SIGCONT');
  }

  /** Somebody answers what can be answered now. */
  #answer(): void {
    const { play } = this.#settings;
    const { folder } = this.#stage;
    const around = {
      folder,
      isAnyStill: () => this.#still.size > 0,
      isAlive: (pid: number) => this.#stage.isAlive(pid),
    };
    for (const [token, pause] of this.#open) {
      // What was said to one that has died since may not have been heard.
      if (this.#asked.get(token)?.isDead === false) continue;
      const settlement = answerTo(pause, around);
      const actor = this.#cast.findLast(({ isDead }) => !isDead);
      if (settlement === undefined || actor === undefined) continue;
      if (!this.#asked.has(token)) {
        this.settled += 1;
        for (const part of missingIn(pause)) this.#faults.push(`the pause ${pause.reason} does not say ${part}`);
      }
      this.#asked.set(token, actor);
      actor.tell(
        this.#script.cancelsInDoubt === true ? { do: 'cancel', play } : { do: 'settle', play, token, settlement },
      );
    }
  }
}
