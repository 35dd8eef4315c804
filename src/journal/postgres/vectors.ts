/**
 * The vectors of the long-term store as the extension `vector` (pgvector) knows them: a column that the database makes of the bytes of each vector, so
 * that whoever writes these, with this option or without it, writes both. The server compares then, exactly, and gives the best.
 */
import { PilotageError } from '#core';
import type { Database } from './database.ts';
import { makeOnce, untilDone } from './migrations.ts';

/** Longer vectors have no form there. */
export const MOST_DIMENSIONS = 16_000;

const LOOK = `
  SELECT (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS home ON home.oid = extnamespace WHERE extname = 'vector') AS home,
    EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'embedding' AND NOT attisdropped) AS is_made`;
// The bytes are those of IEEE numbers of 32 bits, the lowest first. The vector gets the length 1, since its squares may be too large, or too small, for
// numbers of 32 bits; one without a direction has none. No name depends on a search path: backups are restored without one.
const MAKE = `
  CREATE OR REPLACE FUNCTION {vector_of}(bytes bytea) RETURNS HOME.vector LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
  DECLARE
    size int := octet_length(bytes) / 4;
    numbers float8[];
    scaled real[];
    bits bigint;
    exponent int;
    squares float8 := 0;
  BEGIN
    IF size = 0 OR size > ${MOST_DIMENSIONS} THEN RETURN NULL; END IF;
    FOR at IN 0 .. size - 1 LOOP
      bits := get_byte(bytes, 4 * at) + (get_byte(bytes, 4 * at + 1) << 8) + (get_byte(bytes, 4 * at + 2) << 16);
      exponent := ((get_byte(bytes, 4 * at + 3) & 127) << 1) + (bits >> 23)::int;
      bits := bits & 8388607;
      numbers[at + 1] := (CASE WHEN get_byte(bytes, 4 * at + 3) > 127 THEN -1 ELSE 1 END)
        * (CASE WHEN exponent = 0 THEN bits * (2::float8 ^ -149) ELSE (bits + 8388608) * (2::float8 ^ (exponent - 150)) END);
      squares := squares + numbers[at + 1] * numbers[at + 1];
    END LOOP;
    IF squares = 0 THEN RETURN NULL; END IF;
    FOR at IN 1 .. size LOOP
      scaled[at] := CASE WHEN abs(numbers[at]) < 1e-30 * sqrt(squares) THEN 0 ELSE numbers[at] / sqrt(squares) END;
    END LOOP;
    RETURN scaled::HOME.vector;
  END $$;
  CREATE OR REPLACE FUNCTION {likeness}(one HOME.vector, other HOME.vector) RETURNS float8 LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
    $$ SELECT 1 - (one OPERATOR(HOME.<=>) other) $$;
  ALTER TABLE {store_items} ADD COLUMN IF NOT EXISTS embedding HOME.vector GENERATED ALWAYS AS ({vector_of}(vector)) STORED`;

interface Found {
  /** The schema of the extension, as it is written in a statement. */
  readonly home: string | null;
  readonly is_made: boolean;
}

/**
 * Sees to it that the column is there.
 * @throws PilotageError `invalid_config` where the database does not have the extension, `journal_older` where the column may not be made.
 */
export async function prepareVectors(database: Database, mayMigrate: boolean): Promise<void> {
  await database.onClient(async (client) => {
    const { rows } = await client.query<Found>(LOOK, [database.qualify('{store_items}')]);
    const { home = null, is_made: isMade = false } = rows[0] ?? {};
    if (home === null) throw noExtension();
    if (isMade) return;
    if (!mayMigrate) throw notMade(database);
    await makeOnce(client, () => untilDone(client, database.qualify(MAKE.replaceAll('HOME', () => home))));
  });
}

function noExtension(): PilotageError {
  return new PilotageError(
    'invalid_config',
    'The option pgvector needs the extension of that name, and the database does not have it: run `CREATE EXTENSION vector` there, or leave the option out.',
  );
}

function notMade({ schema }: Database): PilotageError {
  return new PilotageError(
    'journal_older',
    `The schema ${schema} has no vectors for pgvector yet. Run \`pilotage migrate\` once, with ?pgvector=true behind the URL.`,
  );
}
