/** JSON values. Recorded ones are frozen, so the types are read-only. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };
