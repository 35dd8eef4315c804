/** What all processes of the chaos go by. */
import type { Json } from '#pilotage';

export const LEASE_MS = 500;
export const GRACE_MS = 3_000;
export const STEPS = 60;
/** What `look` reads, and the letter says. */
export const PAGE: Json = 'The room is to be paid in advance.';
