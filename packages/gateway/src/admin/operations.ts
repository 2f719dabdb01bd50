/** Operations of the admin port: status, audit log and actions. Each action and each refusal is audited. */

import { isRequestId } from '@spillway/dashboard'
import {
  type Duration,
  type Operator,
  OptionsError,
  type Spillway,
  SpillwayError,
  type SpillwayEvent,
} from 'spillway'
import type { OperatorAccess } from 'spillway/http'
import type { OperatorRequest } from 'spillway/operate'
import { attempt } from './audit.js'
import { denied } from './hardening.js'
import { type AdminRequest, type AdminResponse, BodyError, Routes, readJson } from './http.js'

export interface ConfigAnswer {
  readonly ok: boolean
  /** The active configuration, or every mistake, as text. */
  readonly message: string
  /** Additional notes. */
  readonly report?: unknown
}

/** Operations of a gateway that was started with a configuration file. */
export interface ConfigHooks {
  /** The active configuration, and the result of the last reload. */
  status(): {
    readonly generation: number
    readonly since: string
    readonly afterRestart: readonly string[]
    readonly refused: { readonly at: string; readonly reason: string } | undefined
  }
  /** Looks whether the file could be used. None: there is no file. */
  check?(): Promise<ConfigAnswer> | ConfigAnswer
  /** Uses it, if it can be used. */
  reload?(by: string): Promise<ConfigAnswer> | ConfigAnswer
}

export interface OperationsOptions {
  readonly access: OperatorAccess
  readonly spillway: Spillway
  readonly snapshot: () => object | Promise<object>
  /** Of the active configuration. */
  readonly operator: () => Operator
  readonly audit: (event: SpillwayEvent) => void
  readonly config: ConfigHooks
  /** Explains what happened to a request, on any pod. */
  readonly explain: (requestId: string) => Promise<object>
}

/** The routes of operators. Reading needs `access.read`, acting `access.act`. */
export function operations(options: OperationsOptions): Routes {
  const { access, spillway, snapshot, operator, audit, config, explain } = options
  const routes = new Routes()

  function read(path: string, value: (request: AdminRequest) => unknown): void {
    routes.get(path, async (request) => {
      const denial = access.read(request.raw)
      return denial ? denied(denial, request, audit) : attempted(request, () => value(request))
    })
  }

  function act(
    path: string,
    perform: (request: AdminRequest, body: object) => Promise<AdminResponse>,
  ) {
    routes.post(path, async (request) => {
      const denial = access.act(request.raw)
      if (denial !== undefined) return denied(denial, request, audit)
      try {
        return await perform(request, objectOf(await readJson(request.raw)))
      } catch (error) {
        return failed(request, error as Error)
      }
    })
  }

  async function attempted(request: AdminRequest, value: () => unknown): Promise<AdminResponse> {
    try {
      return { body: await value() }
    } catch (error) {
      return failed(request, error as Error)
    }
  }

  function failed(request: AdminRequest, error: Error): AdminResponse {
    const { status, code } = statusOf(error)
    // The operator emits an event for its own refusals.
    if (!(error instanceof OptionsError || error instanceof SpillwayError)) {
      audit(attempt(request, 'refused', `${code}: ${error.message}`))
    }
    return { status, body: { error: { code, message: error.message } } }
  }

  read('/snapshot', snapshot)
  read('/status', () => spillway.fleet())
  read('/config', () => config.status())
  // Names and addresses of operators need the token, independent of `readAccess`.
  routes.get('/audit', async (request) => {
    const denial = access.act(request.raw)
    if (denial !== undefined) return denied(denial, request, audit)
    return attempted(request, () => operator().audit(periodIn(request.raw.url ?? '')))
  })
  read('/explain', ({ raw }) => explain(requestIdIn(raw.url ?? '')))
  act('/actions', async ({ ip }, body) => ({
    body: await operator().perform({ ...body, from: ip } as OperatorRequest),
  }))
  for (const what of ['check', 'reload'] as const) {
    act(`/config/${what}`, async (request, body) => {
      const { by = '' } = body as { by?: unknown }
      const none = {
        ok: false,
        message: `this gateway was started without a configuration file, so it cannot ${what} one`,
      }
      const answer = (await config[what]?.(String(by))) ?? none
      const result = answer.ok ? 'done' : 'refused'
      audit(attempt(request, result, answer.message, String(by)))
      if (what === 'reload') {
        const { message } = answer
        const { ip: from } = request
        await operator().note({ action: what, guard: '', by: String(by), from, result, message })
      }
      return { status: answer.ok ? 200 : config[what] === undefined ? 501 : 422, body: answer }
    })
  }
  return routes
}

/** `?since=1d`: the last day. */
function periodIn(url: string): { sinceMs?: Duration } {
  const since = new URLSearchParams(url.split('?')[1]).get('since')
  if (since === null) return {}
  return { sinceMs: /^\d+$/.test(since) ? Number(since) : (since as Duration) }
}

function requestIdIn(url: string): string {
  const id = new URLSearchParams(url.split('?')[1]).get('request') ?? ''
  if (isRequestId(id)) return id
  const message = 'must be a request id, such as the spillway-request-id of an answer'
  throw new OptionsError([{ path: 'request', message }])
}

function objectOf(body: unknown): object {
  return typeof body === 'object' && body !== null ? body : {}
}

function statusOf(error: Error): { status: number; code: string } {
  if (error instanceof OptionsError) return { status: 400, code: error.code }
  if (error instanceof SpillwayError) return { status: error.status, code: error.code }
  if (!(error instanceof BodyError)) return { status: 500, code: 'INTERNAL' }
  return { status: error.status, code: error.status === 415 ? 'NOT_JSON' : 'INVALID_BODY' }
}
