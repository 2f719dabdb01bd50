// Who uses each HTTP header of Spillway, and what it means. `headerProblems` compares the names with the code.

/** Headers that Spillway reads from requests. */
export const REQUEST_HEADERS = {
  'spillway-user': {
    by: 'gateway',
    meaning:
      'User of the request, for user limits; at most 200 characters. Ignored with `callers`.',
  },
  'spillway-tier': {
    by: 'gateway',
    meaning:
      'Tier of the user, for user limits and shedding; at most 200 characters. Ignored with `callers`.',
  },
  'spillway-priority': {
    by: 'gateway',
    meaning: '`critical`, `high`, `normal` or `low`. Ignored with `callers`.',
  },
  'spillway-deadline-ms': {
    by: 'gateway, servers',
    meaning:
      'Milliseconds that the caller has left. `guard.fetch` with `hops` and the gateway send it on.',
  },
  'spillway-attempt': {
    by: 'gateway, servers',
    meaning: "Number of the caller's attempt. From 2 on, the call is neither retried nor hedged.",
  },
  'x-request-id': {
    by: 'gateway',
    meaning: 'Id of the request in logs and answers: 1 to 128 letters, digits and `_.:-`.',
  },
  'idempotency-key': {
    by: 'gateway, `guard.fetch`',
    meaning: 'The request may be sent twice. For async requests it names the job.',
  },
  prefer: {
    by: 'gateway',
    meaning: '`respond-async`: the request becomes a job, if a job queue accepts its model.',
  },
  traceparent: {
    by: 'gateway',
    meaning: 'Trace that the spans of the request belong to, with `tracing.fromCallers`.',
  },
}

/** Headers that Spillway adds to answers. */
export const RESPONSE_HEADERS = {
  'spillway-decision': {
    by: 'gateway',
    meaning: '`admitted`, `fallback`, `deferred` or `refused`, with the numbers behind it.',
  },
  'spillway-vendor': {
    by: 'gateway',
    meaning: 'The vendor that answered, or the last one that was tried.',
  },
  'spillway-attempts': { by: 'gateway', meaning: 'Number of requests that were sent to vendors.' },
  'spillway-degraded': {
    by: 'gateway',
    meaning: '`?0`, or the fallback that answered.',
  },
  'spillway-request-id': {
    by: 'gateway',
    meaning: 'Id of the request, for logs and `spillway explain`.',
  },
  'spillway-retried': {
    by: 'gateway, servers',
    meaning: '`1`: this service or one behind it has retried, so the caller should not.',
  },
  'retry-after': {
    by: 'gateway, servers, `guard.sdk()`',
    meaning: 'Whole seconds after which a retry makes sense.',
  },
  'retry-after-ms': {
    by: 'gateway, servers, `guard.sdk()`',
    meaning: 'The same time in milliseconds.',
  },
  'x-should-retry': {
    by: 'gateway, servers, `guard.sdk()`',
    meaning: '`false`: SDKs that know it do not retry.',
  },
  'ratelimit-policy': {
    by: 'gateway, servers',
    meaning: 'Limit of the caller and its window (draft of the IETF).',
  },
  ratelimit: {
    by: 'gateway, servers',
    meaning: 'Units left of that limit, and the time until it is reset.',
  },
  'preference-applied': {
    by: 'gateway',
    meaning: '`respond-async`: the request became a job, whose address is in `location`.',
  },
}

/** Names that begin like this are headers wherever they occur in the code. */
const OWN_NAME =
  /'((?:spillway|ratelimit|retry-after|x-should|preference|idempotency-key)(?:-[a-z-]+)?)'/g
/** Names of the tracer, the diagnostics channel and a reason of a retry. */
const NO_HEADERS = new Set(['spillway', 'spillway-gateway'])

/**
 * @param {string} code of the library and the gateway
 * @returns {string[]} one line for each header without a text, and each text without a header in the code
 */
export function headerProblems(code) {
  const texts = { ...REQUEST_HEADERS, ...RESPONSE_HEADERS }
  const used = new Set([...code.matchAll(OWN_NAME)].map(([, name]) => name))
  const isUsed = (name) => new RegExp(`['.]${name}\\b`).test(code)
  return [
    ...[...used]
      .filter((name) => !NO_HEADERS.has(name) && !Object.hasOwn(texts, name))
      .map((name) => `header ${name}: no description in scripts/reference/header-texts.mjs`),
    ...Object.entries(texts)
      .filter(([, { meaning }]) => !meaning)
      .map(([name]) => `header ${name}: no description`),
    ...Object.keys(texts)
      .filter((name) => !isUsed(name))
      .map((name) => `scripts/reference/header-texts.mjs: no code uses the header ${name}`),
  ]
}

export function headersPage() {
  return [
    '# HTTP headers',
    '',
    'Headers that Spillway reads and sends. Names of those between services can be',
    '[changed](../how-to/deadlines.md#options-of-hops). [Response headers](../gateway/index.md#response-headers) of the gateway',
    'has an example and the parameters.',
    '',
    '## Of requests',
    '',
    ...table('Read by', REQUEST_HEADERS),
    '',
    'With [callers](../gateway/configuration.md#a-caller), the configuration sets user, tier and priority.',
    '',
    '## Of answers',
    '',
    ...table('Sent by', RESPONSE_HEADERS),
    '',
    '[When to retry](errors.md#when-to-retry) has the waits of each error code.',
    '',
  ].join('\n')
}

function table(who, headers) {
  return [
    `| Header | ${who} | Meaning |`,
    '|---|---|---|',
    ...Object.entries(headers).map(
      ([name, { by, meaning }]) => `| \`${name}\` | ${by} | ${meaning} |`,
    ),
  ]
}
