/** One graph of 20 nodes for all sides: a chain, four branches, a join, a choice of two, and a chain again. 19 of them run. */

/** Each node adds one; the join adds up its four. */
export const NODES = 20;
export const RUN_NODES = 19;

export const HEAD = ['h1', 'h2', 'h3', 'h4'] as const;
export const FAN = ['f1', 'f2', 'f3', 'f4'] as const;
export const TAIL = ['t1', 't2', 't3', 't4', 't5', 't6', 't7', 't8', 't9'] as const;

export const addOne = async (value: number): Promise<number> => value + 1;
export const addUp = async (values: readonly number[]): Promise<number> =>
  values.reduce((sum, value) => sum + value, 0);
export const isEven = (value: number): boolean => value % 2 === 0;

/** The least that carries the graph out: the same functions, called one after another. */
export async function floor(input: number): Promise<number> {
  let value = input;
  for (const _ of HEAD) value = await addOne(value);
  value = await addUp(await Promise.all(FAN.map(() => addOne(value))));
  value = isEven(value) ? await addOne(value) : await addOne(value);
  for (const _ of TAIL) value = await addOne(value);
  return value;
}
