/** The request that all gateway benches send, and the vendor's response. */

export const PATH = '/v1/chat/completions'

const MODEL = 'gpt-4o-mini'

const MESSAGES = [
  {
    role: 'system',
    content:
      'You help the customers of a web shop. Answer in plain words, in the language of the question, ' +
      'in three sentences at most. Never promise a date of delivery that is not in the order, and ' +
      'never tell a customer what another customer bought. When you do not know, say so and offer ' +
      'to pass the question on to a colleague, who will answer by mail on the next working day.',
  },
  {
    role: 'user',
    content: 'Hello, I ordered a kettle last Tuesday, and the parcel has not come yet.',
  },
  {
    role: 'assistant',
    content:
      'I am sorry about that. Would you tell me the number of the order? It is in the mail that ' +
      'confirmed it, and starts with the letters WS.',
  },
  {
    role: 'user',
    content:
      'It is WS-2291-7741. The mail says two to four days, and today is the sixth. Could a ' +
      'neighbour have signed for it, and can I still change the address if it has not been sent?',
  },
]

const QUESTION = { model: MODEL, messages: MESSAGES, max_tokens: 256, temperature: 0.2 }

/** About 1 kB. */
export const REQUEST = JSON.stringify(QUESTION)

/** About 500 kB, or 100,000 tokens. */
export const LONG_REQUEST = JSON.stringify({
  ...QUESTION,
  messages: [...MESSAGES, { role: 'user', content: 'What do these words mean? '.repeat(19_200) }],
})

export const STREAMED_REQUEST = JSON.stringify({
  ...QUESTION,
  stream: true,
  stream_options: { include_usage: true },
})

/** Header that selects the vendor's response. */
export const STREAMED = '"stream":true'

const SENTENCES = [
  'The parcel left our warehouse on Thursday, ',
  'and the carrier has tried to deliver it once; ',
  'without a signature. ',
  'The address can no longer be changed, ',
  'but it waits at the post office for a week.',
]

const COMMON = {
  id: 'chatcmpl-Bq7ZkX3nTfVd0sJmYw5LhR2aPcEu8',
  created: 1_760_000_000,
  model: `${MODEL}-2024-07-18`,
  service_tier: 'default',
  system_fingerprint: 'fp_34a54ae93c',
}

const USAGE = { prompt_tokens: 231, completion_tokens: 47, total_tokens: 278 }

/** About 600 bytes. */
export const ANSWER = JSON.stringify({
  ...COMMON,
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: SENTENCES.join(''), refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: USAGE,
})

/** Ten chunks; the last but one contains the usage. */
export const EVENTS: readonly string[] = [
  event([delta({ role: 'assistant', content: '' })]),
  ...SENTENCES.map((content) => event([delta({ content })])),
  event([delta({ content: ' Anything else?' })]),
  event([delta({}, 'stop')]),
  event([], USAGE),
  'data: [DONE]\n\n',
]

function delta(delta: object, finish_reason: string | null = null): object {
  return { index: 0, delta, logprobs: null, finish_reason }
}

function event(choices: readonly object[], usage: object | null = null): string {
  const chunk = { ...COMMON, object: 'chat.completion.chunk', choices, usage }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

const RATE_LIMITS = {
  'x-ratelimit-limit-requests': '100000000',
  'x-ratelimit-remaining-requests': '99999999',
  'x-ratelimit-reset-requests': '1ms',
  'x-ratelimit-limit-tokens': '1000000000000',
  'x-ratelimit-remaining-tokens': '999999999000',
  'x-ratelimit-reset-tokens': '1ms',
}

/** Response headers except content type and length. */
export const ANSWER_HEADERS = {
  'openai-processing-ms': '12',
  'openai-version': '2020-10-01',
  'x-request-id': 'req_6b1f0f1c2a7e4c0f9d3b',
  ...RATE_LIMITS,
}
