/** Decompresses request bodies. */
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { RequestError } from '../data/complaint.js'

const DECODERS: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
])

/** Undefined if the body is not compressed. Any other coding, or several of them, is a 415. */
export function decoderFor(contentEncoding: string | undefined): Transform | undefined {
  const coding = contentEncoding?.trim().toLowerCase() ?? ''
  if (coding === '' || coding === 'identity') return undefined
  const create = DECODERS.get(coding)
  if (create !== undefined) return create()
  throw new RequestError({
    status: 415,
    code: 'UNSUPPORTED_ENCODING',
    message: 'content-encoding: only gzip, deflate, br and identity are supported, one at a time',
  })
}
