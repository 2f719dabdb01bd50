/**
 * Spellings of paths, equal in every run, and the meaning of a path for a vendor. Written independently of the
 * gateway, so that the two can disagree.
 */
import type { Dice } from './mutate.js'

export const ROUTES = [
  { name: 'chat', path: '/v1/chat/completions', vendor: 'openai' },
  { name: 'files', path: '/v1/files/*', vendor: 'files' },
  { name: 'v1', path: '/v1/*', vendor: 'openai' },
  { name: 'raw', path: '/raw/*', vendor: 'raw', stripPrefix: '/raw' },
] as const

/** One for each route, and some without. */
export const PATHS = [
  '/v1/chat/completions',
  '/v1/files/file-1/content',
  '/v1/models/meta~llama_3.1',
  '/v1/embeddings',
  '/raw/a/b.c',
  '/V1/chat/completions',
  '/other',
]
const INSERTED = [
  ...['/', '//', '/.', '/..', '/./', '/../', '.', '..', ';', ';a=b', '\\', '%'],
  ...['%2e', '%2E%2e', '%252e%252e', '%2f', '%2F%2f', '%252f', '%5c', '%00', '%3b', '%23', '%3F'],
  ...['%c3%a9', '%C0%AE', '%25', '%2563', '%zz', '+', '%20', ':', '@', '~', '*', '#', '"'],
]
const QUERIES = ['', '', '', '?', '?a=b', '?%61=%2e%2e', '?/../x', '?a=%2F', '?a?b']

/** A path of a route, in another spelling, which may mean another path. */
export function spell(dice: Dice): string {
  const { below, pick } = dice
  let path = pick(PATHS)
  if (below(3) > 0) path = encodeSome(path, dice)
  for (let edits = below(3); edits > 0; edits--) {
    const at = 1 + below(path.length)
    path = path.slice(0, at) + pick(INSERTED) + path.slice(at + below(2))
  }
  if (below(10) === 0) path = changeCase(path, below(path.length))
  if (below(10) === 0) path = encodeSome(path, dice)
  return path + pick(QUERIES)
}

/** Another spelling with an unchanged meaning. */
export function encodeSome(path: string, { below, pick }: Dice): string {
  const share = pick([2, 5, 20])
  return path.replace(/[^/%]/g, (character) => {
    if (below(share) > 0) return character
    const hex = character.charCodeAt(0).toString(16).padStart(2, '0')
    return `%${below(2) === 0 ? hex : hex.toUpperCase()}`
  })
}

function changeCase(path: string, at: number): string {
  const character = path[at] as string
  const other =
    character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase()
  return path.slice(0, at) + other + path.slice(at + 1)
}

/** The segments that a server sees after decoding once; none, if it is no path. */
export function meaningOf(url: string): string[] | undefined {
  try {
    const [path = ''] = url.split('?', 1)
    return path.split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/** The route for these segments, by the letter of `ROUTES`. */
export function routeFor(segments: readonly string[]): (typeof ROUTES)[number] | undefined {
  return ROUTES.find(({ path }) => {
    const wanted = path.split('/')
    if (wanted.at(-1) !== '*') return wanted.join('\n') === segments.join('\n')
    const fixed = wanted.slice(0, -1)
    return segments.length > fixed.length && fixed.every((each, index) => each === segments[index])
  })
}

/** A server may see an empty or dot segment, or parameters, in this path after decoding it any number of times. */
export function isDangerous(url: string): boolean {
  let [path = ''] = url.split('?', 1)
  for (let times = 0; times < 12; times++) {
    const segments = path.slice(1).split(/[/\\]/)
    if (segments.some((each) => /^\.{0,2}(;|$)/.test(each)) || path.includes(';')) return true
    path = path.replace(/%([0-7][0-9a-f])/gi, (_, hex) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  }
  return false
}
