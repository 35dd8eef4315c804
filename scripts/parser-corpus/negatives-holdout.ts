/**
 * The same kind of texts from templates that were written before the rules were tuned and not looked into since: what they
 * show is how the rules carry over.
 */
import type { Template } from './kit.ts';

export const heldOutNegatives: Readonly<Record<string, Template>> = {
  'a skeleton in a list': (kit) =>
    `Steps:\n1. Open the console.\n2. Enter ${kit.python(kit.placeholders())}.\n3. Read the output.`,
  'a skeleton of a request': (kit) =>
    `Request body:\n\n${kit.fence(kit.json(kit.callObject(kit.placeholders())), 'json', 'jsonc')}\n\nReplace the values before you send it.`,
  'a cookbook': (kit) =>
    `### Recipe: ${kit.tool.does}\n\nWhat you need: an account.\n\n${kit.fence(`const out = await tools.${kit.javascript(kit.args, kit.identifier)};\nconsole.log(out);`, 'js')}\n\n### Next\n\nTry another one.`,
  'a docstring': (kit) =>
    kit.fence(`"""${kit.tool.does}\n\n>>> ${kit.python(kit.args, kit.identifier)}\n'ok'\n"""`, 'python'),
  'a Go function': (kit) =>
    kit.fence(
      `func ${kit.identifier}(ctx context.Context, in Input) (Output, error) {\n\treturn client.Do(ctx, "${kit.name}", in)\n}`,
      'go',
    ),
  'a Java service': (kit) =>
    kit.fence(
      `public class Service {\n  public Result ${kit.identifier}(String ${kit.keys().join(', String ')}) {\n    return api.call("${kit.name}", Map.of());\n  }\n}`,
      'java',
    ),
  'a notebook': (kit) =>
    `In [1]: import toolkit as tk\nIn [2]: tk.${kit.python(kit.args, kit.identifier)}\nOut[2]: {'status': 'ok'}`,
  'a pull request': (kit) =>
    `This change renames \`${kit.stranger()}\` to \`${kit.name}\`. Callers that wrote \`${kit.python()}\` keep working.\n\n- [x] tests\n- [ ] docs`,
  'a stack of frames': (kit) =>
    `Error: refused\n    at ${kit.identifier} (/app/tools.js:14:9)\n    at run (/app/main.js:3:1)\ninput: ${JSON.stringify(kit.args)}`,
  'a protobuf': (kit) =>
    kit.fence(
      `service Tools {\n  rpc ${kit.identifier} (Request) returns (Reply);\n}\nmessage Request {\n${kit
        .keys()
        .map((key, index) => `  string ${key} = ${index + 1};`)
        .join('\n')}\n}`,
      'proto',
    ),
  'a GraphQL query': (kit) =>
    kit.fence(
      `mutation {\n  ${kit.identifier}(${Object.entries(kit.args)
        .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
        .join(', ')}) { ok }\n}`,
      'graphql',
    ),
  'an MCP listing': (kit) =>
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      result: {
        tools: kit.tools.map(({ name, does, parameters }) => ({ name, description: does, inputSchema: parameters })),
      },
    }),
  'a manifest': (kit) =>
    kit.json({ plugin: 'toolkit', functions: kit.tools.map(({ name, does }) => ({ name, description: does })) }),
  'an explanation in the conditional': (kit) =>
    `A correct call could be ${kit.python()}, provided that the account exists. Whether it does, I can't see from here.`,
  'an explanation after the fact': (kit) =>
    `You asked why it was slow. The call ${kit.python()} had been sent three times, as the log shows.`,
  'a warning': (kit) =>
    `Careful! Running\n\n${kit.fence(kit.call())}\n\nis dangerous and must not be done without a backup.`,
  'an offer': (kit) => `I can do that for you: ${kit.python()}. Would you like me to?`,
  'an offer with options': (kit) =>
    `There are two ways:\n\nA. ${kit.python()}\nB. ${kit.python(kit.argsOf(kit.tool))}\n\nWhich one do you prefer?`,
  'wanting a value': (kit) =>
    `I'm missing the ${kit.keys()[0]}. Please specify it, so that ${kit.name} can be called with something like ${JSON.stringify(kit.args)}.`,
  'an apology': (kit) =>
    `I'm sorry, there is no tool for that. The closest one, ${kit.name}, ${kit.tool.does}; calling ${kit.python()} does not answer your question.`,
  'past tense in a story': (kit) => `Yesterday the night shift ran ${kit.python()} and went home.`,
  'minutes of a meeting': (kit) =>
    `Minutes\n- Ana showed ${kit.name} with ${JSON.stringify(kit.args)}\n- Bob asked who may use it\n- Decision: later`,
  'a review': (kit) =>
    `In line 14 you write \`${kit.python()}\`. I would pass the values by name and check the result.`,
  'an answer about syntax': (kit) =>
    `The model is expected to reply with an object that has "name" and "arguments", for instance {"name": "${kit.name}", "arguments": ${JSON.stringify(kit.args)}}, and nothing else.`,
  'a JSON answer with a name': (kit) => kit.json({ answer: `use ${kit.name}`, confidence: 0.8, sources: [] }),
  'a JSON envelope': (kit) => kit.json({ status: 'done', tool: kit.name, result: { rows: 3 } }),
  metrics: (kit) =>
    `tool_calls_total{tool="${kit.name}",status="ok"} 17\ntool_calls_total{tool="${kit.stranger()}",status="error"} 2`,
  'XML of a catalogue': (kit) =>
    `<catalogue>\n${kit.tools.map(({ name, does }) => `  <entry name="${name}"><summary>${does}</summary></entry>`).join('\n')}\n</catalogue>`,
  'a diff': (kit) =>
    kit.fence(
      `- ${kit.python(kit.args, kit.identifier)}\n+ ${kit.python(kit.argsOf(kit.tool), kit.identifier)}`,
      'diff',
    ),
  'a Portuguese refusal': (kit) => `Não vou executar ${kit.python()}, porque não é permitido.`,
  'a Chinese example': (kit) => `例如，可以写 ${kit.python()}，但是这里不需要调用。`,
  'a teaching dialogue': (kit) =>
    `Student: how do I call it?\nTeacher: like so: ${kit.python()}\nStudent: and then?\nTeacher: read the result.`,
  'an exercise': (kit) => `Exercise 4. Write down what ${kit.python()} returns, and why. Do not run it.`,
  'an archived reply': (kit) =>
    `From the archive (2023-04-01):\n\n${kit.fence(kit.json({ role: 'assistant', content: null, function_call: { name: kit.name, arguments: JSON.stringify(kit.args) } }), 'json')}\n\nThe archive is read-only.`,

  // Written later, before the second round of rules.
  'a how-to of a team': (kit) =>
    `Onboarding notes\n\nDay 1: read the wiki.\nDay 2: try ${kit.python()} on the test system.\nDay 3: ask for access.`,
  'a Kotlin function': (kit) =>
    kit.fence(
      `fun ${kit.identifier}(${kit
        .keys()
        .map((key) => `${key}: String`)
        .join(', ')}): Result {\n    return client.call("${kit.name}")\n}`,
      'kotlin',
    ),
  'a TypeScript object of tools': (kit) =>
    kit.fence(
      `export const tools = {\n  ${kit.identifier}: tool({ description: '${kit.tool.does}', run: async (input) => api.${kit.identifier}(input) }),\n};`,
      'ts',
    ),
  'a generator': (kit) =>
    kit.fence(
      `async def ${kit.identifier}(${kit.keys().join(', ')}):\n    async for row in source:\n        yield row`,
      'python',
    ),
  'an expectation': (kit) =>
    kit.fence(
      `it('calls the tool', async () => {\n  await agent.run('go');\n  expect(calls).toEqual([${JSON.stringify({ tool: kit.name, args: kit.args })}]);\n});`,
      'ts',
    ),
  'an entry of an audit': (kit) =>
    JSON.stringify({ ts: 1_715_000_000, actor: 'ana', action: kit.name, args: kit.args, outcome: 'ok' }),
  'NDJSON of a run': (kit) =>
    [
      { type: 'started', run: 'r1' },
      { type: 'call_ended', tool: kit.name, args: kit.args, result: 1 },
      { type: 'finished' },
    ]
      .map((line) => JSON.stringify(line))
      .join('\n'),
  'a JSON answer with fields of a tool': (kit) => kit.json({ summary: 'all good', ...kit.args, notes: ['a', 'b'] }),
  'a JSON answer in a list': (kit) =>
    kit.json([
      { rank: 1, ...kit.args, score: 0.9 },
      { rank: 2, ...kit.args, score: 0.4 },
    ]),
  'a preview': (kit) =>
    `Here's what will be sent once you approve:\n\n${kit.fence(kit.json(kit.callObject()), 'json')}`,
  'a permission asked first': (kit) => `May I run this for you?\n\n${kit.fence(kit.call())}`,
  'a choice offered': (kit) => `Would you rather have ${kit.python()} or ${kit.python(kit.argsOf(kit.tool))}?`,
  'a retold reply': (kit) =>
    `In my last message I wrote:\n\n${kit.fence(kit.json(kit.callObject()), 'json')}\n\nThat was a mistake.`,
  'a wrong call explained': (kit) =>
    `This is wrong:\n\n${kit.fence(kit.call())}\n\nThe second value has to be a number.`,
  'a counterfactual': (kit) => `Had you given the number, I'd have called ${kit.python()}.`,
  'a template with angle brackets': (kit) =>
    `${kit.identifier}(${kit
      .keys()
      .map((key) => `${key}=<${key} of the customer>`)
      .join(', ')})`,
  'a template with capitals': (kit) =>
    JSON.stringify(kit.callObject(Object.fromEntries(kit.keys().map((key) => [key, `<${key.toUpperCase()}_HERE>`])))),
  'a schema with values': (kit) =>
    kit.json({
      name: kit.name,
      parameters: {
        type: 'object',
        properties: Object.fromEntries(Object.keys(kit.args).map((key) => [key, { type: 'string', example: 'x' }])),
      },
    }),
  'a table of tests': (kit) =>
    `| case | call | expected |\n| --- | --- | --- |\n| 1 | ${kit.python()} | ok |\n| 2 | ${kit.python(kit.argsOf(kit.tool))} | error |`,
  'a shell session': (kit) => `$ tools ${kit.identifier} '${JSON.stringify(kit.args)}'\nok\n$ echo $?\n0`,
  'a Slack thread': (kit) => `ana: did it run?\nbob: yes, ${kit.python()}\nana: great\nbob: np`,
  'a Dutch example': (kit) => `Bijvoorbeeld: ${kit.python()}. Dat doe ik nu niet.`,
  'a Polish refusal': (kit) => `Nie wykonam ${kit.python()}, bo to niedozwolone.`,
  'a comment on costs': (kit) => `Each ${kit.python()} costs two cents, so a thousand of them cost twenty dollars.`,
};
