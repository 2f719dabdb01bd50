/** How a route is written down. */
import {
  arrayOf,
  type Check,
  described,
  duration,
  object,
  oneOf,
  optional,
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
  key: optional(text()),
  model: optional(text()),
}

const readOne = object({ vendor: text(), ...target })

/** A name alone is all of its keys. */
const readChoice: Check<{
  vendor: string
  key?: string | undefined
  model?: string | undefined
}> = (value, path, problems) =>
  typeof value === 'string' ? { vendor: value } : readOne(value, path, problems)

const readRoute = object({
  name: optional(text()),
  path: optional(readPath),
  models: optional(arrayOf(text())),
  vendor: optional(text()),
  ...target,
  vendors: optional(arrayOf(readChoice)),
  pick: optional(oneOf('order', 'headroom')),
  fallbacks: optional(readFallbacks, []),
  timeoutMs: optional(duration({ min: 1 })),
  keepAliveMs: optional(duration({ min: 1 })),
  stripPrefix: optional(readPath),
})

export const readRoutes = arrayOf(readRoute)

export type WrittenRoute = ReturnType<typeof readRoute>
