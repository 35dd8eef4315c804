import { describe } from 'vitest';
import { awaitsInAnyOrder, callsInAnyOrder, groupsInAnyOrder } from './any-order.ts';

describe('CR-06 calls that end in any order', () => callsInAnyOrder(100));
describe('CR-06 groups, whatever comes first', () => groupsInAnyOrder(100));
describe('CR-06 awaits, whatever comes first', () => awaitsInAnyOrder(50));
