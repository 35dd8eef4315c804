/** The planners that exist conform, and for each check there is a planner that breaks it, and it alone. */
import assert from 'node:assert/strict';
import { describe, expect, it } from 'vitest';
import {
  asPlanner,
  type Decision,
  type Delta,
  type Finish,
  type Json,
  type Move,
  type Planner,
  type RunView,
  type SpawnTask,
} from '#core';
import { deterministic } from '#planners/deterministic';
import { finish } from '#planners/finish';
import { graph } from '#planners/graph';
import { react } from '#planners/react';
import { rules } from '#planners/rules';
import type { PlanStep } from '#plans';
import {
  type PlannerCapabilities,
  type PlannerConformanceOptions,
  type PlannerScenario,
  type PlannerScenarioName,
  plannerConformance,
  scriptedModel,
} from '#testing';
import { ask } from '../kit/ask.ts';

const FINISH: PlannerConformanceOptions = {
  name: 'finish',
  capabilities: { modelDriven: false, canPause: false, wakeRoundTrip: false, honoursCancel: true },
  skip: { 'parallel shape': 'it makes no calls' },
  make: () => finish({ payload: 'done' }),
};

const REACT: PlannerConformanceOptions = {
  name: 'react',
  capabilities: { modelDriven: true, canPause: false, wakeRoundTrip: true, honoursCancel: true },
  make: ({ model }) => react({ model, tasks: true }),
};

const DETERMINISTIC: PlannerConformanceOptions = {
  name: 'deterministic',
  capabilities: { modelDriven: false, canPause: true, wakeRoundTrip: true, honoursCancel: true },
  make: stepsFor,
};

function stepsFor({ name, tools: { lookUp } }: PlannerScenario): Planner {
  const end = { do: 'finish', reason: 'goal', payload: (run: RunView) => run.query } as const;
  switch (name) {
    case 'parallel shape': {
      const branches = ['Lisbon', 'Porto', 'Faro'].map((about) => ({ tool: lookUp, args: { about } }));
      return deterministic({ steps: [{ do: 'parallel', branches, once: true }, end] });
    }
    case 'wake round trip': {
      const spec = { description: 'sheep', query: 'Count the sheep' };
      const step = { do: 'spawn_and_await', spec, onResolved: () => GOAL } as const;
      return deterministic({ steps: [step] });
    }
    case 'pause payload bounds': {
      const payload = (run: RunView): { question: string } => ({ question: run.goal.slice(0, 200) });
      return deterministic({ steps: [{ do: 'pause', reason: 'await_input', payload }, end] });
    }
    default: {
      const args = (run: RunView): Json => ({ about: run.query.slice(0, 200) });
      return deterministic({ steps: [{ do: 'call', tool: lookUp, args, once: true }, end] });
    }
  }
}

const GRAPH: PlannerConformanceOptions = {
  name: 'graph',
  capabilities: { modelDriven: false, canPause: false, wakeRoundTrip: false, honoursCancel: true },
  make: ({ tools: { lookUp } }) =>
    graph({
      plan: ({ tools, query }) => {
        const end: PlanStep = { id: 'end', type: 'finish', input: query };
        if (tools.get(lookUp) === undefined) return { steps: [end] };
        const steps = ['Lisbon', 'Porto', 'Faro'].map((about) => lookUpStep(about, lookUp, { about }));
        return { steps: [...steps.map((step) => ({ ...step, after: [] })), end] };
      },
    }),
};

const RULES: PlannerConformanceOptions = {
  name: 'rules',
  capabilities: { modelDriven: false, canPause: false, wakeRoundTrip: false, honoursCancel: true },
  skip: { 'parallel shape': 'a rule decides one step at a time' },
  make: ({ tools: { lookUp } }) =>
    rules({
      rules: [
        {
          id: 'look',
          match: ({ stepCount }, run) => stepCount === 0 && run.tools.get(lookUp) !== undefined,
          toPlanStep: ({ goal = '' }) => lookUpStep('look', lookUp, { about: goal.slice(0, 200) }),
        },
        { id: 'end', match: () => true, toPlanStep: ({ goal = '' }) => ({ id: 'end', type: 'finish', input: goal }) },
      ],
    }),
};

function lookUpStep(id: string, toolId: string, input: Json): PlanStep {
  return { id, type: 'tool', toolId, input };
}

/** A planner as somebody may write it by hand, without a model; push. */
function program(scenario: PlannerScenario): Planner {
  const next: Planner['next'] = async (view, signal) => {
    signal.throwIfAborted();
    return nextOf(scenario, view);
  };
  return { name: 'program', wakeMode: 'push', next };
}

const GOAL: Finish = { kind: 'finish', reason: 'goal' };
const SPAWN: SpawnTask = { kind: 'spawn_task', task: 'background', spec: { description: 'sheep', query: 'Count' } };

function nextOf({ name, tools: { lookUp } }: PlannerScenario, { trajectory, query }: RunView): Decision {
  const isFirst = trajectory.count === 0;
  switch (name) {
    case 'parallel shape': {
      const branches = ['a', 'b'].map((about) => ({
        id: about,
        tool: lookUp,
        args: { about },
        callId: `call-${about}`,
      }));
      return isFirst ? { kind: 'call_parallel', branches } : GOAL;
    }
    case 'wake round trip':
      if (isFirst) return SPAWN;
      return trajectory.background.length > 0 ? GOAL : { kind: 'request_pause', reason: 'external_event' };
    case 'pause payload bounds':
      return isFirst ? { kind: 'request_pause', reason: 'await_input', payload: { question: 'May I?' } } : GOAL;
    default:
      return isFirst ? { kind: 'call_tool', tool: lookUp, args: { about: query } } : { ...GOAL, payload: query };
  }
}

const PROGRAM: PlannerConformanceOptions = {
  name: 'program',
  capabilities: { modelDriven: false, canPause: true, wakeRoundTrip: true, honoursCancel: true },
  make: program,
};

function casesOf(options: PlannerConformanceOptions): ReturnType<typeof plannerConformance> {
  return plannerConformance(options).filter(({ skip }) => skip === undefined);
}

/** Other ways in which people set a planner up. */
const VARIANTS: readonly PlannerConformanceOptions[] = [
  { ...REACT, name: 'react that polls', make: ({ model }) => ({ ...react({ model, tasks: true }), wakeMode: 'poll' }) },
  {
    ...REACT,
    name: 'react with calls in text',
    make: ({ model }) => react({ model: { model, toolCalls: 'text' }, tasks: true }),
  },
  {
    ...REACT,
    name: 'react in a conversation',
    capabilities: { modelDriven: true, canPause: true, wakeRoundTrip: false, honoursCancel: true },
    skip: { 'parallel shape': 'its runs end only when somebody says so' },
    make: ({ model }) => react({ model, converse: true }),
  },
];

describe.each([
  FINISH,
  DETERMINISTIC,
  GRAPH,
  RULES,
  REACT,
  PROGRAM,
  ...VARIANTS,
])('PC-25, PC-27, PC-28, PC-29 conformance of $name', (options) => {
  it.each(casesOf(options).map((check) => [check.name, check.run] as const))('%s', (_name, run) => run());
});

describe('what is skipped', () => {
  const skippedBy = (options: PlannerConformanceOptions): Record<string, string | undefined> => {
    const cases = plannerConformance(options).filter(({ skip }) => skip !== undefined);
    return Object.fromEntries(cases.map(({ scenario, skip }) => [scenario, skip]));
  };

  it('PC-26 follows from the capabilities, with a reason for each', () => {
    expect(skippedBy(REACT)).toEqual({ 'pause payload bounds': 'the planner does not pause' });
    expect(skippedBy(DETERMINISTIC)).toEqual({
      'malformed output': 'the planner has no model whose output could be malformed',
    });
    expect(skippedBy(FINISH)).toEqual({
      'malformed output': 'the planner has no model whose output could be malformed',
      'parallel shape': 'it makes no calls',
      'wake round trip': 'the planner spawns no tasks',
      'pause payload bounds': 'the planner does not pause',
    });
    const none: PlannerCapabilities = {
      modelDriven: false,
      canPause: false,
      wakeRoundTrip: false,
      honoursCancel: false,
    };
    expect(Object.keys(skippedBy({ ...PROGRAM, capabilities: none }))).toEqual([
      'malformed output',
      'wake round trip',
      'pause payload bounds',
      'steering drain',
    ]);
  });

  it('PC-25 never passes, also when somebody runs it all the same', async () => {
    const skipped = plannerConformance(FINISH).filter(({ skip }) => skip !== undefined);
    for (const { run, skip } of skipped) await expect(run()).rejects.toThrow(`skipped, for ${skip}`);
    expect(plannerConformance(FINISH)).toHaveLength(14);
  });
});

/** A conforming planner with one thing changed. */
type Break = (good: Planner, scenario: PlannerScenario) => Planner;

interface Broken {
  readonly fails: PlannerScenarioName;
  readonly why: string;
  readonly base: PlannerConformanceOptions;
  readonly by: Break;
  readonly message: RegExp;
}

/** Asks the good planner, and does something else with its move when `change` gives something. */
function changed(change: (view: RunView, move: Move, signal: AbortSignal) => unknown): Break {
  return (good) => ({
    ...good,
    next: async (view, signal) => {
      const move = await ask(good, view, signal);
      return (change(view, move, signal) ?? move) as Move;
    },
  });
}

/** Decides something before the good planner is asked. */
function before(decision: (view: RunView, signal: AbortSignal) => unknown): Break {
  return (good) => ({
    ...good,
    next: (view, signal) => (decision(view, signal) as Decision | undefined) ?? good.next(view, signal),
  });
}

const lookUpOf = (args: Json): Decision => ({ kind: 'call_tool', tool: 'look_up', args });

const BROKEN: readonly Broken[] = [
  {
    fails: 'decision kinds',
    why: 'its stream ends without a decision',
    base: PROGRAM,
    by: before((view) => (view.streaming ? streamOfNothing() : undefined)),
    message: /gave undefined in place of a decision/,
  },
  {
    fails: 'decision kinds',
    why: 'it streams something else than deltas',
    base: REACT,
    by: before((view) => (view.streaming ? streamOf({ type: 'noise' }) : undefined)),
    message: /which is not a delta/,
  },
  {
    fails: 'wake mode',
    why: 'it changes its mind',
    base: PROGRAM,
    by: ({ wakeMode: _, ...good }) => {
      let asked = 0;
      const next: Planner['next'] = (view, signal) => {
        asked += 1;
        return good.next(view, signal);
      };
      return Object.defineProperty({ ...good, next }, 'wakeMode', { get: () => (asked > 50 ? 'hybrid' : 'push') });
    },
    message: /changed between runs: push, hybrid/,
  },
  {
    fails: 'wake mode',
    why: 'it says that it has no model',
    base: PROGRAM,
    by: (good) => ({ ...good, modelDriven: true }),
    message: /modelDriven/,
  },
  {
    fails: 'closed union',
    why: 'it waits when nobody answers',
    base: PROGRAM,
    by: changed(({ trajectory }) => (isVerdict(trajectory.step(0), 'timeout') ? { kind: 'wait' } : undefined)),
    message: /answered with timeout: .* must be one of call_tool/,
  },
  {
    fails: 'closed union',
    why: 'it cannot read a decision that was refused',
    base: REACT,
    by: before(({ trajectory }) => {
      if (trajectory.step(0)?.error?.code === 'invalid_decision') throw new TypeError('What is this?');
    }),
    message: /step 1: the planner threw What is this/,
  },
  {
    fails: 'top prompts',
    why: 'it knows no conversations',
    base: PROGRAM,
    by: before(({ history }) => {
      if (history.length > 0) throw new Error('No history, please.');
    }),
    message: /the next question of a conversation: the planner threw No history/,
  },
  {
    fails: 'top prompts',
    why: 'a goal that has changed makes it call nothing',
    base: REACT,
    by: changed(({ goal, query, trajectory }) =>
      goal !== query && trajectory.count === 0 ? { kind: 'call_parallel', branches: [] } : undefined,
    ),
    message: /a goal that has changed: .* no branches/,
  },
  {
    fails: 'malformed output',
    why: 'it takes whatever comes for the answer',
    base: REACT,
    by: changed((_view, { fault, text }) => (fault === undefined ? undefined : { ...GOAL, payload: text ?? '' })),
    message: /was taken for the goal/,
  },
  {
    fails: 'malformed output',
    why: 'it throws what JSON.parse throws',
    base: REACT,
    by: changed((_view, { decision }) => {
      if (decision.kind === 'call_tool' && typeof decision.args === 'string') JSON.parse(decision.args);
    }),
    message: /untyped error/,
  },
  {
    fails: 'malformed output',
    why: 'it gives nothing when it does not understand',
    base: REACT,
    by: (good) => ({
      ...good,
      next: async (view, signal) => {
        const move = await ask(good, view, signal);
        return (move.fault === undefined ? move : undefined) as Move;
      },
    }),
    message: /in place of a decision/,
  },
  {
    fails: 'parallel shape',
    why: 'its call ids are all the same',
    base: PROGRAM,
    by: changed((_view, { decision }) => withBranches(decision, (branch) => ({ ...branch, callId: 'id' }))),
    message: /used more than once/,
  },
  {
    fails: 'parallel shape',
    why: 'its join waits for more branches than there are',
    base: PROGRAM,
    by: changed((_view, { decision }) =>
      decision.kind === 'call_parallel' ? { ...decision, join: { kind: 'n', n: 9 } } : undefined,
    ),
    message: /join/,
  },
  {
    fails: 'parallel shape',
    why: "it loses the ids of the model's calls",
    base: REACT,
    by: changed((_view, { decision }) => withBranches(decision, ({ callId: _, ...branch }) => branch)),
    message: /no callId/,
  },
  {
    fails: 'parallel shape',
    why: 'it makes the first of several calls only',
    base: REACT,
    by: changed((_view, { decision }) => (decision.kind === 'call_parallel' ? firstOf(decision) : undefined)),
    message: /no parallel call/,
  },
  {
    fails: 'wake round trip',
    why: 'it finishes before the result has come',
    base: PROGRAM,
    by: before(({ trajectory }) => (trajectory.tasks.length > 0 ? GOAL : undefined)),
    message: /not every task was complete|not in trajectory.background/,
  },
  {
    fails: 'wake round trip',
    why: 'it stays with the task, and is told nothing',
    base: PROGRAM,
    by: changed(({ trajectory }, { decision }) => {
      if (trajectory.tasks.length > 0) return GOAL;
      return decision.kind === 'spawn_task' ? { ...decision, spec: { ...SPAWN.spec, retainTurn: true } } : undefined;
    }),
    message: /not in trajectory.background/,
  },
  {
    fails: 'wake round trip',
    why: 'it polls, and awaits nothing',
    base: DETERMINISTIC,
    by: changed((_view, { decision }) => (decision.kind === 'await_task' ? GOAL : undefined)),
    message: /not every task was complete|awaited nothing/,
  },
  {
    fails: 'wake round trip',
    why: 'it spawns nothing',
    base: REACT,
    by: changed((_view, { decision }) => (decision.kind === 'spawn_task' ? GOAL : undefined)),
    message: /spawned no task/,
  },
  {
    fails: 'past deadline',
    why: 'it begins something when its time is up',
    base: PROGRAM,
    by: before(({ budget }, signal) => (isLate(budget) && signal.aborted ? lookUpOf({ about: 'x' }) : undefined)),
    message: /its decision was another/,
  },
  {
    fails: 'past deadline',
    why: 'it asks its model when its time is up',
    base: REACT,
    by: (good) => ({
      ...good,
      next: (view, signal) => good.next(view, isLate(view.budget) ? new AbortController().signal : signal),
    }),
    message: /its decision was another/,
  },
  {
    fails: 'pause payload bounds',
    why: 'it shows the whole request',
    base: PROGRAM,
    by: changed((view, { decision }) =>
      decision.kind === 'request_pause' && decision.reason === 'await_input'
        ? { ...decision, payload: { goal: view.goal } }
        : undefined,
    ),
    message: /more than 4000000 characters/,
  },
  {
    fails: 'pause payload bounds',
    why: 'the planner does not pause',
    base: DETERMINISTIC,
    by: changed((_view, { decision }) => (decision.kind === 'request_pause' ? GOAL : undefined)),
    message: /was to pause, and decided finish/,
  },
  {
    fails: 'steering drain',
    why: 'it goes on when it is called off',
    base: PROGRAM,
    by: before(({ budget }, signal) => (signal.aborted && !isLate(budget) ? lookUpOf({ about: 'x' }) : undefined)),
    message: /aborted signal: its decision was another/,
  },
  {
    fails: 'steering drain',
    why: 'a message makes it fail',
    base: DETERMINISTIC,
    by: before(({ controls }) => {
      if (controls.some(({ type }) => type === 'USER_MESSAGE')) throw new Error('Not now.');
    }),
    message: /step 1: the planner threw Not now/,
  },
  {
    fails: 'steering drain',
    why: 'its model is not told of the message',
    base: REACT,
    by: (_good, { model }) =>
      react({
        model,
        tasks: true,
        buildPrompt: (_view, ours) => ours().filter((turn) => !JSON.stringify(turn).includes('Mind the gap')),
      }),
    message: /exactly once/,
  },
  {
    fails: 'steering drain',
    why: 'it takes an interruption for the end of its work',
    base: REACT,
    by: (good) => ({
      ...good,
      next: async (view, signal) => {
        signal.throwIfAborted();
        return ask(good, view, signal).catch((error: unknown) => {
          if (signal.aborted) return { decision: GOAL };
          throw error;
        });
      },
    }),
    message: /aborted while its model was thinking/,
  },
  {
    fails: 'concurrent reuse',
    why: 'it remembers the last query, whose ever it was',
    base: PROGRAM,
    by: (good) => {
      let last = '';
      return changed((view, { decision }) => {
        if (view.trajectory.count === 0) last = view.query;
        else if (decision.kind === 'finish' && decision.payload !== undefined) return { ...decision, payload: last };
      })(good, {} as PlannerScenario);
    },
    message: /something of another run/,
  },
  {
    fails: 'concurrent reuse',
    why: 'it counts on itself',
    base: REACT,
    by: (good) => {
      const planner = {
        ...good,
        count: 0,
        next(view: RunView, signal: AbortSignal) {
          planner.count += 1;
          return good.next(view, signal);
        },
      };
      return planner;
    },
    message: /was changed by its runs: this\.count/,
  },
  {
    fails: 'concurrent reuse',
    why: 'it keeps something of its runs deep inside of itself',
    base: PROGRAM,
    by: (good) => ({
      ...good,
      seen: { byKind: new Map<string, number>() },
      next(this: { seen: { byKind: Map<string, number> } }, view: RunView, signal: AbortSignal) {
        this.seen.byKind.set('asked', (this.seen.byKind.get('asked') ?? 0) + 1);
        return good.next(view, signal);
      },
    }),
    message: /was changed by its runs: this\.seen\.byKind\.asked/,
  },
  {
    fails: 'concurrent reuse',
    why: 'it keeps the id of a run across an await',
    base: PROGRAM,
    by: (good) => {
      let current = '';
      return {
        ...good,
        next: async (view, signal) => {
          current = view.identity.run;
          const move = await ask(good, view, signal);
          const { decision } = move;
          return decision.kind === 'finish' ? { ...move, decision: { ...decision, payload: current } } : move;
        },
      };
    },
    message: /with something of another run in it/,
  },
  {
    fails: 'concurrent reuse',
    why: 'it keeps the user of a run in itself, for as long as it decides',
    base: REACT,
    by: (good) => ({
      ...good,
      user: '',
      async next(this: { user: string }, view: RunView, signal: AbortSignal): Promise<Move> {
        this.user = view.identity.user;
        const move = await ask(good, view, signal);
        const told = { ...move, text: `${move.text ?? ''} for ${this.user}` };
        this.user = '';
        return told;
      },
    }),
    message: /with something of another run in it/,
  },
  {
    fails: 'same decision',
    why: 'it counts over all runs',
    base: PROGRAM,
    by: (good) => {
      let decided = 0;
      return changed((_view, { decision }) => {
        decided += 1;
        return decision.kind === 'finish' && decision.payload !== undefined
          ? { ...decision, payload: `${decided}` }
          : undefined;
      })(good, {} as PlannerScenario);
    },
    message: /counts, or keeps something, outside of the run/,
  },
  {
    fails: 'untouched view',
    why: 'it writes into its budget',
    base: PROGRAM,
    by: before(({ budget }) => void Reflect.set(budget, 'stepsLeft', 1)),
    message: /changed its view: run\.budget\.stepsLeft/,
  },
  {
    fails: 'untouched view',
    why: 'it adds a step to those that it was shown',
    base: REACT,
    by: before(({ trajectory: { steps } }) => void Reflect.set(steps, steps.length, null)),
    message: /changed its view: run\.trajectory\.steps/,
  },
  {
    fails: 'untouched view',
    why: 'it takes groups out of their map',
    base: PROGRAM,
    by: before(({ trajectory: { groups } }) => void (groups instanceof Map && groups.clear())),
    message: /changed its view: run\.trajectory\.groups/,
  },
  {
    fails: 'no timers',
    why: 'its own time limit goes on ticking',
    base: PROGRAM,
    by: before(() => void setTimeout(() => {}, 5_000)),
    message: /left timers behind[\s\S]*setTimeout of 5000 ms/,
  },
  {
    fails: 'no timers',
    why: 'it looks for news for ever',
    base: PROGRAM,
    by: before(() => void setInterval(() => {}, 3_600_000).unref()),
    message: /left timers behind[\s\S]*setInterval of 3600000 ms/,
  },
  {
    fails: 'no timers',
    why: 'it clears its time limit only when it was not called off',
    base: REACT,
    by: (good) => ({
      ...good,
      next: async (view, signal) => {
        const timer = setTimeout(() => {}, 5_000);
        const move = await ask(good, view, signal);
        clearTimeout(timer);
        return move;
      },
    }),
    message: /called off while it decides: the planner has settled, and left timers behind/,
  },
];

async function* endless(): AsyncGenerator<Delta, Decision> {
  for (;;) yield { type: 'text', text: 'and ' };
}

async function* stalled(): AsyncGenerator<Delta, Decision> {
  yield { type: 'text', text: 'and ' };
  return new Promise(() => {});
}

async function* streamOfNothing(): AsyncGenerator<never, void> {}

async function* streamOf(delta: unknown): AsyncGenerator<unknown, Decision> {
  yield delta;
  return GOAL;
}

function isVerdict(step: ReturnType<RunView['trajectory']['step']>, verdict: string): boolean {
  const outcome = step?.calls[0]?.outcome;
  return outcome?.kind === 'verdict' && outcome.verdict === verdict;
}

function isLate({ deadlineAt }: RunView['budget']): boolean {
  return deadlineAt !== undefined && deadlineAt < Date.now();
}

type Branches = Extract<Decision, { kind: 'call_parallel' }>['branches'];

function withBranches(
  decision: Decision,
  change: (branch: Branches[number]) => Branches[number],
): Decision | undefined {
  return decision.kind === 'call_parallel' ? { ...decision, branches: decision.branches.map(change) } : undefined;
}

function firstOf({ branches }: Extract<Decision, { kind: 'call_parallel' }>): Decision {
  const [{ tool, args, callId }] = branches as readonly [Branches[number]];
  return { kind: 'call_tool', tool, args, ...(callId === undefined ? {} : { callId }) };
}

describe('the kit', () => {
  it.each(BROKEN)('PC-25 finds that $base.name fails "$fails" when $why', async ({ base, by, fails, message }) => {
    const make = async (scenario: PlannerScenario): Promise<Planner> =>
      by(asPlanner(await base.make(scenario)), scenario);
    const failed: string[] = [];
    for (const { scenario, run } of casesOf({ ...base, make })) {
      try {
        await run();
      } catch (error) {
        if (scenario !== fails) throw error;
        expect(error).toBeInstanceOf(assert.AssertionError);
        expect((error as Error).message).toMatch(message);
        failed.push(scenario);
      }
    }
    expect(failed).toEqual([fails]);
  });

  it('takes a plain function, and a planner that says nothing of a wake mode, as push', async () => {
    const byFunction: PlannerConformanceOptions = { ...PROGRAM, make: (scenario) => program(scenario).next };
    const unsaid: PlannerConformanceOptions = {
      ...PROGRAM,
      make: (scenario) => ({ name: 'unsaid', next: program(scenario).next }),
    };
    for (const options of [byFunction, unsaid]) for (const { run } of casesOf(options)) await run();
  });

  it.each<readonly [string, Planner['next']]>([
    ['waits for what never comes', () => new Promise(() => {})],
    ['streams without end', endless],
    ['streams, and stops in the middle', stalled],
  ])('ends each case of a planner that %s, and says so', async (_why, next) => {
    const make = (): Planner => ({ name: 'unsettled', wakeMode: 'push', next });
    const messages: string[] = [];
    for (const { scenario, run } of casesOf({ ...PROGRAM, make, timeoutMs: 5 })) {
      // Nobody asks it when the time is up before it could be asked.
      const error = await run().catch((thrown: unknown) => thrown);
      expect(error, scenario).toBeInstanceOf(assert.AssertionError);
      messages.push((error as Error).message);
    }
    expect(messages.filter((message) => message.includes('never settled'))).not.toEqual([]);
    expect(messages[0]).toMatch(
      /^asked without a listener: the planner threw the planner never settled|the planner never settled/,
    );
  });

  it('has a broken planner for each of its checks', () => {
    const names = plannerConformance(PROGRAM).map(({ scenario }) => scenario);
    expect([...new Set(BROKEN.map(({ fails }) => fails))]).toEqual(names);
  });

  it('does not pass a planner that has a model of its own in place of the one of the scenario', async () => {
    const make = (): Planner => react({ model: scriptedModel(() => ({ text: 'Always the same.' })), tasks: true });
    for (const { scenario, run } of casesOf({ ...REACT, make })) {
      if (scenario === 'wake mode' || scenario === 'closed union' || scenario === 'past deadline') continue;
      await expect(run(), scenario).rejects.toBeInstanceOf(assert.AssertionError);
    }
  });

  it('PC-14 refuses a word that is no wake mode', async () => {
    const make = (scenario: PlannerScenario): Planner => ({ ...program(scenario), wakeMode: 'eager' as 'push' });
    const check = casesOf({ ...PROGRAM, make }).find(({ scenario }) => scenario === 'wake mode');
    await expect(check?.run()).rejects.toThrow(/invalid_config: .*"eager"/);
  });

  it('refuses moves whose notes cannot be recorded', async () => {
    const noted = (notes: unknown): PlannerConformanceOptions => ({
      ...PROGRAM,
      make: (scenario) =>
        changed((_view, { decision }) => ({ decision, ...(notes as object) }))(program(scenario), scenario),
    });
    for (const notes of [{ text: 5 }, { remarks: [{ type: 'made.up' }] }, { remarks: 'none' }]) {
      const [first] = casesOf(noted(notes));
      await expect(first?.run()).rejects.toBeInstanceOf(assert.AssertionError);
    }
  });
});
