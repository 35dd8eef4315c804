/** Blocks world after Gupta and Nau: a block is moved to its place when that is ready, else to the table. */
import { type HtnDomain, type HtnState, type HtnTask, htnDomain } from '#planners/htn';

export const blocks: HtnDomain = htnDomain({
  operators: { pickup, unstack, putdown, stack },
  tasks: { achieve, take, put },
});

function pickup(state: HtnState, x: string): boolean {
  return state.get('pos', x) === 'table' && lift(state, x);
}

function unstack(state: HtnState, x: string, y: string): boolean {
  if (y === 'table' || state.get('pos', x) !== y || !lift(state, x)) return false;
  state.set('clear', y, true);
  return true;
}

function lift(state: HtnState, x: string): boolean {
  if (state.get('clear', x) !== true || state.get('holding', 'hand') !== false) return false;
  state.set('pos', x, 'hand');
  state.set('clear', x, false);
  state.set('holding', 'hand', x);
  return true;
}

function putdown(state: HtnState, x: string): boolean {
  return state.get('pos', x) === 'hand' && drop(state, x, 'table');
}

function stack(state: HtnState, x: string, y: string): boolean {
  if (state.get('pos', x) !== 'hand' || state.get('clear', y) !== true) return false;
  drop(state, x, y);
  state.set('clear', y, false);
  return true;
}

function drop(state: HtnState, x: string, place: string): true {
  state.set('pos', x, place);
  state.set('clear', x, true);
  state.set('holding', 'hand', false);
  return true;
}

function take(state: HtnState, b: string): HtnTask[] | undefined {
  if (state.get('clear', b) !== true) return undefined;
  const place = state.get('pos', b) ?? 'table';
  return place === 'table' ? [['pickup', b]] : [['unstack', b, place]];
}

function put(state: HtnState, b: string, place: string): HtnTask[] | undefined {
  if (state.get('holding', 'hand') !== b) return undefined;
  return place === 'table' ? [['putdown', b]] : [['stack', b, place]];
}

/** `goal` names the tables of a goal; of them only `pos` counts. */
function achieve(state: HtnState, { goal }: { readonly goal: string }): HtnTask[] {
  const pos = state.table('pos');
  const clear = state.table('clear');
  const wanted = state.table(`${goal}.pos`);
  const isDone = (block: string): boolean => {
    for (let at = block; at !== 'table'; ) {
      const place = pos.get(at);
      const target = wanted.get(at);
      if (typeof place !== 'string' || (target !== undefined && target !== place)) return false;
      at = place;
    }
    return true;
  };
  const move = (block: string, place: string): HtnTask[] => [
    ['take', block],
    ['put', block, place],
    ['achieve', { goal }],
  ];
  let waiting: string | undefined;
  let place = 'table';
  const ready = clear.find((block, isClear) => {
    if (isClear !== true || isDone(block)) return false;
    const target = wanted.get(block);
    if (typeof target !== 'string' || target === 'table') return true;
    if (clear.get(target) === true && isDone(target)) {
      place = target;
      return true;
    }
    if (pos.get(block) !== 'table') waiting ??= block;
    return false;
  });
  if (ready !== undefined) return move(ready, place);
  return waiting === undefined ? [] : move(waiting, 'table');
}
