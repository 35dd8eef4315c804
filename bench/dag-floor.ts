/** What somebody writes by hand who wants no more than tasks in their order, so many at once: counters and a queue. */
import type { Branch } from '#core';
import { LIMIT } from './dag-graphs.ts';

export function floor(branches: readonly Branch[], work: (task: number) => Promise<unknown>): Promise<void> {
  const indexById = new Map(branches.map(({ id }, index) => [id, index]));
  const dependents = branches.map((): number[] => []);
  const open = branches.map(({ after = [] }, index) => {
    for (const id of after) dependents[indexById.get(id) as number]?.push(index);
    return after.length;
  });
  const ready = open.flatMap((count, index) => (count === 0 ? [index] : []));
  return new Promise((resolve, reject) => {
    let started = 0;
    let ended = 0;
    const end = (task: number): void => {
      ended += 1;
      for (const dependent of dependents[task] ?? []) {
        const left = (open[dependent] as number) - 1;
        open[dependent] = left;
        if (left === 0) ready.push(dependent);
      }
      if (ended === branches.length) resolve();
      else advance();
    };
    const advance = (): void => {
      while (started < ready.length && started - ended < LIMIT) {
        const task = ready[started] as number;
        started += 1;
        work(task).then(() => end(task), reject);
      }
    };
    advance();
  });
}
