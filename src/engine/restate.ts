/** `pilotage/engine/restate`: Restate as what keeps runs moving. It needs the package `@restatedev/restate-sdk` where runs are carried out. */
export type { RestateOptions, RestateServing } from './restate/driver.ts';
export { RestateDriver, restateDriver } from './restate/driver.ts';
