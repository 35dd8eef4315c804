import { describe, it } from 'vitest';
import { driverConformance, TestEngine } from '#testing';

describe('The runtime without a driver', () => {
  for (const { name, run } of driverConformance({ open: () => ({ driver: () => undefined }) })) it(name, run);
});

describe('An engine in memory', () => {
  for (const { name, run } of driverConformance({ open: () => new TestEngine() })) it(name, run);
});
