/** The operations of A2A, for both bindings. */
import { defined, type JsonObject } from '#core';
import { cancelledWithin } from '../cancel.ts';
import { assertFits } from '../request-body.ts';
import { withinTime } from '../within-time.ts';
import type { A2aAsked } from './asked.ts';
import { A2aRefused } from './errors.ts';
import { listTasks } from './list.ts';
import type { PushConfigs } from './push.ts';
import { acceptMessage } from './send.ts';
import { streamTask } from './stream.ts';
import { viewTask } from './task.ts';
import {
  isTerminal,
  LIST,
  NOTHING,
  OF_CONFIG,
  OF_CONFIGS,
  OF_TASK,
  type OperationName,
  PUSH_CONFIG,
  type PushConfig,
  SEND,
  type SendParams,
  type StreamName,
  type StreamResponse,
  type Task,
} from './wire.ts';

type Operation = (asked: A2aAsked) => Promise<unknown>;
/** Resolves with the stream once the request is accepted, so that errors are told before the stream begins. */
type Streaming = (asked: A2aAsked) => Promise<(signal: AbortSignal) => AsyncGenerator<StreamResponse, void>>;

interface Spec<T> {
  readonly schema: JsonObject;
  readonly run: T;
}

/** How long `CancelTask` waits for the end of the task before it returns the task as it is. */
const CANCEL_WAIT_MS = 10_000;

async function accepted(asked: A2aAsked): Promise<Awaited<ReturnType<typeof acceptMessage>>> {
  const { message, configuration } = asked.params as unknown as SendParams;
  const { acceptedOutputModes: modes = [], taskPushNotificationConfig: config } = configuration ?? {};
  if (modes.length > 0 && !modes.some((mode) => /^(\*\/\*|text\/(\*|plain)|application\/(\*|json))/.test(mode)))
    throw new A2aRefused('CONTENT_TYPE_NOT_SUPPORTED', 'Answers are text/plain and application/json.');
  // A config that cannot be is refused before anything begins.
  const of = message.taskId ? { taskId: message.taskId, version: asked.version } : undefined;
  if (config !== undefined) await pushOf(asked).check(asked.visit, config, of);
  const sent = await acceptMessage(asked, message, asked.deps.agent);
  if (config !== undefined)
    await pushOf(asked).put(asked.visit, sent.taskId, config, { version: asked.version, isOfStart: !message.taskId });
  return sent;
}

const send: Operation = async (asked) => {
  const { configuration: { historyLength, returnImmediately = false } = {} } = asked.params as unknown as SendParams;
  const { taskId, note } = await accepted(asked);
  const options = defined({ historyLength, note });
  const view = await viewTask(asked, taskId, options);
  if (returnImmediately || note !== undefined || isTerminal(view.task.status.state)) return { task: view.task };
  if (view.record.waits === true && (await waitsForPerson(asked, view.record.identity.session)))
    return { task: view.task };
  await withinTime(undefined, asked.visit.signal, (signal) => view.run.result({ signal }));
  return { task: (await viewTask(asked, taskId, options)).task };
};

/** Whether an earlier turn of the session waits for a person: then nobody knows when this turn will begin. */
async function waitsForPerson({ visit }: A2aAsked, session: string): Promise<boolean> {
  const { tenant, user } = visit.owner;
  const [paused] = await visit.runtime.list({ tenant, user, session, status: ['paused'], limit: 1 });
  return paused !== undefined;
}

const sendStreaming: Streaming = async (asked) => {
  const { taskId, note } = await accepted(asked);
  if (note === undefined) return (signal) => streamTask(asked, taskId, signal);
  const { task } = await viewTask(asked, taskId, { note });
  return async function* () {
    yield { task };
  };
};

const subscribe: Streaming = async (asked) => {
  const id = idIn(asked);
  const { task } = await viewTask(asked, id);
  if (isTerminal(task.status.state))
    throw new A2aRefused('UNSUPPORTED_OPERATION', `The task ${id} has ended. GetTask gives all of it.`);
  return (signal) => streamTask(asked, id, signal);
};

const getTask: Operation = async (asked) => {
  const { historyLength } = asked.params;
  return (await viewTask(asked, idIn(asked), defined({ historyLength: historyLength as number | undefined }))).task;
};

const cancelTask: Operation = async (asked): Promise<Task> => {
  const id = idIn(asked);
  const { task } = await viewTask(asked, id);
  if (task.status.state === 'TASK_STATE_CANCELED') return task;
  if (isTerminal(task.status.state)) throw notCancelable(id);
  const { run } = await asked.visit.run(id, 'control');
  await cancelledWithin(run, CANCEL_WAIT_MS, asked.visit.signal, { id: `cancel ${id}` });
  const { task: now } = await viewTask(asked, id);
  if (isTerminal(now.status.state) && now.status.state !== 'TASK_STATE_CANCELED') throw notCancelable(id);
  return now;
};

function notCancelable(id: string): A2aRefused {
  return new A2aRefused('TASK_NOT_CANCELABLE', `The task ${id} has ended.`);
}

const getExtendedAgentCard: Operation = async ({ deps, visit }) => {
  if (deps.extended === undefined)
    throw new A2aRefused('EXTENDED_AGENT_CARD_NOT_CONFIGURED', 'The agent has no other card than the public one.');
  return deps.card(await deps.extended(visit));
};

function pushOf({ deps: { push } }: A2aAsked): PushConfigs {
  if (push !== undefined) return push;
  const words = 'The server sends no notifications. GetTask and SubscribeToTask tell how the task comes on.';
  throw new A2aRefused('PUSH_NOTIFICATION_NOT_SUPPORTED', words);
}

const createConfig: Operation = async (asked) => {
  const config = asked.params as unknown as PushConfig;
  const taskId = config.taskId ?? '';
  const push = pushOf(asked);
  await viewTask(asked, taskId);
  await push.check(asked.visit, config);
  return push.put(asked.visit, taskId, config, { version: asked.version });
};

const getConfig: Operation = async (asked) => pushOf(asked).get(asked.visit, ...placeIn(asked));
const deleteConfig: Operation = async (asked) => pushOf(asked).delete(asked.visit, ...placeIn(asked));
const listConfigs: Operation = async (asked) => ({
  configs: await pushOf(asked).list(asked.visit, String(asked.params['taskId'])),
});

function placeIn({ params }: A2aAsked): readonly [taskId: string, id: string] {
  return [String(params['taskId']), String(params['id'])];
}

function idIn({ params }: A2aAsked): string {
  return String(params['id']);
}

export const OPERATIONS: Readonly<Record<OperationName, Spec<Operation>>> = {
  SendMessage: { schema: SEND, run: send },
  GetTask: { schema: OF_TASK, run: getTask },
  ListTasks: { schema: LIST, run: listTasks },
  CancelTask: { schema: OF_TASK, run: cancelTask },
  CreateTaskPushNotificationConfig: { schema: { ...PUSH_CONFIG, required: ['url', 'taskId'] }, run: createConfig },
  GetTaskPushNotificationConfig: { schema: OF_CONFIG, run: getConfig },
  ListTaskPushNotificationConfigs: { schema: OF_CONFIGS, run: listConfigs },
  DeleteTaskPushNotificationConfig: { schema: OF_CONFIG, run: deleteConfig },
  GetExtendedAgentCard: { schema: NOTHING, run: getExtendedAgentCard },
};

export const STREAMS: Readonly<Record<StreamName, Spec<Streaming>>> = {
  SendStreamingMessage: { schema: SEND, run: sendStreaming },
  SubscribeToTask: { schema: OF_TASK, run: subscribe },
};

/** @throws RequestRefused `request_invalid`; A2aRefused for another tenant than the visitor's. */
export function checked<T>(spec: Spec<T>, { params, visit }: Pick<A2aAsked, 'params' | 'visit'>): T {
  assertFits(params, spec.schema, 'What is asked');
  const { tenant } = params;
  if (tenant !== undefined && tenant !== '' && tenant !== visit.owner.tenant)
    throw new A2aRefused('TASK_NOT_FOUND', 'There is nothing of this tenant for you. Leave tenant out.');
  return spec.run;
}
