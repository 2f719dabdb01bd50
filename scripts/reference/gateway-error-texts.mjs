// Cause and remedy of the gateway's own error codes. `gatewayErrorProblems` compares the codes with the code.

/** Failures between the gateway and a vendor, below HTTP. */
export const CONNECTION_ERRORS = {
  CONNECT_TIMEOUT: {
    cause: 'No connection to the vendor was open within `connectMs`.',
    check:
      'Open a connection from the pod, for example with `curl`. Compare its time with `connectMs`.',
    fix: 'Allow the address in firewalls and network policies. Raise `connectMs` for a distant vendor.',
  },
  ECONNREFUSED: {
    cause: 'No program listens on the port of the vendor. Nothing was sent.',
    check: 'Compare host and port with `url` of the vendor.',
    fix: 'Correct `url`, or start the service.',
  },
  ENOTFOUND: {
    cause: 'The host name of the vendor does not exist. Nothing was sent.',
    check: 'Resolve the name in the pod, for example with `getent hosts`.',
    fix: 'Correct `url`, or the DNS settings of the pod.',
  },
  EAI_AGAIN: {
    cause: 'The DNS server did not answer. Nothing was sent.',
    check: 'Resolve the name in the pod. The log shows whether all vendors are affected.',
    fix: 'Repair DNS in the cluster. Retries and fallbacks apply meanwhile.',
  },
  EHOSTUNREACH: {
    cause: 'The network has no route to the host of the vendor. Nothing was sent.',
    check: 'Open a connection from the pod, and from another machine.',
    fix: 'Allow the address in firewalls and network policies.',
  },
  ENETUNREACH: {
    cause: 'The pod has no route to the network of the vendor, often IPv6. Nothing was sent.',
    check: 'Compare the addresses of the name with the networks of the pod.',
    fix: 'Add the route, or use a name without IPv6 addresses.',
  },
  CONNECTION_CLOSED: {
    cause: 'The vendor closed the connection before its answer was complete.',
    check:
      'Compare the duration of these requests in the log: a fixed one points to a proxy timeout.',
    fix: 'Raise that timeout, or request a stream. Configure `retry` and `fallbacks`.',
  },
  STREAM_CUT_OFF: {
    cause: 'The stream ended as HTTP demands, but its last event is missing.',
    check: 'The metric `spillway_bodies_total` with `end="truncated"`, by vendor.',
    fix: 'The client has to send the request again. A proxy that ends streams early needs a longer timeout.',
  },
  MALFORMED_ANSWER: {
    cause: 'The answer is not HTTP, or two programs could read it differently.',
    check: 'The message names the problem. Send the same request with `curl -i`.',
    fix: 'Correct `url` (`http:` or `https:`, host, port), or the service.',
  },
  CONNECTIONS_CLOSED: {
    cause: 'The gateway closed its connections to this vendor, in a shutdown or a reload.',
    check: 'The log has a shutdown or a reload at the same time.',
    fix: 'Retry. Raise `drain.graceMs` if running requests need longer.',
  },
}

/** Answers that the gateway gives by itself, on the data port. */
const REQUEST_ERRORS = {
  UNKNOWN_KEY: {
    status: 401,
    cause: "The caller's key is missing or unknown.",
    fix: 'Send a key of `callers`. `spillway hash-key` prints the hash to compare.',
  },
  ORIGIN_NOT_ALLOWED: {
    status: 403,
    cause: 'The web page is not in `cors.origins`.',
    fix: 'Add its origin to `cors.origins`.',
  },
  NOT_FOUND: {
    status: 404,
    cause: 'No route has this path, or the job does not exist.',
    fix: 'Write the route that the message names.',
  },
  NO_ROUTE: {
    status: 404,
    cause: 'Routes have this path, but none accepts this model.',
    fix: 'Add the model to `models` of a route.',
  },
  AMBIGUOUS_ROUTE: {
    status: 400,
    cause: 'Two vendors have this default path, and the request does not name one.',
    fix: 'Write a route with the path for each vendor.',
  },
  UNEXPECTED_BODY: {
    status: 400,
    cause: 'A `GET`, `HEAD`, `DELETE` or `OPTIONS` request has a body.',
    fix: 'Send it without a body. A vendor that ignores it would read it as the next request.',
  },
  NAME_TOO_LONG: {
    status: 400,
    cause: '`spillway-user` or `spillway-tier` has more than 200 characters.',
    fix: 'Send a shorter name, such as a hash.',
  },
  INVALID_BODY: {
    status: 400,
    cause:
      'The body is not a JSON object in UTF-8, or a field is duplicated or has the wrong type.',
    fix: 'Correct the field that the message names.',
  },
  INVALID_URL: {
    status: 400,
    cause: 'Two servers could read the URL in two ways.',
    fix: 'Send the path in its canonical form.',
  },
  MALFORMED_REQUEST: {
    status: 400,
    cause: 'The request is not valid HTTP, or two servers could read it in two ways.',
    fix: 'Correct the client or the proxy in front of the gateway.',
  },
  MISPLACED_KEY: {
    status: 400,
    cause: "The caller's key is in the path or in the model.",
    fix: 'Send it in the header of the protocol, and replace it: it may be in logs.',
  },
  INVALID_DEADLINE: {
    status: 400,
    cause: '`spillway-deadline-ms` is not a number, or is less than 1 for an async request.',
    fix: 'Send the number of milliseconds that the caller has left.',
  },
  SLOW_HEADERS: {
    status: 408,
    cause: 'The headers did not arrive within `server.headersMs`.',
    fix: 'Retry. Raise the option for slow clients.',
  },
  SLOW_BODY: {
    status: 408,
    cause: 'The body arrived more slowly than `server.bodyMs` and `bodyBytesPerSecond` allow.',
    fix: 'Retry. Raise the options for slow clients.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    cause: 'The path of a job does not support this method.',
    fix: 'Use `GET` to read a job, `DELETE` to cancel it.',
  },
  JOB_ENDED: {
    status: 409,
    cause: 'The job has ended and cannot be cancelled.',
    fix: 'Read its result.',
  },
  CANCELLED: {
    status: 410,
    cause: 'The job was cancelled and has no result.',
    fix: 'Send the request again if it is still needed.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    cause:
      'The body is larger than `body.maxBytes`, or grows more than 100 times when decompressed.',
    fix: 'Send a smaller body, or raise `body.maxBytes`.',
  },
  URL_TOO_LONG: {
    status: 414,
    cause: 'Path and query are longer than `server.maxUrlBytes`.',
    fix: 'Shorten them, or raise the option.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    cause: 'The type or charset of the body cannot be read on this path.',
    fix: 'Send JSON in UTF-8 with `content-type: application/json`.',
  },
  UNSUPPORTED_ENCODING: {
    status: 415,
    cause: 'The `content-encoding` of the body cannot be read.',
    fix: 'Use one of `gzip`, `deflate` and `br`, or none.',
  },
  EXPECTATION_FAILED: {
    status: 417,
    cause: 'The header `expect` has another value than `100-continue`.',
    fix: 'Send the request without it.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    cause: 'Another async request used this `idempotency-key` before.',
    fix: 'Use a new key for each request.',
  },
  TOO_MANY_STREAMS: {
    status: 429,
    cause: 'This caller has 100 event streams of jobs open at this gateway.',
    fix: 'Close one, or poll.',
  },
  TOO_MANY_HEADERS: {
    status: 431,
    cause: 'The request has more headers than `server.maxHeaders`.',
    fix: 'Send fewer, or raise the option.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    cause: 'The headers are larger than `server.maxHeaderBytes`.',
    fix: 'Send smaller ones, or raise the option.',
  },
  INTERNAL: {
    status: 500,
    cause: 'An unexpected error of the gateway.',
    fix: 'Report it with the lines of the log that have the request id.',
  },
  METHOD_NOT_SUPPORTED: {
    status: 501,
    cause: 'The method is `TRACE`, `CONNECT` or unknown.',
    fix: 'Use another method.',
  },
  UPGRADE: {
    status: 501,
    cause: 'The client asks for another protocol, such as WebSocket.',
    fix: 'Use HTTP, with a stream if needed.',
  },
  TRANSFER_ENCODING: {
    status: 501,
    cause: 'The transfer coding is not `chunked`.',
    fix: 'Send `chunked`, or `content-length`.',
  },
  BODY_MEMORY_FULL: {
    status: 503,
    cause: 'The bodies of running requests have reached `body.maxTotalBytes`.',
    fix: 'Retry after `retry-after`. Add pods, or raise the option.',
  },
  HTTP_VERSION: {
    status: 505,
    cause: 'The HTTP version is not 1.1, or 2 over TLS.',
    fix: 'Use one of these.',
  },
}

/** Answers of the admin port and the dashboard. */
const ADMIN_ERRORS = {
  NO_TOKEN: {
    status: 403,
    cause:
      'No token of operators is set, and the client is not on this machine or cannot prove it.',
    fix: 'Set `admin.token`, and send it as `authorization: Bearer`.',
  },
  UNKNOWN_TOKEN: {
    status: 401,
    cause: 'The token of operators is missing or wrong.',
    fix: 'Send the token that `admin.token` refers to as `authorization: Bearer`.',
  },
  OTHER_SITE: {
    status: 403,
    cause: 'The request comes from a web page of another site.',
    fix: 'Use the dashboard itself, or the command.',
  },
  WRONG_HOST: {
    status: 403,
    cause: 'The host name of the request is not known, and it has no token (DNS rebinding).',
    fix: 'Add the name to `admin.hosts`, or send the token.',
  },
  NOT_JSON: {
    status: 415,
    cause: 'The body of an action is not JSON.',
    fix: 'Send JSON with `content-type: application/json`.',
  },
}

const FOREIGN = /^(E[A-Z]+$|ERR_|HPE_|UND_ERR_|NODE_|SIG|SPILLWAY_)/
/** Methods of HTTP; reasons in metrics and logs that no client receives. */
const OTHER_WORDS = new Set([
  ...['DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'CONNECT'],
  ...['DEGRADED', 'FAILED', 'REJECTED', 'HUNG_UP'],
])

/**
 * @param {string} code of the parts of the gateway that answer requests, and of the admin port
 * @param {readonly string[]} libraryCodes codes of a SpillwayError, which have sections of their own
 * @returns {string[]} one line for each code without a text, and each text without a code
 */
export function gatewayErrorProblems(code, libraryCodes) {
  const texts = { ...CONNECTION_ERRORS, ...REQUEST_ERRORS, ...ADMIN_ERRORS }
  const used = new Set([...code.matchAll(/'([A-Z][A-Z_]{4,})'/g)].map(([, word]) => word))
  const isOwn = (word) =>
    !OTHER_WORDS.has(word) && !libraryCodes.includes(word) && !FOREIGN.test(word)
  return [
    ...[...used]
      .filter((word) => !Object.hasOwn(texts, word) && isOwn(word))
      .map((word) => `${word}: no description in scripts/reference/gateway-error-texts.mjs`),
    ...Object.entries(texts)
      .filter(([, { cause, fix }]) => !cause || !fix)
      .map(([word]) => `${word}: no description`),
    ...Object.entries(texts)
      .filter(([word, { status }]) => status !== undefined && !hasStatus(code, word, status))
      .map(([word, { status }]) => `${word}: the code has another status than ${status}`),
    ...Object.keys(texts)
      .filter((word) => !used.has(word))
      .map((word) => `scripts/reference/gateway-error-texts.mjs: no code ${word} exists`),
  ]
}

function hasStatus(code, word, status) {
  return new RegExp(`\\b${status}[^\\d']{1,20}'${word}'`).test(code)
}

export function gatewayErrorsSections() {
  return [
    '## Connection errors',
    '',
    'Failures between the gateway and a vendor, below HTTP. Clients get `VENDOR_ERROR`; logs and the message show the code. Before',
    'the first byte has reached the client, [retries](../gateway/index.md#retries) and [fallbacks](../gateway/fallbacks.md) apply.',
    'Afterwards the answer ends with an error. Other codes of the operating system, such as `ECONNRESET`, mean that the',
    'connection broke.',
    '',
    '| Code | Cause | Check | Fix |',
    '|---|---|---|---|',
    ...Object.entries(CONNECTION_ERRORS).map(
      ([code, { cause, check, fix }]) => `| \`${code}\` | ${cause} | ${check} | ${fix} |`,
    ),
    '',
    '## Errors of the gateway',
    '',
    'The gateway refuses these requests before a guard sees them. The message has the details, the log has the request id.',
    '',
    ...table(REQUEST_ERRORS),
    '',
    '## Errors of the admin port',
    '',
    'Also those of a [dashboard](../operations/dashboard.md) in another program.',
    '',
    ...table(ADMIN_ERRORS),
    '',
  ]
}

function table(texts) {
  return [
    '| Code | Status | Cause | Fix |',
    '|---|---|---|---|',
    ...Object.entries(texts).map(
      ([code, { status, cause, fix }]) => `| \`${code}\` | ${status} | ${cause} | ${fix} |`,
    ),
  ]
}
