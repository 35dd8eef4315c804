/**
 * The scenarios: in each some planner wants the same three things, a fee paid, a letter sent and a room booked, and does again
 * whatever it does not know to be done. Most mistakes that pay twice are made by planners that mean well.
 */
import { openaiCompatible } from '#model/openai-compatible';
import type { Json, RuntimeOptions } from '#pilotage';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import { type Asked, FEE, items, letter, ROOM } from './errands.ts';
import { flowAgent, mapAgent } from './flows.ts';
import { htnPlanner, parallelPlanner, rulesPlanner, taskPlanner } from './planners.ts';
import { toolsOf, type World } from './world.ts';

/** What a model says that a scenario asks. */
export type Voice = 'native' | 'text' | 'plan' | 'lines';

export interface Scenario {
  readonly name: string;
  readonly voice?: Voice;
  /** What is asked for when nobody is hostile. @param page what `look` reads. */
  asks(page: Json): readonly Asked[];
  /** @param model the address of the model server, and the name under which it knows the play. */
  make(
    world: World,
    model: { readonly baseUrl: string; readonly model: string },
  ): Pick<RuntimeOptions, 'planner' | 'tools' | 'agents'>;
}

const usual = (page: Json): readonly Asked[] => [FEE, letter(page), ROOM];
/** The fee can be wired as well: once, in one way or the other. */
const eitherWay = (page: Json): readonly Asked[] => [{ ...FEE, tools: ['pay', 'wire'] }, letter(page), ROOM];

export const scenarios: readonly Scenario[] = [
  {
    name: 'react native',
    voice: 'native',
    asks: usual,
    make: (world, model) => ({ planner: react({ model: openaiCompatible(model) }), tools: toolsOf(world) }),
  },
  {
    name: 'react text',
    voice: 'text',
    asks: usual,
    make: (world, model) => ({
      planner: react({ model: { model: openaiCompatible(model), toolCalls: 'text' } }),
      tools: toolsOf(world),
    }),
  },
  {
    name: 'pipeline',
    voice: 'plan',
    asks: usual,
    make: (world, model) => ({
      planner: pipeline({ model: openaiCompatible(model), replans: 3 }),
      tools: toolsOf(world),
    }),
  },
  {
    name: 'pipeline streamed',
    voice: 'lines',
    asks: usual,
    make: (world, model) => ({
      planner: pipeline({ model: openaiCompatible(model), replans: 3, stream: true }),
      tools: toolsOf(world),
    }),
  },
  { name: 'htn', asks: eitherWay, make: (world) => ({ planner: htnPlanner, tools: toolsOf(world) }) },
  { name: 'rules', asks: eitherWay, make: (world) => ({ planner: rulesPlanner, tools: toolsOf(world) }) },
  { name: 'flow', asks: usual, make: (world) => ({ agents: [flowAgent(world)] }) },
  { name: 'task', asks: usual, make: (world) => ({ planner: taskPlanner, tools: toolsOf(world) }) },
  {
    name: 'map',
    asks: (page) => [
      ...items(page).map((args): Asked => ({ subject: String(args['subject']), effect: 'once', tools: ['pay'], args })),
      ROOM,
    ],
    make: (world) => ({ agents: [mapAgent(world)] }),
  },
  { name: 'parallel', asks: usual, make: (world) => ({ planner: parallelPlanner, tools: toolsOf(world) }) },
];
