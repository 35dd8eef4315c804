/** Random small domains: there is a plan exactly when trying everything finds one, and the plan is right. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planned, split } from './hddl-files.ts';
import { oracle } from './hddl-oracle.ts';

const VARIABLES = ['?x', '?y'];
const OBJECTS = ['a1', 'a2', 'b1', 'b2'];
const TYPES = ['a', 'b', 'object'];
const PREDICATES = ['p', 'q', 'r'];

const variable = fc.constantFrom(...VARIABLES);
const type = fc.constantFrom(...TYPES);
/** Half of them take anything, or most domains would have no plan. */
const parameterType = fc.oneof(fc.constant('object'), type);
const term = fc.oneof({ weight: 6, arbitrary: variable }, { weight: 1, arbitrary: fc.constant('b1') });
/** `p` and `q` take one argument, `r` takes two and is never changed. */
const atom = fc
  .tuple(fc.constantFrom(...PREDICATES), term, term)
  .map(([name, first, second]) => (name === 'r' ? `(r ${first} ${second})` : `(${name} ${first})`));
const changed = fc.tuple(fc.constantFrom('p', 'q'), term).map(([name, only]) => `(${name} ${only})`);

const { condition } = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'condition' },
    atom,
    fc.tuple(term, term).map(([left, right]) => `(= ${left} ${right})`),
    atom.map((inner) => `(not ${inner})`),
    fc.array(tie('condition'), { maxLength: 3 }).map((parts) => `(and ${parts.join(' ')})`),
    fc.array(tie('condition'), { minLength: 1, maxLength: 2 }).map((parts) => `(or ${parts.join(' ')})`),
    fc.tuple(tie('condition'), tie('condition')).map(([left, right]) => `(imply ${left} ${right})`),
    fc
      .tuple(fc.constantFrom('forall', 'exists'), variable, type, tie('condition'))
      .map(([kind, name, of, inner]) => `(${kind} (${name} - ${of}) ${inner})`),
  ),
}));

const effect = fc
  .array(
    fc.oneof(
      changed,
      changed.map((inner) => `(not ${inner})`),
      fc.tuple(condition, changed).map(([when, inner]) => `(when ${when} ${inner})`),
      fc.tuple(variable, type, changed).map(([name, of, inner]) => `(forall (${name} - ${of}) (and (not ${inner}) ))`),
    ),
    { maxLength: 3 },
  )
  .map((parts) => `(and ${parts.join(' ')})`);

const precondition = fc.oneof(fc.constant('()'), condition);
const parameters = fc.tuple(parameterType, parameterType).map(([first, second]) => `(?x - ${first} ?y - ${second})`);
const action = (name: string): fc.Arbitrary<string> =>
  fc
    .tuple(parameters, precondition, effect)
    .map(([list, test, change]) => `(:action ${name} :parameters ${list} :precondition ${test} :effect ${change})`);

/** Tasks only stand for tasks of a higher number, so that every search ends. */
const method = (task: number, index: number): fc.Arbitrary<string> => {
  const names = ['act0', 'act1', ...(task === 0 ? ['task1', 'task2'] : task === 1 ? ['task2'] : [])];
  const use = fc
    .tuple(fc.constantFrom(...names), term, term)
    .map(([name, first, second]) => (name.startsWith('act') ? `(${name} ${first} ${second})` : `(${name} ${first})`));
  return fc.tuple(parameters, term, precondition, fc.array(use, { maxLength: 3 })).map(
    ([list, argument, test, uses]) =>
      `(:method m${task}-${index} :parameters ${list} :task (task${task} ${argument}) :precondition ${test}
          :ordered-subtasks (and ${uses.join(' ')}))`,
  );
};

const domains = fc
  .tuple(action('act0'), action('act1'), ...[0, 1, 2].flatMap((task) => [0, 1].map((index) => method(task, index))))
  .map(
    (parts) => `(define (domain d) (:types a - object b - object) (:constants b1 - b)
      (:predicates (p ?x - object) (q ?x - object) (r ?x ?y - object))
      ${[0, 1, 2].map((task) => `(:task task${task} :parameters (?x - object))`).join(' ')}
      ${parts.join('\n')})`,
  );

const fact = fc
  .tuple(fc.constantFrom(...PREDICATES), fc.constantFrom(...OBJECTS), fc.constantFrom(...OBJECTS))
  .map(([name, first, second]) => (name === 'r' ? `(r ${first} ${second})` : `(${name} ${first})`));
const goal = fc.option(
  fc.tuple(fc.constantFrom('p', 'q'), fc.constantFrom(...OBJECTS)).map(([name, object]) => `(${name} ${object})`),
  { nil: '()' },
);
const problems = fc.tuple(fc.array(fact, { minLength: 4, maxLength: 14 }), fc.constantFrom(...OBJECTS), goal).map(
  ([facts, object, wanted]) => `(define (problem x) (:domain d) (:objects a1 a2 - a b2 - b)
      (:htn :ordered-subtasks (and (task0 ${object}) (task1 ${object}))) (:init ${facts.join(' ')}) (:goal ${wanted}))`,
);

describe('random domains', () => {
  it('have a plan exactly when trying everything finds one', () => {
    let solved = 0;
    let unsolved = 0;
    fc.assert(
      fc.property(domains, problems, (domain, problem) => {
        const plan = planned(domain, problem);
        const second = oracle(domain, problem);
        if (plan === undefined) {
          expect(second.isSolvable()).toBe(false);
          unsolved += 1;
        } else {
          expect(second.faultOf(split(plan))).toBeUndefined();
          solved += 1;
        }
      }),
      { numRuns: 150 },
    );
    expect(solved).toBeGreaterThan(5);
    expect(unsolved).toBeGreaterThan(5);
  });
});
