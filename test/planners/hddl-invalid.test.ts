/** What the HDDL reader refuses, and what it says of it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PilotageError } from '#core';
import { readHddl } from '#planners/htn/hddl';
import { domainNames, texts } from './hddl-files.ts';

const DOMAIN = `(define (domain d)
  (:requirements :typing)
  (:types box place)
  (:predicates (at ?b - box ?p - place) (free))
  (:task bring :parameters (?b - box ?p - place))
  (:method by-hand
    :parameters (?b - box ?from ?p - place)
    :task (bring ?b ?p)
    :precondition (at ?b ?from)
    :ordered-subtasks (and (carry ?b ?from ?p)))
  (:action carry
    :parameters (?b - box ?from ?to - place)
    :precondition (at ?b ?from)
    :effect (and (not (at ?b ?from)) (at ?b ?to))))`;
const PROBLEM = `(define (problem p)
  (:domain d)
  (:objects b1 - box here there - place)
  (:htn :ordered-subtasks (bring b1 there))
  (:init (at b1 here)))`;

function refusal(domain: string, problem: string): PilotageError {
  try {
    readHddl(domain, problem, { domain: 'd.hddl', problem: 'p.hddl' });
  } catch (error) {
    if (PilotageError.is(error, 'hddl_invalid')) return error;
    throw error;
  }
  throw new Error('the text was accepted');
}

/** What is replaced in the domain by what, and the message. */
const DOMAIN_FAULTS: readonly (readonly [from: string, to: string, message: string])[] = [
  [DOMAIN, '', 'd.hddl:1:1: expected "(define …)", found an empty file'],
  [DOMAIN, 'hello', 'd.hddl:1:1: expected "(define …)", found "hello"'],
  ['(define (domain d)', '(define (problem d)', 'd.hddl:1:9: expected (domain <name>), found (problem …)'],
  [':effect (and (not (at ?b ?from)) (at ?b ?to))))', '', 'd.hddl:11:3: this list is not closed: expected ")"'],
  [DOMAIN, `${DOMAIN} (more)`, 'd.hddl:14:53: expected the end of the file'],
  ['(:types box place)', '(:types box place - )', 'd.hddl:3:21: expected a type after "-", found the end of the list'],
  ['(:types box place)', '(:types box - place place - box)', 'd.hddl:3:31: type box is its own ancestor'],
  [
    '(:types box place)',
    '(:types box - (either a b))',
    'd.hddl:3:17: expected one type, found (either …): "either" is outside the subset read here',
  ],
  ['?p - place) (free)', '?p - plaice) (free)', 'd.hddl:4:34: unknown type "plaice": expected one of (:types …)'],
  ['(free)', '(at)', 'd.hddl:4:42: predicate at is declared twice'],
  [
    '(:predicates',
    '(:durative-action',
    'd.hddl:4:3: found (:durative-action …): this section is outside the subset read here',
  ],
  [':typing', ':durative-actions', 'd.hddl:2:18: requirement ":durative-actions" is outside the subset read here'],
  [':task (bring ?b ?p)', ':task (bring ?b)', 'd.hddl:8:12: compound task bring takes 2 arguments, found 1'],
  [':task (bring ?b ?p)', ':task (carry ?b ?from ?p)', 'd.hddl:8:12: unknown compound task "carry"'],
  ['    :task (bring ?b ?p)\n', '', 'd.hddl:6:3: method by-hand: expected :task'],
  ['(carry ?b ?from ?p)))', '(lift ?b)))', 'd.hddl:10:29: unknown task "lift"'],
  ['(carry ?b ?from ?p)))', '(carry ?b ?from ?q)))', 'd.hddl:10:44: unknown variable "?q": it is not a parameter here'],
  [
    '(carry ?b ?from ?p)))',
    '(carry ?b ?from b1)))',
    'd.hddl:10:44: unknown object "b1": expected a variable, a constant or an object',
  ],
  [
    ':ordered-subtasks (and (carry ?b ?from ?p))',
    ':subtasks (and (x (carry ?b ?from ?p)) (y (carry ?b ?p ?from)))',
    'd.hddl:10:5: :subtasks: partial order is outside the subset read here; expected a total order',
  ],
  [
    ':ordered-subtasks (and (carry ?b ?from ?p))',
    ':subtasks (and (x (carry ?b ?from ?p)) (y (carry ?b ?p ?p)) (z (carry ?b ?p ?p))) :ordering (and (< x y) (< x z))',
    'd.hddl:10:87: :ordering: partial order is outside the subset read here; expected a total order',
  ],
  [
    ':ordered-subtasks (and (carry ?b ?from ?p))',
    ':subtasks (and (x (carry ?b ?from ?p)) (y (carry ?b ?p ?p))) :ordering (and (< x y) (< y x))',
    'd.hddl:10:76: the ordering puts x before itself',
  ],
  [
    ':precondition (at ?b ?from)\n    :effect',
    ':precondition (on ?b ?from)\n    :effect',
    'd.hddl:13:20: unknown predicate "on"',
  ],
  [
    ':precondition (at ?b ?from)\n    :effect',
    ':precondition (not)\n    :effect',
    'd.hddl:13:19: (not …) takes 1 parts, found 0',
  ],
  [
    ':precondition (at ?b ?from)\n    :effect',
    ':precondition (> (fuel) 3)\n    :effect',
    'd.hddl:13:19: found (> …): numeric fluents are outside the subset read here',
  ],
  [
    '(not (at ?b ?from)) (at',
    '(increase (fuel) 1) (at',
    'd.hddl:14:18: found (increase …): numeric fluents are outside the subset read here',
  ],
  ['(at ?b ?to))))', '(when (free)))))', 'd.hddl:14:38: (when …) takes 2 parts, found 1'],
  ['(:action carry', '(:action bring', 'd.hddl:5:3: a task or an action named bring is declared in line 11 already'],
  [
    '(:action carry',
    '(:action goal',
    'd.hddl:11:12: "goal" cannot be the name of an action or a task: it has a meaning of its own in the search',
  ],
  [
    ':precondition (at ?b ?from)\n    :ordered',
    ':precondition\n    :ordered',
    'd.hddl:10:5: expected the value of :precondition, found ":ordered-subtasks"',
  ],
  ['(?b - box ?from ?p - place)', '(?b - box ?from ?b - place)', 'd.hddl:7:33: variable ?b is declared twice'],
];

const PROBLEM_FAULTS: readonly (readonly [from: string, to: string, message: string])[] = [
  ['(:domain d)', '(:domain e)', 'p.hddl:2:12: expected the domain d, found "e"'],
  [
    '(at b1 here)',
    '(at b1 nowhere)',
    'p.hddl:5:17: unknown object "nowhere": expected a variable, a constant or an object',
  ],
  ['(at b1 here)', '(at b1)', 'p.hddl:5:11: predicate at takes 2 arguments, found 1'],
  ['  (:htn :ordered-subtasks (bring b1 there))\n', '', 'p.hddl:1:1: expected (:htn …) with the tasks to be done'],
  [
    ':ordered-subtasks (bring b1 there)',
    ':tasks (and (bring b1 there) (bring b1 here))',
    'p.hddl:4:9: :tasks: partial order is outside the subset read here; expected a total order',
  ],
  ['b1 - box here there - place', 'b1 - box b1 - place', 'p.hddl:3:22: object b1 is of type box already'],
  ['(:init', '(:goal (at b1 here)) (:goal', 'p.hddl:5:24: found a second (:goal …)'],
];

describe('hddl_invalid', () => {
  it('is not thrown for the texts that the others are made of', () => {
    expect(readHddl(DOMAIN, PROBLEM).todo).toEqual([['bring', 'b1', 'there']]);
  });

  for (const [from, to, message] of DOMAIN_FAULTS) {
    it(`names place and reason in a domain: ${message}`, () => {
      expect(DOMAIN).toContain(from);
      expect(refusal(DOMAIN.replace(from, to), PROBLEM).message).toBe(message);
    });
  }

  for (const [from, to, message] of PROBLEM_FAULTS) {
    it(`names place and reason in a problem: ${message}`, () => {
      expect(PROBLEM).toContain(from);
      expect(refusal(DOMAIN, PROBLEM.replace(from, to)).message).toBe(message);
    });
  }

  it('carries the place as data', () => {
    expect(refusal(DOMAIN.replace('carry ?b ?from ?p', 'lift'), PROBLEM).data).toEqual({
      file: 'd.hddl',
      line: 10,
      column: 29,
    });
  });

  it('is thrown for lists nested without end, of which the stack takes no harm', () => {
    const deep = '('.repeat(100_000);
    expect(refusal(DOMAIN.replace('(at ?b ?from)', `${deep}${')'.repeat(100_000)}`), PROBLEM).message).toContain(
      'lists are nested deeper than 200',
    );
  });

  it('is all that is ever thrown for texts with faults', () => {
    const names = domainNames();
    const pieces = [
      '(',
      ')',
      '?x',
      '-',
      ':task',
      'and',
      'not',
      'forall',
      'when',
      '<',
      '=',
      ' ',
      '\n',
      ';',
      '()',
      '__proto__',
    ];
    const edit = fc.record({
      kind: fc.constantFrom('cut', 'drop', 'add', 'swap'),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      length: fc.integer({ min: 1, max: 30 }),
      piece: fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 4 })),
    });
    const edits = fc.array(edit, { minLength: 1, maxLength: 4 });
    let refused = 0;
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.boolean(), edits, (name, inDomain, list) => {
        const { domain, problem } = texts(name);
        const changed = list.reduce(mutate, inDomain ? domain : problem);
        try {
          readHddl(inDomain ? changed : domain, inDomain ? problem : changed);
        } catch (error) {
          if (!PilotageError.is(error, 'hddl_invalid')) throw error;
          expect(error.message).toMatch(/^(domain|problem):\d+:\d+: ./);
          refused += 1;
        }
      }),
      { numRuns: 1_000 },
    );
    expect(refused).toBeGreaterThan(300);
  });
});

function mutate(
  text: string,
  { kind, at, length, piece }: { kind: string; at: number; length: number; piece: string },
): string {
  const from = Math.floor(at * text.length);
  const rest = text.slice(from + length);
  if (kind === 'cut') return text.slice(0, from);
  if (kind === 'drop') return text.slice(0, from) + rest;
  if (kind === 'add') return text.slice(0, from) + piece + text.slice(from);
  return text.slice(0, from) + rest.slice(0, length) + text.slice(from, from + length) + rest.slice(length);
}
