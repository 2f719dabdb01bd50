/**
 * How one family of clients and vendors speaks: where keys stand, what a request asks for, and how an
 * error looks to an SDK. One object for each; nothing else in the gateway knows their formats.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ProtocolName } from '../config/config.js'

/** What a request asks for, as far as limits and routes care. */
export interface Asked {
  readonly model: string | undefined
  readonly streamed: boolean
  /** An estimate, on the safe side. */
  readonly promptTokens: number
  /** The most an answer may have; nothing, if the request does not say. */
  readonly maxTokens: number | undefined
}

/** Something that went wrong, to be told to a client. */
export interface Complaint {
  readonly status: number
  /** Such as `CIRCUIT_OPEN`. */
  readonly code: string
  readonly message: string
  readonly requestId: string
}

export interface Protocol {
  readonly name: ProtocolName
  /** The key a client presents, if any. */
  callerKey(headers: IncomingHttpHeaders): string | undefined
  /** The header that carries our key to the vendor. */
  vendorKey(secret: string): readonly [name: string, value: string]
  /** Where it is missing, nothing is known of bodies. */
  read?(body: Record<string, unknown>): Asked
  /** A stream that would not say what it cost, unless it is asked to. */
  hidesUsage(path: string, body: Record<string, unknown>): boolean
  /** An event that is in a stream only because we asked what it cost. */
  isUsageEvent(event: string): boolean
  /** Whether a stream that ends with these events lacks its last ones; where it is missing, nobody can tell. */
  isCutOff?(end: string): boolean
  /** The body once more, for another model, or so that its answer tells what it cost. */
  rewrite(body: Record<string, unknown>, changes: Rewrite): string
  readonly errorType: string
  errorBody(complaint: Complaint): string
  /** In the middle of a stream. */
  errorEvent(complaint: Complaint): string
  /** Whether asking twice, by POST and without a key, does no more harm than to cost twice. */
  repeatable(path: string): boolean
}

export interface Rewrite {
  readonly model?: string | undefined
  /** A stream should tell at its end what it cost. */
  readonly tellUsage?: boolean
}

export function bearer({ authorization }: IncomingHttpHeaders): string | undefined {
  if (authorization === undefined) return undefined
  return authorization.slice(0, 7).toLowerCase() === 'bearer '
    ? authorization.slice(7).trim()
    : undefined
}
