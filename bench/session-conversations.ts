/** Conversations as a chat server has them, in one run that converses or in a session of runs: for each message of the user one turn, to its end. */
import type { LanguageModelV4, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { createRuntime, local, type Planner, type Run, type Runtime, react } from '#pilotage';
import type { Journal } from '#pilotage/journal';

export interface Conversation {
  /** The id of its run, or its own. */
  readonly id: string;
  /** The message of this number is sent, and its answer is there. */
  turn(number: number): Promise<void>;
}

export interface Kind {
  runtimeOn(journal: Journal): Runtime;
  begin(runtime: Runtime): Promise<Conversation>;
}

/** Requests are kept about this long: what is earlier becomes a summary, about every 30 turns. */
const BUDGET_TOKENS = 2_000;

const USAGE = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A summary that has not changed would be refused. */
function summaryOf(prompt: LanguageModelV4Prompt): string {
  const last = JSON.stringify(prompt).match(/my numbers is (\d+)(?!.*my numbers is)/)?.[1] ?? 'none';
  const facts = ['The user talks of numbers.'];
  return JSON.stringify({ goals: ['Talk.'], facts, pending: [], lastOutputDigest: `The last was ${last}.`, note: '' });
}

/** Answers at once, in a few words; a summariser's summary is as short. It keeps nothing. */
function talkingModel(): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'talking',
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const text = isForSummary(prompt)
        ? summaryOf(prompt)
        : 'I have taken the number; say the next one when you like.';
      return {
        content: [{ type: 'text', text }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: USAGE,
        warnings: [],
      };
    },
    doStream: async () => {
      throw new Error('Nobody streams here.');
    },
  };
}

function isForSummary([first]: LanguageModelV4Prompt): boolean {
  return first?.role === 'system' && first.content.startsWith('You sum up');
}

/** One run, whose model answers at once; requests are compacted, so that it is sent about the same at every turn. */
export const CONVERSING: Kind = {
  runtimeOn(journal) {
    const planner = react({ model: talkingModel(), converse: true, compaction: { budgetTokens: BUDGET_TOKENS } });
    return createRuntime({ planner, journal });
  },
  async begin(runtime) {
    const run = await runtime.start('I tell you numbers.', { identity: local('bench') });
    await run.result();
    return { id: run.id, turn: (number) => takeTurn(run, number) };
  },
};

export async function takeTurn(run: Run, turn: number): Promise<void> {
  await run.steer('USER_MESSAGE', { message: messageOf(turn) });
  const result = await run.result();
  if (result.status !== 'paused' || result.pauses[0]?.reason !== 'await_input') {
    throw new Error(`Turn ${turn} went wrong: ${JSON.stringify(result)}`);
  }
}

function messageOf(turn: number): string {
  return `The next of my numbers is ${turn}, if I have counted well.`;
}

/** A function is the planner, so that what is measured is the runtime's own: it says of how many turns before it was told. */
export const listener: Planner = {
  name: 'listener',
  next: ({ earlier }) => ({
    kind: 'finish',
    reason: 'goal',
    payload: { message: `I was told of ${earlier?.runs.length ?? 0} turns.` },
  }),
};

/** When more were told, half of them have left: 10 to 20 of the turns before are told. */
const TOLD_AT_LEAST = 10;

/** A session in which every turn is a run. */
export const SESSION: Kind = {
  runtimeOn: (journal) => createRuntime({ planner: listener, journal }),
  async begin(runtime) {
    const session = runtime.session(`bench-${crypto.randomUUID()}`);
    const turn = async (number: number): Promise<void> => {
      const result = await (await session.send(messageOf(number))).result();
      const told = result.status === 'finished' ? Number(/\d+/.exec(String(result.answer))?.[0]) : Number.NaN;
      if (!(told >= Math.min(number - 1, TOLD_AT_LEAST))) {
        throw new Error(`Turn ${number} went wrong: ${JSON.stringify(result)}`);
      }
    };
    return { id: session.id, turn };
  },
};
