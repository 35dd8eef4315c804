/**
 * A published way to write such domains, HDDL, read as it is: two crates for one robot. It prints how the plan was found, and then
 * carries it out. In a project of your own, import from 'pilotage' and its 'journal/memory', 'planners/htn' and
 * 'planners/htn/hddl'.
 */
import { z } from 'zod';
import { createRuntime, local, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { readHddl } from '../src/planners/htn/hddl/read.ts';
import { findPlan, htn, traceText } from '../src/planners/htn/index.ts';

const domainText = `(define (domain warehouse)
  (:types place crate)
  (:predicates (robot-at ?p - place) (crate-at ?c - crate ?p - place) (holding ?c - crate))
  (:task bring :parameters (?c - crate ?to - place))
  (:task go :parameters (?to - place))
  (:method carry :parameters (?c - crate ?from ?to - place) :task (bring ?c ?to)
    :precondition (crate-at ?c ?from)
    :ordered-subtasks (and (go ?from) (lift ?c ?from) (go ?to) (drop ?c ?to)))
  (:method stay :parameters (?to - place) :task (go ?to)
    :precondition (robot-at ?to) :ordered-subtasks ())
  (:method roll :parameters (?from ?to - place) :task (go ?to)
    :precondition (robot-at ?from) :ordered-subtasks (move ?from ?to))
  (:action move :parameters (?from ?to - place)
    :precondition (robot-at ?from) :effect (and (not (robot-at ?from)) (robot-at ?to)))
  (:action lift :parameters (?c - crate ?p - place)
    :precondition (and (robot-at ?p) (crate-at ?c ?p)) :effect (and (not (crate-at ?c ?p)) (holding ?c)))
  (:action drop :parameters (?c - crate ?p - place)
    :precondition (and (robot-at ?p) (holding ?c)) :effect (and (not (holding ?c)) (crate-at ?c ?p))))`;
const problemText = `(define (problem two-crates) (:domain warehouse)
  (:objects hall dock - place red blue - crate)
  (:htn :ordered-subtasks (and (bring red dock) (bring blue dock)))
  (:init (robot-at hall) (crate-at red hall) (crate-at blue hall)))`;

const problem = readHddl(domainText, problemText);
const start = problem.state.tables();
const { trace } = findPlan(problem.domain, problem.state, problem.todo, { trace: 100 });
if (trace !== undefined) console.log(traceText(trace));

const robot = ['move', 'lift', 'drop'].map((name) =>
  tool({
    name,
    description: `Has the robot ${name}.`,
    effect: 'keyed',
    inputSchema: z.object({ objects: z.array(z.string()) }),
    execute: ({ objects }) => `${name} ${objects.join(' ')}`,
  }),
);
const planner = htn({
  domain: problem.domain,
  state: () => start,
  todo: () => problem.todo,
  step: ([action, ...objects]) => ({ type: 'tool', toolId: action, input: { objects } }),
});
const runtime = createRuntime({ planner, tools: robot, journal: memoryJournal() });
const run = await runtime.start('Bring both crates to the dock', { identity: local('ana') });
const result = await run.result();
if (result.status === 'finished') console.log(result.reason, result.answer);
await runtime.close();
