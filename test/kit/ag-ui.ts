/** A server of AG-UI with an agent of a test's, and the clients of both versions. */
import { type AgentSubscriber, type BaseEvent, HttpAgent, type RunAgentResult } from '@ag-ui/client';
import { HttpAgent as OldHttpAgent } from 'ag-ui-client-0059';
import { onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime, type RuntimeOptions } from '#runtime';
import { type Access, createHandler, serve } from '#server';
import { type AgUiOptions, agUi } from '#server/ag-ui';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';

export interface AgUiServer {
  readonly url: string;
  readonly effects: Effects;
  readonly runtime: ReturnType<typeof createRuntime>;
}

const LOCAL = { tenant: 'local', user: 'local' };

type Options = Partial<RuntimeOptions> & { readonly agUi?: AgUiOptions; readonly may?: Access['may'] };

export async function agUiServer({ agUi: options = {}, may, ...given }: Options = {}): Promise<AgUiServer> {
  const effects = new Effects();
  const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal: memoryJournal(), ...given });
  const { url, close } = await serve(
    createHandler({ runtime, parts: [agUi(options)], ...(may && { authenticate: () => ({ identity: LOCAL, may }) }) }),
    { port: 0 },
  );
  onTestFinished(async () => {
    await close();
    await runtime.close();
  });
  return { url, effects, runtime };
}

/** The headers of an answer, and the events in it. */
export interface Posted {
  readonly status: number;
  readonly headers: Headers;
  readonly events: readonly (Record<string, unknown> & { readonly type: string })[];
}

/** What a client is told that does not keep to the rules of the protocol's own. */
export async function posted(url: string, body: object, accept = 'text/event-stream'): Promise<Posted> {
  const input = { runId: `run-${++ids}`, messages: [], tools: [], context: [], ...body };
  const answer = await fetch(url, { method: 'POST', headers: { accept }, body: JSON.stringify(input) });
  const lines = (await answer.text()).split('\n\n').filter((line) => line.startsWith('data: '));
  return {
    status: answer.status,
    headers: answer.headers,
    events: lines.map((line) => JSON.parse(line.slice('data: '.length))),
  };
}

/** What a client of any version has in common. */
export type Client = HttpAgent & { readonly seen: BaseEvent[]; readonly types: string[] };

const VERSIONS: Readonly<Record<'1.0.0' | '0.0.59', typeof HttpAgent>> = {
  '1.0.0': HttpAgent,
  '0.0.59': OldHttpAgent as unknown as typeof HttpAgent,
};
export type Version = keyof typeof VERSIONS;

let ids = 0;

interface ClientOptions {
  readonly threadId?: string;
  readonly version?: Version;
  readonly path?: string;
  /** The media types that it asks for. Default: as it does by itself. */
  readonly accept?: string;
}

/** A client that notes every event which its verifier let through. */
export function client(url: string, options: ClientOptions = {}): Client {
  const { version = '1.0.0', threadId = `thread-${++ids}`, path = '/ag-ui', accept } = options;
  const Made = connectable(VERSIONS[version], accept);
  const agent = new Made({ url: `${url}${path}`, threadId });
  const seen: BaseEvent[] = [];
  const subscriber: AgentSubscriber = { onEvent: ({ event }) => void seen.push(event) };
  agent.subscribe(subscriber);
  return Object.defineProperty(Object.assign(agent, { seen }), 'types', {
    get: () => seen.map(({ type }) => type as string),
  }) as Client;
}

/** The protocol leaves it to subclasses where a history comes from. */
function connectable(Base: typeof HttpAgent, accept?: string): typeof HttpAgent {
  return class extends Base {
    protected override requestInit(input: Parameters<HttpAgent['run']>[0]): RequestInit {
      const init = super.requestInit(input);
      return accept === undefined ? init : { ...init, headers: { ...init.headers, Accept: accept } };
    }

    protected override connect(input: Parameters<HttpAgent['run']>[0]): ReturnType<HttpAgent['run']> {
      const other = this.clone();
      other.url = `${this.url}/connect`;
      return other.run(input);
    }
  };
}

export async function say(agent: Client, text: string, id: string = `message-${++ids}`): Promise<RunAgentResult> {
  agent.addMessage({ id, role: 'user', content: text });
  return agent.runAgent();
}

export function textOf(agent: Client): string | undefined {
  const { content } = agent.messages.findLast(({ role }) => role === 'assistant') ?? {};
  return content as string | undefined;
}

export const rolesOf = (agent: Client): readonly string[] => agent.messages.map(({ role }) => role);
