import { anthropic } from './anthropic.mjs'
import { langchainAnthropic, langchainOpenai } from './langchain.mjs'
import { openai } from './openai.mjs'
import { agents } from './openai-agents.mjs'
import { axiosClient, gotClient } from './plain-http.mjs'
import { aiAnthropic, aiOpenai, aiResponses } from './vercel-ai.mjs'

/** `create(options)` returns functions for what the suite asks for. A function that is missing has no place in the SDK. */
export const CLIENTS = [
  openai,
  anthropic,
  aiOpenai,
  aiResponses,
  aiAnthropic,
  langchainOpenai,
  langchainAnthropic,
  agents,
  axiosClient,
  gotClient,
]
