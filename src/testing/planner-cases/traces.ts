/** What a planner leaves behind: nothing that its next decision, its view, or the process could show. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { type Decision, type GroupView, isMove, local, type Move, type Planner, type RunView, type Step } from '#core';
import { type ScriptedReply, type ScriptedRequest, scriptedModel } from '../models.ts';
import { type RunViewOptions, runView, toolView } from '../run-view.ts';
import {
  assertAsked,
  callNext,
  hasTool,
  LOOK_UP,
  type PlannerBench,
  type PlannerCase,
  requestText,
  shownError,
  Unsettled,
} from './kit.ts';
import { lookUpStep, ORDINARY, TOOLS } from './views.ts';

/** The same words for the same request, however often it was asked. */
function steady(request: ScriptedRequest): ScriptedReply {
  const isDone = requestText(request).includes('looked up') || !hasTool(request, LOOK_UP);
  if (isDone) return { text: 'This is the answer.' };
  return { calls: [{ id: 'call_steady', tool: LOOK_UP, args: { about: 'the weather' } }] };
}

const TIMES = 3;

/** What it decides, or that it fails: whether that is right is looked at elsewhere. @throws Unsettled */
async function settled(planner: Planner, view: RunView, signal?: AbortSignal): Promise<unknown> {
  try {
    const made = await callNext(planner, view, signal);
    return isMove(made as Decision | Move) ? (made as Move).decision : made;
  } catch (error) {
    if (error instanceof Unsettled) throw error;
    return shownError(error);
  }
}

/** Asks one planner object in turn, so that a number that it counts outside of a run differs each time. */
async function runSameDecision(bench: PlannerBench): Promise<void> {
  const made = await bench.make();
  const first: unknown[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    for (const [index, { when, view }] of ORDINARY.entries()) {
      const decision = await settled(made.planner, view);
      if (time === 0) first.push(decision);
      const message = `${when}: asked again about the same run, it decided something else. It counts, or keeps something, outside of the run`;
      assert.deepEqual(decision, first[index], message);
    }
  }
  assertAsked(bench, made);
}

/** Made anew, with nothing frozen: what is written to it stands there. */
function thawed(): readonly { readonly when: string; readonly view: RunView }[] {
  const step = (): Step => structuredClone(lookUpStep(0, 'the weather'));
  const tools = (): RunView['tools'] => toolView(structuredClone([...TOOLS.all()]));
  const group: GroupView = {
    id: 'g',
    status: 'completed',
    members: [{ id: 't', group: 'g', kind: 'background', description: 'a task', step: 0, pauses: [] }],
  };
  const options: readonly (readonly [string, () => RunViewOptions])[] = [
    ['a question', () => ({ query: 'What is the weather?', tools: tools() })],
    [
      'the next question of a conversation',
      () => ({
        query: 'And tomorrow?',
        history: [{ role: 'user', text: 'Hello!' }],
        context: { args: { place: ['Lisbon'] } },
      }),
    ],
    ['the step after a call', () => ({ query: 'What is the weather?', tools: tools(), steps: [step()] })],
    [
      'the end of a group',
      () => ({
        tools: tools(),
        steps: [step()],
        groups: [structuredClone(group)],
        background: [{ atStep: 1, group: structuredClone(group) }],
        controls: [{ id: 'c', type: 'USER_MESSAGE', payload: { text: 'Go on.' } }],
      }),
    ],
  ];
  return options.map(([when, make]) => {
    const view = runView({ identity: { ...local('kit') }, ...make() });
    return { when, view: { ...view, trajectory: { ...view.trajectory }, budget: { ...view.budget } } };
  });
}

async function runUntouchedView(bench: PlannerBench): Promise<void> {
  for (const { when, view } of thawed()) {
    const made = await bench.make();
    const before = leavesIn(view);
    await settled(made.planner, view);
    assertAsked(bench, made);
    const changed = firstDifference(before, leavesIn(view));
    assert.equal(changed, undefined, `${when}: the planner changed its view: run${changed}`);
  }
}

function leavesIn(view: RunView): ReadonlyMap<string, unknown> {
  return leavesOf({ ...view, tools: { list: view.tools.list(), all: view.tools.all() } });
}

/** A timer as Node has it. */
interface Ticking {
  hasRef(): boolean;
  /** Milliseconds of an interval. */
  readonly _repeat: number | null;
  readonly _idleTimeout: number;
}

async function runNoTimers(bench: PlannerBench): Promise<void> {
  for (const streaming of [false, true]) {
    const view = runView({ query: 'What is the weather?', tools: TOOLS, streaming });
    const made = await bench.make();
    await assertNoneLeft('asked for a decision', () => settled(made.planner, view));
    if (!streaming) assertAsked(bench, made);
    await assertNoneLeft('called off while it decides', () => calledOff(bench, view));
  }
}

/** Its model says nothing until it is called off. */
async function calledOff(bench: PlannerBench, view: RunView): Promise<unknown> {
  const { planner } = await bench.make(scriptedModel(() => ({ stall: true })));
  const calling = new AbortController();
  setImmediate(() => calling.abort(new DOMException('Never mind.', 'AbortError')));
  return settled(planner, view, calling.signal);
}

/** Those that are set while `use` is under way, by whatever it calls, and tick still a little later. */
async function assertNoneLeft(when: string, use: () => Promise<unknown>): Promise<void> {
  const inside = new AsyncLocalStorage<true>();
  const ticking = new Map<number, Ticking>();
  const hook = createHook({
    init(id, type, _trigger, timer) {
      if (type === 'Timeout' && inside.getStore() === true) ticking.set(id, timer as Ticking);
    },
    destroy: (id) => void ticking.delete(id),
  }).enable();
  try {
    await inside.run(true, use);
    // A timer that was cleared is told of a little later.
    for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  } finally {
    hook.disable();
  }
  // A timer that nobody waits for, and that runs once, does no harm: AbortSignal.timeout has one that nobody can clear.
  const left = [...ticking.values()].filter((timer) => timer.hasRef() || timer._repeat !== null);
  const shown = left.map(
    ({ _repeat, _idleTimeout: ms }) => `${_repeat === null ? 'setTimeout' : 'setInterval'} of ${ms} ms`,
  );
  assert.deepEqual(shown, [], `${when}: the planner has settled, and left timers behind`);
}

export const traceCases: readonly PlannerCase[] = [
  {
    name: 'same decision',
    about: 'the same run gives the same decision, whatever was asked in between',
    wants: 'Any decision that follows from the run alone.',
    script: steady,
    run: runSameDecision,
  },
  {
    name: 'untouched view',
    about: 'what it was shown is as it was',
    wants: 'Any decision.',
    script: steady,
    run: runUntouchedView,
  },
  {
    name: 'no timers',
    about: 'nothing ticks when it has decided, or was called off',
    wants: 'Any decision.',
    script: steady,
    run: runNoTimers,
  },
];

// Everything that stands in a value, by its path, so that a change can be named.

const DEEPEST = 12;

/** Plain objects, lists, maps and sets are looked into, and what is kept on functions; the value itself whatever it is. */
export function leavesOf(
  value: unknown,
  isForeign: (part: unknown) => boolean = () => false,
): ReadonlyMap<string, unknown> {
  const leaves = new Map<string, unknown>();
  const seen = new Set<unknown>();
  const walk = (part: unknown, path: string, depth: number): void => {
    const parts = isForeign(part) || seen.has(part) || depth > DEEPEST ? undefined : partsIn(part, depth === 0);
    if (parts === undefined || typeof part === 'function') leaves.set(path, part);
    if (parts === undefined) return;
    seen.add(part);
    leaves.set(`${path}.*`, parts.length);
    for (const [name, inner] of parts) walk(inner, `${path}.${name}`, depth + 1);
  };
  walk(value, '', 0);
  return leaves;
}

function partsIn(value: unknown, isRoot: boolean): readonly (readonly [string, unknown])[] | undefined {
  if (typeof value === 'function')
    return named(value).filter(([name]) => !['length', 'name', 'prototype'].includes(name));
  if (typeof value !== 'object' || value === null) return undefined;
  if (value instanceof Map) return [...value].map(([key, inner]) => [String(key), inner]);
  if (value instanceof Set) return [...value].map((inner, index) => [String(index), inner]);
  const parent: unknown = Object.getPrototypeOf(value);
  const isPlain = parent === Object.prototype || parent === null || Array.isArray(value);
  return isPlain || isRoot ? named(value) : undefined;
}

function named(value: object): (readonly [string, unknown])[] {
  return Object.entries(Object.getOwnPropertyDescriptors(value)).flatMap(([name, own]) =>
    // What a getter gives is made when it is asked.
    'value' in own ? [[name, own.value] as const] : [],
  );
}

/** The path of the first part that is another now, or of one that came or went. */
export function firstDifference(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
): string | undefined {
  const paths = [...new Set([...before.keys(), ...after.keys()])].filter((path) => !path.endsWith('.*'));
  const changed = paths.find(
    (path) => before.has(path) !== after.has(path) || !Object.is(before.get(path), after.get(path)),
  );
  if (changed !== undefined) return changed;
  return [...before].find(([path, count]) => after.get(path) !== count)?.[0];
}
