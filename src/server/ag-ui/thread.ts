/** A thread of AG-UI: the visitor's session of the same id. */
import { type EventPayloads, PilotageError, type TaskPause } from '#core';
import type { Run, Session, TurnView } from '#runtime';
import { openPauses } from '../open-pauses.ts';
import type { PartContext } from '../part.ts';
import type { Visit } from '../visit.ts';
import { Mapper } from './mapper.ts';
import type { AgUiMessage } from './protocol.ts';
import type { Known } from './telling.ts';

/** The label of a run that holds the `runId` which the client gave it. */
export const RUN_LABEL = 'ag-ui-run';

/** What the journal says of a turn. */
export interface RecordedTurn {
  readonly known: Known;
  /** The answers by the tokens of their pauses, each with how far a client knows the turn that has not heard of the answer. */
  readonly answered: ReadonlyMap<string, { readonly answer: EventPayloads['pause.resumed']; readonly before: Known }>;
}

export class Thread {
  readonly session: Session;
  readonly #visit: Visit;
  readonly #context: PartContext;

  constructor(session: Session, visit: Visit, context: PartContext) {
    this.session = session;
    this.#visit = visit;
    this.#context = context;
  }

  /** The turn under way, behind which others may wait; without one the last turn. `undefined` also for one that the visitor may not see. */
  async current(): Promise<TurnView | undefined> {
    const current = await this.#current();
    return current === undefined || !(await this.#visit.sees(current.turn)) ? undefined : current;
  }

  async #current(): Promise<TurnView | undefined> {
    const last = (await this.session.turns({ limit: 1 })).at(-1);
    if (last?.waits !== true) return last;
    const { live } = (await this.#visit.runtime.sessions.get({ ...this.#visit.owner, session: this.session.id })) ?? {};
    return (await this.session.turns()).find(({ turn }) => turn === live?.run) ?? last;
  }

  /** A handle of one of the thread's runs, that acts for the visitor. */
  runOf(id: string): Run {
    return this.#visit.handle(id, this.session.id);
  }

  /** The first run of the turn to which a run belongs. */
  async firstOf(run: string): Promise<string> {
    const { turnOrigin } = await this.runOf(run).record();
    return turnOrigin?.succeeds === undefined ? run : this.firstOf(turnOrigin.succeeds);
  }

  /** The first runs of those turns on the branch that the visitor may see, oldest first. A turn that was interrupted stands before the one that has interrupted it. */
  async beginnings(): Promise<readonly string[]> {
    const turns = await this.session.turns({ limit: Number.MAX_SAFE_INTEGER });
    const runs = await Promise.all(
      turns.map(async ({ turn, interrupts = [] }) => {
        const isSeen = await this.#visit.sees(turn);
        return isSeen ? [...interrupts, await this.firstOf(turn)] : interrupts;
      }),
    );
    const all = runs.flat();
    const seen = await Promise.all(all.map((run) => this.#visit.sees(run)));
    return all.filter((_, index) => seen[index]);
  }

  /** @throws PilotageError `run_not_found` for a run that the visitor may not see. */
  async mustSee(run: string): Promise<void> {
    if (!(await this.#visit.sees(run))) throw new PilotageError('run_not_found', `There is no run ${run}.`);
  }

  /** The messages of the turns before this one. */
  async before(run: string): Promise<readonly AgUiMessage[]> {
    const runs = await this.beginnings();
    const mapper = new Mapper({ errorText: this.#context.errorText, state: {} });
    for (const each of runs.slice(0, Math.max(0, runs.indexOf(run)))) {
      for await (const event of this.runOf(each).events({ tasks: true, follow: false })) mapper.of(event);
    }
    return mapper.messages;
  }

  /** Reads how far the turn has come by now, with its tasks. */
  async read(run: string): Promise<RecordedTurn> {
    const known = new Map<string, number>();
    const answered = new Map<string, { answer: EventPayloads['pause.resumed']; before: Known }>();
    for await (const event of this.runOf(run).events({ tasks: true, follow: false })) {
      const { seq, identity } = event;
      if (event.type === 'pause.resumed')
        answered.set(event.token, { answer: event, before: new Map([...known, [identity.run, seq - 1]]) });
      known.set(identity.run, seq);
    }
    return { known, answered };
  }

  /** Resolves when the run, which waits, has taken the message out of its inbox. */
  async untilHeard(run: string, message: string, signal: AbortSignal): Promise<void> {
    for await (const event of this.runOf(run).events({ overPauses: true, signal })) {
      if (event.type === 'control.received' && event.control.turnMessage?.id === message) return;
    }
  }

  /** What the turn waits for now. @param run the last run of the turn. */
  async pauses(run: string): Promise<readonly TaskPause[]> {
    return openPauses(await this.runOf(run).state());
  }

  /** The run that a client has started under this `runId`. */
  async startedAs(runId: string): Promise<string | undefined> {
    const scope = { ...this.#visit.owner, session: this.session.id };
    const [run] = await this.#visit.runtime.list({ ...scope, labels: { [RUN_LABEL]: runId }, limit: 1 });
    return run?.identity.run;
  }

  /** The `runId` under which a client has started the turn, or else the id of the run. */
  async runIdOf(run: string): Promise<string> {
    const { labels } = await this.runOf(run).record();
    return labels?.[RUN_LABEL] ?? run;
  }
}
