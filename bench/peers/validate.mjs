/** Compiled ajv in the form that `jsonSchema(…, { validate })` takes, so that the arguments are checked as elsewhere. */
import { Ajv } from 'ajv';
import { INPUT_SCHEMA } from '../workload.ts';

const fits = new Ajv().compile(INPUT_SCHEMA);

export function ajvValidate(value) {
  return fits(value) ? { success: true, value } : { success: false, error: new Error('The arguments do not fit.') };
}
