/** Requests that two servers may read differently, or that try to reach forbidden paths. */

const BODY = '{"model":"gpt","messages":[]}'
const LENGTH = `Content-Length: ${BODY.length}\r\n`
const HOST = 'Host: gateway\r\n'
const JSON_TYPE = 'Content-Type: application/json\r\n'
const CHUNK = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`

/** A request to a path of the gateway with an acceptable body. */
function post(url: string, headers = ''): string {
  return `POST ${url} HTTP/1.1\r\n${HOST}${JSON_TYPE}${headers}${LENGTH}\r\n${BODY}`
}

function chunked(headers: string, body = CHUNK): string {
  return `POST ${PATH} HTTP/1.1\r\n${HOST}${JSON_TYPE}${headers}\r\n${body}`
}

export const PATH = '/v1/chat/completions'
/** The valid request from which the others are derived. */
export const VALID = post(PATH)
export const VALID_CHUNKED = chunked('Transfer-Encoding: chunked\r\n')

/** With the expected status, or several where the parser may refuse first. */
export const TRICKS: Readonly<Record<string, readonly [request: string, ...statuses: number[]]>> = {
  // Host selection.
  'absolute form': [post(`http://evil.example${PATH}`), 400],
  'absolute form, another scheme': [post(`ftp://evil.example${PATH}`), 400],
  'a network path': [post(`//evil.example${PATH}`), 400],
  'a network path with a backslash': [post(`/\\evil.example${PATH}`), 400],
  'an authority': [post('evil.example:443'), 400],
  'user information': [post(`@evil.example${PATH}`), 400],
  asterisk: [`OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, 400],
  'two hosts': [post(PATH, 'Host: evil.example\r\n'), 400],
  'no host': [`POST ${PATH} HTTP/1.1\r\n${LENGTH}\r\n${BODY}`, 400],
  'a host with a path': [`GET ${PATH} HTTP/1.1\r\nHost: a/b@evil.example\r\n\r\n`, 400],
  // Paths.
  'dot dot': [post('/v1/../admin'), 400],
  'dot dot at the end': [post('/v1/chat/..'), 400],
  dot: [post('/v1/./chat/completions'), 400],
  'encoded dots': [post('/v1/%2e%2e/admin'), 400],
  'half encoded dots': [post('/v1/.%2E/admin'), 400],
  'encoded slash behind dots': [post('/v1/..%2fadmin'), 400],
  'encoded twice': [post('/v1/%252e%252e/admin'), 400],
  'encoded three times': [post('/v1/%25252e%25252e%25252fadmin'), 400],
  'overlong dots': [post('/v1/%c0%ae%c0%ae/admin'), 400],
  'overlong slash': [post('/v1/..%c0%afadmin'), 400],
  'dots with a parameter': [post('/v1/..;/admin'), 400],
  'a backslash': [post('/v1\\..\\admin'), 400],
  'an encoded backslash': [post('/v1/..%5cadmin'), 400],
  'an encoded NUL': [post(`${PATH}%00.json`), 400],
  'an encoded line end': [post(`${PATH}%0d%0ax:%20y`), 400],
  'a NUL in the query': [post(`${PATH}?a=%00`), 400],
  'a bad escape': [post('/v1/%zz'), 400],
  'half an escape': [post('/v1/%2'), 400],
  'a bad escape in the query': [post(`${PATH}?q=%u0041`), 400],
  'a fragment': [post(`${PATH}#x`), 400],
  'a space': [post('/v1/chat completions'), 400],
  'a tab': [post('/v1/chat\tcompletions'), 400],
  'a NUL': [post('/v1/chat\0'), 400],
  'bytes beyond ASCII': [post('/v1/ch\xe4t'), 400],
  'a quote': [post('/v1/"chat"'), 400],
  'a URL that is too long': [post(`/v1/${'a'.repeat(9_000)}`), 414],
  // Lengths and codings.
  'two lengths': [post(PATH, 'Content-Length: 3\r\n'), 400],
  'the same length twice': [post(PATH, LENGTH), 400],
  'a list of lengths': [post(PATH).replace(LENGTH, 'Content-Length: 29, 29\r\n'), 400],
  'a signed length': [post(PATH).replace(LENGTH, 'Content-Length: +29\r\n'), 400],
  'a negative length': [post(PATH).replace(LENGTH, 'Content-Length: -1\r\n'), 400],
  'a hex length': [post(PATH).replace(LENGTH, 'Content-Length: 0x1d\r\n'), 400],
  'an endless length': [post(PATH).replace(LENGTH, `Content-Length: ${'9'.repeat(30)}\r\n`), 400],
  'no length': [post(PATH).replace(LENGTH, 'Content-Length:\r\n'), 400],
  'a length and a coding': [chunked(`Transfer-Encoding: chunked\r\n${LENGTH}`), 400],
  'a coding and a length': [chunked(`${LENGTH}Transfer-Encoding: chunked\r\n`), 400],
  'two codings': [chunked('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n'), 400],
  'the same coding twice': [
    chunked('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'),
    400,
    501,
  ],
  'chunked twice': [chunked('Transfer-Encoding: chunked, chunked\r\n'), 400, 501],
  'another coding': [chunked('Transfer-Encoding: gzip, chunked\r\n'), 501],
  'a coding that is none': [chunked('Transfer-Encoding: xchunked\r\n'), 400],
  'a quoted coding': [chunked('Transfer-Encoding: "chunked"\r\n'), 400],
  'a space before the colon': [chunked('Transfer-Encoding : chunked\r\n'), 400],
  'a vertical tab': [chunked('Transfer-Encoding:\x0bchunked\r\n'), 400],
  'a coding in a folded line': [chunked('Transfer-Encoding:\r\n chunked\r\n'), 400],
  'a coding behind a bare line feed': [chunked('X: y\nTransfer-Encoding: chunked\r\n'), 400],
  'a coding in HTTP/1.0': [
    chunked('Transfer-Encoding: chunked\r\n').replace('HTTP/1.1', 'HTTP/1.0'),
    501,
  ],
  'a chunk with a space': [
    chunked('Transfer-Encoding: chunked\r\n', '3 \r\nabc\r\n0\r\n\r\n'),
    400,
  ],
  'a negative chunk': [chunked('Transfer-Encoding: chunked\r\n', '-3\r\nabc\r\n0\r\n\r\n'), 400],
  'a hex chunk': [chunked('Transfer-Encoding: chunked\r\n', '0x3\r\nabc\r\n0\r\n\r\n'), 400],
  'an endless chunk': [chunked('Transfer-Encoding: chunked\r\n', `${'f'.repeat(17)}\r\nabc`), 400],
  'a chunk that is too long': [
    chunked('Transfer-Encoding: chunked\r\n', '3\r\nabcX\r\n0\r\n\r\n'),
    400,
  ],
  'bare line feeds between chunks': [
    chunked('Transfer-Encoding: chunked\r\n', '3\nabc\n0\n\n'),
    400,
  ],
  'extensions without an end': [
    chunked('Transfer-Encoding: chunked\r\n', `3;${'a'.repeat(20_000)}`),
    400,
    413,
  ],
  // Headers.
  'a folded line': [post(PATH, 'X-A: b\r\n c\r\n'), 400],
  'a NUL in a value': [post(PATH, 'X-A: b\0c\r\n'), 400],
  'a carriage return in a value': [post(PATH, 'X-A: b\rc\r\n'), 400],
  'a control character in a value': [post(PATH, 'X-A: b\x01c\r\n'), 400],
  'a space in a name': [post(PATH, 'X A: b\r\n'), 400],
  'no name': [post(PATH, ': b\r\n'), 400],
  'no colon': [post(PATH, 'X-A\r\n'), 400],
  'a line that begins with a space': [`GET ${PATH} HTTP/1.1\r\n ${HOST}\r\n`, 400],
  'two keys': [post(PATH, 'Authorization: Bearer a\r\nauthorization: Bearer b\r\n'), 400],
  'two types': [post(PATH, 'content-type: text/plain\r\n'), 400],
  'too many headers': [post(PATH, 'X-A: b\r\n'.repeat(200)), 431],
  'headers that are too large': [post(PATH, `X-A: ${'b'.repeat(20_000)}\r\n`), 431],
  'bare line feeds': [post(PATH).replaceAll('\r\n', '\n'), 400],
  // Methods, versions, protocols.
  trace: [`TRACE ${PATH} HTTP/1.1\r\n${HOST}\r\n`, 501],
  connect: [`CONNECT evil.example:443 HTTP/1.1\r\n${HOST}\r\n`, 501],
  propfind: [`PROPFIND ${PATH} HTTP/1.1\r\n${HOST}\r\n`, 501],
  'a method that is none': [`FOO ${PATH} HTTP/1.1\r\n${HOST}\r\n`, 400],
  'a method in small letters': [`post ${PATH} HTTP/1.1\r\n${HOST}\r\n`, 400],
  'HTTP/0.9': [VALID.replace('HTTP/1.1', 'HTTP/0.9'), 505],
  'HTTP/2.0': [VALID.replace('HTTP/1.1', 'HTTP/2.0'), 505],
  'HTTP/1.2': [VALID.replace('HTTP/1.1', 'HTTP/1.2'), 400],
  'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  'a WebSocket': [
    `GET ${PATH} HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    501,
  ],
  'an expectation': [post(PATH, 'Expect: the worst\r\n'), 417],
  'a TLS greeting': ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  'something else entirely': ['EHLO mail.example\r\n', 400],
}
