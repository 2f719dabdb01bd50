/**
 * Texts for refusals by the gateway itself, by code. The messages to clients may contain parts of a path or body, so
 * the dashboard uses these texts.
 */

const WORDS: Readonly<Record<string, string>> = {
  AMBIGUOUS_ROUTE: 'the default routes of two vendors take this path',
  BODY_MEMORY_FULL: 'bodies of other requests fill body.maxTotalBytes',
  BODY_TOO_LARGE: 'the body is larger than the limits of body',
  DEADLINE_EXCEEDED: 'the deadline passed before the request was sent',
  EXPECTATION_FAILED: 'the expect header is not supported',
  HEADERS_TOO_LARGE: 'the headers are larger than server.maxHeaderBytes',
  IDEMPOTENCY_KEY_REUSED: 'the idempotency key belongs to another request',
  INTERNAL: 'the gateway failed; its log has the error',
  INVALID_BODY: 'the body is not valid JSON, or a field has the wrong type',
  INVALID_DEADLINE: 'the deadline header is not a number of milliseconds',
  INVALID_URL: 'the URL of the request is not valid',
  MALFORMED_REQUEST: 'the bytes are not an HTTP request',
  METHOD_NOT_ALLOWED: 'the path does not allow this method',
  METHOD_NOT_SUPPORTED: 'the gateway does not support this method',
  MISPLACED_KEY: 'the API key is in the path or in the model',
  NAME_TOO_LONG: 'a user, tier or model has more than 200 characters',
  NOT_FOUND: 'no route takes this method and path',
  NO_ROUTE: 'no route takes this model',
  ORIGIN_NOT_ALLOWED: 'cors does not allow this origin',
  SHUTTING_DOWN: 'the gateway is shutting down',
  SLOW_BODY: 'the body arrived more slowly than server.bodyMs allows',
  SLOW_HEADERS: 'the headers did not arrive within server.headersMs',
  TOO_MANY_STREAMS: 'the client has too many open streams',
  UNKNOWN_KEY: 'the API key is missing or unknown',
  UNSUPPORTED_ENCODING: 'the content-encoding is not supported',
  UNSUPPORTED_MEDIA_TYPE: 'the content-type is not supported on this path',
}

export function refusalWords(code: string | undefined): string {
  const words = code !== undefined && Object.hasOwn(WORDS, code) ? WORDS[code] : undefined
  return `the gateway refused the request: ${words ?? 'see its code'}`
}
