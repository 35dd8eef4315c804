/** Time that moves from one timer to the next, and the processes that live in it. */
import type { Clock } from '#core';

interface Timer {
  readonly at: number;
  readonly order: number;
  wake: (() => void) | undefined;
}

export class SimulatedTime implements Clock {
  readonly startedAt: number;
  #now: number;
  #order = 0;
  /** A binary heap: the timer that is due first is at 0. */
  readonly #heap: Timer[] = [];

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.startedAt = startMs;
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  after(delayMs: number, wake: () => void): () => void {
    this.#order += 1;
    const timer: Timer = { at: this.#now + Math.max(delayMs, 0), order: this.#order, wake };
    this.#heap.push(timer);
    this.#rise(this.#heap.length - 1);
    return () => {
      timer.wake = undefined;
    };
  }

  /** Moves on to the timer that is due first, at `until` at the latest, and fires it. False when there is none. */
  step(until: number): boolean {
    for (let first = this.#heap[0]; first !== undefined && first.at <= until; first = this.#heap[0]) {
      this.#takeFirst();
      const { wake } = first;
      if (wake === undefined) continue;
      this.#now = first.at;
      wake();
      return true;
    }
    this.#now = Math.max(this.#now, until);
    return false;
  }

  #takeFirst(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink();
  }

  #rise(from: number): void {
    const heap = this.#heap;
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(heap[index], heap[parent])) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      let least = isBefore(heap[left], heap[index]) ? left : index;
      if (isBefore(heap[left + 1], heap[least])) least = left + 1;
      if (least === index) return;
      this.#swap(index, least);
      index = least;
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b] as Timer, heap[a] as Timer];
  }
}

function isBefore(a: Timer | undefined, b: Timer | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
