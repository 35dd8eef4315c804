/** The same question and the same tool for all loops. */
export const QUERY = 'What is the weather?';
export const WEATHER = { name: 'weather', description: 'The weather in a city.' };
export const CITY = { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false } as const;
