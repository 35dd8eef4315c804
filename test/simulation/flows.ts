/** The flows of a simulated process. Each node adds its name to the path of what it is handed, so that the output tells the way. */

import type { Effect, Json, JsonObject } from '#core';
import { type Edge, edge, type Flow, flow, type Gives, join, map, type Node, node, predicateRouter } from '#flow';
import { type ToolContext, ToolFailure } from '#tools';
import { atWork, doIt, type ToolWorld } from './deeds.ts';
import { oddValue } from './odd.ts';
import type { FlowInput, FlowName } from './script.ts';

/** Rounds, with all that is in each of them, beyond what a script asks for. */
const HOPS = 40;

const INPUT: JsonObject = {
  type: 'object',
  properties: {
    path: { type: 'array', items: { type: 'string' } },
    way: { enum: ['left', 'right', 'nowhere', 'odd'] },
    rounds: { type: 'number' },
    items: { type: 'number' },
    ms: { type: 'number' },
    fails: { type: 'string' },
    failsOnce: { type: 'boolean' },
    asks: { type: 'boolean' },
  },
  required: ['path', 'way', 'rounds', 'items', 'ms'],
  additionalProperties: false,
};

type Run = (payload: FlowInput, context: ToolContext) => Promise<FlowInput>;

export function simulatedFlow(name: FlowName, world: ToolWorld): Flow<FlowInput, FlowInput> {
  return new Flows(world).make(name);
}

class Flows {
  readonly #world: ToolWorld;

  constructor(world: ToolWorld) {
    this.#world = world;
  }

  make(name: FlowName): Flow<FlowInput, FlowInput> {
    switch (name) {
      case 'line':
        return this.#line();
      case 'ways':
        return this.#ways('ways');
      case 'both':
        return this.#both();
      case 'round':
        return this.#round();
      case 'list':
        return this.#list();
      case 'nested':
        return this.#nested();
      default:
        return name satisfies never;
    }
  }

  /** `a`, then `b`, which somebody may have to approve, then `c`. */
  #line(): Flow<FlowInput, FlowInput> {
    const [a, c] = [this.#node('a', 'pure'), this.#node('c', 'once')];
    const b = node('b', {
      effect: 'keyed',
      policy: { retries: 2 },
      needsApproval: { when: ({ asks }: FlowInput) => asks === true },
      execute: this.#act('b', 'keyed'),
    });
    return this.#flow('line', a, c, [edge(a, b), edge(b, c)]);
  }

  /** One of two ways, which meet again; `nowhere` leads to neither. */
  #ways(name: 'ways' | 'inner'): Flow<FlowInput, FlowInput> {
    const [a, left, right, z] = [
      this.#node('a', 'read'),
      this.#node('left', 'once'),
      this.#node('right', 'keyed'),
      this.#node('z', 'pure'),
    ];
    const choice = predicateRouter<FlowInput>({
      branches: [
        { when: ({ way }) => way === 'left', to: left },
        {
          when: ({ way }) => {
            if (way === 'odd') throw oddValue('getter');
            // The first way that is open is taken, also when another one is.
            return way !== 'nowhere';
          },
          to: right,
        },
      ],
    }).asNode('choice');
    return this.#flow(name, a, z, [edge(a, choice), edge(left, z), edge(right, z)]);
  }

  /** Both ways at once, and a join. */
  #both(): Flow<FlowInput, FlowInput> {
    const [a, left, right] = [this.#node('a', 'pure'), this.#node('left', 'once'), this.#node('right', 'keyed')];
    const both = join('both', {
      of: [left, right],
      effect: 'once',
      execute: (parents: { left: FlowInput; right: FlowInput }, context) => {
        const path = [...parents.left.path, ...parents.right.path.slice(-1)];
        return this.#act('both', 'once')({ ...parents.left, path }, context);
      },
    });
    return this.#flow('both', a, both, [edge(a, left), edge(a, right)]);
  }

  /** Round and round, until nothing is left of it. */
  #round(): Flow<FlowInput, FlowInput> {
    const a = this.#node('a', 'pure');
    const again = node('again', {
      effect: 'keyed',
      allowCycle: true,
      execute: this.#act('again', 'keyed', (after) => ({ ...after, rounds: after.rounds - 1 })),
    });
    const z = this.#node('z', 'once');
    const enough = predicateRouter<FlowInput>({
      branches: [{ when: ({ rounds }) => rounds > 0, to: again }],
      default: z,
    }).asNode('enough', { allowCycle: true });
    return this.#flow('round', a, z, [edge(a, enough), edge(again, enough)]);
  }

  /** A list, and what was made of each of its items. */
  #list(): Flow<FlowInput, FlowInput> {
    const a = node('a', {
      effect: 'pure',
      execute: async (payload: FlowInput, context) => {
        const after = await this.#act('a', 'pure')(payload, context);
        return Array.from({ length: payload.items }, (_, item) => ({ ...after, path: [...after.path, String(item)] }));
      },
    });
    const each = map('each', { effect: 'once', concurrency: 2, execute: this.#act('each', 'once') });
    const z = node('z', {
      effect: 'once',
      execute: (items: FlowInput[], context) => {
        const path = items.flatMap((item) => item.path);
        const [first = EMPTY] = items;
        return this.#act('z', 'once')({ ...first, path }, context);
      },
    });
    return this.#flow('list', a, z, [edge(a, each), edge(each, z)]);
  }

  #nested(): Flow<FlowInput, FlowInput> {
    const [a, z] = [this.#node('first', 'pure'), this.#node('last', 'once')];
    const inner = this.#ways('inner').asNode('inner');
    return this.#flow('nested', a, z, [edge(a, inner), edge(inner, z)]);
  }

  #node(name: string, effect: Effect) {
    return node(name, {
      effect,
      ...(effect === 'once' ? {} : { policy: { retries: 2 } }),
      execute: this.#act(name, effect),
    });
  }

  #flow(
    name: string,
    entry: Node<string, FlowInput, unknown>,
    exit: Gives<FlowInput>,
    edges: readonly Edge[],
  ): Flow<FlowInput, FlowInput> {
    return flow({ name, inputSchema: INPUT, budget: { hops: HOPS }, entry, exit, edges });
  }

  #act(name: string, effect: Effect, change: (after: FlowInput) => FlowInput = (after) => after): Run {
    const world = this.#world;
    return (payload, context) => {
      const { path, ms, fails, failsOnce = false } = payload;
      const { run } = context.identity;
      const deed = {
        tool: name,
        effect,
        run,
        id: `${name}/${path.join()}`,
        args: JSON.stringify(payload),
        costMicroUsd: 0,
      };
      const value = change({ ...payload, path: [...path, name] });
      const done = atWork(context, world, () =>
        doIt(deed, { ms, deaf: false, isRemote: false }, context, world, asJson(value), () => {
          if (fails !== name || (failsOnce && context.attempt > 1)) return;
          // An error that says nothing of it may pass, of a node that is tried again.
          if (failsOnce) throw new Error(`${name} cannot be done now.`);
          throw new ToolFailure(`${name} cannot be done.`, { code: 'refused' });
        }),
      );
      return done.then(() => value);
    };
  }
}

const EMPTY: FlowInput = { path: [], way: 'left', rounds: 0, items: 0, ms: 0 };

/** What nodes hand on is JSON, without what is undefined. */
function asJson(value: FlowInput): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
