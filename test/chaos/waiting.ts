/** The tools of runs that wait in the middle of their work: for an answer, a time, an event, and a value that comes later. */
import { type JsonObject, PilotageError, type Tool, type ToolContext } from '#pilotage';
import { later } from '#pilotage/tools';
import { toolsOf, type World } from '../double-act/world.ts';

/** What the letter waits for. The outside can say it before the run has begun. */
export function postOf(run: string): string {
  return `post/${run}`;
}

export const FEE_QUESTION = 'Which account?';

export function waitingTools(world: World): Tool[] {
  return toolsOf(world).map((tool): Tool => {
    const effect = (args: unknown, context: ToolContext): Promise<JsonObject> =>
      world.act(tool.name, args as JsonObject, context);
    switch (tool.name) {
      case 'pay':
        return { ...tool, execute: (args, context) => paid(() => effect(args, context), context) };
      case 'send':
        return { ...tool, execute: (args, context) => sent(() => effect(args, context), context) };
      case 'book':
        return {
          ...tool,
          execute: async (args, context) => {
            await effect(args, context);
            return later({ key: `room/${context.identity.run}`, pollEveryMs: 250 });
          },
          poll: async (_, __, context) => {
            const found = await world.lookUp(context);
            return found.status === 'done' ? found.value : undefined;
          },
        };
      default:
        return tool;
    }
  });
}

/** Pays, which is not to be done again, and asks then. */
async function paid(pay: () => Promise<JsonObject>, context: ToolContext): Promise<JsonObject> {
  await ended(context.sleep({ forMs: 200 }));
  const receipt = await context.once('pay', pay);
  await ended(
    Promise.all([context.ask({ question: FEE_QUESTION, schema: { type: 'number' } }), context.sleep({ forMs: 400 })]),
  );
  return receipt;
}

/** Sends the letter when there is post, or after a while. */
async function sent(send: () => Promise<JsonObject>, context: ToolContext): Promise<JsonObject> {
  const { run } = context.identity;
  await ended(context.event({ key: postOf(run), schema: { type: 'object', required: ['n'] }, timeoutMs: 20_000 }));
  return send();
}

const ENDS: readonly string[] = ['question_declined', 'question_expired', 'event_timeout', 'superseded'];

/** However it has ended. */
async function ended(wait: Promise<unknown>): Promise<void> {
  try {
    await wait;
  } catch (error) {
    if (!PilotageError.is(error) || !ENDS.includes(error.code)) throw error;
  }
}
