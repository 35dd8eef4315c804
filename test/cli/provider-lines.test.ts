/** How the command shows what a provider did itself. */
import { expect, it } from 'vitest';
import { EventLines, PlanSeen } from '#cli';
import { hosted } from '../state/event-scenes.ts';

it('a call that the provider carried out, and what it gave, say that they are of the provider', async () => {
  const lines = new EventLines({ texts: true, plan: new PlanSeen() });
  const told = (await hosted()).flatMap((event) => lines.of(event)).map(({ text }) => text.trim());
  expect(told).toContain('web_search {"query":"sun"} (by the provider)');
  expect(told).toContain('web_search gave [] (by the provider)');
  expect(told.filter((text) => text.includes('web_search'))).toHaveLength(2);
});
