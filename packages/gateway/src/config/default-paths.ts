/**
 * The paths of a route that names none: those that generate or list models. Everything else an API key may do
 * (files, batches, stored responses, fine-tuned models) belongs to the whole account, so a route has to name it.
 */

export interface RoutePath {
  /** Exact, or up to a `*` at its end. */
  readonly path: string
  /** None: all methods. */
  readonly methods: readonly string[] | undefined
}

const GENERATE = ['POST'] as const
/** `DELETE /v1/models/…` deletes a fine-tuned model. */
const LIST = ['GET', 'HEAD'] as const

const MODELS: readonly RoutePath[] = [
  { path: '/v1/models', methods: LIST },
  { path: '/v1/models/*', methods: LIST },
]

export const DEFAULT_PATHS = {
  openai: [
    // `GET /v1/chat/completions` and `GET /v1/responses/…` read what other callers have stored.
    { path: '/v1/chat/completions', methods: GENERATE },
    { path: '/v1/completions', methods: GENERATE },
    { path: '/v1/responses', methods: GENERATE },
    { path: '/v1/embeddings', methods: GENERATE },
    { path: '/v1/moderations', methods: GENERATE },
    { path: '/v1/images/generations', methods: GENERATE },
    { path: '/v1/images/edits', methods: GENERATE },
    { path: '/v1/images/variations', methods: GENERATE },
    { path: '/v1/audio/speech', methods: GENERATE },
    { path: '/v1/audio/transcriptions', methods: GENERATE },
    { path: '/v1/audio/translations', methods: GENERATE },
    ...MODELS,
  ],
  anthropic: [
    { path: '/v1/messages', methods: GENERATE },
    { path: '/v1/messages/count_tokens', methods: GENERATE },
    ...MODELS,
  ],
} as const satisfies Record<string, readonly RoutePath[]>

export type LlmProtocol = keyof typeof DEFAULT_PATHS

/** What a route with default paths is called, unless it has a name. */
export function defaultRouteName(protocol: LlmProtocol): string {
  return `${protocol} defaults`
}
