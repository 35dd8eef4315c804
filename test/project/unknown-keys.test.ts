/** A key that nobody reads is refused wherever options are taken, with what was probably meant: a near word, or our word for one of another library. */
import { runInNewContext } from 'node:vm';
import { tool as aiTool } from 'ai';
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { flow, node } from '#flow';
import { memoryJournal } from '#journal';
import { parseToolArgs, parseToolCalls } from '#parse';
import { agent, agentTool, createRuntime, react, type Tool } from '#pilotage';
import { readyConfig } from '#pilotage/config';
import { deterministic } from '#planners/deterministic';
import { findPlan } from '#planners/htn';
import { pipeline, promptStore } from '#planners/pipeline';
import { rules } from '#planners/rules';
import {
  crashEverywhere,
  journalConformance,
  openaiServer,
  plannerConformance,
  runView,
  scriptedModel,
} from '#testing';
import { finish } from '../kit/decisions.ts';
import { start, world } from '../kit/world.ts';

const planner = (): never => finish(null) as never;
const own: Tool = { name: 'x', description: 'd', inputSchema: { type: 'object' }, execute: () => 1 };
const { name: _, ...unnamed } = own;
const withTools = (tools: unknown): unknown =>
  createRuntime({ planner, tools: tools as never, journal: memoryJournal() });
const withTool = (more: object): unknown => withTools([{ ...own, ...more }]);
const inRecord = (more: object): unknown => withTools({ x: { ...unnamed, ...more } });
const runtime = (more: object): unknown => createRuntime({ planner, journal: memoryJournal(), ...more } as never);
const anAgent = (more: object): unknown => agent({ name: 'a', planner, ...more } as never);
const model = scriptedModel([]);
const only = node('only', { effect: 'pure', execute: () => 1 });
const oneNode = flow({ name: 'f', inputSchema: {}, entry: only, exit: only });
const started = (more: object): unknown => {
  const { runtime: made } = world({ planner });
  return made.start('q', { identity: local('ana'), ...more } as never);
};
const said = (message: object): unknown =>
  world({ planner })
    .runtime.session('s')
    .send(message as never);
const forked = async (more: object): Promise<unknown> => {
  const run = await start(world({ planner }));
  await run.result();
  return run.fork(more as never);
};

async function messageOf(doing: () => unknown): Promise<string> {
  const thrown: unknown = await (async () => doing())().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toMatchObject({ code: 'invalid_config' });
  return (thrown as Error).message;
}

describe('a key that is spelt wrong', () => {
  it.each<[string, () => unknown, string]>([
    [
      'a tool',
      () => withTool({ needsAproval: true }),
      'The tool x has no option "needsAproval". Did you mean needsApproval?',
    ],
    ['a tool of a record', () => inRecord({ efect: 'read' }), 'The tool x has no option "efect". Did you mean effect?'],
    ['a gate of a record', () => inRecord({ needsAproval: true }), 'Did you mean needsApproval?'],
    [
      'an AI SDK tool',
      () =>
        withTools({
          x: { ...aiTool({ inputSchema: own.inputSchema as never, execute: () => 1 }), needsAproval: true },
        }),
      'Did you mean needsApproval?',
    ],
    [
      'a gate',
      () => withTool({ needsApproval: { aprover: 'another' } }),
      'needsApproval of the tool x has no option "aprover". Did you mean approver?',
    ],
    ['a gate of a record', () => inRecord({ needsApproval: { whn: () => true } }), 'Did you mean when?'],
    [
      'a backoff',
      () => withTool({ backoff: { base: 5 } }),
      'backoff of the tool x has no option "base". Did you mean baseMs?',
    ],
    ['an example', () => withTool({ examples: [{ args: {}, tags: 'edge-case' }] }), 'Did you mean tag?'],
    ['agent', () => anAgent({ limit: {} }), 'agent has no option "limit". Did you mean limits?'],
    [
      'limits of an agent',
      () => anAgent({ limits: { step: 1 } }),
      'limits of the agent "a" has no option "step". Did you mean steps?',
    ],
    [
      'agentTool',
      () => agentTool(agent({ name: 'a', planner }), { description: 'd', inputSchme: {} } as never),
      'agentTool has no option "inputSchme". Did you mean inputSchema?',
    ],
    ['limits', () => runtime({ limits: { tokns: 1 } }), 'limits has no option "tokns". Did you mean tokens?'],
    [
      'start',
      () => started({ sesssion: 'x' }),
      "start has no option \"sesssion\". Write identity: local('ana', { session: 'chat-1' }).",
    ],
    [
      'a handle',
      () => withTool({ handles: { page: { name: 'p', open: () => 1, close: () => 1, onlost: 'fail' } } }),
      'Did you mean onLost?',
    ],
    ['hints', () => started({ context: { hints: { disalowedTools: ['x'] } } }), 'Did you mean disallowedTools?'],
    ['the budget of hints', () => started({ context: { hints: { budget: { cost: 1 } } } }), 'Write costUsd: 0.002.'],
    [
      'a skill',
      () => started({ context: { skills: [{ name: 's', title: 't', step: ['a'] }] } }),
      'Did you mean steps?',
    ],
    [
      'an attachment',
      () => started({ inputs: [{ bytes: new Uint8Array(1), mime: 'text/csv', filename: 'a.csv' }] }),
      'inputs[0] has no option "filename". Did you mean fileName?',
    ],
    ['a model', () => react({ model: { model, toolcalls: 'text' } } as never), 'Did you mean toolCalls?'],
    [
      'prices',
      () => react({ model, prices: { input: 1, ouput: 1 } } as never),
      'prices has no option "ouput". Did you mean output?',
    ],
    [
      'readyConfig',
      () => readyConfig({ planner }, { planner: 1 } as never),
      'readyConfig has no option "planner". Did you mean planners?',
    ],
    ['a rule', () => rules({ rules: [{ id: 'r', matches: () => true }] } as never), 'Did you mean match?'],
    [
      'a step',
      () => deterministic({ steps: [{ do: 'finish', reason: 'goal', paylod: 1 }] } as never),
      'a step with do: \'finish\' has no option "paylod". Did you mean payload?',
    ],
    ['a tool of a flow', () => oneNode.asTool({ need_approval: true } as never), 'Did you mean needsApproval?'],
    [
      'the start of a flow',
      () => oneNode.start(world({ planner }).runtime, null, { limit: {} } as never),
      'Did you mean limits?',
    ],
    ['scriptedModel', () => scriptedModel([], { modelID: 'x' } as never), 'Did you mean modelId?'],
    ['a scripted reply', () => scriptedModel([{ txt: 'x' }] as never), 'Did you mean text?'],
    ['a scripted call', () => scriptedModel([{ calls: [{ tool: 'x', arguments: {} }] }] as never), 'Write args:'],
    ['openaiServer', () => openaiServer([{ stallAfterEvent: 1 }] as never), 'Did you mean stallAfterEvents?'],
    ['a planner', () => runtime({ planner: { name: 'p', next: planner, wakemode: 'poll' } }), 'Did you mean wakeMode?'],
    [
      'a verifier',
      () => pipeline({ model, verifier: { model, candidates: 2 } } as never),
      'verifier of pipeline has no option "candidates"',
    ],
    ['a template', () => promptStore().put({ id: 'a', text: 'x', meta: {} } as never), 'has no option "meta"'],
    ['findPlan', () => findPlan({} as never, {} as never, [], { dept: 1 } as never), 'Did you mean depth?'],
    ['parseToolCalls', () => parseToolCalls('', [], { stricktness: 'exact' } as never), 'Did you mean strictness?'],
    [
      'limits of parsing',
      () => parseToolArgs('', { name: 'a' } as never, { maxChar: 1 } as never),
      'Did you mean maxChars?',
    ],
    ['runView', () => runView({ stepps: [] } as never), 'runView has no option "stepps". Did you mean steps?'],
    ['crashEverywhere', () => crashEverywhere({} as never, { double: 1 } as never), 'Did you mean doubles?'],
    ['a scenario', () => crashEverywhere({ qery: 'x' } as never), 'Did you mean query?'],
    [
      'journalConformance',
      () => journalConformance({ open: () => memoryJournal(), durabel: true } as never),
      'Did you mean durable?',
    ],
    ['plannerConformance', () => plannerConformance({ naem: 'x' } as never), 'Did you mean name?'],
    ['fork', () => forked({ gaol: 'x' }), 'fork has no option "gaol". Did you mean goal?'],
  ])('of %s is refused: %#', async (_name, doing, message) => {
    expect(await messageOf(doing)).toContain(message);
  });

  it('of the budget of a flow is one of the faults of the flow', () => {
    const budget = { maxSteps: 3, tokns: 1 } as never;
    const building = (): unknown => flow({ name: 'f', inputSchema: {}, entry: only, exit: only, budget });
    expect(building).toThrow(expect.objectContaining({ code: 'flow_invalid' }));
    expect(building).toThrow(/budget\.tokns is not an axis of a budget\. Did you mean tokens\?/);
  });

  it('a planner may have fields of its own', () => {
    const own = { name: 'p', next: planner, views: [], model: 'm', getRules: () => [] };
    expect(() => runtime({ planner: own })).not.toThrow();
  });

  it('is refused also where its value is undefined', async () => {
    expect(await messageOf(() => inRecord({ needsAproval: undefined }))).toContain('needsApproval');
    expect(await messageOf(() => started({ sesion: undefined }))).toContain('session');
  });
});

describe('a word of another library', () => {
  it.each<[string, () => unknown, string]>([
    ['parameters', () => withTool({ parameters: {} }), 'Write inputSchema: z.object({ city: z.string() }).'],
    ['input_schema', () => withTool({ input_schema: {} }), 'Did you mean inputSchema?'],
    ['schema', () => withTool({ schema: {} }), 'Write inputSchema:'],
    ['handler', () => withTool({ handler: () => 1 }), 'Write execute: async ({ city }) => ….'],
    ['func', () => inRecord({ func: () => 1 }), 'Write execute:'],
    ['run', () => withTool({ run: () => 1 }), 'Write execute:'],
    ['approve', () => withTool({ approve: 'always' }), 'Write needsApproval: true.'],
    ['requireApproval', () => inRecord({ requireApproval: true }), 'Write needsApproval: true.'],
    ['interruptOn', () => runtime({ interruptOn: { x: true } }), 'It is needsApproval: true, an option of a tool.'],
    ['maxSteps', () => started({ maxSteps: 5 }), 'Write limits: { steps: 20, costUsd: 0.5 }.'],
    ['stopWhen', () => anAgent({ stopWhen: () => true }), 'Write limits: {'],
    ['maxTurns', () => runtime({ maxTurns: 5 }), 'Write limits: {'],
    ['max_turns', () => anAgent({ limits: { max_turns: 5 } }), 'Write limits: { steps: 20 }.'],
    ['recursionLimit', () => started({ recursionLimit: 5 }), 'Write limits: {'],
    [
      'instructions',
      () => anAgent({ instructions: 'x' }),
      "It is systemPrompt: 'You answer in one sentence.', an option of react.",
    ],
    ['maxSteps', () => react({ model, maxSteps: 3 } as never), 'It is limits: { steps: 20, costUsd: 0.5 }, an'],
    ['role', () => said({ role: 'user', content: 'Hi' }), "Write text: 'Hi.'."],
    ['system', () => react({ model, system: 'x' } as never), "Write systemPrompt: 'You answer in one sentence.'."],
    ['handoffs', () => anAgent({ handoffs: [] }), 'Write tools: [agentTool(writer, '],
    [
      'modelSettings',
      () => anAgent({ modelSettings: {} }),
      'It is react({ model, temperature: 0.2 }), an option of react.',
    ],
    ['temperature', () => runtime({ temperature: 0 }), 'It is react({ model, temperature: 0.2 }), an option of react.'],
    ['toolChoice', () => react({ model, toolChoice: 'auto' } as never), 'disallowedTools'],
    ['threadId', () => started({ threadId: 't' }), 'Write identity: local('],
    ['thread_id', () => started({ thread_id: 't' }), 'Write identity: local('],
    ['checkpointer', () => runtime({ checkpointer: {} }), "Write journal: 'runs.db'."],
    ['inputGuardrails', () => runtime({ inputGuardrails: [] }), 'Write policy: '],
    ['onStepFinish', () => started({ onStepFinish: () => 1 }), 'for await (const event of run.events())'],
    ['planners', () => runtime({ planners: [] }), 'Write agents: [agent({ name, planner, tools })].'],
    ['model', () => runtime({ model }), 'Write planner: react({ model }).'],
    ['costMicroUsd', () => runtime({ limits: { costMicroUsd: 5 } }), 'Write costUsd: '],
  ])('%s is answered with ours', async (word, doing, message) => {
    const said = await messageOf(doing);
    expect(said).toContain(`has no option "${word}". `);
    expect(said).toContain(message);
  });
});

describe('options that are an object of a class', () => {
  it('are read by their names, getters too, and methods keep their object', async () => {
    class Options {
      readonly #say = 'asked by the class';
      get description(): string {
        return 'd';
      }
      get inputSchema(): object {
        return own.inputSchema;
      }
      get needsApproval(): boolean {
        return true;
      }
      prompt(): string {
        return this.#say;
      }
    }
    const asked = agentTool(agent({ name: 'a', planner }), new Options() as never);
    expect(asked).toMatchObject({ name: 'a', description: 'd', needsApproval: true });
    const { prompt } = asked;
    expect(prompt?.({ input: 'x' })).toBe('asked by the class');
  });

  it('a start has its context and its attachments also where the agent reads its arguments', async () => {
    class Starting {
      readonly agent = 'reader';
      get context(): object {
        return new (class {
          get meta(): object {
            return { plan: 'pro' };
          }
        })();
      }
      get inputs(): readonly object[] {
        return [{ bytes: new Uint8Array(1), mime: 'text/csv' }];
      }
    }
    const made = world({ agents: [agent({ name: 'reader', planner, readArgs: () => 'read' })] });
    const run = await made.runtime.start('q', new Starting() as never);
    await run.result();
    const [first] = await made.journal.read(run.id, 1, 1);
    expect(first).toMatchObject({ context: { args: 'read', meta: { plan: 'pro' }, inputs: [{ mime: 'text/csv' }] } });
  });

  it('readArgs of an agent of a class is called on that agent, and makes it no other agent', async () => {
    class Writer {
      readonly #least = 2;
      readonly name = 'writer';
      readonly planner = planner;
      readArgs(args: unknown): { least: number; args: null } {
        expect(args).toBeUndefined();
        return { least: this.#least, args: null };
      }
    }
    const writer = new Writer();
    const asked = agentTool(writer as never, { description: 'd' });
    const made = world({ agents: [writer as never, agent({ name: 'b', planner, tools: [asked] })] });
    const run = await made.runtime.start('q', { identity: local('ana'), agent: 'writer' });
    await run.result();
    const [first] = await made.journal.read(run.id, 1, 1);
    expect(first).toMatchObject({ context: { args: { least: 2 } } });
  });
});

describe('an object that is not plain', () => {
  class Bare {
    readonly name = 'x';
    readonly description = 'd';
    readonly inputSchema = { type: 'object' };
    execute(): number {
      return 1;
    }
  }

  it('may have fields of its own, but none that stands for an option it has not', async () => {
    class WithOwn extends Bare {
      readonly client = 'of its own';
      readonly run = 'execute is there';
      parameterCount(): number {
        return 1;
      }
    }
    expect(() => withTools([new WithOwn()])).not.toThrow();
    class Misspelt extends Bare {
      readonly needsAproval = true;
    }
    expect(await messageOf(() => withTools([new Misspelt()]))).toContain('Did you mean needsApproval?');
    class Foreign extends Bare {
      get requireApproval(): boolean {
        return true;
      }
    }
    expect(await messageOf(() => withTools([new Foreign()]))).toContain('Write needsApproval: true.');
    expect(await messageOf(() => withTools([Object.create({ ...own, needsAproval: true })]))).toContain(
      'needsApproval?',
    );
  });

  it('is plain when it comes from another realm', async () => {
    const elsewhere: object = runInNewContext('({ quite: 1 })');
    expect(await messageOf(() => withTools([Object.assign(elsewhere, own)]))).toContain('has no option "quite"');
  });

  it('keys that are symbols are nobody’s options', () => {
    expect(() => withTool({ [Symbol('needsAproval')]: true })).not.toThrow();
  });
});
