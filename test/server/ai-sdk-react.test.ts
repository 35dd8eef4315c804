/** `useChat` of `@ai-sdk/react` on a page in jsdom, as an app would use it. */
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai';
import { JSDOM } from 'jsdom';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { historyOf, serveChats } from '../kit/ui-chat.ts';
import { quiet, until } from '../kit/waiting.ts';

/** What React finds of a browser, for as long as a test takes. */
async function page() {
  const { window } = new JSDOM('<div id="root"></div>', { url: 'http://localhost', pretendToBeVisual: true });
  const names = ['window', 'document'] as const;
  const before = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
  Object.assign(globalThis, { window, document: window.document });
  onTestFinished(() => {
    for (const [index, name] of names.entries()) {
      const was = before[index];
      if (was === undefined) Reflect.deleteProperty(globalThis, name);
      else Object.defineProperty(globalThis, name, was);
    }
  });
  const [{ createElement, StrictMode }, { createRoot }, { useChat }] = await Promise.all([
    import('react'),
    import('react-dom/client'),
    import('@ai-sdk/react'),
  ]);

  let resumed = 0;
  const noting = async (...asked: Parameters<typeof fetch>): Promise<Response> => {
    const answer = await fetch(...asked);
    if (asked[1]?.method === 'GET') resumed += 1;
    return answer;
  };

  function App({ url, messages }: { readonly url: string; readonly messages: UIMessage[] }) {
    const chat = useChat({
      id: 'talk',
      messages,
      resume: true,
      transport: new DefaultChatTransport({ api: `${url}/api/chat`, fetch: noting as typeof fetch }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    const approvals = chat.messages.flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === 'dynamic-tool' && part.state === 'approval-requested' ? [part.approval.id] : [],
      ),
    );
    return createElement(
      'main',
      { id: chat.status },
      chat.messages.map(({ id, role, parts }) =>
        createElement(
          'p',
          { key: id },
          `${role}: `,
          parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
        ),
      ),
      approvals.map((id) =>
        createElement(
          'button',
          { key: id, onClick: () => void chat.addToolApprovalResponse({ id, approved: true }) },
          'yes',
        ),
      ),
      createElement('a', { onClick: () => void chat.sendMessage({ text: 'refund A-17 and B-18' }) }, 'send'),
      createElement('b', { onClick: () => void chat.sendMessage({ text: 'slow 15' }) }, 'slow'),
    );
  }

  const mount = async (url: string) => {
    const root = createRoot(window.document.getElementById('root') as never);
    root.render(createElement(StrictMode, null, createElement(App, { url, messages: await historyOf(url) })));
    // What is asked before React has run its effects is given up by them.
    const before = resumed;
    await until(() => resumed > before);
    await quiet();
    return root;
  };
  const all = (selector: string) => [...window.document.querySelectorAll(selector)];
  return { mount, all, said: () => all('p').map(({ textContent }) => textContent) };
}

describe('useChat of @ai-sdk/react', () => {
  it('complaint: a refresh while it streams (cloudflare/agents#999), and two approvals at once (mastra#19528), with useChat itself', async () => {
    const effects = new Effects();
    const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal: memoryJournal() });
    onTestFinished(() => runtime.close());
    const url = await serveChats(runtime);
    const { mount, all, said } = await page();
    const root = await mount(url);
    all('a')[0]?.click();
    await until(() => all('button').length === 2 && all('#ready').length === 1);
    while (all('button').length > 0) {
      const left = all('button').length;
      all('button')[0]?.click();
      await until(() => all('button').length < left);
    }
    const refunded = ['user: refund A-17 and B-18', 'assistant: A-17 is refunded. B-18 is refunded.'];
    await until(() => said()[1] === refunded[1] && all('#ready').length === 1);
    expect(effects.count('refund')).toBe(2);
    all('b')[0]?.click();
    await until(() => said()[3]?.includes('w3') === true);
    root.unmount();
    const again = await mount(url);
    await until(() => said()[3]?.endsWith('w14') === true && all('#ready').length === 1);
    expect(said()).toEqual([
      ...refunded,
      'user: slow 15',
      `assistant: ${Array.from({ length: 15 }, (_, index) => `w${index}`).join(' ')}`,
    ]);
    again.unmount();
    expect((await historyOf(url)).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
  });
});
