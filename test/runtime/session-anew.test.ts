/** A session that another process deletes, and that begins again with messages of the same ids. */
import { expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { finish } from '../kit/decisions.ts';

const scope = { tenant: 'shop', user: 'ana', session: 's' };

it('tells nothing of what was said before, though this process had read it', async () => {
  const journal = memoryJournal();
  const heard: string[] = [];
  const [here, there] = [1, 2].map(() => {
    const runtime = createRuntime({
      journal,
      memory: { strategy: 'window' },
      planner: ({ history }) => {
        heard.push(history.map(({ text }) => text).join(' '));
        return finish('yes');
      },
    });
    onTestFinished(() => runtime.close());
    return runtime;
  });
  const talk = async (word: string) => {
    const session = here?.session('s', { identity: scope });
    await (await session?.send(word, { id: 'm1' }))?.result();
    await (await session?.send('And then?', { id: 'm2' }))?.result();
    return (await session?.turns())?.map(({ exchanges }) => exchanges[0]?.user);
  };
  expect(await talk('a secret')).toEqual(['a secret', 'And then?']);
  await there?.sessions.delete(scope);
  expect(await talk('hello')).toEqual(['hello', 'And then?']);
  expect(heard).toEqual(['', 'a secret yes', '', 'hello yes']);
});
