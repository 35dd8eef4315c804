/** However a turn goes: who reads it live, who comes late and who loads it have the same messages. */
import { safeValidateUIMessages, type UIMessage } from 'ai';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { historyOf, plain } from '../kit/ui-chat.ts';
import { chatsOf, play, quietTurnScript } from '../kit/ui-turns.ts';
import { turn, until } from '../kit/waiting.ts';

/** Of the user's messages the ids count. A step of which all was taken back leaves its mark with who was there, which shows nothing. */
function shown(messages: readonly UIMessage[]): unknown {
  return (plain(messages) as UIMessage[]).flatMap(({ id, role, parts, metadata }): object[] => {
    if (role === 'user') return [{ id, role }];
    const told = partsOf(parts);
    return told.length === 0 ? [] : [{ id, role, metadata, parts: told }];
  });
}

function partsOf(parts: UIMessage['parts']): UIMessage['parts'] {
  return parts.filter(
    ({ type }, index) => type !== 'step-start' || ![undefined, 'step-start'].includes(parts[index + 1]?.type),
  );
}

describe('the messages of a turn', () => {
  it('reattaching: replay and live join without gap or repeat; live, late and in the history the messages are the same', async () => {
    await fc.assert(
      fc.asyncProperty(quietTurnScript, fc.nat({ max: 30 }), async (script, moments) => {
        const chats = await chatsOf(script);
        const { runtime, chatOf, url } = chats;
        const chat = chatOf();
        const playing = play(chat, script, chats);
        for (let moment = 0; moment < moments; moment += 1) await turn();
        const late = chatOf(await historyOf(url));
        await late.resumeStream();
        await playing;
        expect([chat.status, chat.error]).toEqual(['ready', undefined]);
        const told = await historyOf(url);
        expect(shown(told)).toEqual(shown(chat.messages));
        expect(await safeValidateUIMessages({ messages: told })).toMatchObject({ success: true });
        expect(JSON.stringify(told)).not.toContain('secret');
        // Whoever came late has seen the turn up to its next question, or to its end.
        expect(late.error).toBeUndefined();
        await until(async () => (await runtime.session('talk').turns())[0]?.status === 'finished');
        const page = chatOf(told);
        await page.resumeStream();
        expect(page.messages).toEqual(told);
        const parts = partsOf(late.messages.at(-1)?.parts ?? []);
        const whole = partsOf(told.at(-1)?.parts ?? []);
        if (late.messages.at(-1)?.role === 'assistant')
          expect(parts.map(({ type }) => type)).toEqual(whole.slice(0, parts.length).map(({ type }) => type));
        await runtime.close();
      }),
      { numRuns: 40 },
    );
  });
});
