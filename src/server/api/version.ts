/** The version of our own API: it changes when clients have to. */
export const API_VERSION = '1';
