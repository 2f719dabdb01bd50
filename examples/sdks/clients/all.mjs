import { anthropic } from './anthropic.mjs'
import { langchainAnthropic, langchainOpenai } from './langchain.mjs'
import { openai } from './openai.mjs'
import { agents } from './openai-agents.mjs'
import { axiosClient, gotClient } from './plain-http.mjs'
import { aiAnthropic, aiOpenai, aiResponses } from './vercel-ai.mjs'

/** `create(options)` returns the functions that the suite calls. A missing function has no counterpart in the SDK. */
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
