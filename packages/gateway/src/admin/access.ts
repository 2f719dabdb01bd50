/**
 * Who may ask at the admin port, and who may operate a gateway. With a token, whoever shows it. Without one,
 * whoever is on this machine, if the port is open to nobody else; and since a web page in a browser on this
 * machine is that too, requests have to be for this machine by name, and not from another site.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Token } from './token.js'

export interface AccessRules {
  readonly token: Token | undefined
  /** The port is open to this machine only. */
  readonly loopback: boolean
}

export interface Refusal {
  readonly status: 401 | 403
  readonly code: 'UNKNOWN_TOKEN' | 'NO_TOKEN' | 'WRONG_HOST' | 'OTHER_SITE'
  readonly message: string
}

/** Why a request may not operate anything, if so. */
export function refusalOf(
  headers: IncomingHttpHeaders,
  { token, loopback }: AccessRules,
): Refusal | undefined {
  if (token !== undefined && !token.isShownBy(headers.authorization)) {
    const message = 'show admin.token: authorization: Bearer TOKEN'
    return { status: 401, code: 'UNKNOWN_TOKEN', message }
  }
  if (token === undefined && !loopback) {
    const message = 'the admin port is open to other machines: set admin.token in the configuration'
    return { status: 403, code: 'NO_TOKEN', message }
  }
  return undefined
}

/** A page of somebody else's in a browser that can reach this port. */
export function strangerIn(headers: IncomingHttpHeaders, loopback: boolean): Refusal | undefined {
  const host = nameIn(headers.host)
  if (loopback && !isLoopback(host)) {
    const message = 'ask for localhost, 127.0.0.1 or [::1]: this port is for this machine'
    return { status: 403, code: 'WRONG_HOST', message }
  }
  if (isFromElsewhere(headers)) {
    return { status: 403, code: 'OTHER_SITE', message: 'no other site may ask for this' }
  }
  return undefined
}

/** Browsers say where a request comes from; other programs need not. */
function isFromElsewhere({ origin, host, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  if (typeof site === 'string' && site !== 'same-origin' && site !== 'none') return true
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase()
}

/** Without the port. */
function nameIn(host: string | undefined): string {
  return (host ?? '').replace(/:\d+$/, '').toLowerCase()
}

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host)
}
