/**
 * The least that a search with these results can do, written by hand for three domains: an explicit stack, one state
 * changed in place, an undo trail, operators and methods called directly. No checks, no limits, no trace.
 */
import type { Action, Problem, Table, Value } from './problem.ts';

type Cells = Map<string, Value>;
type Trail = (readonly [cells: Cells, key: string, before: Value])[];
type Items = readonly [name: string, ...args: Value[]][];

type Method = (a: never, b: never, c: never, d: never) => Items | undefined;

interface FloorDomain {
  readonly operators: Readonly<Record<string, (a: never, b: never, c: never) => boolean>>;
  readonly methods: Readonly<Record<string, readonly Method[]>>;
  readonly todo: Items;
}

interface Rest {
  readonly item: Items[number];
  readonly rest: Rest | undefined;
}

interface Choice {
  readonly todo: Rest;
  readonly next: number;
  readonly trail: number;
  readonly plan: number;
}

export const FLOORS: Readonly<Record<string, (problem: Problem, trail: Trail) => FloorDomain>> = {
  blocks_htn: blocks,
  hanoi_htn: hanoi,
  choice_htn: choice,
};

/** Undefined where there is no plan. */
export function floorPlan(problem: Problem): Action[] | undefined {
  const trail: Trail = [];
  const build = FLOORS[problem.domain];
  if (build === undefined) throw new Error(`no floor for the domain ${problem.domain}`);
  const { operators, methods, todo } = build(problem, trail);
  const plan: Action[] = [];
  const choices: Choice[] = [];
  let rest = push(todo, undefined);
  let first = 0;
  while (rest !== undefined) {
    const here: Rest = rest;
    const item = here.item;
    const operator = operators[item[0]];
    let done = false;
    if (operator !== undefined) {
      done = operator(item[1] as never, item[2] as never, item[3] as never);
      if (done) {
        plan.push(item);
        rest = here.rest;
      }
    } else {
      const list = methods[item[0]] ?? [];
      for (let next = first; next < list.length && !done; next += 1) {
        const items = list[next]?.(item[1] as never, item[2] as never, item[3] as never, item[4] as never);
        if (items === undefined) continue;
        if (next + 1 < list.length)
          choices.push({ todo: here, next: next + 1, trail: trail.length, plan: plan.length });
        rest = push(items, here.rest);
        done = true;
      }
    }
    first = 0;
    if (done) continue;
    const back = choices.pop();
    if (back === undefined) return undefined;
    while (trail.length > back.trail) {
      const undo = trail.pop();
      if (undo !== undefined) undo[0].set(undo[1], undo[2]);
    }
    plan.length = back.plan;
    rest = back.todo;
    first = back.next;
  }
  return plan;
}

function push(items: Items, rest: Rest | undefined): Rest | undefined {
  let list = rest;
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const item = items[index];
    if (item !== undefined) list = { item, rest: list };
  }
  return list;
}

function cellsOf(table: Table | undefined): Cells {
  return new Map(Array.isArray(table) ? table : []);
}

function setter(trail: Trail): (cells: Cells, key: string, value: Value) => void {
  return (cells, key, value) => {
    trail.push([cells, key, cells.get(key) ?? false]);
    cells.set(key, value);
  };
}

function blocks({ state, goals }: Problem, trail: Trail): FloorDomain {
  const pos = cellsOf(state['pos']);
  const clear = cellsOf(state['clear']);
  const holding = cellsOf(state['holding']);
  const goal = new Map(Object.values(goals)[0]?.['pos'] ?? []);
  const set = setter(trail);
  const isDone = (block: Value): boolean => {
    for (let at = block as string; at !== 'table'; ) {
      const wanted = goal.get(at);
      const place = pos.get(at);
      if (wanted !== undefined && wanted !== place) return false;
      at = place as string;
    }
    return true;
  };
  const lift = (x: string): true => {
    set(pos, x, 'hand');
    set(clear, x, false);
    set(holding, 'hand', x);
    return true;
  };
  const drop = (x: string, place: string): true => {
    set(pos, x, place);
    set(clear, x, true);
    set(holding, 'hand', false);
    return true;
  };
  const achieve = (): Items => {
    let waiting: string | undefined;
    for (const [block, isClear] of clear) {
      if (isClear !== true || isDone(block)) continue;
      const wanted = goal.get(block);
      if (wanted === undefined || wanted === 'table') return [['take', block], ['put', block, 'table'], ['achieve']];
      if (isDone(wanted) && clear.get(wanted as string) === true)
        return [['take', block], ['put', block, wanted], ['achieve']];
      if (waiting === undefined && pos.get(block) !== 'table') waiting = block;
    }
    return waiting === undefined ? [] : [['take', waiting], ['put', waiting, 'table'], ['achieve']];
  };
  return {
    operators: {
      pickup: (x: string) =>
        pos.get(x) === 'table' && clear.get(x) === true && holding.get('hand') === false && lift(x),
      unstack: (x: string, y: string) => {
        if (pos.get(x) !== y || clear.get(x) !== true || holding.get('hand') !== false) return false;
        lift(x);
        set(clear, y, true);
        return true;
      },
      putdown: (x: string) => pos.get(x) === 'hand' && drop(x, 'table'),
      stack: (x: string, y: string) => {
        if (pos.get(x) !== 'hand' || clear.get(y) !== true) return false;
        drop(x, y);
        set(clear, y, false);
        return true;
      },
    },
    methods: {
      achieve: [achieve],
      take: [
        (b: string) => {
          if (clear.get(b) !== true) return undefined;
          const place = pos.get(b) ?? '';
          return place === 'table' ? [['pickup', b]] : [['unstack', b, place]];
        },
      ],
      put: [
        (b: string, c: string) => {
          if (holding.get('hand') !== b) return undefined;
          return c === 'table' ? [['putdown', b]] : [['stack', b, c]];
        },
      ],
    },
    todo: [['achieve']],
  };
}

function hanoi({ state, todo }: Problem, trail: Trail): FloorDomain {
  const on = cellsOf(state['on']);
  const set = setter(trail);
  return {
    operators: {
      move: (disk: string, from: string, to: string) => {
        if (on.get(disk) !== from) return false;
        for (let size = Number(disk.slice(1)) - 1; size > 0; size -= 1) {
          const peg = on.get(`d${size}`);
          if (peg === from || peg === to) return false;
        }
        set(on, disk, to);
        return true;
      },
    },
    methods: {
      move_tower: [
        (n: number) => (n === 0 ? [] : undefined),
        (n: number, a: string, b: string, c: string) => [
          ['move_tower', n - 1, a, c, b],
          ['move', `d${n}`, a, b],
          ['move_tower', n - 1, c, b, a],
        ],
      ],
    },
    todo: plain(todo),
  };
}

function choice({ state, todo }: Problem, trail: Trail): FloorDomain {
  const value = cellsOf(state['value']);
  const want = cellsOf(state['want']);
  const width = Number(cellsOf(state['width']).get('n'));
  const set = setter(trail);
  return {
    operators: {
      set_value: (x: string, v: number) => {
        set(value, x, v);
        return true;
      },
      check_all: () => {
        for (const [x, v] of want) if (value.get(x) !== v) return false;
        return true;
      },
    },
    methods: { choose: [0, 1, 2, 3].map((v) => (x: string) => (v < width ? [['set_value', x, v]] : undefined)) },
    todo: plain(todo),
  };
}

function plain(todo: Problem['todo']): Items {
  return todo.map(([name, ...args]) => [name, ...args.map((arg) => (typeof arg === 'object' ? arg.goal : arg))]);
}
