/** Format of a route. */
import {
  about,
  arrayOf,
  type Check,
  described,
  duration,
  object,
  oneOf,
  optional,
  schemaOf,
  text,
} from 'spillway/options'
import { canonicalPath, faultInUrl } from '../../../request/validation/request-url.js'
import { readFallbacks } from './fallback-shape.js'

const PATH = /^\/[^\s?#*]*\*?$/

const readPath: Check<string> = (value, path, problems) => {
  if (typeof value === 'string' && PATH.test(value)) {
    const message = problemWith(value)
    if (message !== undefined) problems.push({ path, message })
    return value
  }
  const found = value === undefined ? 'nothing' : JSON.stringify(value)
  const expected = 'a path that begins with / and may end in *'
  problems.push({ path, message: `must be ${expected}, got ${found}` })
  return undefined as never
}
/** Requests are matched in their canonical form: a pattern in another form would never match. */
function problemWith(pattern: string): string | undefined {
  const fault = faultInUrl(pattern)
  if (fault !== undefined) return `matches no request: ${fault.message}`
  const canonical = canonicalPath(pattern)
  return canonical === pattern ? undefined : `must be written as ${canonical}`
}
described(readPath, { type: 'string', pattern: PATH.source })

const target = {
  key: about(
    "Name of one of the vendor's keys. Default: its first that is not quarantined.",
    optional(text()),
  ),
  model: about(
    'Replaces the model of the request; not for `http`. Default: that of the request.',
    optional(text()),
  ),
}

const readOne = object({ vendor: about('Name of a vendor.', text()), ...target })

/** A name alone is all of its keys. */
const readChoice: Check<{
  vendor: string
  key?: string | undefined
  model?: string | undefined
}> = (value, path, problems) =>
  typeof value === 'string' ? { vendor: value } : readOne(value, path, problems)
described(readChoice, () => ({ anyOf: [schemaOf(text()), schemaOf(readOne)] }))

const readRoute = object({
  name: about('Name in metrics and logs. Default: the path and the models.', optional(text())),
  path: about(
    "Path of the requests; a `*` at its end stands for any rest. Required for `http`. Default: the default paths of the vendor's protocol.",
    optional(readPath),
  ),
  models: about(
    'Models of the requests; `*` stands for any characters. Not for `http`. Default: all, and requests without a model.',
    optional(arrayOf(text())),
  ),
  vendor: about('Name of the vendor. Required without `vendors`. Default: none.', optional(text())),
  ...target,
  vendors: about(
    'Vendors of which each request picks one by `headroom`: names, or objects. Default: none.',
    optional(arrayOf(readChoice)),
  ),
  pick: about(
    '`headroom`: picks the vendor with the most capacity left. `order`: uses `vendor`. Default: `headroom` with `vendors`, otherwise `order`.',
    optional(oneOf('order', 'headroom')),
  ),
  fallbacks: about(
    'Other targets and answers, in order, each used if those before it could not answer. Default: none.',
    optional(readFallbacks, []),
  ),
  timeoutMs: about(
    'Longest time of the whole request, to the last byte. Default: no limit.',
    optional(duration({ min: 1 })),
  ),
  keepAliveMs: about(
    'Interval of comments on a stream that has not begun. Default: none are sent.',
    optional(duration({ min: 1 })),
  ),
  stripPrefix: about(
    'Beginning of the path that is removed before the request is forwarded; for `http` only. Default: none.',
    optional(readPath),
  ),
})

export const readRoutes = arrayOf(readRoute)

export type WrittenRoute = ReturnType<typeof readRoute>
