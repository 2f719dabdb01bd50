/** OpenAI's transcriptions and translations of audio, as JSON, text, subtitles or a stream. */
import { type Answer, type Endpoint, type EventWriter, json, type Payload } from '../dialect.js'
import { errorBody, failure, missing } from './errors.js'

/** Seconds of audio, independent of the file's content. */
const SECONDS = 2
/** An assumption: a second of audio is this many tokens. */
const TOKENS_PER_SECOND = 10

export const transcriptions = audioEndpoint('/v1/audio/transcriptions')
export const translations = audioEndpoint('/v1/audio/translations')

function audioEndpoint(path: string): Endpoint {
  return {
    method: 'POST',
    path,
    read({ form }) {
      if (form === undefined) return failure(400, 'The request body is not multipart/form-data.')
      const model = form.text('model')
      if (model === undefined || model === '') return missing('model')
      if (form.file('file') === undefined) return missing('file')
      const format = form.text('response_format') ?? 'json'
      const write = FORMATS[format]
      if (write === undefined) return failure(400, `Unknown response_format '${format}'.`)
      return {
        model,
        streamed: form.text('stream') === 'true',
        promptTokens: SECONDS * TOKENS_PER_SECOND,
        maxTokens: Number.POSITIVE_INFINITY,
        reply: { whole: write, events: EVENTS },
      }
    },
  }
}

const FORMATS: Readonly<Record<string, (answer: Answer) => Payload>> = {
  json: (answer) => json({ text: answer.text(), usage: usageOf(answer) }),
  diarized_json: (answer) => json({ text: answer.text(), segments: [], usage: usageOf(answer) }),
  verbose_json: (answer) =>
    json({
      task: 'transcribe',
      language: 'english',
      duration: SECONDS,
      text: answer.text(),
      segments: [{ id: 0, start: 0, end: SECONDS, text: answer.text() }],
      usage: { type: 'duration', seconds: SECONDS },
    }),
  text: (answer) => plain(`${answer.text()}\n`),
  srt: (answer) => plain(`1\n00:00:00,000 --> 00:00:02,000\n${answer.text()}\n\n`),
  vtt: (answer) => plain(`WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n${answer.text()}\n\n`),
}

const EVENTS: EventWriter = {
  opening: () => [],
  token: (answer, index) => event('transcript.text.delta', { delta: answer.token(index) }),
  closing: (answer) => [
    event('transcript.text.done', { text: answer.text(), usage: usageOf(answer) }),
  ],
  breakdown: () => `data: ${JSON.stringify(errorBody(failure(500)))}\n\n`,
}

function event(type: string, data: object): string {
  return `data: ${JSON.stringify({ type, ...data })}\n\n`
}

function plain(body: string): Payload {
  return { contentType: 'text/plain; charset=utf-8', body }
}

function usageOf({ promptTokens, tokens }: Answer) {
  return {
    type: 'tokens',
    input_tokens: promptTokens,
    input_token_details: { text_tokens: 0, audio_tokens: promptTokens },
    output_tokens: tokens,
    total_tokens: promptTokens + tokens,
  }
}
