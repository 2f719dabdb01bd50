/** Headers in which clients send API keys: of OpenAI and others, Anthropic, Gemini and Azure OpenAI. */
export const KEY_HEADERS = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key'] as const
