/** An operator that acts through the admin port of a gateway. */

import type { Explanation } from '@spillway/dashboard'
import type { Operator } from 'spillway'
import type { AuditEntry, FleetReport, OperatorRequest, OperatorResult } from 'spillway/operate'
import { EXIT } from '../command.js'
import { CommandError } from '../command-error.js'

export type OperatorPart = Pick<Operator, 'perform' | 'fleet' | 'audit'>

export interface AdminClient extends OperatorPart {
  explain(requestId: string): Promise<Explanation>
}

const PATIENCE_MS = 10_000

export function adminClient(admin: URL, token: string | undefined): AdminClient {
  async function send<T>(path: string, body?: object): Promise<T> {
    const headers = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const answer = await fetch(new URL(path, admin), {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE_MS),
      redirect: 'error',
    }).catch((error: Error & { cause?: { code?: string } }) => {
      const why = error.cause?.code ?? error.message
      throw new CommandError(`${admin.origin} does not answer (${why})`, EXIT.unavailable)
    })
    const reply = (await answer.json().catch(() => undefined)) as ErrorAnswer | undefined
    if (answer.ok && reply !== undefined) return reply as T
    const why = reply?.error?.message ?? `status ${answer.status}`
    throw new CommandError(
      `${admin.origin}: ${why}`,
      answer.status === 503 ? EXIT.unavailable : EXIT.failure,
    )
  }
  return {
    perform: (request: OperatorRequest) => send<OperatorResult>('/actions', request),
    fleet: () => send<FleetReport>('/status'),
    audit: ({ sinceMs } = {}) =>
      send<AuditEntry[]>(sinceMs === undefined ? '/audit' : `/audit?since=${sinceMs}`),
    explain: (requestId) => send<Explanation>(`/explain?request=${encodeURIComponent(requestId)}`),
  }
}

interface ErrorAnswer {
  readonly error?: { readonly message?: string }
}
