/** An agent on the server of the SDK itself, in memory: `node sdk-agent-child.ts - BINDING`. `/log` says what it was asked. */
import { type AgentCard, type Message, type Task, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

const binding = process.argv[3] ?? 'JSONRPC';
const log: string[] = [];

function textPart(value: string) {
  return { content: { $case: 'text' as const, value }, metadata: undefined, filename: '', mediaType: '' };
}

function wordsIn({ parts }: Message): string {
  return parts
    .map(({ content }) => (content?.$case === 'text' ? content.value : JSON.stringify(content?.value)))
    .join(' ');
}

class Agent implements AgentExecutor {
  async execute({ userMessage, taskId, contextId, task }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const words = wordsIn(userMessage);
    log.push(`message ${words}`);
    const begun: Task = task ?? {
      id: taskId,
      contextId,
      status: { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: undefined },
      artifacts: [],
      history: [userMessage],
      metadata: undefined,
    };
    bus.publish(AgentEvent.task(begun));
    const status = (state: TaskState, said?: string): void => {
      const message: Message | undefined =
        said === undefined
          ? undefined
          : { ...userMessage, messageId: crypto.randomUUID(), role: 2, taskId, contextId, parts: [textPart(said)] };
      const event = { taskId, contextId, status: { state, message, timestamp: undefined }, metadata: undefined };
      bus.publish(AgentEvent.statusUpdate(event));
    };
    if (words.startsWith('ask')) status(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which color?');
    else if (words.startsWith('wait')) await new Promise((resolve) => setTimeout(resolve, Number(words.split(' ')[1])));
    if (words.startsWith('ask')) return bus.finished();
    if (words.startsWith('refuse')) status(TaskState.TASK_STATE_REJECTED, 'I do no such thing.');
    else {
      const artifact = {
        artifactId: 'a',
        name: '',
        description: '',
        parts: [textPart(`You said ${words}.`)],
        metadata: undefined,
        extensions: [],
      };
      bus.publish(
        AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined }),
      );
      status(TaskState.TASK_STATE_COMPLETED);
    }
    bus.finished();
  }

  cancelTask = async (taskId: string, bus: ExecutionEventBus): Promise<void> => {
    log.push('cancel');
    const status = { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: undefined };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: '', status, metadata: undefined }));
    bus.finished();
  };
}

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  const path = binding === 'JSONRPC' ? '/rpc' : '/rest';
  const card: AgentCard = {
    name: 'Peer',
    description: 'Repeats.',
    version: '1',
    provider: undefined,
    supportedInterfaces: [
      { url: `http://127.0.0.1:${port}${path}`, protocolBinding: binding, protocolVersion: '1.0', tenant: '' },
    ],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.get('/log', (_, response) => void response.json(log));
  app.get('/.well-known/agent-card.json', (_, response) => void response.json(card));
  app.use(path, binding === 'JSONRPC' ? jsonRpcHandler(options) : restHandler(options));
  console.log(`port ${port}`);
});
