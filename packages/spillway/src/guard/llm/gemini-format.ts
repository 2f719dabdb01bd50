/** Google's Gemini API: generating, embedding and counting tokens. The model and the method are in the path. */
import { geminiErrors } from './errors/gemini-errors.js'
import { geminiUsage } from './usage/usage-format.js'
import { largestOf, pathMatches, type ReportedError, type VendorFormat } from './vendor-format.js'

/** `/v1beta/models/{model}:{method}`. */
const MODEL = /(\/(?:models|tunedModels)\/)([^/:]+)(:[A-Za-z]+)$/
/** All methods of models take a JSON object. */
const GENERATING = /\/(models|tunedmodels)\/[^/:]+:[a-z]+$/
const FREE = /:counttokens$/
/** Their answers have no output tokens. */
const INPUT_ONLY = /:(embedContent|batchEmbedContents)$/
const STORING = /\/upload\/v[^/]+\/files$/
const REPEATABLE =
  /:(generateContent|streamGenerateContent|embedContent|batchEmbedContents|countTokens)$/
const STREAMING = /:streamGenerateContent$/
/** Without it, a stream is one JSON array. */
const AS_EVENTS = /[?&]alt=sse(?:&|$)/

/** Google accepts every field also in snake case. */
const CONFIGS = ['generationConfig', 'generation_config']
const MAX_TOKENS = inConfig('maxOutputTokens', 'max_output_tokens')
const ANSWERS = inConfig('candidateCount', 'candidate_count')

export const geminiFormat: VendorFormat = {
  name: 'gemini',
  bodyOn(path) {
    if (pathMatches(path, GENERATING)) return 'json'
    return pathMatches(path, STORING) ? 'file' : 'any'
  },
  isFree: (path) => pathMatches(path, FREE),
  isRepeatable: (path) => REPEATABLE.test(path),
  modelIn,
  withModel: (path, model) =>
    path.replace(MODEL, (_, prefix, __, method) => prefix + encodeURIComponent(model) + method),
  valueFields: [...MAX_TOKENS, ...ANSWERS],
  contentFields: [
    'contents',
    'systemInstruction',
    'system_instruction',
    'tools',
    'content',
    'requests',
    'instances',
  ],
  factsOf(fields, prompt, { path, query }) {
    return {
      model: modelIn(path),
      streamed: STREAMING.test(path) && AS_EVENTS.test(query),
      prompt,
      maxTokens: INPUT_ONLY.test(path) ? 0 : largestOf(fields, MAX_TOKENS),
      answers: Math.max(1, largestOf(fields, ANSWERS) ?? 1),
    }
  },
  // Every event of a stream has the usage so far.
  hidesUsage: () => false,
  isUsageEvent: () => false,
  usage: geminiUsage,
  errors: geminiErrors,
  errorBody({ status, code, message, requestId, retryAfterMs }: ReportedError) {
    const info = {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: code,
      domain: 'spillway',
      ...(requestId !== undefined && { metadata: { requestId } }),
    }
    const details: object[] = [info]
    if (retryAfterMs !== undefined) {
      const retryDelay = `${retryAfterMs / 1_000}s`
      details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay })
    }
    return { error: { code: status, message, status: statusName(status), details } }
  },
}

function inConfig(...names: string[]): string[] {
  return CONFIGS.flatMap((config) => names.map((name) => `${config}.${name}`))
}

function modelIn(path: string): string | undefined {
  return MODEL.exec(path)?.[2]
}

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** The name that Google gives an HTTP status (google.rpc.Code). */
function statusName(status: number): string {
  return STATUS_NAMES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
}
