import type { ProtocolName } from '../config/config.js'
import { anthropic } from './anthropic.js'
import { http } from './http.js'
import { openai } from './openai.js'
import type { Protocol } from './protocol.js'

export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = { openai, anthropic, http }
