/** The five vendors of the scenario: how a request is written, and the limits of their contract. */
import type { MockVendorOptions } from '@spillway/mock-vendor'
import type { SdkOptions } from 'spillway'

export type QuotaName = NonNullable<MockVendorOptions['quota']>

/** One turn of a conversation. The result of a tool is a `user` turn. */
export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly text: string
}

export interface Conversation {
  readonly system: string
  readonly turns: readonly Turn[]
}

type Unit = 'tokens' | 'inputTokens' | 'outputTokens'

export interface Vendor {
  readonly quota: QuotaName
  readonly protocol: NonNullable<SdkOptions['protocol']>
  /** Limits of each model. The demand exceeds the first one. */
  readonly limits: readonly { readonly unit: Unit; readonly limit: number }[]
  pathOf(model: string): string
  bodyOf(model: string, conversation: Conversation): object
  /** Reads the text of a response. */
  textIn(answer: never): string
}

/** Longest response in tokens; real ones are much shorter. Bedrock reserves it, so it is low. */
const MAX_TOKENS = { chat: 4_000, messages: 2_000, gemini: 4_000 }

const chat = {
  bodyOf: (model: string, { system, turns }: Conversation) => ({
    model,
    max_tokens: MAX_TOKENS.chat,
    messages: [
      { role: 'system', content: system },
      ...turns.map(({ role, text }) => ({ role, content: text })),
    ],
  }),
  textIn: ({ choices }: { choices: { message: { content: string } }[] }) =>
    choices[0]?.message.content ?? '',
}

const CACHED = { cache_control: { type: 'ephemeral' } }

const messages = {
  protocol: 'anthropic',
  pathOf: () => '/v1/messages',
  // Everything up to the newest turn is cached, as agents do.
  bodyOf: (model: string, { system, turns }: Conversation) => ({
    model,
    max_tokens: MAX_TOKENS.messages,
    system: [{ type: 'text', text: system, ...CACHED }],
    messages: turns.map(({ role, text }, index) => ({
      role,
      content: [{ type: 'text', text, ...(index === turns.length - 1 && CACHED) }],
    })),
  }),
  textIn: ({ content }: { content: { text: string }[] }) => content[0]?.text ?? '',
} as const

/** Each limit allows about 100 requests per model and window; Bedrock's allows 60 unanswered requests. */
export const VENDORS: readonly Vendor[] = [
  {
    quota: 'openai',
    protocol: 'openai',
    limits: [{ unit: 'tokens', limit: 600_000 }],
    pathOf: () => '/v1/chat/completions',
    ...chat,
  },
  {
    quota: 'azure',
    protocol: 'azure',
    limits: [{ unit: 'tokens', limit: 1_000_000 }],
    pathOf: (model) => `/openai/deployments/${model}/chat/completions?api-version=2024-10-21`,
    ...chat,
  },
  {
    quota: 'anthropic',
    limits: [
      { unit: 'inputTokens', limit: 80_000 },
      { unit: 'outputTokens', limit: 80_000 },
    ],
    ...messages,
  },
  { quota: 'bedrock', limits: [{ unit: 'tokens', limit: 400_000 }], ...messages },
  {
    quota: 'gemini',
    protocol: 'gemini',
    limits: [{ unit: 'tokens', limit: 600_000 }],
    pathOf: (model) => `/v1beta/models/${model}:generateContent`,
    bodyOf: (_model, { system, turns }) => ({
      systemInstruction: { parts: [{ text: system }] },
      contents: turns.map(({ role, text }) => ({
        role: role === 'assistant' ? 'model' : role,
        parts: [{ text }],
      })),
      generationConfig: { maxOutputTokens: MAX_TOKENS.gemini },
    }),
    textIn: (answer: { candidates: { content: { parts: { text: string }[] } }[] }) =>
      answer.candidates[0]?.content.parts[0]?.text ?? '',
  },
]
