/** Requests with the details about which HTTP parsers disagree, surrounded by valid ones, and cut anywhere. */
import { type Dice, mutate } from './mutate.js'
import { TRICKS } from './tricks.js'

const post = (url: string, headers: string, body: string) =>
  `POST ${url} HTTP/1.1\r\nHost: a\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
const GET = 'GET /v1/models?limit=3 HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n'
const POST = post('/v1/chat/completions', 'Content-Type: application/json\r\n', '{"model":"gpt"}')
const EARLY = post('/early', 'Connection: keep-alive\r\nX-Note: caf\xe9\r\n', 'not looked at')
const CHUNKED = post(
  '/chunked?a=b',
  'constructor: x\r\nCookie: a=b\r\n',
  '\r\n\r\nGET / HTTP/1.1\r\n',
)
const GOOD = [GET, POST, EARLY, CHUNKED, POST + GET, EARLY + POST + GET, GET + GET + CHUNKED]
const TRICKY = Object.values(TRICKS).map(([request]) => request)

/** Variations that are still valid. */
const MILD: readonly ((text: string, dice: Dice) => string)[] = [
  (text) => text,
  (text, { pick }) =>
    text.replace(
      / \/[^ ?]*/,
      ` ${pick(['/', '/a/b-c_d.e~f', '/early', '/chunked', '/a:b@c,d+e'])}`,
    ),
  (text, { pick }) =>
    text.replace(/ (\/[^ ?]*)/, ` $1?${pick(['', 'a=%20', 'a=b&c=d', '?', '//'])}`),
  (text, { pick }) => text.replace('\r\nHost', `\r\n${pick(FINE_LINES)}\r\nHost`),
  (text, { pick }) =>
    text.replace('\r\n\r\n', `\r\n${pick(FINE_LINES)}\r\n${pick(FINE_LINES)}\r\n\r\n`),
  (text) => text.replace('Content-Length: ', 'CONTENT-length:   '),
  (_, { below }) => {
    const body = String.fromCharCode(...Array.from({ length: below(300) }, () => below(256)))
    return post('/v1/messages', '', body)
  },
]
const FINE_LINES = [
  'Connection: Keep-Alive',
  'Keep-Alive: timeout=1',
  'Transfer_Encoding: chunked',
  'Content_Length: 3',
  'Cookie: c=d',
  'toString: x',
  'hasOwnProperty: x',
  'X-Empty:',
  'X-Blank:   ',
  'X-High: \x80\xff',
  'X-Colon:: a:  b: ',
  "!#$%&'*+.^_`|~: a",
  '0: 1',
  'Authorization: Bearer sk-0123456789',
]

/** Details about which parsers disagree, in relevant places. */
const SPICES: readonly ((text: string, dice: Dice) => string)[] = [
  (text, { pick }) =>
    text.replace('\r\nHost', `${pick(['\r', '\n', ' \r\n', '\t\r\n', '\r\n\r\n'])}Host`),
  (text, { pick }) =>
    text.replace(
      /Length: (\d+)/,
      `Length:${pick(['', '\t', '  '])}$1${pick(['', ' ', '\t', ' \t'])}`,
    ),
  (text, { pick }) =>
    text.replace(
      /Length: (\d+)/,
      `Length: ${pick(['0$1', '+$1', '$1,$1', '$1;', '0x$1', '$1 1', '$1.0', '\xa0$1'])}`,
    ),
  (text, { pick }) => text.replace('\r\nHost', `\r\n${pick(ODD_LINES)}\r\nHost`),
  (text, { pick }) => text.replace('\r\n\r\n', `\r\n${pick(ODD_LINES)}\r\n\r\n`),
  (text, { pick }) =>
    text.replace(
      '\r\n\r\n',
      pick(['\n\n', '\r\n\n', '\n\r\n', '\r\r\n\r\n', '\r\n \r\n\r\n', '\r\n\r\n\r\n']),
    ),
  (text, { pick }) =>
    text.replace(
      ' HTTP/1.1',
      pick(['  HTTP/1.1', ' HTTP/1.1 ', '\tHTTP/1.1', ' HTTP/1.1\r', ' http/1.1', '']),
    ),
  (text, { pick }) =>
    text.replace(/^(\S+) /, pick(['$1  ', '$1\t', ' $1 ', '\r\n$1 ', '\n$1 ', 'POSTS ', 'post '])),
  (text, { pick }) =>
    text.replace(
      / \/\S*/,
      pick([' /a\xe9', ' //b', ' /%', ' /?#', ' *', ' /a b', ' /a\0', ' /a|b', ' ']),
    ),
  (text, { pick }) =>
    `${pick(['', '\r\n', '\n', '\r\n\r\n', '\0', ' '])}${text}${pick(['', '\r\n', '\n', 'x'])}`,
]
const ODD_LINES = [
  'Connection: close',
  'Connection: Keep-Alive',
  'Connection: keep-alive, x',
  'Connection: keep-alive \t',
  'Connection:',
  'Connection: upgrade',
  'Keep-Alive: timeout=1',
  'Proxy-Connection: close',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding:',
  'Transfer-Encoding : chunked',
  'Transfer_Encoding: chunked',
  'Content-Length: 3',
  'Content-Length:',
  'Content_Length: 3',
  'Content-Length : 3',
  'Expect: 100-continue',
  'Upgrade: h2c',
  'HTTP2-Settings: x',
  'TE: trailers',
  'Trailer: x',
  'Set-Cookie: a=b',
  'Cookie: c=d',
  '__proto__: x',
  '__PROTO__: x',
  '-proto-: x',
  'toString: x',
  'X-Empty:',
  'X-Blank: \t ',
  'X-Tab:\ta\tb\t',
  'X-High: \x80\xff',
  'X-Del: \x7f',
  'X-Nul: \0',
  'X Space: a',
  'X-Colon:: a:',
  ': nameless',
  'colonless',
  ' folded',
  '\tfolded',
  'X-Paren(: a',
  "!#$%&'*+.^_`|~: a",
  'X-High\xe9: a',
]

/** Surrounded by valid requests, which have to be answered as well. */
export function oddRequests(random: Dice): string[] {
  const { pick } = random
  const good = () => pick(GOOD)
  const mild = () => pick(MILD)(good(), random)
  const spicy = () => pick(SPICES)(pick([good, mild])(), random)
  const wild = () => mutate(pick([GOOD, TRICKY]), random)
  return pick([
    () => [mild()],
    () => [spicy()],
    () => [wild()],
    () => [pick(SPICES)(spicy(), random)],
    () => [good(), mild(), spicy()],
    () => [mild(), wild(), good()],
    () => [mild(), mild(), mild()],
  ])()
}

/** Cuts between two requests and within them. */
export function cut(requests: readonly string[], { below, pick }: Dice): Buffer[] {
  const isSplit = below(4) > 0
  const most = pick([0, 0, 1, 2, 8])
  return (isSplit ? requests : [requests.join('')]).flatMap((text) => {
    const bytes = Buffer.from(text, 'latin1')
    const places = Array.from({ length: most }, () => below(bytes.length + 1))
    const ends = [...places.sort((one, other) => one - other), bytes.length]
    return ends
      .map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
      .filter((piece) => piece.length > 0)
  })
}
