/** HDDL domains planned, and the plans checked by a second reading of the same texts. */
import { describe, expect, it } from 'vitest';
import { readHddl } from '#planners/htn/hddl';
import { domainNames, planFor, planned, split, texts } from './hddl-files.ts';
import { oracle } from './hddl-oracle.ts';

/** What each shape is for, and its plan: that of the first methods and the first objects that lead to one. */
const PLANS: Readonly<Record<string, readonly [shape: string, plan: readonly string[]]>> = {
  courier: [
    'a hierarchy of types chooses the vehicle, and an empty method what is there already',
    [
      'load card blue post',
      'drive blue post mill',
      'drive blue mill harbour',
      'unload card blue harbour',
      'drive red mill harbour',
      'load box red harbour',
      'drive red harbour mill',
      'drive red mill post',
      'unload box red post',
    ],
  ],
  doors: [
    'negative preconditions of methods and actions',
    ['unlock front', 'push front', 'walk front', 'push side', 'walk side', 'walk back'],
  ],
  kettle: ['the precondition of a method', ['light-fire', 'boil-over-fire', 'brew assam']],
  bake: [
    'labelled subtasks with a total ordering',
    ['mix rye', 'rise rye', 'bake rye', 'mix wheat', 'rise wheat', 'bake wheat'],
  ],
  depot: [
    'constants in methods, actions and the task of a method',
    ['move r1 yard gate', 'move r1 gate home', 'charge r1', 'move r2 home gate', 'move r2 gate home', 'charge r2'],
  ],
  seats: ['equality, inequality and constraints', ['sit host s1', 'sit ann s3', 'sit bob s2']],
  shop: ['forall, imply and or in preconditions', ['switch-off l1', 'switch-off l3', 'leave']],
  drill: ['forall and when in effects', ['ring', 'lead jon attic', 'count']],
  errands: ['a problem with a variable, and exists', ['visit sam baker', 'visit sam smith']],
  colours: [
    'backtracking over the bindings of one method',
    ['colour north green', 'colour east blue', 'colour south green', 'colour west blue', 'colour middle red'],
  ],
  maze: ['moves that can be taken back', ['move a d', 'move d e', 'move e f', 'move f e', 'move e d', 'move d a']],
};
const TOWERS = 'towers';
const UNSOLVABLE = 'bridge';

describe('HDDL domains', () => {
  it('has a test for each domain of the folder', () => {
    expect([...Object.keys(PLANS), TOWERS, UNSOLVABLE].sort()).toEqual(domainNames());
  });

  for (const [name, [shape, plan]] of Object.entries(PLANS)) {
    it(`${name}: ${shape}`, () => {
      const { domain, problem } = texts(name);
      expect(planned(domain, problem)).toEqual(plan);
      expect(oracle(domain, problem).faultOf(split(plan))).toBeUndefined();
    });

    it(`${name}: a plan with an action left out is not one`, () => {
      const { domain, problem } = texts(name);
      for (const index of plan.keys()) {
        expect(oracle(domain, problem).faultOf(split(plan.filter((_, at) => at !== index)))).toBeDefined();
      }
    });
  }

  it('towers: recursion, costs passed over', () => {
    const { domain, problem } = texts(TOWERS);
    const plan = planned(domain, problem);
    expect(plan).toHaveLength(2 ** 4 - 1);
    expect(oracle(domain, problem).faultOf(split(plan ?? []))).toBeUndefined();
  });

  it('bridge: no plan, and the state is as it was', () => {
    const { domain, problem } = texts(UNSOLVABLE);
    const ready = readHddl(domain, problem);
    const before = ready.state.tables();
    expect(planFor(ready).actions).toBeUndefined();
    expect(ready.state.tables()).toEqual(before);
    expect(oracle(domain, problem).isSolvable()).toBe(false);
  });

  it('maze: ends without a plan when the cell cannot be reached', () => {
    const { domain, problem } = texts('maze');
    const cut = problem.replace('(joined e f)', '');
    expect(planned(domain, cut)).toBeUndefined();
    expect(oracle(domain, cut).isSolvable()).toBe(false);
  });

  it('towers: a tower of twelve disks', () => {
    const { domain } = texts(TOWERS);
    const disks = Array.from({ length: 12 }, (_, index) => `d${index + 1}`);
    const facts = disks.map((disk, index) => `(on ${disk} a) (above d${index} ${disk})`).join(' ');
    const problem = `(define (problem p) (:domain towers) (:objects d0 ${disks.join(' ')} - disk a b c - peg)
      (:htn :ordered-subtasks (move-tower d12 a c b)) (:init (smallest d1) ${facts.replace('(above d0 d1)', '')}))`;
    const plan = planned(domain, problem);
    expect(plan).toHaveLength(2 ** 12 - 1);
    expect(plan?.at(-1)).toBe('move d1 b c');
  });
});

describe('bindings', () => {
  const domain = `(define (domain d) (:types thing) (:predicates (good ?x - thing) (done))
    (:task t :parameters ())
    (:method m :parameters (?x ?y ?z - thing) :task (t) :ordered-subtasks (and (pick ?x ?y ?z)))
    (:action pick :parameters (?x ?y ?z - thing) :precondition (good ?z) :effect (done)))`;
  const problem = (count: number, good: number): string => `(define (problem p) (:domain d)
    (:objects ${Array.from({ length: count }, (_, index) => `o${index}`).join(' ')} - thing)
    (:htn :ordered-subtasks (t)) (:init (good o${good})))`;

  it('are looked for one at a time', () => {
    // All of them would be 64,000,000.
    expect(planned(domain, problem(400, 7))).toEqual(['pick o0 o0 o7']);
  });

  it('come in the order of the file', () => {
    expect(planned(domain, problem(3, 2))).toEqual(['pick o0 o0 o2']);
    const ready = readHddl(domain, problem(3, 2).replace('o0 o1 o2', 'o2 o1 o0'));
    expect(planFor(ready).actions).toEqual([['pick', 'o2', 'o2', 'o2']]);
  });

  it('of facts come in the order of the objects, not in that of the facts', () => {
    const text = domain.replace(
      ':ordered-subtasks',
      ':precondition (and (good ?z) (good ?y) (good ?x)) :ordered-subtasks',
    );
    const facts = problem(9, 5).replace('(good o5)', '(good o8) (good o3) (good o5)');
    expect(planned(text, facts)).toEqual(['pick o3 o3 o3']);
  });

  it('are of the type that the variable has', () => {
    const text = `(define (domain d) (:types a b - object c - a) (:predicates (p ?x - object))
      (:task t :parameters (?x - object))
      (:method m1 :parameters (?x - c) :task (t ?x) :ordered-subtasks (as-c ?x))
      (:method m2 :parameters (?x - a) :task (t ?x) :ordered-subtasks (as-a ?x))
      (:method m3 :parameters (?x - object ?y - b) :task (t ?x) :precondition (p ?y) :ordered-subtasks (as-b ?y))
      (:action as-a :parameters (?x - a)) (:action as-b :parameters (?x - b)) (:action as-c :parameters (?x - c)))`;
    const given = `(define (problem p) (:domain d) (:objects a1 - a b1 b2 - b c1 - c o1)
      (:htn :ordered-subtasks (and (t a1) (t c1) (t o1))) (:init (p a1) (p c1) (p b2)))`;
    expect(planned(text, given)).toEqual(['as-a a1', 'as-c c1', 'as-b b2']);
  });

  it('are as many for a fact that names a variable twice', () => {
    const text = `(define (domain d) (:types t) (:predicates (r ?x ?y - t)) (:task go :parameters ())
      (:method m :parameters (?x - t) :task (go) :precondition (r ?x ?x) :ordered-subtasks (a ?x))
      (:action a :parameters (?x - t)))`;
    const given = `(define (problem p) (:domain d) (:objects o1 o2 o3 - t) (:htn :ordered-subtasks (go))
      (:init (r o1 o2) (r o2 o3) (r o3 o3)))`;
    expect(planned(text, given)).toEqual(['a o3']);
  });
});

describe('names', () => {
  it('may be those of properties that every object has', () => {
    const text = `(define (domain d) (:types __proto__) (:predicates (constructor ?x - __proto__))
      (:task toString :parameters (?x - __proto__))
      (:method hasOwnProperty :parameters (?x - __proto__) :task (toString ?x) :ordered-subtasks (__proto__ ?x))
      (:action __proto__ :parameters (?x - __proto__) :effect (constructor ?x)))`;
    const given = `(define (problem p) (:domain d) (:objects valueOf - __proto__)
      (:htn :ordered-subtasks (toString valueOf)) (:init) (:goal (constructor valueOf)))`;
    expect(planned(text, given)).toEqual(['__proto__ valueOf']);
  });

  it('of keywords are read in any case, those of the author as they stand', () => {
    const text = `(DEFINE (DOMAIN d) (:Predicates (p) (P)) (:Action a :EFFECT (AND (P) (NOT (p)))))`;
    const given =
      '(define (problem x) (:domain d) (:htn :Ordered-Subtasks (a)) (:init (p)) (:goal (and (P) (not (p)))))';
    expect(planned(text, given)).toEqual(['a']);
  });
});
