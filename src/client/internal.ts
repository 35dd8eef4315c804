/** What the tests may use of `client`, beside its public face. */
export { Seen } from './seen.ts';
