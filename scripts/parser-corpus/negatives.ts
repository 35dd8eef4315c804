/** Texts that speak of tools, show or define calls, and make none. */
import type { Kit, Template } from './kit.ts';

const because = (kit: Kit): string =>
  kit.pick([
    'That way nothing is changed by accident.',
    'It returns a list, newest first.',
    'See the reference for the other arguments.',
    'Errors are thrown as usual.',
    'The result is cached for an hour.',
  ]);

const list = (kit: Kit): string =>
  kit
    .keys()
    .map((key) => kit.pick([`- \`${key}\`: the ${key}`, `* **${key}** (required)`, `| ${key} | string | yes |`]))
    .join('\n');

const missing = (kit: Kit): string => kit.pick(kit.keys());

export const negatives: Readonly<Record<string, Template>> = {
  // Templates whose values are still to be put in.
  'a template in a fence': (kit) =>
    `${kit.pick(['Use this form', 'The call has this shape', 'To call it, fill in', 'Format'])}:\n\n${kit.fence(kit.call(kit.placeholders()))}\n\n${because(kit)}`,
  'a template alone': (kit) => kit.call(kit.placeholders()),
  'a template in a sentence': (kit) =>
    `You ${kit.pick(['call', 'write', 'would write'])} \`${kit.python(kit.placeholders())}\` with your own values. ${because(kit)}`,
  'a template in a tag': (kit) =>
    `<tool_call>\n${JSON.stringify({ name: kit.name, arguments: kit.placeholders() })}\n</tool_call>`,
  'a template as ReAct lines': (kit) =>
    `Thought: what to do\nAction: ${kit.name}\nAction Input: ${JSON.stringify(kit.placeholders())}`,
  'arguments to fill in': (kit) =>
    `The body to send:\n\n${kit.fence(kit.json(kit.placeholders()), 'json')}\n\n${because(kit)}`,

  // Code that defines, wraps or uses a function of that name.
  'a Python definition': (kit) =>
    kit.fence(
      `def ${kit.identifier}(${kit.keys().join(', ')}):\n    """${kit.tool.does}"""\n    return client.get("/${kit.identifier}", params={${kit
        .keys()
        .map((key) => `"${key}": ${key}`)
        .join(', ')}})`,
      'python',
    ),
  'a typed definition with a default': (kit) =>
    `${kit.pick(['Here is the code', 'I wrote it like this', 'The implementation'])}:\n${kit.fence(
      `def ${kit.identifier}(${kit
        .keys()
        .map((key) => `${key}: str = ${JSON.stringify(kit.pick(['x', 'none', '']))}`)
        .join(', ')}) -> dict:\n    result = {}\n    return result\n\nprint(${kit.python(kit.args, kit.identifier)})`,
      'python',
    )}`,
  'an async function': (kit) =>
    kit.fence(
      `export async function ${kit.identifier}({ ${kit.keys().join(', ')} }) {\n  const res = await fetch('/api/${kit.identifier}', { method: 'POST', body: JSON.stringify({ ${kit.keys().join(', ')} }) });\n  return res.json();\n}`,
      'js',
      'ts',
    ),
  'a class with a method': (kit) =>
    kit.fence(
      `class Client:\n    def ${kit.identifier}(self, ${kit.keys().join(', ')}):\n        return self._post("${kit.identifier}", {${kit
        .keys()
        .map((key) => `"${key}": ${key}`)
        .join(', ')}})\n\nclient = Client()\nclient.${kit.python(kit.args, kit.identifier)}`,
      'python',
    ),
  'a test of a function': (kit) =>
    kit.fence(
      `import pytest\nfrom app import ${kit.identifier}\n\ndef test_${kit.identifier}():\n    assert ${kit.python(kit.args, kit.identifier)} is not None`,
      'python',
    ),
  'a decorated tool': (kit) =>
    `Register it first:\n${kit.fence(
      `@tool\ndef ${kit.identifier}(${kit
        .keys()
        .map((key) => `${key}: str`)
        .join(', ')}):\n    ...`,
      'python',
    )}\nThen the agent sees it.`,
  'a wrapper': (kit) =>
    `A small wrapper helps:\n${kit.fence(`const safe = async (input) => {\n  try {\n    return await ${kit.identifier}(input);\n  } catch (error) {\n    log(error);\n  }\n};`, 'ts')}`,
  'an import and a use': (kit) =>
    `### Usage\n\n${kit.fence(`from toolkit import ${kit.identifier}\n\nresult = ${kit.python(kit.args, kit.identifier)}\nprint(result)`, 'python')}\n\n${because(kit)}`,
  'a program of a stranger': (kit) =>
    `You can do that yourself:\n${kit.fence(`import requests\n\ndef ${kit.stranger().replace('.', '_')}(x):\n    return requests.get("https://api.example.org", params={"q": x}).json()\n\nprint(${kit.stranger().replace('.', '_')}("a"))`, 'python')}`,
  'a curl command': (kit) =>
    `${kit.fence(`curl -X POST https://api.example.org/v1/${kit.identifier} \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(kit.args)}'`, 'bash', 'sh')}\n${because(kit)}`,
  'a payload in a program': (kit) =>
    `With requests:\n${kit.fence(`import requests\n\npayload = ${JSON.stringify(kit.args)}\nr = requests.post(URL + "/${kit.identifier}", json=payload)\nprint(r.status_code)`, 'python')}`,
  SQL: (kit) =>
    kit.fence(`INSERT INTO calls (tool, args) VALUES ('${kit.name}', '${JSON.stringify(kit.args)}');`, 'sql'),
  'a mock': (kit) =>
    kit.fence(
      `jest.mock('./tools', () => ({ ${kit.identifier}: jest.fn() }));\nexpect(${kit.identifier}).toHaveBeenCalledWith(${JSON.stringify(kit.args)});`,
      'ts',
    ),

  // Schemas and lists of tools.
  'a definition': (kit) => kit.json(kit.definition()),
  'a list of definitions': (kit) =>
    `${kit.chance(0.5) ? 'Available tools:\n' : ''}${kit.json(kit.tools.map((one) => kit.definition(one)))}`,
  'a definition explained': (kit) =>
    `The function given is:\n${kit.fence(kit.json(kit.definition()), 'json')}\n${kit.pick(['It does not answer the question.', 'Which values should be used?', because(kit)])}`,
  'a JSON Schema': (kit) =>
    kit.fence(
      kit.json({ $schema: 'https://json-schema.org/draft/2020-12/schema', title: kit.name, ...kit.tool.parameters }),
      'json',
    ),
  'an OpenAPI path': (kit) =>
    kit.fence(
      kit.json({
        paths: {
          [`/${kit.identifier}`]: {
            post: {
              operationId: kit.name,
              requestBody: { content: { 'application/json': { schema: kit.tool.parameters, example: kit.args } } },
            },
          },
        },
      }),
      'json',
    ),
  'YAML of a tool': (kit) =>
    kit.fence(
      `tools:\n  - name: ${kit.name}\n    description: ${kit.tool.does}\n    parameters:\n${kit
        .keys()
        .map((key) => `      ${key}: { type: string }`)
        .join('\n')}`,
      'yaml',
    ),
  'a list of names': (kit) =>
    `I have these tools:\n${kit.tools.map(({ name, does }) => `- ${name}: ${does}`).join('\n')}`,
  signatures: (kit) =>
    `Functions:\n${kit.tools.map((one) => `- \`${one.name}(${kit.keys().join(', ')})\` ${one.does}`).join('\n')}`,
  'a TypeScript type': (kit) =>
    kit.fence(
      `interface ${kit.identifier}Input {\n${kit
        .keys()
        .map((key) => `  ${key}: string;`)
        .join('\n')}\n}\ndeclare function ${kit.identifier}(input: ${kit.identifier}Input): Promise<unknown>;`,
      'ts',
    ),

  // Tools that are not offered.
  'a call of a stranger': (kit) => kit.call(kit.args, kit.stranger()),
  'a stranger in a fence': (kit) => `Let me check.\n\n${kit.fence(kit.call(kit.args, kit.stranger()))}`,
  'a stranger in a tag': (kit) =>
    `<tool_call>\n${JSON.stringify({ name: kit.stranger(), arguments: { value: 1 } })}\n</tool_call>`,
  'a stranger with ReAct lines': (kit) => `Action: ${kit.stranger()}\nAction Input: {"value": 1}`,

  // Questions for what is missing, refusals, conditions, reports.
  'a question that quotes the call': (kit) =>
    `${kit.pick(['Before I go on', 'I need one thing first', 'One question'])}: shall I run \`${kit.python()}\`?`,
  'a question for a parameter': (kit) =>
    `To use ${kit.name} I need more information. ${kit.pick(['Could you please tell me', 'What is', 'Please provide'])} the ${missing(kit)}? The call would be:\n${kit.fence(kit.call())}`,
  'a question behind a proposal': (kit) =>
    `I would run this:\n\n${kit.fence(kit.call(), 'json', 'python')}\n\n${kit.pick(['Is that right?', 'Do you want me to go ahead?', 'Shall I?', 'Can you confirm?'])}`,
  'a refusal': (kit) =>
    `${kit.pick(["I can't do that", 'I will not do this', "I'm sorry, but I must decline"])}: ${kit.python()} ${kit.pick(['would charge the customer twice', 'is not allowed here', 'would delete data'])}.`,
  'a refusal with a block': (kit) =>
    `I would never run this for you:\n\n${kit.fence(kit.call())}\n\n${kit.pick(['It is against the rules.', 'It cannot be undone.'])}`,
  'do not call': (kit) =>
    `${kit.pick(['Do not call', "Don't run", 'Never use', 'Avoid'])} \`${kit.call()}\` ${kit.pick(['here', 'in production', 'twice'])}.`,
  'instead of': (kit) => `Instead of ${kit.python()} it is better to ask a person. ${because(kit)}`,
  'an unsuitable tool': (kit) =>
    `The function \`${kit.name}\` is not suitable for this question, since it only ${kit.tool.does}. A call such as ${kit.python()} would not help.`,
  'an unsuitable tool with a block': (kit) =>
    `None of the provided functions can answer this. ${kit.name} cannot be used here. If it could, the call would look like this:\n${kit.fence(kit.call())}`,
  'a condition': (kit) =>
    `If you ${kit.pick(['give me', 'tell me', 'send me', 'confirm'])} the ${missing(kit)}, I would call ${kit.python()}.`,
  'a condition with a block': (kit) =>
    `Once you ${kit.pick(['confirm', 'approve it', 'have sent the number'])}, I will make this call:\n\n${kit.fence(kit.call())}`,
  'a report': (kit) => `Done: I called ${kit.python()}${kit.pick(['.', ' and it went well.', ', which gave 3 rows.'])}`,
  'a report with a block': (kit) =>
    `${kit.pick(['I already ran this call', 'As I said', 'Earlier I made this call', 'Here is what I did'])}:\n${kit.fence(kit.call())}\n${kit.pick(['It succeeded.', 'The order was paid back.', 'No result came.'])}`,
  'a report in a list': (kit) =>
    `Summary of what was done:\n1. Called \`${kit.python()}\`\n2. Checked the result\n3. Told the customer`,

  // Documentation, logs, data.
  'documentation of a function': (kit) =>
    `## ${kit.name}\n\n${kit.tool.does}.\n\n### Parameters\n\n${list(kit)}\n\n### Example\n\n${kit.fence(kit.call(), 'python', 'js', 'json')}\n\n### Returns\n\nAn object.`,
  'a README': (kit) =>
    `# toolkit\n\n    npm install toolkit\n\n## Quick start\n\n${kit.fence(`import { ${kit.identifier} } from 'toolkit';\n\nconst result = await ${kit.javascript(kit.args, kit.identifier)};`, 'ts')}\n\n## License\n\nMIT`,
  'a man page': (kit) =>
    `NAME\n    ${kit.name} - ${kit.tool.does}\n\nSYNOPSIS\n    ${kit.name} [--help] ${kit
      .keys()
      .map((key) => `<${key}>`)
      .join(' ')}\n\nEXAMPLES\n    ${kit.name} ${JSON.stringify(kit.args)}`,
  'a log': (kit) =>
    [1, 2, 3]
      .map(
        (n) =>
          `2024-05-1${n}T08:0${n}:12Z INFO tool=${kit.name} args=${JSON.stringify(kit.args)} status=${kit.pick(['ok', 'error', 'timeout'])} ms=${n * 37}`,
      )
      .join('\n'),
  'a log with calls': (kit) =>
    `[08:12:01] calling ${kit.python()}\n[08:12:02] ${kit.name} returned 200\n[08:12:02] done`,
  'a changelog': (kit) =>
    `## 2.3.0\n\n- Added \`${kit.name}\`: ${kit.tool.does}\n- Fixed \`${kit.python()}\` throwing on empty input\n- Deprecated \`${kit.stranger()}()\``,
  'a transcript': (kit) => `User: what did you do?\nAssistant: ${kit.json(kit.callObject())}\nTool: ok\nUser: thanks`,
  'a trace in JSON': (kit) =>
    kit.json({
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: kit.name, arguments: JSON.stringify(kit.args) } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
      ],
    }),
  'a table': (kit) =>
    `| tool | arguments | when |\n|---|---|---|\n| ${kit.name} | \`${JSON.stringify(kit.args)}\` | Monday |\n| ${kit.stranger()} | \`{}\` | Friday |`,
  CSV: (kit) =>
    `tool,args,ok\n${kit.name},"${JSON.stringify(kit.args).replaceAll('"', '""')}",true\n${kit.stranger()},"{}",false`,
  'a config file': (kit) =>
    kit.fence(
      kit.json({ version: 2, enabled: true, defaults: { [kit.name]: { retries: 3, timeoutMs: 2000 } } }),
      'json',
    ),
  'an INI file': (kit) =>
    kit.fence(
      `[${kit.name}]\n${Object.entries(kit.args)
        .map(([key, value]) => `${key} = ${String(value)}`)
        .join('\n')}`,
      'ini',
    ),
  'a JSON answer beside words': (kit) =>
    `The result is:\n${kit.fence(kit.json({ status: 'ok', ...kit.args, total: 3 }), 'json')}`,
  'rows of data': (kit) =>
    `These are the rows that I found:\n${kit.json([
      { id: 1, ...kit.args, state: 'open' },
      { id: 2, ...kit.args, state: 'closed' },
    ])}`,
  'an error report': (kit) =>
    `Traceback (most recent call last):\n  File "app.py", line 12, in main\n    ${kit.python(kit.args, kit.identifier)}\nTypeError: missing argument`,
  'a quotation': (kit) =>
    `The page says:\n\n> Please run ${kit.python()} at once.\n\nI take that for what it is: text of a page.`,
  'a quoted mail': (kit) =>
    `The customer wrote: "please call ${kit.name} with ${JSON.stringify(kit.args).replaceAll('"', "'")}". I answered them.`,
  'an example in a sentence': (kit) =>
    `For example, \`${kit.python()}\` ${kit.pick(['gives one row', 'would be wrong', 'is enough'])}. ${because(kit)}`,
  'several examples': (kit) =>
    `Examples:\n\n- \`${kit.python()}\` ${kit.tool.does}\n- \`${kit.python(kit.argsOf(kit.tool))}\` does so with other values\n- \`${kit.stranger()}()\` is something else`,
  'how it works': (kit) =>
    `How the agent works: the model writes ${kit.fence(kit.json(kit.callObject()), 'json')}\nand the runtime carries it out, then gives the result back.`,
  'a comparison of forms': (kit) =>
    `There are two styles. The first is JSON:\n${kit.fence(JSON.stringify({ name: kit.name, arguments: kit.args }), 'json')}\nand the second is code:\n${kit.fence(kit.python(), 'python')}\nBoth mean the same.`,
  'a test case in prose': (kit) =>
    `Given the input ${JSON.stringify(kit.args)}, when ${kit.name} runs, then nothing is sent.`,
  'German words': (kit) => `Zum Beispiel könnte man \`${kit.python()}\` schreiben. Das wird hier aber nicht gemacht.`,
  'French words': (kit) => `Par exemple, on pourrait écrire ${kit.python()}, mais je ne le ferai pas.`,
  'Spanish words': (kit) => `No voy a ejecutar ${kit.python()} sin su permiso. ¿Lo confirma?`,
  'HTML of a page': (kit) => `<pre><code class="language-python">${kit.python()}</code></pre>\n<p>${because(kit)}</p>`,
  'a quiz': (kit) => `Which call is right?\nA) ${kit.python()}\nB) ${kit.stranger()}()\nC) neither`,
  'a plan in words': (kit) =>
    `My plan:\n1. find the ${missing(kit)}\n2. use ${kit.name}\n3. tell you the result\n\nFirst, which ${missing(kit)} do you mean?`,
  'a plain answer': (kit) =>
    `${because(kit)} The tool ${kit.name} ${kit.tool.does}, but it is not needed for this: the answer is ${kit.pick(['42', 'yes', 'no', 'Oslo'])}.`,
  'a formula': () => 'With f(x) = {x: 1} and g(a, b) = a/b we get [1, 2] (see [3]) and {a, b}.',
  'nothing to call': (kit) =>
    kit.pick([
      '[]',
      '{}',
      'null',
      '```json\n[]\n```',
      '{"tool_calls": []}',
      'No function call is needed.',
      '{"calls": [], "reason": "nothing fits"}',
    ]),

  // A second round of ideas.
  'a type signature with defaults': (kit) => `${kit.identifier}: (${kit.keys().join(', ')}) => Promise<Result>`,
  'a function value': (kit) =>
    kit.fence(
      `const ${kit.identifier} = (${kit.keys().join(', ')}) => {\n  return send("${kit.name}", [${kit.keys().join(', ')}]);\n};`,
      'js',
      'ts',
      'javascript',
    ),
  'a lambda': (kit) =>
    kit.fence(`${kit.identifier} = lambda ${kit.keys().join(', ')}: api.run("${kit.name}")`, 'python'),
  'a route of a server': (kit) =>
    kit.fence(
      `app.post('/${kit.identifier}', async (req, res) => {\n  res.json(await ${kit.identifier}(req.body));\n});`,
      'js',
    ),
  'a loop over rows': (kit) =>
    kit.fence(
      `for row in rows:\n    ${kit.identifier}(${kit
        .keys()
        .map((key) => `${key}=row["${key}"]`)
        .join(', ')})`,
      'python',
    ),
  'a cron line': (kit) => `0 8 * * 1 /usr/bin/${kit.identifier} --${kit.keys()[0]} x # every Monday`,
  'a Makefile': (kit) =>
    kit.fence(`${kit.identifier}:\n\t./tools ${kit.identifier} '${JSON.stringify(kit.args)}'`, 'make', 'makefile'),
  'an HTTP exchange': (kit) =>
    kit.fence(
      `POST /tools/${kit.identifier} HTTP/1.1\nContent-Type: application/json\n\n${JSON.stringify(kit.args)}`,
      'http',
    ),
  'a response of a server': (kit) =>
    kit.json({ jsonrpc: '2.0', id: 3, result: { content: [{ type: 'text', text: `called ${kit.name}` }] } }),
  'a finished record': (kit) => kit.json({ tool: kit.name, args: kit.args, status: 'done', result: { ok: true } }),
  'records of calls': (kit) =>
    `History:\n${kit.json([
      { name: kit.name, arguments: kit.args, result: 'ok' },
      { name: kit.stranger(), arguments: {}, result: 'error' },
    ])}`,
  'a permission list': (kit) => kit.json({ allow: kit.tools.map(({ name }) => name), deny: [kit.stranger()] }),
  'a policy': (kit) => kit.json({ [kit.name]: { approve: 'always', effect: 'once' } }),
  'a set of prices': (kit) => kit.json({ [kit.name]: 0.02, [kit.stranger()]: 0.5 }),
  'a nested answer': (kit) => kit.json({ answer: { text: 'see below', data: kit.args }, confidence: 0.7 }),
  'an evaluation row': (kit) =>
    kit.json({ question: 'what is it?', expected: { name: kit.name, arguments: kit.args }, got: null }),
  'a prompt of a system': (kit) =>
    `You may call a tool by writing {"tool": "<name>", "args": {...}}. The tools are ${kit.tools.map(({ name }) => name).join(', ')}.`,
  'a lesson': (kit) =>
    `Lesson 3: calls. A call names the tool and its arguments, as in \`${kit.json(kit.callObject()).replaceAll('\n', ' ')}\`. Remember the quotes.`,
  'advice to a person': (kit) => `You could run \`${kit.python()}\` in your own console and send me what it prints.`,
  'an advice with a block': (kit) =>
    `I have no access to your machine. In your terminal, run:\n\n${kit.fence(`${kit.identifier} ${Object.values(kit.args).join(' ')}`, 'bash', 'sh')}`,
  'a doubt': (kit) => `I'm not sure that ${kit.python()} is what you want, so I have not run it.`,
  'a postponement': (kit) => `Tomorrow at nine I would run ${kit.python()}; until then nothing happens.`,
  'a cancelled action': (kit) =>
    `As you asked, I did not send it. The call that was prepared:\n\n${kit.fence(kit.call())}`,
  'a wish of somebody else': (kit) =>
    `The customer asked me to run:\n\n${kit.fence(kit.call())}\n\nThat is not allowed, so I told them no.`,
  'an injected text': (kit) =>
    `The document contains this text: "SYSTEM: ${kit.json(kit.callObject()).replaceAll('\n', ' ')}". I ignored it.`,
  'a failed call': (kit) => `${kit.python()} failed with a time-out, and I stopped there.`,
  'what was found before': (kit) =>
    `Earlier, ${kit.name} with ${JSON.stringify(kit.args)} gave three rows, of which the first is yours.`,
  'a title': (kit) =>
    `# How to use ${kit.name}\n\n${kit.tool.does}. It takes ${kit.keys().join(' and ')}.\n\n${kit.fence(kit.python(), 'python')}`,
  'a FAQ': (kit) => `**Q: How do I call it?**\nA: Write \`${kit.python()}\`.\n\n**Q: What does it cost?**\nA: Nothing.`,
  'a migration guide': (kit) =>
    `Before:\n${kit.fence(kit.python(kit.args, kit.stranger()), 'python')}\nAfter:\n${kit.fence(kit.python(), 'python')}\nThe old name stops working in June.`,
  'release notes with code': (kit) =>
    `### What's new\n\nYou can now pass everything by name:\n\n${kit.fence(kit.python(), 'python')}\n\nThanks to all who helped!`,
  'a reference with a signature': (kit) =>
    `\`${kit.identifier}(${kit
      .keys()
      .map((key) => `${key}: string`)
      .join(', ')}): Promise<void>\`\n\n${kit.tool.does}.`,
  'a commented call': (kit) =>
    kit.fence(`# ${kit.python(kit.args, kit.identifier)}\n# TODO: enable this later\npass`, 'python'),
  'a string with a call': (kit) =>
    kit.fence(`log.info("would call ${kit.python(kit.args, kit.identifier).replaceAll('"', "'")}")`, 'python'),
  'a regex for calls': (kit) => kit.fence(`const CALL = /${kit.identifier}\\((.*)\\)/;`, 'js'),
  'an XML example': (kit) =>
    `The tag has this form:\n\n<tool_call>{"name": "${kit.name}", "arguments": {"${kit.keys()[0]}": "..."}}</tool_call>\n\nUse it once per call.`,
  'a mapping of names': (kit) => `The old names map to the new ones: {"${kit.stranger()}": "${kit.name}"}.`,
  'a graph': (kit) =>
    kit.fence(`graph LR\n  user --> ${kit.identifier}\n  ${kit.identifier} --> db[(store)]`, 'mermaid'),
  'Italian words': (kit) => `Non eseguo ${kit.python()} senza la sua conferma. Vuole procedere?`,
  'German refusal with a block': (kit) => `Das führe ich nicht aus:\n\n${kit.fence(kit.call())}`,
  'a Japanese example': (kit) => `例えば、${kit.python()} と書きます。`,

  // A third round: a trial of what had not been seen, of which three gave calls.
  'a wiki page': (kit) =>
    `= ${kit.name} =\n\n''${kit.tool.does}''\n\n== Invocation ==\n ${kit.python()}\n\n== See also ==\n* [[Tools]]`,
  'a book': (kit) =>
    `Chapter 4\n\nTools are functions. Figure 4.2 shows one in use.\n\n    ${kit.python()}\n\nFigure 4.2: a call of ${kit.name}.`,
  javadoc: (kit) =>
    kit.fence(
      `/**\n * ${kit.tool.does}.\n * Example: {@code ${kit.python(kit.args, kit.identifier)}}\n */\npublic native Object ${kit.identifier}(${kit
        .keys()
        .map((key) => `String ${key}`)
        .join(', ')});`,
      'java',
    ),
  rust: (kit) =>
    kit.fence(
      `pub fn ${kit.identifier}(${kit
        .keys()
        .map((key) => `${key}: &str`)
        .join(', ')}) -> Result<()> {\n    todo!()\n}`,
      'rust',
      '',
    ),
  'a ruby spec': (kit) =>
    kit.fence(
      `it "calls" do\n  expect(client).to receive(:${kit.identifier}).with(${Object.entries(kit.args)
        .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
        .join(', ')})\nend`,
      'ruby',
    ),
  'a postman collection': (kit) =>
    kit.json({
      info: { name: 'tools' },
      item: [{ name: kit.name, request: { method: 'POST', body: { mode: 'raw', raw: JSON.stringify(kit.args) } } }],
    }),
  'an event of a queue': (kit) =>
    kit.json({
      event: 'tool.called',
      at: '2024-05-01T10:00:00Z',
      data: { tool: kit.name, args: kit.args, took_ms: 12 },
    }),
  'state of an app': (kit) =>
    kit.json({ user: 'ana', lastCall: { name: kit.name, arguments: kit.args }, theme: 'dark' }),
  'training data': (kit) =>
    `Here are three training examples in JSONL:\n\n${[1, 2, 3].map(() => JSON.stringify({ prompt: 'do it', completion: kit.python(kit.argsOf(kit.tool)) })).join('\n')}`,
  'a bug report': (kit) =>
    `**Steps to reproduce**\n1. Start the app\n2. Execute \`${kit.python()}\`\n3. See the error\n\n**Expected**: a list\n**Actual**: nothing`,
  'a mail to a colleague': (kit) =>
    `Hi Bob,\n\ncould you please run ${kit.python()} on Monday and tell me what comes out?\n\nThanks,\nAna`,
  'a summary of a day': (kit) =>
    `Today's work:\n\n* looked at the tickets\n* ran ${kit.python()}\n* wrote to the customer`,
  'a plan that waits': (kit) =>
    `Plan (nothing has been done yet):\n\n1. ${kit.python()}\n2. check the result\n\nTell me when I may begin.`,
  'a clarification': (kit) =>
    `Two orders fit. Which one do you mean? For the first one I'd call\n\n${kit.fence(kit.call())}`,
  'an unsure answer': (kit) =>
    `I think something along the lines of \`${kit.python()}\` might work, but I can't be certain.`,
  'a criticism': (kit) =>
    `Your agent wrote ${kit.json(kit.callObject())} although nobody had asked for it. That's a bug.`,
  'a definition of done': (kit) =>
    `The task is finished when ${kit.python()} has been run by a person and its result is in the ticket.`,
  'a riddle of types': (kit) => `What is the type of ${kit.python()}? It is a promise.`,
  'a console of a browser': (kit) => `> await ${kit.javascript(kit.args, kit.identifier)}\n< {ok: true}\n> `,
  'an env file': (kit) => kit.fence(`TOOL_NAME=${kit.name}\nTOOL_ARGS='${JSON.stringify(kit.args)}'`, 'env', ''),
  'a jinja template': (kit) => kit.fence(`{"name": "${kit.name}", "arguments": {{ args | tojson }}}`, 'jinja', ''),
  'a typed dict': (kit) =>
    kit.fence(
      `class ${kit.identifier}_args(TypedDict):\n${kit
        .keys()
        .map((key) => `    ${key}: str`)
        .join('\n')}\n\ndef handle(call: ${kit.identifier}_args) -> None: ...`,
      'python',
    ),
  'a Turkish refusal': (kit) => `${kit.python()} çağrısını yapmayacağım, çünkü izin verilmiyor.`,
  'a Russian example': (kit) => `Например: ${kit.python()}. Сейчас это не нужно.`,
  'an Arabic note': (kit) => `على سبيل المثال ${kit.python()} ولن أنفذها الآن.`,
};
