/** What the texts of the corpus are made of: tools with plausible values, and a seeded choice among them. */
import { isJsonObject, type Json, type JsonObject } from '#core';
import type { ParseTool } from '#parse';

export interface CorpusTool extends ParseTool {
  readonly name: string;
  readonly does: string;
  readonly parameters: JsonObject;
}

type Pool = readonly Json[];

const pools: Readonly<Record<string, Pool>> = {
  city: ['Oslo', 'New York', 'Łódź', 'São Paulo', 'Kyoto', 'Cape Town'],
  date: ['2024-05-17', '2025-11-02', 'tomorrow', '31/12/2023'],
  id: ['A-17', 'ord_9931', 'INV-2024-004', '7f3c', 'XK42'],
  text: ['cats and dogs', 'quarterly report', "it's late", 'naïve Bayes', 'how do magnets work', 'red shoes size 42'],
  person: ['Ana', 'bob@example.org', 'Dr. Chen', 'ops-team'],
  small: [1, 2, 3, 5, 10, 12],
  large: [100, 250, 1999, 48_000],
  ratio: [0.5, 2.75, 9.81, 0.015],
  flag: [true, false],
  list: [['a', 'b'], [1, 2, 3], ['red'], [4.5, 6]],
  path: ['src/index.ts', '/var/log/syslog', 'notes/today.md'],
  code: ['EUR', 'USD', 'en', 'de', 'metric'],
};

type Kind = keyof typeof pools;
const types: Readonly<Record<string, JsonObject>> = {
  small: { type: 'integer' },
  large: { type: 'number' },
  ratio: { type: 'number' },
  flag: { type: 'boolean' },
  list: { type: 'array' },
};

const kinds = new Map<string, Kind>();

/** `parameters` as `name:kind`, with `?` behind those that may be left out. */
function tool(name: string, does: string, ...parameters: readonly string[]): CorpusTool {
  const properties: { [key: string]: Json } = {};
  const required: string[] = [];
  for (const parameter of parameters) {
    const [key = '', kind = 'text'] = parameter.replace('?', '').split(':');
    kinds.set(`${name}/${key}`, kind);
    properties[key] = { ...(types[kind] ?? { type: 'string' }), description: `The ${key.replaceAll('_', ' ')}.` };
    if (!parameter.endsWith('?')) required.push(key);
  }
  return { name, does, parameters: { type: 'object', properties, required } };
}

export const corpusTools: readonly CorpusTool[] = [
  tool('get_weather', 'gives the weather of a city', 'city:city', 'days:small?', 'units:code?'),
  tool('refund', 'pays an order back', 'order:id', 'amount:large?'),
  tool('send_email', 'sends a message', 'to:person', 'subject:text', 'body:text?'),
  tool('web.search', 'searches the web', 'query:text', 'limit:small?'),
  tool('math.gcd', 'finds the greatest common divisor', 'a:small', 'b:small'),
  tool('calculate_area', 'computes the area of a shape', 'base:ratio', 'height:ratio', 'unit:code?'),
  tool('bookFlight', 'books a flight', 'from:city', 'to:city', 'date:date'),
  tool('read_file', 'reads a file', 'path:path'),
  tool('create_event', 'puts an event into the calendar', 'title:text', 'date:date', 'attendees:list?'),
  tool('currency.convert', 'converts money', 'amount:large', 'from_currency:code', 'to_currency:code'),
  tool('query_database', 'runs a query', 'sql:text', 'readonly:flag?'),
  tool('translate', 'translates a text', 'text:text', 'target:code'),
  tool('set_alarm', 'sets an alarm', 'time:date', 'label:text?'),
  tool('list_orders', 'lists orders', 'customer:person?', 'limit:small?'),
  tool('get_time', 'tells the time'),
  tool('hospital.locate', 'finds hospitals', 'location:city', 'radius:small', 'department:text?'),
  tool('stock_price', 'gives a price', 'ticker:id', 'period:date?'),
  tool('delete_user', 'deletes an account', 'user_id:id', 'reason:text?'),
];

/** Names of functions that nobody offers. */
const strangers = [
  'fetch_records',
  'lookup_customer',
  'compute_tax',
  'MapService.route',
  'sendSlackMessage',
  'quadratic_roots',
];

/** Seeded choices: the same seed gives the same text on every machine. */
export class Kit {
  #state: number;
  readonly tool: CorpusTool;
  readonly tools: readonly CorpusTool[];
  /** Values for all required arguments and some of the others. */
  readonly args: JsonObject;

  constructor(seed: number) {
    this.#state = (seed * 2_654_435_761 + 97) >>> 0;
    this.tool = this.pick(corpusTools);
    const others = corpusTools.filter((one) => one !== this.tool && this.chance(0.15));
    this.tools = this.chance(0.5) ? [this.tool, ...others] : [...others, this.tool];
    this.args = this.argsOf(this.tool);
  }

  random(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  pick<T>(choices: readonly T[]): T {
    const chosen = choices[Math.floor(this.random() * choices.length)];
    if (chosen === undefined) throw new Error('nothing to choose from');
    return chosen;
  }

  chance(share: number): boolean {
    return this.random() < share;
  }

  get name(): string {
    return this.tool.name;
  }

  /** The name as code of a program could have it. */
  get identifier(): string {
    return this.name.replaceAll('.', '_');
  }

  stranger(): string {
    return this.pick(strangers);
  }

  /** The names of the arguments; of a tool without any, one that it might have. */
  keys(): string[] {
    const properties = this.tool.parameters['properties'];
    const keys = Object.keys(isJsonObject(properties) ? properties : {});
    return keys.length > 0 ? keys : ['input'];
  }

  argsOf(one: CorpusTool): JsonObject {
    const required = one.parameters['required'];
    const properties = one.parameters['properties'];
    const args: { [key: string]: Json } = {};
    for (const key of Object.keys(isJsonObject(properties) ? properties : {})) {
      const isRequired = Array.isArray(required) && required.includes(key);
      if (isRequired || this.chance(0.4))
        args[key] = this.pick(pools[kinds.get(`${one.name}/${key}`) ?? 'text'] ?? ['x']);
    }
    return args;
  }

  /** The same arguments with a placeholder of one style for each value. */
  placeholders(): JsonObject {
    const style = this.pick<(key: string) => string>([
      (key) => `<${key}>`,
      (key) => `<your ${key.replaceAll('_', ' ')}>`,
      (key) => `{{${key}}}`,
      (key) => `YOUR_${key.toUpperCase()}`,
      () => '...',
      (key) => `your_${key}_here`,
      (key) => `[insert ${key}]`,
      () => 'string',
      (key) => `{${key}}`,
      (key) => `$${key.toUpperCase()}`,
      (key) => `${key}_value`,
      (key) => `<${key.toUpperCase()}>`,
    ]);
    return Object.fromEntries(this.keys().map((key) => [key, style(key)]));
  }

  json(value: Json): string {
    return this.chance(0.5) ? JSON.stringify(value) : JSON.stringify(value, null, 2);
  }

  /** An object that names the tool, in one of the usual ways. */
  callObject(args: JsonObject = this.args, name: string = this.name): JsonObject {
    return this.pick<JsonObject>([
      { name, arguments: args },
      { tool: name, args },
      { name, parameters: args },
      { function: name, arguments: args },
      { type: 'function', function: { name, arguments: JSON.stringify(args) } },
      { [name]: args },
    ]);
  }

  python(args: JsonObject = this.args, name: string = this.name): string {
    const show = (value: Json): string =>
      typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value);
    return `${name}(${Object.entries(args)
      .map(([key, value]) => `${key}=${show(value)}`)
      .join(', ')})`;
  }

  javascript(args: JsonObject = this.args, name: string = this.name): string {
    const fields = Object.entries(args).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
    return `${name}({ ${fields.join(', ')} })`;
  }

  /** A call in program syntax or as JSON. */
  call(args: JsonObject = this.args, name: string = this.name): string {
    return this.pick([
      () => this.python(args, name),
      () => this.javascript(args, name),
      () => this.json(this.callObject(args, name)),
    ])();
  }

  fence(body: string, ...languages: readonly string[]): string {
    return `\`\`\`${this.pick(languages.length > 0 ? languages : ['', 'json', 'python', 'text'])}\n${body}\n\`\`\``;
  }

  /** The definition of a tool, in one of the ways in which APIs write it. */
  definition(one: CorpusTool = this.tool): JsonObject {
    const { name, does, parameters } = one;
    return this.pick<JsonObject>([
      { name, description: does, parameters },
      { type: 'function', function: { name, description: does, parameters } },
      { name, description: does, inputSchema: parameters },
      { name, description: does, input_schema: parameters },
      { tool: name, description: does, args: parameters },
    ]);
  }
}

export interface Sample {
  /** The template that it was made with. */
  readonly of: string;
  readonly text: string;
  readonly tools: readonly CorpusTool[];
}

export type Template = (kit: Kit) => string;

/** @returns `count` samples, the templates in turn. */
export function samplesOf(templates: Readonly<Record<string, Template>>, count: number, seed: number): Sample[] {
  const entries = Object.entries(templates);
  return Array.from({ length: count }, (_, index) => {
    const [of, template] = entries[index % entries.length] ?? ['', () => ''];
    const kit = new Kit(seed + index);
    return { of, text: template(kit), tools: kit.tools };
  });
}
