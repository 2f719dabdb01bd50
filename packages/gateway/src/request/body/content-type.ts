/** The type of a request body, and how it is decompressed. */
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { remembered } from 'spillway/internal'
import { RequestError } from '../../response/errors.js'

export interface ContentType {
  /** Type and subtype in lower case, such as `application/json`. */
  readonly mediaType: string
  /** In lower case; undefined if the header names none. */
  readonly charset: string | undefined
}

const TOKEN = "[!#$%&'*+.^_`|~0-9a-z-]+"
const MEDIA_TYPE = new RegExp(`^[ \\t]*(${TOKEN}/${TOKEN})[ \\t]*(?:;|$)`, 'i')
const PARAMETER = new RegExp(`;[ \\t]*(?:(${TOKEN})=("(?:[^"\\\\]|\\\\.)*"|[^;"]*))?[^;"]*`, 'giy')

/**
 * The parsed header. Undefined if it is malformed, or has a charset in more than one place or in another form, such as
 * `charset*=` or `charset =`: some vendors read those, and would decode the body in another way than the gateway.
 */
export const parseContentType: (header: string) => ContentType | undefined = remembered(
  (header) => {
    const found = MEDIA_TYPE.exec(header)
    if (found === null) return undefined
    const start = header.indexOf(';')
    let charset: string | undefined
    PARAMETER.lastIndex = start
    while (start !== -1 && PARAMETER.lastIndex < header.length) {
      const parameter = PARAMETER.exec(header)
      if (parameter === null) return undefined
      const [, name, value = ''] = parameter
      if (name?.toLowerCase() === 'charset') charset = unquoted(value.trim()).toLowerCase()
    }
    const mentions = header.match(/charset/gi)?.length ?? 0
    if (mentions > (charset === undefined ? 0 : 1)) return undefined
    return { mediaType: (found[1] as string).toLowerCase(), charset }
  },
)

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value
}

/** `application/json`, `text/json` and every type with the suffix `+json`. */
export function isJsonType(mediaType: string): boolean {
  return mediaType === 'application/json' || mediaType === 'text/json' || /\+json$/.test(mediaType)
}

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
