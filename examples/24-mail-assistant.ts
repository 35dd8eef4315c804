/** A mail assistant: a person sees the whole long mail, makes it better, and what runs is what was approved. */
import { z } from 'zod';
import { createRuntime, react, tool } from '../src/index.ts';
import { memoryJournal } from '../src/journal/memory.ts';
import { scriptedModel } from '../src/testing/index.ts';

const sendMail = tool({
  name: 'send_mail',
  description: 'Sends a mail.',
  effect: 'once',
  needsApproval: true,
  inputSchema: z.object({ to: z.string(), body: z.string() }),
  execute: ({ to, body }) => ({ to, characters: body.length }),
});
const body = `Dear customers,\n${'Our prices change in May. '.repeat(2_000)}\n`;
const model = scriptedModel([
  { calls: [{ tool: 'send_mail', args: { to: 'customers@example.com', body } }] },
  { text: 'The mail is out.' },
]);
const journal = memoryJournal(); // in place of a file or a database that the program shares with the page where mails are approved
const program = createRuntime({ planner: react({ model }), tools: [sendMail], journal });
const { id } = await program.start('Tell all customers of the new prices.');
const asked = await program.run(id).result();
await program.close(); // the question waits in the journal, whoever is there

const desk = createRuntime({ planner: react({ model }), tools: [sendMail], journal });
if (asked.status === 'paused') {
  const [pause] = asked.pauses;
  const { args, digest } = pause?.payload as { args: { to: string; body: string }; digest: string };
  console.log(`${args.body.length} characters to ${args.to}`);
  const better = { ...args, body: `${args.body}\nYours,\nAna` };
  await desk.run(id).approve(pause?.token, { args: better, digest });
}
const run = desk.run(id);
for await (const event of run.events()) if (event.type === 'tool.completed') console.log(event.tool, event.outcome);
const result = await run.result();
if (result.status === 'finished') console.log(result.answer);
await desk.close();
