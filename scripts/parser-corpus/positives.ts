/** Replies that make a call, in many forms and with the words that stand around them: what the rules must not refuse. */
import type { Json, JsonObject } from '#core';
import type { Kit, Template } from './kit.ts';

/** Words before a call that is meant. */
const before = [
  '',
  "I'll look that up.",
  'Let me check.',
  'Sure! Let me do that for you.',
  "I don't know that yet, so I'll find out:",
  'Certainly. Calling the tool now:',
  'The order was found. Next I will do the second step.',
  'To answer this, I will use the right tool.',
  'Here is the call:',
  'Here is the function call that you asked for:',
  'Okay,',
  'I could not find it in the first list. Let me try another way.',
  'First I need the data:',
  'Ich sehe das nach.',
  'You want to know more, so I am checking this now:',
  'Based on the question, the function call is:',
  'This is not something that I remember, so let me ask the tool.',
  '**Step 1**\n\nGet the data:',
  '<think>\nShould I not call it? For example with other values? No.\n</think>',
  'Thank you. One moment, please.',
];

const after = [
  '',
  '',
  '',
  '\nI will tell you the result.',
  '\nThis gives the answer.',
  '\n\nThen we will see.',
  '\n<|im_end|>',
];

type Form = (kit: Kit) => string;

const objectForms: Readonly<Record<string, (name: string, args: JsonObject) => Json>> = {
  'name and arguments': (name, args) => ({ name, arguments: args }),
  'tool and args': (tool, args) => ({ tool, args }),
  'name and parameters': (name, args) => ({ name, parameters: args }),
  'a list': (name, args) => [{ name, arguments: args }],
  'action and input': (action, args) => ({ action, action_input: args }),
  tool_calls: (name, args) => ({
    tool_calls: [{ type: 'function', function: { name, arguments: JSON.stringify(args) } }],
  }),
  'name as key': (name, args) => [{ [name]: args }],
};

function object(kit: Kit): string {
  const write = kit.pick(Object.values(objectForms));
  const value = write(kit.name, kit.args);
  return kit.json(value);
}

const forms: Readonly<Record<string, Form>> = {
  'an object': object,
  'an object in a fence': (kit) => `\`\`\`json\n${object(kit)}\n\`\`\``,
  'an object in a tag': (kit) =>
    `<tool_call>\n${JSON.stringify({ name: kit.name, arguments: kit.args })}\n</tool_call>`,
  'a list of Python calls': (kit) => `[${kit.python()}]`,
  'a Python call in a fence': (kit) => `\`\`\`python\n${kit.python()}\n\`\`\``,
  'a Python call on a line': (kit) => kit.python(),
  'a call of an object': (kit) => `${kit.name}(${JSON.stringify(kit.args)})`,
  'a function tag': (kit) => `<function=${kit.name}>${JSON.stringify(kit.args)}</function>`,
  'parameter tags': (kit) =>
    `<invoke name="${kit.name}">\n${Object.entries(kit.args)
      .map(
        ([key, value]) =>
          `<parameter name="${key}">${typeof value === 'string' ? value : JSON.stringify(value)}</parameter>`,
      )
      .join('\n')}\n</invoke>`,
  'ReAct lines': (kit) => `Thought: so\nAction: ${kit.name}\nAction Input: ${JSON.stringify(kit.args)}`,
  'a Python dict': (kit) =>
    JSON.stringify({ name: kit.name, arguments: kit.args })
      .replaceAll("'", '’')
      .replaceAll('"', "'")
      .replaceAll('true', 'True')
      .replaceAll('false', 'False'),
};

export const positives: Readonly<Record<string, Template>> = Object.fromEntries(
  Object.entries(forms).map(([name, form]): [string, Template] => [
    name,
    (kit) => {
      const words = kit.pick(before);
      return `${words}${words === '' ? '' : kit.pick(['\n', '\n\n'])}${form(kit)}${kit.pick(after)}`;
    },
  ]),
);

/** The taught form with words before it that make the call. */
export const taught: Readonly<Record<string, Template>> = {
  'the taught form': (kit) => {
    const words = kit.pick(before);
    return `${words}${words === '' ? '' : kit.pick(['\n', '\n\n'])}\`\`\`json\n${kit.json({ tool: kit.name, args: kit.args })}\n\`\`\``;
  },
};
