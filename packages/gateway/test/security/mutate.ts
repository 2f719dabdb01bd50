/** Creates invalid input from valid samples, identical in every run. */

export interface Dice {
  /** An integer from 0 to below `end`. */
  below(end: number): number
  pick<T>(from: readonly T[]): T
}

/** Mulberry32. */
export function dice(seed: number): Dice {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (end: number) => Math.floor(next() * end)
  return { below, pick: (from) => from[below(from.length)] as never }
}

const PIECES = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  '\t',
  '\x0b',
  '\x7f',
  '\xff',
  ' ',
  ':',
  ',',
  ';',
  '/',
  '//',
  '\\',
  '..',
  '/../',
  '%2e%2e/',
  '%00',
  '%',
  '%0d%0a',
  '?',
  '#',
  '@',
  'http://evil.example/',
  '\r\n ',
  '\r\nX: y',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: identity\r\n',
  'Connection: close\r\n',
  'Connection: Upgrade\r\nUpgrade: websocket\r\n',
  'Host: evil.example\r\n',
  'Expect: x\r\n',
  'GET / HTTP/1.1\r\n\r\n',
  '0\r\n\r\n',
  '"',
  '{',
  '}',
  '__proto__',
  'HTTP/1.1',
  'HTTP/2.0',
  '9'.repeat(40),
  'a'.repeat(20_000),
]

const CHANGES: readonly ((text: string, dice: Dice) => string)[] = [
  (text, { below, pick }) => insert(text, below(text.length + 1), pick(PIECES)),
  (text, { below, pick }) => insert(text, below(Math.min(60, text.length)), pick(PIECES)),
  (text, { below }) => insert(text, below(text.length + 1), String.fromCharCode(below(256))),
  (text, { below }) => without(text, below(text.length), 1),
  (text, { below }) => without(text, below(text.length), 1 + below(20)),
  (text, { below }) => text.slice(0, below(text.length)),
  (text, { below }) => replace(text, below(text.length), String.fromCharCode(below(256))),
  (text, { below }) => {
    const at = below(text.length)
    return insert(text, at, text.slice(at, at + below(40)))
  },
  (text, { below }) => {
    const lines = text.split('\r\n')
    const [line = ''] = lines.splice(below(lines.length), 1)
    lines.splice(below(lines.length + 1), 0, line)
    return lines.join('\r\n')
  },
  (text, { below }) => {
    const lines = text.split('\r\n')
    lines.splice(below(lines.length), 0, lines[below(lines.length)] ?? '')
    return lines.join('\r\n')
  },
  (text, { pick }) => text.replace(/^\S+/, pick(['TRACE', 'CONNECT', 'get', 'G\0T', 'FOO', 'PRI'])),
  (text, { pick }) => text.replace(/ \S+ /, ` ${pick(URLS)} `),
  (text, { pick }) =>
    text.replace(/HTTP\/\S+/, pick(['HTTP/0.9', 'HTTP/2.0', 'HTTP/1.10', 'HTTQ/1.1'])),
  (text, { pick }) =>
    text.replace(/Length: \d+/, `Length: ${pick(['-1', '1e3', '0x10', '5', '99', ''])}`),
]

const URLS = [
  '*',
  'evil.example',
  'http://evil.example/v1/models',
  '//evil.example/v1/models',
  '/v1/../v1/models',
  '/v1/%2e%2e/models',
  '/v1/%252e%252e%252fmodels',
  '/v1/..;/models',
  '/v1/\\models',
  '/v1/%zz',
  '/v1/%c0%ae%c0%ae/x',
  '/v1/models#x',
  '/v1/mod els',
  '/v1/\u00e9',
]

/** Mutates one of the samples once to four times. */
export function mutate(samples: readonly string[], dice: Dice): string {
  let text = dice.pick(samples)
  for (let times = 1 + dice.below(4); times > 0; times--) text = dice.pick(CHANGES)(text, dice)
  return text
}

function insert(text: string, at: number, piece: string): string {
  return text.slice(0, at) + piece + text.slice(at)
}

function without(text: string, at: number, length: number): string {
  return text.slice(0, at) + text.slice(at + length)
}

function replace(text: string, at: number, piece: string): string {
  return text.slice(0, at) + piece + text.slice(at + piece.length)
}
