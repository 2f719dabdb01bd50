/**
 * The `fallbacks` of a route in the configuration: other targets first, then answers that need no vendor. The reasons in
 * `on` have the names of the library's fallbacks.
 */

import { ERROR_KINDS, type ErrorKind } from 'spillway/internal'
import {
  about,
  arrayOf,
  bool,
  type Check,
  described,
  duration,
  integer,
  number,
  object,
  oneOf,
  optional,
  schemaOf,
  text,
  together,
} from 'spillway/options'
import type { FallbackAnswerConfig, StaticAnswerConfig } from '../../config.js'
import type { ConfigProblem } from '../../config-error.js'
import { size } from '../byte-size.js'

/** Without `limited`: if the caller or the vendor is over its limit, no fallback answers unless `on` lists it. */
const DEFAULT_REASONS = ['timeout', 'error', 'circuit-open', 'shed'] as const

/** Reasons for answers that need no vendor. */
const REASONS = ['timeout', 'error', 'circuit-open', 'limited', 'shed'] as const
/** Errors of a vendor after which another target may help. */
const KINDS = Object.keys(ERROR_KINDS) as ErrorKind[]

/** Fields about the caller or about accounting. They do not change the answer. */
const IGNORED_FIELDS = [
  'user',
  'metadata',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'service_tier',
  'request_id',
]

/** Headers that differ from request to request and do not change the answer. */
const IGNORED_HEADERS = [
  'user-agent',
  'date',
  'x-request-id',
  'x-client-request-id',
  'x-correlation-id',
  'idempotency-key',
  'traceparent',
  'tracestate',
  'baggage',
  'b3',
  'x-b3-*',
  'x-datadog-*',
  'x-amzn-trace-id',
  'x-cloud-trace-context',
  'sentry-trace',
  'x-stainless-*',
  // Makes the mock vendor fail, so that fallbacks can be tried out.
  'x-mock',
]

const readWhen = object({
  pressure: about(
    'Pressure on the gateway from which the target is used; 1 is its limit.',
    number({ min: 0.01 }),
  ),
})

const readCached = object({
  maxAgeMs: about('Older answers are not used.', optional(duration({ min: 1 }), 3_600_000)),
  shared: about('Callers also get answers to requests of other callers.', optional(bool(), false)),
  maxEntries: about('Most answers that are kept.', optional(integer({ min: 1 }), 1_000)),
  maxBytes: about(
    'Most bytes of all answers together.',
    optional(size({ min: 1 }), 64 * 1_024 ** 2),
  ),
  maxAnswerBytes: about('A larger answer is not kept.', optional(size({ min: 1 }), 1_024 ** 2)),
  ignoreFields: about(
    'Top-level fields of a body that do not make it another request. A name may end in `*`.',
    optional(arrayOf(text()), IGNORED_FIELDS),
  ),
  ignoreHeaders: about(
    'Headers that do not make it another request. A name may end in `*`.',
    optional(arrayOf(lowerCase()), IGNORED_HEADERS),
  ),
})

function lowerCase(): Check<string> {
  const read = text()
  return described(
    (value, path, problems) => String(read(value, path, problems)).toLowerCase(),
    () => schemaOf(read),
  )
}

const anything: Check<unknown> = described((value: unknown) => value, {})

const readStaticObject = together(
  object({
    status: about(
      'Status of the answer; 200 with `text`.',
      optional(integer({ min: 200, max: 599 }), 200),
    ),
    text: about(
      "What a model would say, in the format of the request's protocol. Default: none.",
      optional(text()),
    ),
    json: about('A JSON body in place of `text`. Default: none.', optional(anything)),
    body: about('A text body in place of `text`. Default: none.', optional(text())),
    contentType: about(
      'Type of `json` or `body`. Default: `application/json` or `text/plain; charset=utf-8`.',
      optional(text()),
    ),
  }),
  (answer, path, problems: ConfigProblem[]) => {
    if (answer === undefined) return
    const given = (['text', 'json', 'body'] as const).filter((name) => answer[name] !== undefined)
    if (given.length === 0) {
      problems.push({ path, message: 'must have text, json or body' })
    }
    if (given.length > 1) {
      const message = `must not come together with ${given[0]}`
      problems.push({ path: `${path}.${given[1]}`, message, at: 'key' })
    }
    if (answer.contentType !== undefined && answer.text !== undefined) {
      const message =
        'has no meaning with text, which is put into the format of the protocol; use body'
      problems.push({ path: `${path}.contentType`, message, at: 'key' })
    }
    if (answer.text !== undefined && answer.status !== 200) {
      const message = `must be 200 with text, which looks like an answer; use json or body`
      problems.push({ path: `${path}.status`, message })
    }
    if (answer.status === 204 || answer.status === 304) {
      problems.push({
        path: `${path}.status`,
        message: `must not be ${answer.status}, which has no body`,
      })
    }
  },
)

/** Text alone is the short form of `{ text }`. */
const readStatic: Check<ReturnType<typeof readStaticObject>> = described(
  (value, path, problems) =>
    readStaticObject(typeof value === 'string' ? { text: value } : value, path, problems),
  () => ({ anyOf: [{ type: 'string', minLength: 1 }, schemaOf(readStaticObject)] }),
)

const readOne = object({
  vendor: about(
    'Vendor of the target, of the same protocol. Default: that of the route.',
    optional(text()),
  ),
  key: about(
    "Name of the vendor's key. Default: that of the route; of another vendor its first.",
    optional(text()),
  ),
  model: about('Model of the target. Default: that of the route.', optional(text())),
  when: about(
    'Uses the target before the others while the gateway is busy, and not otherwise. Default: always used.',
    optional(readWhen),
  ),
  cached: about(
    'Answers with the last good answer to the same request. Default: off.',
    optional(readCached),
  ),
  static: about('Answers with a fixed text or body. Default: off.', optional(readStatic)),
  on: about(
    `Errors after which it is used. Default: failures and refusals for a target; ${list(DEFAULT_REASONS)} for \`cached\` and \`static\`.`,
    optional(arrayOf(oneOf(...REASONS, ...KINDS))),
  ),
})

export type WrittenFallback = ReturnType<typeof readOne>

function list(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(', ')
}

const OF_TARGETS = ['vendor', 'key', 'model', 'when'] as const

const readStep: Check<WrittenFallback> = together(
  readOne,
  (step, path, problems: ConfigProblem[]) => {
    if (step === undefined) return
    const complain = (name: string, message: string) =>
      problems.push({ path: `${path}.${name}`, message, at: 'key' })
    const answer = kindOf(step)
    if (answer === undefined) {
      checkKinds(step, complain)
      return
    }
    if (step.cached !== undefined && step.static !== undefined) {
      complain('static', 'must not come together with cached: make it the next fallback')
    }
    for (const name of OF_TARGETS) {
      if (step[name] !== undefined) complain(name, `must not come together with ${answer}`)
    }
    if (step.on?.length === 0) complain('on', 'must have at least one reason')
    const kind = step.on?.find(isKind)
    if (kind !== undefined) {
      complain('on', `has '${kind}', which is for targets; with ${answer}: ${REASONS.join(', ')}`)
    }
  },
)

function isKind(reason: string): reason is ErrorKind {
  return Object.hasOwn(ERROR_KINDS, reason)
}

/** The `on` of a target. */
function checkKinds(
  { on, when }: WrittenFallback,
  complain: (name: string, message: string) => void,
) {
  if (on === undefined) return
  if (on.length === 0) complain('on', 'must have at least one kind of error')
  if (when !== undefined) complain('on', 'must not come together with when')
  const reason = on.find((each) => !isKind(each))
  if (reason === undefined) return
  complain(
    'on',
    `has '${reason}', which is for cached and static; with a target: ${KINDS.join(', ')}`,
  )
}

/** The kinds of errors after which a target is used. */
export function kindsOf({ on }: WrittenFallback): readonly ErrorKind[] | undefined {
  return on?.filter(isKind)
}

/** The kind of an answer that needs no vendor; undefined for a target. */
export function kindOf(step: WrittenFallback): 'cached' | 'static' | undefined {
  if (step.cached !== undefined) return 'cached'
  return step.static === undefined ? undefined : 'static'
}

const RANK = { target: 0, cached: 1, static: 2 } as const

export const readFallbacks: Check<WrittenFallback[]> = together(
  arrayOf(readStep),
  (steps, path, problems: ConfigProblem[]) => {
    let last: keyof typeof RANK = 'target'
    for (const [index, step] of (Array.isArray(steps) ? steps : []).entries()) {
      if (step === undefined) continue
      const kind = kindOf(step) ?? 'target'
      const at = `${path}[${index}]`
      if (kind === 'cached' && last === 'cached') {
        problems.push({ path: at, message: 'must be the only fallback with cached' })
      } else if (RANK[kind] < RANK[last]) {
        const what = kind === 'target' ? 'a vendor, key or model' : 'cached'
        problems.push({ path: at, message: `${what} must come before ${last}` })
      } else last = kind
    }
  },
)

/** The answers without a vendor, with their defaults. */
export function fallbackAnswers(steps: readonly WrittenFallback[]): FallbackAnswerConfig[] {
  return steps.flatMap((step): FallbackAnswerConfig[] => {
    const on = step?.on?.filter((each) => !isKind(each)) ?? DEFAULT_REASONS
    if (step?.cached !== undefined) return [{ kind: 'cached', on, ...step.cached }]
    return step?.static === undefined ? [] : [{ kind: 'static', on, ...staticAnswer(step.static) }]
  })
}

type Static = NonNullable<WrittenFallback['static']>

function staticAnswer({
  status,
  text,
  json,
  body,
  contentType,
}: Static): Omit<StaticAnswerConfig, 'kind' | 'on'> {
  if (text !== undefined) return { status, text, body: undefined, contentType: undefined }
  const isJson = json !== undefined
  return {
    status,
    text: undefined,
    body: isJson ? JSON.stringify(json) : (body ?? ''),
    contentType: contentType ?? (isJson ? 'application/json' : 'text/plain; charset=utf-8'),
  }
}
