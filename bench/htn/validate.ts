/**
 * Replays a plan from a problem's state and says what is wrong with it. Written from the words of the domains, apart
 * from the planner and from the domains that it plans with: it shares no code with either.
 */
import type { Action, Problem, Table, Value } from './problem.ts';

type Tables = Record<string, Map<string, Value>>;
/** `false`: the precondition does not hold. */
type Step = (tables: Tables, args: readonly string[], raw: readonly Value[]) => boolean;

interface Rules {
  readonly operators: Readonly<Record<string, readonly [arity: number, step: Step]>>;
  /** What is not reached at the end; undefined: nothing. */
  readonly missing: (tables: Tables, problem: Problem, plan: readonly Action[]) => string | undefined;
}

/** Undefined for a plan that can be carried out and reaches the goal. @throws Error for a domain without rules here */
export function faultOfPlan(problem: Problem, plan: readonly Action[]): string | undefined {
  const rules = RULES[problem.domain];
  if (rules === undefined) throw new Error(`no rules to validate a plan of the domain ${problem.domain}`);
  const tables: Tables = {};
  for (const [name, table] of Object.entries(problem.state)) tables[name] = new Map(entries(table));
  for (const [index, [name, ...args]] of plan.entries()) {
    const where = `action ${index + 1}, ${JSON.stringify(plan[index])}`;
    const [arity, step] = Object.hasOwn(rules.operators, name) ? (rules.operators[name] ?? []) : [];
    if (step === undefined) return `${where}: no such operator`;
    if (args.length !== arity) return `${where}: ${arity} arguments expected`;
    if (!step(tables, args.map(String), args)) return `${where}: its precondition does not hold`;
  }
  return rules.missing(tables, problem, plan);
}

function entries(table: Table): (readonly [string, Value])[] {
  if ('scalar' in table) return [['scalar', table.scalar]];
  return table.map((row) => (typeof row === 'string' ? [row, true] : row));
}

function at(tables: Tables, table: string, key: string | undefined): Value | undefined {
  return key === undefined ? undefined : tables[table]?.get(key);
}

function put(tables: Tables, table: string, key: string | undefined, value: Value): true {
  if (key !== undefined) tables[table]?.set(key, value);
  return true;
}

function isOne(tables: Tables, set: string, name: Value | undefined): boolean {
  return tables[set]?.has(String(name)) ?? false;
}

const blocks: Rules = {
  operators: {
    pickup: [1, (s, [x = '']) => at(s, 'pos', x) === 'table' && lift(s, x)],
    unstack: [
      2,
      (s, [x = '', y = '']) => y !== 'table' && at(s, 'pos', x) === y && lift(s, x) && put(s, 'clear', y, true),
    ],
    putdown: [1, (s, [x = '']) => at(s, 'pos', x) === 'hand' && drop(s, x, 'table')],
    stack: [
      2,
      (s, [x = '', y = '']) =>
        at(s, 'pos', x) === 'hand' && at(s, 'clear', y) === true && drop(s, x, y) && put(s, 'clear', y, false),
    ],
  },
  missing: (tables, problem) => {
    const wanted = problem.todo.flatMap(([, goal]) =>
      typeof goal === 'object' ? (problem.goals[goal.goal]?.['pos'] ?? []) : [],
    );
    return firstMissing(wanted, (block) => at(tables, 'pos', block));
  },
};

function lift(tables: Tables, block: string): boolean {
  if (at(tables, 'clear', block) !== true || at(tables, 'holding', 'hand') !== false) return false;
  put(tables, 'pos', block, 'hand');
  put(tables, 'clear', block, false);
  return put(tables, 'holding', 'hand', block);
}

function drop(tables: Tables, block: string, place: string): boolean {
  put(tables, 'pos', block, place);
  put(tables, 'clear', block, true);
  return put(tables, 'holding', 'hand', false);
}

function firstMissing(
  wanted: readonly (readonly [string, Value])[],
  actual: (key: string) => Value | undefined,
): string | undefined {
  const missed = wanted.find(([key, value]) => actual(key) !== value);
  return missed === undefined ? undefined : `at the end ${missed[0]} is not at ${missed[1]}`;
}

/** `strict`: loading and unloading ask for what the task-only domain moved into its operators. */
function logistics(strict: boolean): Rules {
  const load =
    (vehicles: string): Step =>
    (s, [o = '', v = '']) =>
      (!strict || (isOne(s, 'packages', o) && at(s, 'at', o) === at(s, vehicles, v))) && put(s, 'at', o, v);
  const unload =
    (vehicles: string, kind: string): Step =>
    (s, [o = '', place = '']) => {
      const vehicle = at(s, 'at', o);
      if (strict && !isOne(s, kind, vehicle)) return false;
      return at(s, vehicles, String(vehicle)) === place && put(s, 'at', o, place);
    };
  return {
    operators: {
      drive_truck: [2, (s, [t, l = '']) => put(s, 'truck_at', t, l)],
      load_truck: [2, load('truck_at')],
      unload_truck: [2, unload('truck_at', 'trucks')],
      fly_plane: [2, (s, [p, a = '']) => put(s, 'plane_at', p, a)],
      load_plane: [2, load('plane_at')],
      unload_plane: [2, unload('plane_at', 'airplanes')],
    },
    missing: (tables, problem) =>
      firstMissing(
        problem.todo.map(([, o, l]) => [String(o), String(l)]),
        (o) => at(tables, 'at', o),
      ),
  };
}

const hanoi: Rules = {
  operators: {
    move: [
      3,
      (s, [disk = '', from = '', to = '']) => {
        if (at(s, 'on', disk) !== from) return false;
        for (let size = Number(disk.slice(1)) - 1; size > 0; size -= 1) {
          const peg = at(s, 'on', `d${size}`);
          if (peg === from || peg === to) return false;
        }
        return put(s, 'on', disk, to);
      },
    ],
  },
  missing: (tables) =>
    firstMissing(
      Array.from(tables['on']?.keys() ?? [], (disk) => [disk, 'peg3']),
      (disk) => at(tables, 'on', disk),
    ),
};

const choice: Rules = {
  operators: {
    set_value: [2, (s, [x], [, value = false]) => put(s, 'value', x, value)],
    check_all: [0, (s) => wrongChoice(s) === undefined],
  },
  missing: (tables) => wrongChoice(tables),
};

function wrongChoice(tables: Tables): string | undefined {
  return firstMissing([...(tables['want'] ?? [])], (x) => at(tables, 'value', x));
}

const PLACES = ['home_a', 'home_b', 'park', 'station'];
const DISTANCES: readonly (readonly [string, string, number])[] = [
  ['home_a', 'park', 8],
  ['home_b', 'park', 2],
  ['station', 'home_a', 1],
  ['station', 'home_b', 7],
  ['home_a', 'home_b', 7],
  ['station', 'park', 9],
];

function fare(from: string, to: string): number {
  const road = DISTANCES.find(([a, b]) => (a === from && b === to) || (a === to && b === from));
  return 1.5 + 0.5 * (road?.[2] ?? Number.NaN);
}

const isPerson = (name: string): boolean => name === 'alice' || name === 'bob';

const travel: Rules = {
  operators: {
    walk: [
      3,
      (s, [p = '', x = '', y = '']) =>
        isPerson(p) &&
        PLACES.includes(x) &&
        PLACES.includes(y) &&
        x !== y &&
        at(s, 'loc', p) === x &&
        put(s, 'loc', p, y),
    ],
    call_taxi: [
      2,
      (s, [p = '', x = '']) =>
        isPerson(p) && PLACES.includes(x) && put(s, 'loc', 'taxi1', x) && put(s, 'loc', p, 'taxi1'),
    ],
    ride_taxi: [
      2,
      (s, [p = '', y = '']) => {
        const taxi = String(at(s, 'loc', p));
        const from = String(at(s, 'loc', taxi));
        if (!isPerson(p) || !taxi.startsWith('taxi') || !PLACES.includes(from) || !PLACES.includes(y)) return false;
        return from !== y && put(s, 'loc', taxi, y) && put(s, 'owe', p, fare(from, y));
      },
    ],
    pay_driver: [
      2,
      (s, [p = '', y = '']) => {
        const left = Number(at(s, 'cash', p)) - Number(at(s, 'owe', p));
        return isPerson(p) && left >= 0 && put(s, 'cash', p, left) && put(s, 'owe', p, 0) && put(s, 'loc', p, y);
      },
    ],
  },
  missing: (tables, problem) =>
    firstMissing(
      problem.todo.map(([, p, y]) => [String(p), String(y)]),
      (p) => at(tables, 'loc', p),
    ),
};

/** Nothing is reached but the plan itself: a `putv` and a `getv` for `put_it`, then what each need stands for. */
const backtracking: Rules = {
  operators: {
    putv: [1, (s, _args, [value = false]) => put(s, 'flag', 'scalar', value)],
    getv: [1, (s, _args, [value]) => at(s, 'flag', 'scalar') === value],
  },
  missing: (_tables, problem, plan) => {
    const wanted = problem.todo.flatMap(([task]) => (task === 'put_it' ? ['putv', 'getv'] : [task]));
    const unmet = wanted.find((task, index) => {
      const [name, value] = plan[index] ?? [];
      return task.startsWith('need') ? name !== 'getv' || !task.includes(String(value)) : name !== task;
    });
    if (unmet !== undefined) return `no action of the plan stands for ${unmet}`;
    return plan.length === wanted.length ? undefined : 'the plan goes on after what was to be done';
  },
};

const RULES: Readonly<Record<string, Rules>> = {
  blocks_htn: blocks,
  logistics_hgn: logistics(false),
  logistics_htn: logistics(true),
  hanoi_htn: hanoi,
  choice_htn: choice,
  simple_htn: travel,
  backtracking_htn: backtracking,
};
