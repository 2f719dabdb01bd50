/**
 * The paths of a route that names none: those that generate or list models. Everything else an API key may do
 * (files, batches, stored responses, fine-tuned models) belongs to the whole account, so a route has to name it.
 */

import type { LlmProtocol } from 'spillway/internal'

export interface RoutePath {
  /** Exact, or with a `*`: at the end for anything, elsewhere for one segment of the path or a part of it. */
  readonly path: string
  /** Undefined: all methods. */
  readonly methods: readonly string[] | undefined
}

const GENERATE = ['POST'] as const
/** `DELETE /v1/models/…` deletes a fine-tuned model. */
const LIST = ['GET', 'HEAD'] as const

const MODELS: readonly RoutePath[] = [
  { path: '/v1/models', methods: LIST },
  { path: '/v1/models/*', methods: LIST },
]

/** `GET /v1/chat/completions` and `GET /v1/responses/…` would return data of other callers. */
const OPENAI_ENDPOINTS = [
  'chat/completions',
  'completions',
  'responses',
  'responses/input_tokens',
  'embeddings',
  'moderations',
  'images/generations',
  'images/edits',
  'images/variations',
  'audio/speech',
  'audio/transcriptions',
  'audio/translations',
]
const GEMINI_METHODS = [
  'generateContent',
  'streamGenerateContent',
  'embedContent',
  'batchEmbedContents',
  'countTokens',
]

export const DEFAULT_PATHS: Readonly<Record<LlmProtocol, readonly RoutePath[]>> = {
  openai: [...generating(OPENAI_ENDPOINTS.map((each) => `/v1/${each}`)), ...MODELS],
  anthropic: [
    { path: '/v1/messages', methods: GENERATE },
    { path: '/v1/messages/count_tokens', methods: GENERATE },
    ...MODELS,
  ],
  gemini: [
    ...['v1beta', 'v1', 'v1alpha'].flatMap((version) =>
      generating(GEMINI_METHODS.map((method) => `/${version}/models/*:${method}`)),
    ),
    // Not those of v1: `GET /v1/models` is also the path of OpenAI and Anthropic.
    { path: '/v1beta/models', methods: LIST },
    { path: '/v1beta/models/*', methods: LIST },
  ],
  azure: [
    ...generating(OPENAI_ENDPOINTS.map((each) => `/openai/deployments/*/${each}`)),
    ...generating(OPENAI_ENDPOINTS.map((each) => `/openai/v1/${each}`)),
    // AzureOpenAI clients send responses here, with the deployment in the body.
    ...generating(['/openai/responses', '/openai/responses/input_tokens']),
    { path: '/openai/models', methods: LIST },
    { path: '/openai/models/*', methods: LIST },
    { path: '/openai/v1/models', methods: LIST },
    { path: '/openai/v1/models/*', methods: LIST },
  ],
}

export type { LlmProtocol }

function generating(paths: readonly string[]): RoutePath[] {
  return paths.map((path) => ({ path, methods: GENERATE }))
}

/** Whether a path, or every path of another pattern, matches this pattern. */
export function matchesPath(pattern: string, path: string): boolean {
  const at = pattern.indexOf('*')
  if (at === -1) return pattern === path
  const suffix = pattern.slice(at + 1)
  if (!path.startsWith(pattern.slice(0, at))) return false
  if (suffix === '') return true
  const middle = path.slice(at, -suffix.length)
  return path.length >= at + suffix.length && path.endsWith(suffix) && !middle.includes('/')
}

/** Name of a route with default paths, unless it has a name. */
export function defaultRouteName(protocol: LlmProtocol): string {
  return `${protocol} defaults`
}
