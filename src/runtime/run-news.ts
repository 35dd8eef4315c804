/** What a process tells of the runs that it drives: that it has taken one up, and how it has let go of it. */
import { type Clock, type PauseReason, steadyMs } from '#core';
import { answerable, isPaused, type RunState } from '#state';
import type { Exit } from '../loop/let-go.ts';

/** The first three have ended, the next two are parked. */
type HowLetGo =
  | 'finished'
  | 'failed'
  | 'cancelled'
  | 'waiting'
  | 'paused'
  /** To others, since this runtime is closed, or under a driver to whoever goes on with it. */
  | 'given_back'
  /** Another process has it. */
  | 'lost'
  /** It cannot go on here now, which `onFault` was told, or whoever waits for the run. */
  | 'broken';

export type RunNews = { readonly run: string; readonly tenant: string; readonly agent: string } & (
  | { readonly type: 'claimed' }
  | {
      readonly type: 'let_go';
      readonly status: HowLetGo;
      readonly drivenMs: number;
      /** Set when it is `paused`: for what, each reason once, also those of tasks that it waits for. */
      readonly reasons?: readonly PauseReason[];
    }
);

interface Driven {
  readonly state: RunState;
}

/** Tells of a run that is driven from now on until `exit`. */
export type TellRun = (driver: Driven, exit: Promise<Exit>) => void;

/** @param onFault hears what `onRun` throws. */
export function tellRuns(onRun: (news: RunNews) => void, clock: Clock, onFault: (error: unknown) => void): TellRun {
  const tell = (news: RunNews): void => {
    try {
      onRun(news);
    } catch (error) {
      onFault(error);
    }
  };
  return (driver, exit) => {
    const { identity, agent } = driver.state;
    const about = { run: identity.run, tenant: identity.tenant, agent };
    const since = steadyMs(clock);
    tell({ ...about, type: 'claimed' });
    void exit.then((how) => {
      const status = howLetGo(how, driver.state);
      const reasons = status === 'paused' ? { reasons: reasonsOf(driver.state) } : {};
      tell({ ...about, type: 'let_go', status, ...reasons, drivenMs: steadyMs(clock) - since });
    });
  };
}

function reasonsOf(state: RunState): readonly PauseReason[] {
  return [...new Set(answerable(state).map(({ reason }) => reason))];
}

function howLetGo({ kind }: Exit, state: RunState): HowLetGo {
  switch (kind) {
    case 'ended':
      if (state.ending?.kind === 'failed') return 'failed';
      return state.ending?.reason === 'cancelled' ? 'cancelled' : 'finished';
    case 'parked':
      return isPaused(state) ? 'paused' : 'waiting';
    case 'closed':
      return 'given_back';
    default:
      return kind;
  }
}
