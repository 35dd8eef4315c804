/**
 * An agent for trying clients of the server: without a model, the same each time, and with what its tools really did in a file beside the journal. It
 * does what a message says; `examples/scenario-server.ts` serves it on all protocols.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { type Agent, agent, clientTool, type Planner, tool } from '../src/index.ts';
import type { Delta, Move, RunView } from '../src/planners/index.ts';

/** What the bodies of the tools did, one line each: it outlives the process as the journal does. */
export class Effects {
  readonly #path: string | undefined;
  readonly #lines: string[] = [];

  /** @param path absent: in memory. */
  constructor(path?: string) {
    this.#path = path;
  }

  add(toolName: string, key: string): void {
    if (this.#path === undefined) this.#lines.push(`${toolName} ${key}`);
    else appendFileSync(this.#path, `${toolName} ${key}\n`);
  }

  /** Whether the call of this key has had its effect. */
  has(toolName: string, key: string): boolean {
    return this.#all.includes(`${toolName} ${key}`);
  }

  count(toolName: string): number {
    return this.#all.filter((line) => line.startsWith(`${toolName} `)).length;
  }

  get #all(): readonly string[] {
    if (this.#path === undefined) return this.#lines;
    return existsSync(this.#path) ? readFileSync(this.#path, 'utf8').split('\n') : [];
  }
}

/** The file with the effects: beside a journal that is a file, or else in this folder, named as the database. */
export function effectsFileOf(journal: string): string {
  const isUrl = /^postgres(ql)?:/.test(journal);
  return `${isUrl ? new URL(journal).pathname.slice(1).replaceAll('/', '-') || 'scenario' : journal}.effects`;
}

const ORDER = {
  type: 'object',
  properties: { order: { type: 'string' }, amount: { type: 'number' } },
  required: ['order', 'amount'],
};

function toolsOn(effects: Effects) {
  const weather = tool({
    name: 'weather',
    description: 'Says how the weather is in a city.',
    effect: 'read',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    execute: async ({ city }, { idempotencyKey, signal }) => {
      effects.add('weather', idempotencyKey);
      await setTimeout(150, undefined, { signal });
      return { city: String(city), celsius: 7 };
    },
  });
  const refund = tool({
    name: 'refund',
    description: 'Pays an order back.',
    effect: 'once',
    needsApproval: true,
    inputSchema: ORDER,
    execute: async ({ order, amount }, { idempotencyKey, signal }) => {
      await setTimeout(150, undefined, { signal });
      effects.add('refund', idempotencyKey);
      await setTimeout(150);
      return { order: String(order), refunded: Number(amount) };
    },
    // After a crash in the middle: the file says whether it has happened.
    reconcile: ({ order, amount }, { idempotencyKey }) =>
      effects.has('refund', idempotencyKey)
        ? { status: 'done', value: { order: String(order), refunded: Number(amount) } }
        : { status: 'not_done' },
  });
  const report = tool({
    name: 'report',
    description: 'Reports how far it is.',
    effect: 'read',
    inputSchema: { type: 'object' },
    execute: async (_, { stream, emit }) => {
      const data = stream('data');
      emit({ type: 'data-note', data: { text: 'It begins.' } });
      for (let percent = 0; percent <= 100; percent += 20) {
        await data.write({ type: 'data-progress', id: 'p1', data: { percent } });
        await setTimeout(30);
      }
      return { percent: 100 };
    },
  });
  const pickColor = clientTool({
    name: 'pickColor',
    description: 'Has the user pick a color, in the client.',
    effect: 'read',
    inputSchema: { type: 'object' },
  });
  return [weather, refund, report, pickColor];
}

/** The words of the goal that the planner says or does something about. */
function saidOf(run: RunView): Said {
  const { query, trajectory } = run;
  const [word = '', ...rest] = query.trim().split(/\s+/);
  const calls = trajectory.step(0)?.calls ?? [];
  const values = calls.map(({ outcome }) => (outcome.kind === 'value' ? outcome.value : undefined));
  switch (word.toLowerCase()) {
    case 'say':
      return { words: rest };
    case 'slow':
      return { words: Array.from({ length: Number(rest[0]) || 0 }, (_, index) => `w${index}`), isSlow: true };
    case 'weather':
      if (calls.length === 0) return { calls: [{ tool: 'weather', args: { city: rest.at(-1) ?? '' } }] };
      return { words: words(`It is 7 degrees in ${rest.at(-1)}.`) };
    case 'refund': {
      const orders = rest.filter((each) => each !== 'and');
      if (calls.length === 0)
        return { calls: orders.map((order) => ({ tool: 'refund', args: { order, amount: 90 } })) };
      return {
        words: values.flatMap((value, index) =>
          words(value === undefined ? `${orders[index]} is not refunded.` : `${orders[index]} is refunded.`),
        ),
      };
    }
    case 'data':
      return calls.length === 0 ? { calls: [{ tool: 'report', args: {} }] } : { words: words('All is reported.') };
    case 'pick':
      if (calls.length === 0) return { calls: [{ tool: 'pickColor', args: {} }] };
      return {
        words: words(values[0] === undefined ? 'No color was picked.' : `You picked ${JSON.stringify(values[0])}.`),
      };
    case 'fail':
      return { words: words('This will not end well.'), fails: true };
    default:
      return { words: words(`You said: ${query}`) };
  }
}

interface Said {
  readonly words?: readonly string[];
  /** 20 to 60 ms a word. */
  readonly isSlow?: boolean;
  readonly calls?: readonly { readonly tool: string; readonly args: Record<string, string | number> }[];
  readonly fails?: boolean;
}

function words(text: string): readonly string[] {
  return text.split(' ');
}

const planner: Planner = {
  name: 'scenario',
  async *next(run, signal): AsyncGenerator<Delta, Move> {
    const { words: said = [], isSlow = false, calls = [], fails = false } = saidOf(run);
    for (const [index, word] of said.entries()) {
      await setTimeout(isSlow ? 20 + ((index * 7) % 41) : 1, undefined, { signal });
      yield { type: 'text', text: index === 0 ? word : ` ${word}` };
    }
    // What a client must never be told.
    if (fails) throw new Error('no such host\n    at connect (/srv/app/secret/db.ts:12:3) key=sk-12345678901234567890');
    const text = said.join(' ');
    const [only] = calls;
    if (only === undefined) return { decision: { kind: 'finish', reason: 'goal', payload: text }, text };
    if (calls.length === 1) return { decision: { kind: 'call_tool', ...only } };
    return {
      decision: { kind: 'call_parallel', branches: calls.map((each, index) => ({ id: `c${index}`, ...each })) },
    };
  },
};

export function scenarioAgent(effects: Effects): Agent {
  return agent({ name: 'scenario', planner, tools: toolsOn(effects) });
}
