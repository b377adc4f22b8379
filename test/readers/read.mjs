// Reads segment files with a reader that shares no code with the writer, and
// prints what it saw, one JSON object a line: {"file"} before each file, then
// {"id","fields"} per entry, the fields as [name, value] in the order in which
// the reader gives them. Names and values are in hex; a long value is
// "<length>:<SHA-256>".
//
// hyparquet takes addresses (http://...) for files, too, and reads them range by range.
//
// usage: node read.mjs duckdb|hyparquet FILE...
import { createHash } from 'node:crypto';
import { once } from 'node:events';

const LONG = 512; // bytes

const show = (bytes) =>
  bytes.length > LONG
    ? `${bytes.length}:${createHash('sha256').update(bytes).digest('hex')}`
    : Buffer.from(bytes).toString('hex');

async function print(line) {
  if (!process.stdout.write(JSON.stringify(line) + '\n')) await once(process.stdout, 'drain');
}

async function duckdb(files) {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  for (const file of files) {
    await print({ file });
    const sql = 'SELECT id, fields FROM read_parquet($1)';
    const reader = await connection.runAndReadAll(sql, [file]);
    for (const [id, fields] of reader.getRows()) {
      const entries = fields.entries.map(({ key, value }) => [show(Buffer.from(key)), show(value.bytes)]);
      await print({ id, fields: entries });
    }
  }
  connection.closeSync();
}

async function hyparquet(files) {
  const { asyncBufferFromFile, asyncBufferFromUrl, parquetReadObjects } = await import('hyparquet');
  const { compressors } = await import('hyparquet-compressors');
  const decoder = new TextDecoder();
  const text = (v) => (typeof v === 'string' ? v : decoder.decode(v));
  for (const path of files) {
    await print({ file: path });
    const file = /^https?:/.test(path) ? await asyncBufferFromUrl({ url: path }) : await asyncBufferFromFile(path);
    for (const row of await parquetReadObjects({ file, compressors, utf8: false })) {
      const entries = Object.entries(row.fields).map(([k, v]) => [show(Buffer.from(k)), show(v)]);
      await print({ id: text(row.id), fields: entries });
    }
  }
}

const readers = { duckdb, hyparquet };
const [name, ...files] = process.argv.slice(2);
if (!(name in readers) || files.length === 0) {
  console.error('usage: node read.mjs duckdb|hyparquet FILE...');
  process.exit(2);
}
await readers[name](files);
