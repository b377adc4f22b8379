// Runs SQL as DuckDB does, in a folder, and prints what each query gives: one
// JSON array of rows a line, each row an array of its values as text.
//
// usage: node query.mjs FOLDER QUERY...
import { DuckDBInstance } from '@duckdb/node-api';

const [folder, ...queries] = process.argv.slice(2);
if (folder === undefined || queries.length === 0) {
  console.error('usage: node query.mjs FOLDER QUERY...');
  process.exit(2);
}
const connection = await (await DuckDBInstance.create(':memory:')).connect();
process.chdir(folder);
for (const sql of queries) {
  try {
    const reader = await connection.runAndReadAll(sql);
    const rows = reader.getRows().map((row) => row.map((v) => (v === null ? null : String(v))));
    process.stdout.write(JSON.stringify(rows) + '\n');
  } catch (err) {
    console.error(`${sql}\n${err.message}`);
    process.exit(1);
  }
}
connection.closeSync();
