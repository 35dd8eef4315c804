/** A conversation in one run, as a chat server has it: for each message of the user one turn, to its end. */
import type { LanguageModelV4, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { createRuntime, local, type Run, type Runtime, react } from '#pilotage';
import type { Journal } from '#pilotage/journal';

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

export function chatRuntime(journal: Journal): Runtime {
  const planner = react({ model: talkingModel(), converse: true, compaction: { budgetTokens: BUDGET_TOKENS } });
  return createRuntime({ planner, journal });
}

/** Begins a conversation, up to its first answer. */
export async function startChat(runtime: Runtime): Promise<Run> {
  const run = await runtime.start('I tell you numbers.', { identity: local('bench') });
  await run.result();
  return run;
}

/** One turn: the message is sent, and its answer is there. */
export async function takeTurn(run: Run, turn: number): Promise<void> {
  await run.steer('USER_MESSAGE', { message: `The next of my numbers is ${turn}, if I have counted well.` });
  const result = await run.result();
  if (result.status !== 'paused' || result.pauses[0]?.reason !== 'await_input') {
    throw new Error(`Turn ${turn} went wrong: ${JSON.stringify(result)}`);
  }
}
