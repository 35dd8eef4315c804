/** How much of each request to a model is, byte for byte, the beginning of the request before: what a provider's cache keeps. */
import { Buffer } from 'node:buffer';
import { memoryJournal } from '#journal';
import { createRuntime, local, react, tool } from '#pilotage';
import { type ScriptedReply, type ScriptedRequest, scriptedModel } from '#testing';
import { type Measured, type Row, short } from './measure.ts';

const STEPS = 40;
const RESULT = 'A line of a result, as tools give them. '.repeat(20);
const input = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] };
const named = (name: string, more: object = {}) =>
  tool({ name, description: `Looks ${name} up.`, effect: 'read', inputSchema: input, execute: () => RESULT, ...more });
const tools = [
  ...Array.from({ length: 8 }, (_, index) => named(`tool_${index}`)),
  ...Array.from({ length: 4 }, (_, index) => named(`hidden_${index}`, { loading: 'deferred' })),
];

const plain = (index: number): ScriptedReply => ({ calls: [{ tool: 'tool_1', args: { q: `q${index}` } }] });
const SCENES: Readonly<Record<string, (index: number) => ScriptedReply>> = {
  'one call a step': plain,
  'every fifth reply empty, with a reminder after it': (index) => (index % 5 === 4 ? {} : plain(index)),
  'a tool found every tenth step': (index) =>
    index % 10 === 9
      ? { calls: [{ tool: 'tool_get', args: { name: `hidden_${Math.floor(index / 10)}` } }] }
      : plain(index),
};

export async function prefix(): Promise<Measured> {
  const rows: Row[] = [];
  const keys: Record<string, number> = {};
  for (const [scene, reply] of Object.entries(SCENES)) {
    const share = repeatedShare(await requestsOf(reply));
    const name = rows.length === 0 ? 'prefix_repeated_share' : `prefix_repeated_share_${rows.length + 1}`;
    keys[name] = short(share);
    rows.push([`request bytes that repeat the request before: ${scene}`, `${short(share * 100)} %`, `${STEPS} steps`]);
  }
  return { keys, rows };
}

async function requestsOf(reply: (index: number) => ScriptedReply): Promise<readonly ScriptedRequest[]> {
  const model = scriptedModel((_, index) => (index < STEPS ? reply(index) : { text: 'Done.' }));
  const runtime = createRuntime({ planner: react({ model }), tools, journal: memoryJournal() });
  await (await runtime.start('Look it all up.', { identity: local('bench') })).result();
  await runtime.close();
  return model.calls;
}

/** Of all requests after the first: tools, then messages, as a provider puts them. */
function repeatedShare(requests: readonly ScriptedRequest[]): number {
  const bodies = requests.map(({ tools: declared, prompt }) => Buffer.from(JSON.stringify([declared, prompt])));
  let all = 0;
  let repeated = 0;
  for (const [index, body] of bodies.entries()) {
    const before = bodies[index - 1];
    if (before === undefined) continue;
    all += body.length;
    repeated += commonLength(before, body);
  }
  return repeated / all;
}

function commonLength(left: Buffer, right: Buffer): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) if (left[index] !== right[index]) return index;
  return length;
}
