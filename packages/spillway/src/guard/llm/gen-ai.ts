/** Names of the GenAI conventions of OpenTelemetry: operations, providers, and the facts of one operation. */
import type { LlmProtocol } from './vendor-format.js'

/** One ended request to an LLM vendor. */
export interface GenAiOperation {
  /** `chat`, `text_completion`, `embeddings` or `generate_content`. */
  readonly operation: string
  /** The vendor, such as `openai`. */
  readonly provider: string
  /** The model that was requested. Default: unknown. */
  readonly model?: string | undefined
  /** Host of the vendor. Default: unknown. */
  readonly serverAddress?: string | undefined
  /** Port of the vendor. Default: unknown. */
  readonly serverPort?: number | undefined
  /** Status, code or name of the error that it ended with. Default: it succeeded. */
  readonly errorType?: string | undefined
  /** Time until the last byte of the answer, waiting and retries included. */
  readonly durationMs: number
  /** Time until the first chunk of a streamed answer. Default: it was not streamed. */
  readonly firstChunkMs?: number | undefined
  /** Tokens of the request. Default: the answer does not report them. */
  readonly inputTokens?: number | undefined
  /** Tokens of the answer. Default: the answer does not report them. */
  readonly outputTokens?: number | undefined
}

/** Receives ended requests. Created by `createGenAiMetrics()`. */
export interface GenAiRecorder {
  /** Called once for each request. */
  record(operation: GenAiOperation): void
}

const OPERATIONS: readonly (readonly [ending: RegExp, operation: string])[] = [
  [/\/(?:chat\/completions|responses|messages)$/, 'chat'],
  [/\/completions$/, 'text_completion'],
  [/(?:\/embeddings|:embedContent|:batchEmbedContents)$/, 'embeddings'],
  [/:(?:streamGenerateContent|generateContent)$/, 'generate_content'],
]

/** The operation of a request on this path. Undefined for requests that generate nothing. */
export function genAiOperationOf(path: string): string | undefined {
  return OPERATIONS.find(([ending]) => ending.test(path))?.[1]
}

/** Other vendors with the API of OpenAI, by host. */
const OPENAI_LIKE: readonly (readonly [host: RegExp, provider: string])[] = [
  [/(^|\.)azure\.com$/, 'azure.ai.openai'],
  [/(^|\.)deepseek\.com$/, 'deepseek'],
  [/(^|\.)groq\.com$/, 'groq'],
  [/(^|\.)mistral\.ai$/, 'mistral_ai'],
  [/(^|\.)moonshot\.(ai|cn)$/, 'moonshot_ai'],
  [/(^|\.)perplexity\.ai$/, 'perplexity'],
  [/(^|\.)x\.ai$/, 'x_ai'],
  [/(^|\.)amazonaws\.com$/, 'aws.bedrock'],
]

/** The name of a vendor by its API and host; that of the API's inventor if the host is not known. */
export function genAiProviderOf(protocol: LlmProtocol, host: string): string {
  if (protocol === 'azure') return 'azure.ai.openai'
  if (protocol === 'anthropic') return 'anthropic'
  if (protocol === 'gemini') {
    return host.endsWith('aiplatform.googleapis.com') ? 'gcp.vertex_ai' : 'gcp.gemini'
  }
  return OPENAI_LIKE.find(([known]) => known.test(host))?.[1] ?? 'openai'
}
