/** The fields that have a value; those that are `undefined` have no key in an object that is optional there. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy without the keys whose value is `undefined`: what is absent has no key, also in what is recorded. Keys keep their order. */
export function defined<T extends object>(fields: T): Defined<T>;
export function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(fields)) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept;
}
