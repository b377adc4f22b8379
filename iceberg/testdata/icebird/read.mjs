// Prints the rows of an Iceberg table, of which the location of its metadata is given. The
// reader knows HTTP only, so what it fetches of file:// comes from here.
import { readFile } from 'node:fs/promises'
import { register } from 'node:module'

// Its own inflate fails on the last block of what Go's deflate writes, so Node's takes its place.
const inflate = `
import { inflateRawSync } from 'node:zlib'
export const gunzip = input => new Uint8Array(inflateRawSync(input))`
register('data:text/javascript,' + encodeURIComponent(`
export const load = (url, context, next) => url.endsWith('/hyparquet-compressors/src/gzip.js')
  ? { format: 'module', shortCircuit: true, source: ${JSON.stringify(inflate)} } : next(url, context)`))
const { icebergRead } = await import('./node_modules/icebird/src/read.js')

globalThis.fetch = async (location, init = {}) => {
  const body = await readFile(new URL(location))
  const range = /^bytes=(\d+)-(\d+)$/.exec(new Headers(init.headers).get('range') ?? '')
  const part = range ? body.subarray(Number(range[1]), Number(range[2]) + 1) : body
  return new Response(init.method === 'HEAD' ? null : part, {
    status: range ? 206 : 200,
    headers: { 'content-length': String(body.length) },
  })
}

const location = process.argv[2]
const metadata = JSON.parse(await readFile(new URL(location), 'utf8'))
const rows = await icebergRead({ tableUrl: metadata.location, metadata })
process.stdout.write(JSON.stringify(rows))
