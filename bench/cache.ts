/**
 * How much of the input a provider's cache gives: 60 steps with the real package of Anthropic, over the wire, against a cache by its published
 * rules. The AI SDK's own loop plays the same replies, with the marks that its users set: the system prompt and the last message.
 */
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateText, jsonSchema, type ModelMessage, tool as sdkTool, stepCountIs } from 'ai';
import { memoryJournal } from '#journal';
import { createRuntime, local, react, tool } from '#pilotage';
import type { Journal } from '#pilotage/journal';
import { type Measured, type Row, short } from './measure.ts';
import { type CachingServer, cachingServer, type InputTokens, type MessagesBody } from './prompt-cache.ts';

const STEPS = 60;
/** A model's reply and its tools. */
const STEP_MS = 10_000;

interface Scene {
  /** Behind the names of its numbers. */
  readonly suffix: string;
  /** From the question to the answer in another process. An entry lives for five minutes. */
  readonly pauseMs: number;
  /** From so many tokens on, the history is compacted. */
  readonly budgetTokens: number;
}

const SCENES: Readonly<Record<string, Scene>> = {
  'a pause of 4 minutes': { suffix: '', pauseMs: 240_000, budgetTokens: 44_000 },
  'a pause of 20 minutes': { suffix: '_late', pauseMs: 1_200_000, budgetTokens: 44_000 },
  'a pause of 4 minutes, a smaller budget': { suffix: '_small', pauseMs: 240_000, budgetTokens: 28_000 },
};

const WRITE_PRICE = 1.25;
const READ_PRICE = 0.1;

const input = {
  type: 'object',
  properties: { q: { type: 'string', description: 'What to look for.' }, limit: { type: 'integer' } },
  required: ['q'],
  additionalProperties: false,
} as const;
const ABOUT = 'Looks in a source of its own, and gives what it finds as lines of text, the best first. '.repeat(4);
const NAMES = ['ask', ...Array.from({ length: 11 }, (_, index) => `look_${index}`)];
const found = (q: string): string => `A line about ${q}, as a tool finds it. `.repeat(45);
const HINTS = { constraints: 'Name the source of each fact.', preferredTools: ['look_1'] };
const QUERY = 'Find out all there is to know, and write it down.';

type Call = { readonly name: string; readonly input: object };

/** What the model says at each step: the replies are the same for both sides, but for the faulty ones, which the SDK's loop has no answer to. */
function callsAt(index: number): readonly Call[] {
  const look = (n: number, q: unknown = `step ${index}, ${n}`): Call => ({ name: `look_${n % 11}`, input: { q } });
  if (index === STEPS / 2) return [{ name: 'ask', input: { q: 'May I go on?' } }];
  // More than the blocks that are looked at from one mark.
  if (index % 15 === 14) return Array.from({ length: 12 }, (_, n) => look(n));
  if (index % 5 === 4) return [look(1), look(2), look(3)];
  return [look(1)];
}

interface Faults {
  readonly isEmpty: boolean;
  readonly isWrong: boolean;
}

/** Every tenth reply is nothing at all; every twentieth and the one after it have arguments that do not fit. */
function faultsAt(index: number): Faults {
  return { isEmpty: index % 10 === 3, isWrong: index % 20 === 11 || index % 20 === 12 };
}

/** One that is not the same as an earlier one. */
function summaryAfter(steps: number): object {
  return {
    goals: ['Find out all there is to know.'],
    facts: Array.from({ length: 12 }, (_, index) => `Source ${index} says what the notes of ${steps} steps say of it.`),
    pending: ['Write it down.'],
    lastOutputDigest: 'Lines about the last question.',
    note: '',
  };
}

/** Replies in turn; the requests of a summariser, which offer no tools, have a reply of their own. */
function script(withFaults: boolean): (body: MessagesBody) => readonly object[] {
  let index = 0;
  return ({ tools = [] }) => {
    if (!tools.some(({ name }) => name === 'ask')) {
      return [{ type: 'text', text: JSON.stringify(summaryAfter(index)) }];
    }
    const at = index;
    index += 1;
    if (at >= STEPS) return [{ type: 'text', text: 'Written down.' }];
    const { isEmpty, isWrong } = faultsAt(at);
    if (withFaults && isEmpty) return [];
    const wrong = withFaults && isWrong ? { input: { limit: 'many' } } : {};
    return callsAt(at).map((call, n) => ({ type: 'tool_use', id: `call_${at}_${n}`, ...call, ...wrong }));
  };
}

const modelOf = ({ url }: CachingServer) => createAnthropic({ apiKey: 'none', baseURL: url })('claude-sonnet-4-5');

interface Played {
  readonly taken: readonly InputTokens[];
  readonly compactions: number;
  readonly repairs: number;
}

/** A run that pauses in the middle, and is gone on with by a runtime that knows nothing of it but the journal. */
async function ours({ pauseMs, budgetTokens }: Scene): Promise<Played> {
  const server = await cachingServer(script(true), STEP_MS);
  const journal: Journal = memoryJournal();
  const begin = () =>
    createRuntime({
      planner: react({ model: modelOf(server), compaction: { budgetTokens } }),
      tools: NAMES.map((name) => {
        const parts = {
          name,
          description: ABOUT,
          effect: 'read',
          inputSchema: input,
          needsApproval: name === 'ask',
        } as const;
        return tool({ ...parts, execute: ({ q }: { q: string }) => found(q) });
      }),
      limits: { steps: STEPS * 2 },
      journal,
    });
  const first = begin();
  const identity = local('bench', { run: 'run_cache' });
  const asked = await (await first.start(QUERY, { identity, context: { hints: HINTS } })).result();
  if (asked.status !== 'paused') throw new Error(`The run is ${asked.status}, where it should ask.`);
  await first.close();
  server.pass(pauseMs);
  const second = begin();
  const run = second.run(identity.run);
  await run.approve();
  const result = await run.result();
  if (result.status !== 'finished' || result.reason !== 'goal')
    throw new Error(`The run has not ended well: ${JSON.stringify(result)}`);
  const events: string[] = [];
  for await (const { type } of run.events({ from: 0 })) events.push(type);
  const count = (wanted: string): number => events.filter((type) => type === wanted).length;
  await second.close();
  await server.close();
  const [compactions, repairs] = [count('trajectory.compressed'), count('planner.repair_guidance_injected')];
  return { taken: server.taken, compactions, repairs };
}

/** The same without faults, which end such a loop, and without compaction, which it does not have. */
async function theirs({ pauseMs }: Scene): Promise<Played> {
  const server = await cachingServer(script(false), STEP_MS);
  const mark = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const;
  const tools = Object.fromEntries(
    NAMES.map((name) => {
      const execute = async ({ q }: { q: string }): Promise<string> => found(q);
      return [name, sdkTool({ description: ABOUT, inputSchema: jsonSchema<{ q: string }>(input as never), execute })];
    }),
  );
  const loop = (messages: ModelMessage[], steps: number) =>
    generateText({
      model: modelOf(server),
      instructions: {
        role: 'system',
        content: `${QUERY} ${HINTS.constraints} ${ABOUT.repeat(8)}`,
        providerOptions: mark,
      },
      messages,
      tools,
      stopWhen: stepCountIs(steps),
      maxRetries: 0,
      prepareStep: ({ messages: all }) => ({
        messages: all.map((message, index) => {
          const { providerOptions: _, ...plain } = message;
          return (index === all.length - 1 ? { ...plain, providerOptions: mark } : plain) as ModelMessage;
        }),
      }),
    });
  const begun: ModelMessage[] = [{ role: 'user', content: QUERY }];
  const { responseMessages } = await loop(begun, STEPS / 2 + 1);
  server.pass(pauseMs);
  await loop(JSON.parse(JSON.stringify([...begun, ...responseMessages])), STEPS);
  await server.close();
  return { taken: server.taken, compactions: 0, repairs: 0 };
}

export async function cache(): Promise<Measured> {
  const rows: Row[] = [];
  const keys: Record<string, number> = {};
  const note = (side: string, [name, { suffix }]: [string, Scene], played: Played): void => {
    const { taken, compactions, repairs } = played;
    const { share, cost, tokens } = sumOf(taken);
    const ending = side === OURS ? suffix : `_ai_sdk${suffix}`;
    keys[`cache_read_share${ending}`] = short(share);
    keys[`cache_input_cost${ending}`] = short(cost);
    const how = `${taken.length} requests, ${tokens} tokens, ${repairs} reminders, ${compactions} compactions`;
    const what = `input tokens read from the cache, ${side}, ${name}`;
    rows.push([what, `${short(share * 100)} %`, `${how}; the input costs ${short(cost)} of its price without a cache`]);
  };
  for (const scene of Object.entries(SCENES)) {
    note(OURS, scene, await ours(scene[1]));
    // Its requests know no budget.
    if (scene[1].suffix !== '_small') note("AI SDK's loop", scene, await theirs(scene[1]));
  }
  return { keys, rows };
}

const OURS = 'Pilotage';

/** The share that our side reads, with a pause within the life of the entries. */
export async function ourShare(): Promise<number> {
  return sumOf((await ours(SCENES['a pause of 4 minutes'] as Scene)).taken).share;
}

function sumOf(taken: readonly InputTokens[]): { share: number; cost: number; tokens: number } {
  const sum = { plain: 0, read: 0, written: 0 };
  for (const { plain, read, written } of taken) {
    sum.plain += plain;
    sum.read += read;
    sum.written += written;
  }
  const tokens = sum.plain + sum.read + sum.written;
  return {
    share: sum.read / tokens,
    cost: (sum.plain + sum.written * WRITE_PRICE + sum.read * READ_PRICE) / tokens,
    tokens,
  };
}
