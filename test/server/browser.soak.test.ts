/** `useChat` in a real Chromium: the page of `examples/chat`, as `npm run chat-example` serves it on a file. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Effects } from '../../examples/scenario-agent.ts';
import { chromiumPath, launchChromium, openPage } from '../kit/chromium.ts';
import { bear } from '../kit/lives.ts';

const program = fileURLToPath(new URL('../../examples/chat/serve.ts', import.meta.url));

interface Server {
  readonly url: string;
  kill(): Promise<void>;
}

async function serverOn(journal: string, port = '0'): Promise<Server> {
  const told = Promise.withResolvers<string>();
  const { child, end } = bear({ program, folder: `--journal=${journal}`, args: [`--port=${port}`] }, (line) =>
    told.resolve(line.replace('Listening at ', '')),
  );
  end.catch(told.reject);
  const url = await told.promise;
  return {
    url,
    kill: async () => {
      child.kill('SIGKILL');
      await end;
    },
  };
}

function place(): string {
  return join(mkdtempSync(join(tmpdir(), 'browser-')), 'chat.db');
}

/** The page, as a person uses it. */
class Chat {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async say(text: string): Promise<void> {
    await this.page.getByLabel('Message').fill(text);
    await this.page.getByRole('button', { name: 'Send' }).click();
  }

  /** Until the text of the newest message has this word. */
  async hears(word: string): Promise<void> {
    const text = this.page.locator('section:last-of-type[data-role=assistant] p');
    await text.filter({ hasText: new RegExp(`\\b${word}\\b`) }).waitFor();
  }

  async is(status: string): Promise<void> {
    await this.page.locator(`main[data-status=${status}]`).waitFor();
  }

  async press(name: string): Promise<void> {
    await this.page.getByRole('button', { name, exact: true }).first().click();
  }

  /** Until as many calls wait for an answer. */
  async asks(count: number): Promise<void> {
    await this.page.locator(count === 0 ? 'form' : `fieldset >> nth=${count - 1}`).waitFor();
    expect(await this.page.locator('fieldset').count()).toBe(count);
  }

  async outputs(): Promise<unknown[]> {
    const texts = await this.page.locator('details pre').allTextContents();
    return texts.map((text) => JSON.parse(text));
  }

  /** The texts of all messages, each with its role. */
  async said(): Promise<string[]> {
    const sections = await this.page.locator('section').all();
    return Promise.all(
      sections.map(
        async (section) =>
          `${await section.getAttribute('data-role')}: ${(await section.locator('p').allTextContents()).join('')}`,
      ),
    );
  }
}

function slow(count: number): string {
  return Array.from({ length: count }, (_, index) => `w${index}`).join(' ');
}

let browser: Browser;
let server: Server;
const journal = place();
const effects = new Effects(`${journal}.effects`);
/** Of the test that runs. */
let pages: readonly { readonly page: Page; readonly faults: readonly Error[] }[] = [];

async function open(name: string, url = server.url): Promise<Chat> {
  const opened = await openPage(browser, `${url}/?chat=${name}`);
  pages = [...pages, opened];
  await opened.page.getByLabel('Message').waitFor();
  return new Chat(opened.page);
}

// Skipped where there is no program `chromium`, and says so.
describe.skipIf(chromiumPath === undefined)('the page of a chat, in Chromium', () => {
  beforeAll(async () => {
    [browser, server] = await Promise.all([launchChromium(), serverOn(journal)]);
  });
  afterAll(async () => {
    await browser.close();
    await server.kill();
  });
  afterEach(async () => {
    for (const { page, faults } of pages) {
      expect(faults).toEqual([]);
      await page.close();
    }
    pages = [];
  });

  it('shows text as it comes', async () => {
    const chat = await open('streams');
    await chat.say('slow 60');
    await chat.hears('w2');
    const early = await chat.said();
    expect(early[1]).not.toContain('w59');
    await chat.is('streaming');
    await chat.hears('w59');
    await chat.is('ready');
    expect(await chat.said()).toEqual(['user: slow 60', `assistant: ${slow(60)}`]);
  });

  it('goes on after a reload in the middle of the text, in one message', async () => {
    const chat = await open('reloads');
    await chat.say('slow 80');
    await chat.hears('w5');
    await chat.page.reload();
    await chat.hears('w5');
    expect((await chat.said())[1]).not.toContain('w79');
    await chat.hears('w79');
    await chat.is('ready');
    const whole = ['user: slow 80', `assistant: ${slow(80)}`];
    expect(await chat.said()).toEqual(whole);
    await chat.page.reload();
    await chat.hears('w79');
    expect(await chat.said()).toEqual(whole);
  });

  it('has an approval still after a reload, gives it with other arguments, and the effect happens once', async () => {
    const before = effects.count('refund');
    const chat = await open('approves');
    await chat.say('refund A-17');
    await chat.asks(1);
    await chat.page.reload();
    await chat.asks(1);
    const args = chat.page.getByLabel('Arguments');
    expect(JSON.parse(await args.inputValue())).toEqual({ order: 'A-17', amount: 90 });
    await args.fill('{"order": "A-17",');
    expect(await chat.page.getByRole('button', { name: 'Approve' }).isDisabled()).toBe(true);
    await args.fill('{"order": "A-17", "amount": 45}');
    await chat.press('Approve');
    await chat.hears('refunded');
    await chat.is('ready');
    expect(await chat.outputs()).toEqual([{ order: 'A-17', refunded: 45 }]);
    expect(effects.count('refund') - before).toBe(1);
    await chat.page.reload();
    await chat.hears('refunded');
    expect(await chat.said()).toEqual(['user: refund A-17', 'assistant: A-17 is refunded.']);
    expect(await chat.outputs()).toEqual([{ order: 'A-17', refunded: 45 }]);
    expect(effects.count('refund') - before).toBe(1);
  });

  it('asks for two approvals at once, and gives each its own answer', async () => {
    const before = effects.count('refund');
    const chat = await open('approves-two');
    await chat.say('refund A-17 and B-18');
    await chat.asks(2);
    await chat.page.getByLabel('Arguments').first().fill('{"order": "A-17", "amount": 1}');
    await chat.press('Approve');
    await chat.asks(1);
    await chat.press('Reject');
    await chat.hears('B-18');
    await chat.is('ready');
    expect((await chat.said())[1]).toBe('assistant: A-17 is refunded. B-18 is not refunded.');
    expect((await chat.outputs())[0]).toEqual({ order: 'A-17', refunded: 1 });
    expect(effects.count('refund') - before).toBe(1);
  });

  it('stops', async () => {
    const chat = await open('stops');
    await chat.say('slow 1000');
    await chat.hears('w5');
    await chat.press('Stop');
    await chat.is('ready');
    const [, cut] = await chat.said();
    expect(cut).toContain('w5');
    expect(cut).not.toContain('w999');
    await chat.say('say more');
    await chat.hears('more');
    await chat.is('ready');
    const all = ['user: slow 1000', cut, 'user: say more', 'assistant: more'];
    expect(await chat.said()).toEqual(all);
    await chat.page.reload();
    await chat.hears('more');
    expect(await chat.said()).toEqual(all);
  });

  it('sends a second message while the first is answered, and each is answered once', async () => {
    const chat = await open('queues');
    await chat.say('slow 40');
    await chat.hears('w3');
    await chat.say('say second');
    await chat.hears('second');
    await chat.is('ready');
    const both = ['user: slow 40', `assistant: ${slow(40)}`, 'user: say second', 'assistant: second'];
    expect(await chat.said()).toEqual(both);
    await chat.page.reload();
    await chat.hears('second');
    expect(await chat.said()).toEqual(both);
  });

  it('shows that a run has failed, and nothing of what it holds of the machine', async () => {
    const chat = await open('fails');
    await chat.say('fail');
    const alert = chat.page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/^Something went wrong \(\w+\)\.$/);
    expect(await chat.page.content()).not.toMatch(/no such host|at connect|\/srv|db\.ts|sk-/);
  });
});

describe.skipIf(chromiumPath === undefined)('the page of a chat whose server is killed, in Chromium', () => {
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  async function killedOne() {
    const path = place();
    const first = await serverOn(path);
    const { port } = new URL(first.url);
    let now = first;
    onTestFinished(() => now.kill());
    const again = async (): Promise<void> => {
      now = await serverOn(path, port);
    };
    return { first, again, chat: await open('killed', first.url), paid: new Effects(`${path}.effects`) };
  }

  it('comes back by itself when the server is there again, with the right content once', async () => {
    const { first, again, chat } = await killedOne();
    await chat.say('slow 80');
    await chat.hears('w5');
    await first.kill();
    await chat.page.getByRole('alert').waitFor();
    await again();
    await chat.hears('w79');
    await chat.is('ready');
    const whole = ['user: slow 80', `assistant: ${slow(80)}`];
    expect(await chat.said()).toEqual(whole);
    expect(await chat.page.getByRole('alert').count()).toBe(0);
    await chat.page.reload();
    await chat.hears('w79');
    expect(await chat.said()).toEqual(whole);
  });

  it('sends what did not get through', async () => {
    const { first, again, chat } = await killedOne();
    await chat.say('say one');
    await chat.hears('one');
    await chat.is('ready');
    await first.kill();
    await chat.say('say two');
    await chat.page.getByRole('alert').waitFor();
    await again();
    await chat.hears('two');
    await chat.is('ready');
    const all = ['user: say one', 'assistant: one', 'user: say two', 'assistant: two'];
    expect(await chat.said()).toEqual(all);
    await chat.page.reload();
    await chat.hears('two');
    expect(await chat.said()).toEqual(all);
  });

  it('has its approval on the next server, where it is given, and the effect happens once', async () => {
    const { first, again, chat, paid } = await killedOne();
    await chat.say('refund A-17');
    await chat.asks(1);
    await first.kill();
    await again();
    await chat.press('Approve');
    await chat.hears('refunded');
    await chat.is('ready');
    expect(await chat.said()).toEqual(['user: refund A-17', 'assistant: A-17 is refunded.']);
    expect(paid.count('refund')).toBe(1);
  });
});
