import type { ProtocolName } from '../config/config.js'
import { anthropic } from './anthropic.js'
import { azure } from './azure.js'
import { gemini } from './gemini.js'
import { http } from './http.js'
import { openai } from './openai.js'
import type { Protocol } from './protocol.js'

export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = {
  openai,
  anthropic,
  gemini,
  azure,
  http,
}
