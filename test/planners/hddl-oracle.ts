/**
 * A second reading of HDDL, apart from `src`: a plan is replayed on a set of facts, and it must be what the tasks of the
 * problem come to by some choice of methods and objects. It tries all objects for all variables, so it is for small
 * problems only, and it believes that the text is well formed.
 */
type Node = string | Node[];
type Facts = ReadonlySet<string>;
type Env = ReadonlyMap<string, string>;

interface Rule {
  readonly name: string;
  readonly parameters: readonly (readonly [variable: string, type: string])[];
  readonly part: (key: string) => Node[];
}

export interface OracleProblem {
  /** Undefined: it can be carried out, reaches the goal and follows from the tasks. */
  faultOf(plan: readonly (readonly string[])[]): string | undefined;
  /** Whether there is any plan, found by trying everything. */
  isSolvable(): boolean;
}

export function oracle(domainText: string, problemText: string): OracleProblem {
  const domain = read(domainText);
  const problem = read(problemText);
  const parents = new Map(pairs(section(domain, ':types')));
  const objects = [...pairs(section(domain, ':constants')), ...pairs(section(problem, ':objects'))];
  const ofType = (type: string): string[] =>
    objects.filter(([, own]) => isKind(own, type, parents)).map(([name]) => name);
  const actions = rules(domain, ':action');
  const methods = rules(domain, ':method');
  const network = ruleOf(['x', '', ...section(problem, ':htn')]);
  const start: Facts = new Set(
    section(problem, ':init')
      .map(words)
      .filter((fact) => !fact.includes('(')),
  );

  function holds(node: Node | undefined, facts: Facts, env: Env): boolean {
    if (node === undefined || node.length === 0) return true;
    const [head, ...rest] = node as Node[];
    switch (head) {
      case 'and':
        return rest.every((part) => holds(part, facts, env));
      case 'or':
        return rest.some((part) => holds(part, facts, env));
      case 'not':
        return !holds(rest[0], facts, env);
      case 'imply':
        return !holds(rest[0], facts, env) || holds(rest[1], facts, env);
      case '=':
        return ground(rest[0] ?? '', env) === ground(rest[1] ?? '', env);
      case 'forall':
        return [...assign(pairs(rest[0] as Node[]), env)].every((inner) => holds(rest[1], facts, inner));
      case 'exists':
        return [...assign(pairs(rest[0] as Node[]), env)].some((inner) => holds(rest[1], facts, inner));
      default:
        return facts.has(ground(node, env));
    }
  }

  function collect(node: Node | undefined, facts: Facts, env: Env, plus: Set<string>, minus: Set<string>): void {
    if (node === undefined || node.length === 0) return;
    const [head, ...rest] = node as Node[];
    if (head === 'and') for (const part of rest) collect(part, facts, env, plus, minus);
    else if (head === 'not') minus.add(ground(rest[0] ?? '', env));
    else if (head === 'forall') {
      for (const inner of assign(pairs(rest[0] as Node[]), env)) collect(rest[1], facts, inner, plus, minus);
    } else if (head === 'when') {
      if (holds(rest[0], facts, env)) collect(rest[1], facts, env, plus, minus);
    } else if (head !== 'increase') plus.add(ground(node, env));
  }

  function* assign(variables: readonly (readonly [string, string])[], env: Env): Generator<Env> {
    const [first, ...others] = variables;
    if (first === undefined) {
      yield env;
      return;
    }
    for (const object of ofType(first[1])) yield* assign(others, new Map([...env, [first[0], object]]));
  }

  function act(rule: Rule, args: readonly string[], facts: Facts): Facts | undefined {
    const fits = rule.parameters.every(([, type], index) => ofType(type).includes(args[index] ?? ''));
    const env = new Map(rule.parameters.map(([name], index) => [name, args[index] ?? '']));
    if (!fits || args.length !== env.size || !holds(rule.part(':precondition'), facts, env)) return undefined;
    const plus = new Set<string>();
    const minus = new Set<string>();
    collect(rule.part(':effect'), facts, env, plus, minus);
    return new Set([...[...facts].filter((fact) => !minus.has(fact)), ...plus]);
  }

  /** All ways to carry out the tasks, or only those that give this plan: the facts at the end and how much of it was used. */
  function* runs(
    todo: readonly string[][],
    facts: Facts,
    plan: readonly (readonly string[])[] | undefined,
    at: number,
    seen: Set<string>,
  ): Generator<readonly [Facts, number]> {
    // The same tasks among the same facts: what they come to was given before, or is being looked for.
    const key = [...todo.map((task) => task.join(' ')), at, ...[...facts].sort()].join('|');
    if (seen.has(key)) return;
    seen.add(key);
    const [task, ...rest] = todo;
    if (task === undefined) {
      yield [facts, at];
      return;
    }
    const [name = '', ...args] = task;
    const action = actions.find((rule) => rule.name === name);
    if (action !== undefined) {
      if (plan !== undefined && plan[at]?.join(' ') !== task.join(' ')) return;
      const next = act(action, args, facts);
      if (next !== undefined) yield* runs(rest, next, plan, plan === undefined ? at : at + 1, seen);
      return;
    }
    for (const method of methods) {
      const [head, ...terms] = method.part(':task') as string[];
      if (head !== name) continue;
      for (const env of assignFixed(method, terms, args)) {
        if (!holds(method.part(':precondition'), facts, env)) continue;
        if (!holds(method.part(':constraints'), facts, env)) continue;
        yield* runs([...subtasks(method, env), ...rest], facts, plan, at, seen);
      }
    }
  }

  function* assignFixed(rule: Rule, terms: readonly string[], args: readonly string[]): Generator<Env> {
    const fixed = new Map<string, string>();
    for (const [index, term] of terms.entries()) {
      const arg = args[index] ?? '';
      if ((term.startsWith('?') ? (fixed.get(term) ?? arg) : term) !== arg) return;
      fixed.set(term, arg);
    }
    const typed = rule.parameters.every(
      ([name, type]) => !fixed.has(name) || ofType(type).includes(fixed.get(name) ?? ''),
    );
    if (!typed) return;
    yield* assign(
      rule.parameters.filter(([name]) => !fixed.has(name)),
      fixed,
    );
  }

  function* solutions(plan: readonly (readonly string[])[] | undefined): Generator<true> {
    for (const env of assign(network.parameters, new Map())) {
      if (!holds(network.part(':constraints'), start, env)) continue;
      for (const [facts, used] of runs(subtasks(network, env), start, plan, 0, new Set())) {
        if (plan !== undefined && used !== plan.length) continue;
        if (holds(section(problem, ':goal')[0], facts, new Map())) yield true;
      }
    }
  }

  return {
    faultOf: (plan) => {
      let facts: Facts = start;
      for (const [index, [name = '', ...args]] of plan.entries()) {
        const rule = actions.find((action) => action.name === name);
        const next = rule === undefined ? undefined : act(rule, args, facts);
        if (next === undefined) return `action ${index + 1} (${name} ${args.join(' ')}) cannot be carried out`;
        facts = next;
      }
      if (!holds(section(problem, ':goal')[0], facts, new Map())) return 'the goal is not reached';
      return solutions(plan).next().done === true ? 'it does not follow from the tasks' : undefined;
    },
    isSolvable: () => solutions(undefined).next().done !== true,
  };
}

function read(text: string): Node[] {
  const tokens = text.replaceAll(/;.*/g, '').match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const next = (): Node => {
    const token = tokens[at] ?? ')';
    at += 1;
    if (token !== '(') return token;
    const list: Node[] = [];
    while (tokens[at] !== ')') list.push(next());
    at += 1;
    return list;
  };
  return next() as Node[];
}

function section(file: readonly Node[], name: string): Node[] {
  const list = file.find((item) => Array.isArray(item) && item[0] === name) as Node[] | undefined;
  return list?.slice(1) ?? [];
}

function rules(file: readonly Node[], kind: string): Rule[] {
  return file.filter((item) => Array.isArray(item) && item[0] === kind).map((item) => ruleOf(item as Node[]));
}

function ruleOf(list: readonly Node[]): Rule {
  const part = (key: string): Node[] => {
    const index = list.indexOf(key);
    return index < 0 ? [] : (list[index + 1] as Node[]);
  };
  return { name: String(list[1]), parameters: pairs(part(':parameters')), part };
}

function subtasks(rule: Rule, env: Env): string[][] {
  const key = [':ordered-subtasks', ':ordered-tasks', ':subtasks', ':tasks'].find((name) => rule.part(name).length > 0);
  if (key === undefined) return [];
  const list = rule.part(key);
  const items = (list[0] === 'and' ? list.slice(1) : [list]) as Node[][];
  const labelled = items.map((item) =>
    Array.isArray(item[1]) ? { label: item[0], task: item[1] } : { label: '', task: item },
  );
  const order = rule.part(':ordering');
  const before = (order[0] === 'and' ? order.slice(1) : order.length > 0 ? [order] : []) as string[][];
  // As often as there are items: whoever has one behind it that must come before moves back.
  for (let round = 0; round < labelled.length; round += 1) {
    for (const [, first, second] of before) {
      const left = labelled.findIndex(({ label }) => label === first);
      const right = labelled.findIndex(({ label }) => label === second);
      if (left > right) labelled.splice(right, 0, ...labelled.splice(left, 1));
    }
  }
  return labelled.map(({ task }) => task.map((term) => env.get(String(term)) ?? String(term)));
}

function pairs(items: readonly Node[]): [string, string][] {
  const list: [string, string][] = [];
  let waiting: string[] = [];
  for (let index = 0; index < items.length; index += 1) {
    const item = String(items[index]);
    if (item === '-') {
      index += 1;
      list.push(...waiting.map((name): [string, string] => [name, String(items[index])]));
      waiting = [];
    } else waiting.push(item);
  }
  return [...list, ...waiting.map((name): [string, string] => [name, 'object'])];
}

function isKind(type: string, wanted: string, parents: ReadonlyMap<string, string>): boolean {
  for (let own: string | undefined = type; own !== undefined; own = parents.get(own)) {
    if (own === wanted) return true;
    if (own === 'object') return false;
  }
  return wanted === 'object';
}

function ground(node: Node, env: Env): string {
  return Array.isArray(node) ? node.map((part) => ground(part, env)).join(' ') : (env.get(node) ?? node);
}

function words(node: Node): string {
  return Array.isArray(node) ? node.map((part) => (Array.isArray(part) ? `(${words(part)})` : part)).join(' ') : node;
}
